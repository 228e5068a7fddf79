//! Formats the screen of `polity watch` as lines.

use crate::output::table::{BAD, DIM, NAME, painted, table};
use crate::remote::agents::{row, tree};
use polity_view::{AgentState, AgentView};
use std::collections::VecDeque;
use unicode_width::UnicodeWidthChar;

/// Number of event lines to keep: more than any screen shows.
const KEPT: usize = 500;

/// What the screen shows.
pub(super) struct State {
    /// The agents, parents before children.
    pub(super) agents: Vec<AgentView>,
    pub(super) link: Link,
    /// Index of the first visible line of the tree.
    pub(super) first: usize,
    happened: VecDeque<String>,
}

/// Whether the event stream of the daemon is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Up,
    Down,
}

/// Size of a screen, in characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

impl State {
    pub(super) fn new(agents: Vec<AgentView>) -> Self {
        Self { agents, link: Link::Up, first: 0, happened: VecDeque::new() }
    }

    /// Adds the line of an event.
    pub(super) fn happened(&mut self, line: String) {
        if self.happened.len() == KEPT {
            self.happened.pop_front();
        }
        self.happened.push_back(line);
    }
}

/// Returns the lines of the screen from the top: the tree of agents, then the events, newest last. Also limits the
/// scroll position, so that scrolling stops at the end of the tree.
pub(super) fn lines(state: &mut State, size: Size) -> Vec<String> {
    let mut lines = vec![head(state)];
    let left = size.rows.saturating_sub(2);
    let rows: Vec<_> = tree(&state.agents).iter().map(|branch| row(&branch.before, branch.agent)).collect();
    let tree = table(&rows);
    let tree: Vec<&str> = tree.lines().collect();
    // The tree may take half of the screen, and also the lines that the events leave free.
    let wanted = left.saturating_sub(state.happened.len()).max(left.div_ceil(2));
    let shown = tree.len().min(wanted);
    state.first = state.first.min(tree.len() - shown);
    lines.extend(tree.iter().skip(state.first).take(shown).map(|line| (*line).to_owned()));
    let hidden = tree.len() - shown;
    let rule = if hidden == 0 {
        "─".repeat(size.columns)
    } else {
        format!("── {hidden} more (↑ ↓) ──")
    };
    lines.push(painted(DIM, &rule));
    let room = size.rows.saturating_sub(lines.len());
    let skipped = state.happened.len().saturating_sub(room);
    lines.extend(state.happened.iter().skip(skipped).cloned());
    lines.truncate(size.rows);
    lines.iter().map(|line| clipped(line, size.columns)).collect()
}

fn head(state: &State) -> String {
    let agents = state.agents.iter().filter(|agent| !agent.id.is_user());
    let count = |wanted: AgentState| agents.clone().filter(|agent| agent.state == wanted).count();
    let mut head = painted(NAME, "polity");
    for (wanted, word) in [
        (AgentState::Asking, "asking you"),
        (AgentState::Thinking, "thinking"),
        (AgentState::Queued, "queued"),
        (AgentState::Waiting, "waiting"),
        (AgentState::Parked, "parked"),
        (AgentState::Paused, "paused"),
        (AgentState::Idle, "idle"),
    ] {
        if count(wanted) > 0 {
            head.push_str(&format!("  {} {word}", count(wanted)));
        }
    }
    match state.link {
        Link::Up => head.push_str(&format!("  {}", painted(DIM, "q quits"))),
        Link::Down => {
            head.push_str(&format!("  {}", painted(BAD, "the daemon has gone; waiting until it is back")))
        }
    }
    head
}

/// Cuts a line at the width of the screen. Styles take no width; they are reset where the line is cut.
fn clipped(line: &str, columns: usize) -> String {
    let mut clipped = String::with_capacity(line.len());
    let mut width = 0;
    let mut in_style = false;
    for character in line.chars() {
        if in_style {
            clipped.push(character);
            in_style = character != 'm';
        } else if character == '\u{1b}' {
            clipped.push(character);
            in_style = true;
        } else {
            width += character.width().unwrap_or_default();
            if width > columns {
                return format!("{clipped}{}", anstyle::Reset);
            }
            clipped.push(character);
        }
    }
    clipped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::without_styles;
    use crate::remote::examples::agents;
    use proptest::prelude::*;

    fn state(events: usize) -> State {
        let mut state = State::new(agents());
        (1..=events).for_each(|event| state.happened(format!("{event} something happened")));
        state
    }

    fn screen(state: &mut State, columns: usize, rows: usize) -> String {
        without_styles(&lines(state, Size { columns, rows }).join("\n"))
    }

    #[test]
    fn a_screen() {
        insta::assert_snapshot!(screen(&mut state(3), 100, 14), @r#"
polity  1 thinking  1 waiting  1 parked  1 paused  q quits
root                                                  waiting for agent-sae2                        
├─ agent-sae2      组长                               thinking, waits for agent-7cwh  2 messages wai
│  ├─ agent-7cwh   阅读者 “Ann”                       parked                          1 message wait
│  └─ writer-11aa  red <U+001B>[31m<U+0007> and more  ended                                         
└─ clerk-22bb      clerk                              paused                                        
────────────────────────────────────────────────────────────────────────────────────────────────────
1 something happened
2 something happened
3 something happened
"#);
    }

    #[test]
    fn a_small_screen_while_no_daemon_is_there() {
        let mut state = state(9);
        state.link = Link::Down;
        state.first = 1;
        insta::assert_snapshot!(screen(&mut state, 48, 9), @r#"
polity  1 thinking  1 waiting  1 parked  1 pause
├─ agent-sae2      组长                         
│  ├─ agent-7cwh   阅读者 “Ann”                 
│  └─ writer-11aa  red <U+001B>[31m<U+0007> and 
└─ clerk-22bb      clerk                        
── 1 more (↑ ↓) ──
7 something happened
8 something happened
9 something happened
"#);
    }

    proptest! {
        #[test]
        fn no_screen_is_left(events in 0_usize..600, first in 0_usize..20, columns in 1_usize..120, rows in 1_usize..40) {
            let mut state = state(events);
            state.first = first;
            let lines = lines(&mut state, Size { columns, rows });
            prop_assert!(lines.len() <= rows);
            for line in &lines {
                let width: usize = without_styles(line).chars().filter_map(UnicodeWidthChar::width).sum();
                prop_assert!(width <= columns, "{line:?}");
            }
        }
    }
}
