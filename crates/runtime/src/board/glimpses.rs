//! Tells one reader, up to four times per second, what has changed on the board.

use super::answer::Got;
use super::{Board, Entry, Moment, now};
use crate::every::every;
use polity_store::Conversation;
use polity_view::{Doing, EventFilter, Glimpse};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Interval;

/// Interval between two looks at the board.
const PERIOD: Duration = Duration::from_millis(250);
/// Maximum number of changes (glimpses) that one look at the board returns. The next look returns the remaining
/// changes.
const MOST: usize = 200;

/// Tells one reader the changes of the board. The reader's filter selects these changes.
pub struct Glimpses {
    board: Arc<Board>,
    filter: EventFilter,
    seen: HashMap<Conversation, Seen>,
    looks: Interval,
}

/// What the reader was last shown of one conversation.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    doing: Option<Doing>,
    got: Got,
}

impl Glimpses {
    pub(crate) fn new(board: Arc<Board>, filter: EventFilter) -> Self {
        Self { board, filter, seen: HashMap::new(), looks: every(PERIOD) }
    }

    /// Waits until something on the board has changed, and returns the changes. No change is lost if the caller drops
    /// this future while it waits.
    pub async fn next(&mut self) -> Vec<Glimpse> {
        loop {
            self.looks.tick().await;
            let glimpses = look(&self.board.entries(), &self.filter, &mut self.seen, now());
            if !glimpses.is_empty() {
                return glimpses;
            }
        }
    }
}

impl fmt::Debug for Glimpses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Glimpses").finish_non_exhaustive()
    }
}

/// Returns the changes of the board that the reader has not seen, and notes them in `seen`. If there are more changes
/// than [`MOST`], returns the most important changes; the next call returns the others.
pub(super) fn look(
    entries: &HashMap<Conversation, Entry>,
    filter: &EventFilter,
    seen: &mut HashMap<Conversation, Seen>,
    now: i64,
) -> Vec<Glimpse> {
    let mut glimpses = Vec::new();
    seen.retain(|conversation, _| {
        let stays = entries.contains_key(conversation) || glimpses.len() == MOST;
        if !stays {
            glimpses.push(glimpse(conversation, None));
        }
        stays
    });
    let mut changed: Vec<(&Conversation, &Entry, Doing)> = Vec::new();
    for (conversation, entry) in entries {
        let is_wanted = filter.task.as_ref().is_none_or(|task| *task == conversation.task)
            && filter.agent.as_ref().is_none_or(|agent| *agent == conversation.agent);
        if !is_wanted {
            continue;
        }
        let doing = entry.doing(&conversation.task, now);
        let is_new = seen.get(conversation).is_none_or(|seen| match &entry.moment {
            Moment::Thinking(answer) => answer.has_more(&seen.got) || seen.doing.as_ref() != Some(&doing),
            Moment::Queued(_) | Moment::Retrying { .. } | Moment::Running(_) => {
                seen.doing.as_ref() != Some(&doing)
            }
        });
        if is_new {
            changed.push((conversation, entry, doing));
        }
    }
    // Many agents may move up in a queue at the same time. These moves matter least, so all other changes come first.
    changed.sort_by_key(|(_, _, doing)| match doing {
        Doing::Queued { place, .. } => place.unwrap_or_default(),
        _ => 0,
    });
    for (conversation, entry, doing) in changed.into_iter().take(MOST.saturating_sub(glimpses.len())) {
        let seen = seen.entry(conversation.clone()).or_default();
        let said = match &entry.moment {
            Moment::Thinking(answer) => answer.said(&mut seen.got),
            Moment::Queued(_) | Moment::Retrying { .. } | Moment::Running(_) => None,
        };
        seen.doing = Some(doing.clone());
        glimpses.push(Glimpse { said, ..glimpse(conversation, Some(doing)) });
    }
    glimpses
}

fn glimpse(conversation: &Conversation, doing: Option<Doing>) -> Glimpse {
    let Conversation { agent, task } = conversation.clone();
    Glimpse { agent, task, doing, said: None }
}
