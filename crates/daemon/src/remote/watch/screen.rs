//! Formats the screen of `polity watch` as lines.

use crate::output::shortened;
use crate::output::table::{BAD, Cell, DIM, NAME, painted, whole_line};
use crate::remote::agents::{in_lines, row, tree};
use crate::remote::finished::without_finished;
use crate::remote::live::Saying;
use crate::suggested::repeating;
use polity_client::Loss;
use polity_society::id::{AgentId, TaskId};
use polity_view::{AgentState, AgentView, Doing, Glimpse};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Number of event lines to keep: more than any screen shows.
const KEPT: usize = 500;

/// Index of the column for the text that a model is writing; this column stands after the column for what the agent is
/// doing.
const SAID: usize = 3;

/// What the screen shows.
pub(super) struct State {
    /// The agents, parents before children.
    pub(super) agents: Vec<AgentView>,
    /// The ids of all open tasks. If set, the agents of all other tasks are left out while they are idle.
    pub(super) open: Option<BTreeSet<TaskId>>,
    pub(super) link: Link,
    /// If set, only this task is shown.
    task: Option<TaskId>,
    /// Index of the first visible line of the tree.
    pub(super) first: usize,
    happened: VecDeque<String>,
    /// For each agent, the part of the model's answer that has arrived so far.
    saying: HashMap<AgentId, Saying>,
}

/// Whether the list of agents must be fetched again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agents {
    Known,
    Outdated,
}

/// Whether the event stream of the daemon is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Up,
    Down(Loss),
}

/// Size of a screen, in characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

impl State {
    pub(super) fn new(agents: Vec<AgentView>, task: Option<TaskId>) -> Self {
        let (happened, saying) = (VecDeque::new(), HashMap::new());
        Self { agents, open: None, link: Link::Up, task, first: 0, happened, saying }
    }

    /// Handles a glimpse, a short report of what an agent is doing now. Returns whether the list of agents is outdated.
    /// For example, it is outdated if an agent has ended what it was doing, because the glimpse does not say what the
    /// agent does next.
    pub(super) fn see(&mut self, glimpse: Glimpse) -> Agents {
        let Glimpse { agent: id, task, doing, said } = glimpse;
        let agent = self.agents.iter_mut().find(|agent| agent.id == id);
        let Some(doing) = doing else {
            self.saying.remove(&id);
            return Agents::Outdated;
        };
        if let Some(said) = said {
            self.saying.entry(id).or_default().hear(said);
        } else if !matches!(doing, Doing::Thinking { .. }) {
            self.saying.remove(&id);
        }
        match agent {
            // Only the daemon decides which one of an agent's tasks the agent is shown in.
            Some(agent) if agent.doing.task().is_some_and(|shown| *shown != task) => Agents::Outdated,
            Some(agent) if agent.state.is_at_work() || agent.state == AgentState::Idle => {
                (agent.state, agent.doing) = (doing.state(), doing);
                Agents::Known
            }
            Some(_) | None => Agents::Outdated,
        }
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
/// scroll position, so that scrolling stops at the end of the tree. `now` is the time in milliseconds since 1970.
pub(super) fn lines(state: &mut State, size: Size, now: i64) -> Vec<String> {
    let mut lines = vec![head(state)];
    let left = size.rows.saturating_sub(2);
    let few = state.open.as_ref().map(|open| without_finished(&state.agents, open));
    let (agents, finished) =
        few.as_ref().map_or((&state.agents, 0), |(agents, finished)| (agents, *finished));
    let mut rows = Vec::with_capacity(agents.len());
    for branch in tree(agents) {
        let said = state.saying.get(&branch.agent.id).and_then(Saying::line);
        let mut row = row(&branch, now, Some(size.columns));
        // A separate column, beside what the agent is doing, shows the text that its model is writing.
        row.cells.insert(SAID, Cell::new(DIM, &said.unwrap_or_default()));
        rows.push(row);
    }
    let mut tree = in_lines(rows, None);
    tree.extend(not_shown(finished));
    // The tree may take half of the screen, and also the lines that the events leave free.
    let wanted = left.saturating_sub(state.happened.len()).max(left.div_ceil(2));
    let shown = tree.len().min(wanted);
    state.first = state.first.min(tree.len() - shown);
    lines.extend(tree.iter().skip(state.first).take(shown).cloned());
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
    lines.iter().map(|line| shortened(line, size.columns)).collect()
}

/// Says that a number of agents is left out. The screen does not show the agents that have ended, and does not know how
/// many they are.
fn not_shown(count: usize) -> Option<String> {
    let words = match count {
        0 => return None,
        1 => "1 idle agent of a finished task is not shown; `polity agents --all` lists it".to_owned(),
        _ => format!("{count} idle agents of finished tasks are not shown; `polity agents --all` lists them"),
    };
    // The options that the command repeats may be long, and a path may contain any character.
    let words = whole_line(&repeating(&words));
    Some(format!("{DIM}{words}{DIM:#}"))
}

fn head(state: &State) -> String {
    let agents = state.agents.iter().filter(|agent| !agent.id.is_user());
    let count = |wanted: AgentState| agents.clone().filter(|agent| agent.state == wanted).count();
    let mut head = painted(NAME, "polity");
    if let Some(task) = &state.task {
        head.push_str(&format!("  {}", painted(DIM, task.as_str())));
    }
    for state in AgentState::ALL.iter().copied().filter(|state| *state != AgentState::Ended) {
        if count(state) > 0 {
            head.push_str(&format!("  {} {}", count(state), state.as_str()));
        }
    }
    match state.link {
        Link::Up => head.push_str(&format!("  {}", painted(DIM, "q quits"))),
        Link::Down(loss) => head.push_str(&format!("  {}", painted(BAD, loss.words()))),
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::without_styles;
    use crate::remote::examples::{NOW, agent, agents, silent, task_id};
    use proptest::prelude::*;
    use unicode_width::UnicodeWidthChar;

    fn state(events: usize) -> State {
        let mut state = State::new(agents(), None);
        (1..=events).for_each(|event| state.happened(format!("{event} something happened")));
        state
    }

    fn screen(state: &mut State, columns: usize, rows: usize) -> String {
        without_styles(&lines(state, Size { columns, rows }, NOW).join("\n"))
    }

    #[test]
    fn one_finished_agent_is_told_apart_from_several() {
        let told = |count| not_shown(count).map(|line| without_styles(&line));
        assert_eq!(told(0), None);
        let one = "1 idle agent of a finished task is not shown; `polity agents --all` lists it";
        assert_eq!(told(1).as_deref(), Some(one));
        let two = "2 idle agents of finished tasks are not shown; `polity agents --all` lists them";
        assert_eq!(told(2).as_deref(), Some(two));
    }

    #[test]
    fn a_screen() {
        insta::assert_snapshot!(screen(&mut state(3), 100, 14), @r#"
polity  1 thinking  1 waiting  1 parked  1 paused  q quits
root                                                  waiting for agent-sae2 (m000000002), 1 min 5 …
├─ agent-sae2      组长                               thinking at local, 12 s, 81 tokens, waits for…
│  ├─ agent-7cwh   阅读者 “Ann”                       parked: the database is damaged              …
│  └─ writer-11aa  red <U+001B>[31m<U+0007> and more  ended                                        …
└─ clerk-22bb      clerk                              paused, 1 min                                …
────────────────────────────────────────────────────────────────────────────────────────────────────
1 something happened
2 something happened
3 something happened
"#);
    }

    #[test]
    fn all_words_about_a_silent_server_are_shown() {
        let root = AgentView { state: AgentState::Thinking, doing: silent(), ..agent("root", None) };
        let mut state = State::new(vec![root, agent("ida", Some("root"))], None);
        insta::assert_snapshot!(screen(&mut state, 80, 6), @r#"
polity  1 thinking  1 idle  q quits
root    thinking at local  local
│  silent for 12 s; polity ends this attempt in 48 s, then asks it again
└─ ida  idle               local
────────────────────────────────────────────────────────────────────────────────
"#);
        insta::assert_snapshot!(screen(&mut state, 40, 7), @r#"
polity  1 thinking  1 idle  q quits
root    thinking at local  local
│  silent for 12 s; polity ends this
│    attempt in 48 s, then asks it again
└─ ida  idle               local
────────────────────────────────────────
"#);
    }

    #[test]
    fn agents_of_finished_tasks_are_left_out() {
        let mut state = state(1);
        // The daemon is not asked for agents that have ended.
        state.agents.retain(|agent| agent.state != AgentState::Ended);
        let idle = |id: &str| AgentView { task: Some(task_id()), ..agent(id, Some("root")) };
        state.agents.extend([idle("ida"), idle("ivo")]);
        let mut lines_of = |open: Option<BTreeSet<TaskId>>| {
            state.open = open;
            let screen = screen(&mut state, 100, 14);
            screen.lines().skip(1).map(|line| line.trim_end().to_owned()).collect::<Vec<_>>()
        };
        for open in [None, Some(BTreeSet::from([task_id()]))] {
            let lines = lines_of(open);
            assert!(lines.iter().any(|line| line.contains("└─ ivo")), "{lines:?}");
            assert!(!lines.iter().any(|line| line.contains("not shown")), "{lines:?}");
        }
        let lines = lines_of(Some(BTreeSet::new()));
        assert!(!lines.iter().any(|line| line.contains("ida") || line.contains("ivo")), "{lines:?}");
        let told = "2 idle agents of finished tasks are not shown; `polity agents --all` lists them";
        assert!(lines.iter().any(|line| line == told), "{lines:?}");
    }

    #[test]
    fn a_glimpse_of_another_task_does_not_replace_what_an_agent_is_doing() {
        let ready = |task: &TaskId| Doing::Ready { task: task.clone(), since: NOW };
        let see = |state: &mut State, task: TaskId| {
            let (agent, doing) = (AgentId::new("agent-sae2"), Some(ready(&task)));
            state.see(Glimpse { agent, task, doing, said: None })
        };
        let shown = |state: &State| {
            let lead = state.agents.iter().find(|agent| agent.id.as_str() == "agent-sae2");
            lead.map(|agent| agent.state)
        };
        let mut state = state(0);
        assert_eq!(see(&mut state, TaskId::new("task-other")), Agents::Outdated);
        assert_eq!(shown(&state), Some(AgentState::Thinking));
        assert_eq!(see(&mut state, task_id()), Agents::Known);
        assert_eq!(shown(&state), Some(AgentState::Ready));
    }

    #[test]
    fn a_small_screen_while_no_daemon_is_there() {
        let mut state = state(9);
        state.link = Link::Down(Loss::Gone);
        state.first = 1;
        insta::assert_snapshot!(screen(&mut state, 48, 9), @r#"
polity  1 thinking  1 waiting  1 parked  1 paus…
├─ agent-sae2      组长                        …
│  ├─ agent-7cwh   阅读者 “Ann”                …
│  └─ writer-11aa  red <U+001B>[31m<U+0007> and…
└─ clerk-22bb      clerk                       …
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
            let lines = lines(&mut state, Size { columns, rows }, NOW);
            prop_assert!(lines.len() <= rows);
            for line in &lines {
                let width: usize = without_styles(line).chars().filter_map(UnicodeWidthChar::width).sum();
                prop_assert!(width <= columns, "{line:?}");
            }
        }
    }
}
