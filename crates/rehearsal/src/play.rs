//! Finds out which character an agent plays, and what that character does next.

use crate::moves::Move;
use crate::reading::Scene;
use crate::{lead, reader, root};
use polity_society::id::AgentId;

/// The characters of the play. Each agent plays one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Character {
    /// Talks to the person and hires the lead.
    Root,
    /// An agent that root hired. It reads the attachments or lets other agents read them, until all are read. Then it
    /// reports.
    Lead,
    /// Any other agent. It reports what it sees, and never hires, so that every play ends.
    Reader,
}

impl Character {
    fn of(scene: &Scene<'_>) -> Self {
        if scene.me.as_ref().is_some_and(AgentId::is_root) {
            return Self::Root;
        }
        if scene.parent.as_ref().is_some_and(AgentId::is_root) { Self::Lead } else { Self::Reader }
    }
}

/// Decides what the agent does next.
pub(crate) fn next_move(scene: &Scene<'_>) -> Move {
    match Character::of(scene) {
        Character::Root => root::next_move(scene),
        Character::Lead => lead::next_move(scene),
        Character::Reader => Move::Say(reader::closing(scene)),
    }
}

/// Returns the closing text of an agent that would need to call a tool but is not allowed to.
pub(crate) fn closing_without_tools(scene: &Scene<'_>) -> String {
    let words = scene.words();
    let known = match Character::of(scene) {
        Character::Root => root::known(scene),
        Character::Lead => lead::known(scene),
        Character::Reader => reader::closing(scene),
    };
    format!("{}\n{known}", words.say(&words.common.no_tools, &[]))
}
