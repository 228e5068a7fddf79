//! `polity agents`: lists the agents as a tree.

use super::finished::listed;
use super::root::{InTask, in_other_tasks};
use super::words::{agent_style, now, usage, variant};
use super::{Shape, Source, named_task};
use crate::failure::Failure;
use crate::output::Form;
use crate::output::table::{Cell, DIM, HELD, NAME, PLAIN, painted, table};
use crate::output::width::width;
use crate::output::wrapped::{Line, wrapped};
use anstyle::Style;
use clap::Args;
use polity_society::content::{Capability, Direction};
use polity_society::id::AgentId;
use polity_view::{AgentFilter, AgentState, AgentView};
use std::collections::{BTreeMap, BTreeSet};

/// Minimum width for the words about a silent server, in columns. If the lines of the tree leave less, the words begin
/// at the left edge.
const NARROWEST: usize = 20;

/// `polity agents`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    shape: Shape,
    /// Only agents that were hired for this task.
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Only agents in this state: asking, thinking, running, retrying, queued, ready, waiting, parked, paused,
    /// idle or ended.
    #[arg(long, value_parser = variant::<AgentState>)]
    state: Option<AgentState>,
    /// Only agents with this role, given by its name or its id.
    #[arg(long)]
    role: Option<String>,
    /// Only agents whose service currently has this capability, such as `vision`.
    #[arg(long, value_parser = capability)]
    capability: Option<Capability>,
    /// Whether the service must have the capability for input, output or both [default: input].
    #[arg(long, requires = "capability", value_parser = variant::<Direction>)]
    direction: Option<Direction>,
    /// Also list the finished agents, below the others: agents that have ended, and idle agents of finished tasks. With
    /// `--json`, idle agents of finished tasks are always listed.
    #[arg(long, alias = "ended")]
    all: bool,
}

fn capability(name: &str) -> Result<Capability, String> {
    Capability::new(name).ok_or_else(|| "name a capability".to_owned())
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let client = arguments.source.client().await?;
    let is_text = arguments.shape.form() == Form::Text;
    let filter = AgentFilter {
        task: named_task(&client, arguments.task).await?,
        state: arguments.state,
        role: arguments.role,
        capability: arguments.capability,
        direction: arguments.direction,
        include_ended: arguments.all,
        ..AgentFilter::default()
    };
    let (agents, hidden) = match arguments.state {
        None if is_text => listed(&client, &filter).await?,
        None | Some(_) => (client.all_agents(&filter).await?.agents, 0),
    };
    let root = agents.iter().find(|agent| agent.id.is_root());
    let others = match root {
        // With `--task`, root is shown in this task alone.
        Some(root) if filter.task.is_none() && is_text => in_other_tasks(&client, root.doing.task()).await?,
        Some(_) | None => Vec::new(),
    };
    arguments.shape.list(&agents, "there are no such agents", |agents| {
        let mut words = words(agents, &others, now(), width());
        if hidden > 0 {
            words.push_str(&format!("\n{}", painted(DIM, &not_shown(hidden))));
        }
        words
    })?;
    Ok(0)
}

/// Says that a number of finished agents is not listed.
fn not_shown(count: usize) -> String {
    match count {
        1 => "1 finished agent is not shown; --all lists it".to_owned(),
        count => format!("{count} finished agents are not shown; --all lists them"),
    }
}

/// Formats agents as a tree. `others` is what root does in the tasks that its own row does not show.
fn words(agents: &[AgentView], others: &[InTask], now: i64, columns: Option<usize>) -> String {
    let branches = tree(agents);
    let mut rows = Vec::with_capacity(branches.len() + others.len());
    for branch in &branches {
        rows.push(row(branch, now, columns));
        if branch.agent.id.is_root() {
            rows.extend(others.iter().map(|other| in_task(&branch.below, other, now, columns)));
        }
    }
    in_lines(rows, columns).join("\n")
}

/// A row of a table, and the lines below it.
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    /// On a terminal, says how long a server has been silent and what happens when. A cell would be cut.
    below: Vec<String>,
}

/// Formats rows as a table, with the lines below each row. `columns` is the width of the table, if it has a limit.
pub(crate) fn in_lines(rows: Vec<Row>, columns: Option<usize>) -> Vec<String> {
    let (cells, below): (Vec<_>, Vec<_>) = rows.into_iter().map(|row| (row.cells, row.below)).unzip();
    let mut lines = Vec::new();
    for (line, below) in table(&cells, columns).lines().zip(below) {
        lines.push(line.to_owned());
        lines.extend(below);
    }
    lines
}

/// Formats one agent as a table with a single row.
pub(crate) fn one(agent: &AgentView, now: i64, columns: Option<usize>) -> String {
    let branch = Branch { before: String::new(), below: String::new(), agent };
    in_lines(vec![row(&branch, now, columns)], columns).join("\n")
}

/// Formats what an agent is doing as a cell, and the words about a silent server as lines below the row. `rail` contains
/// the lines of the tree to the left of these lines. In a pipe, the cell contains all words.
fn apart(
    style: Style,
    (words, silence): (String, Option<String>),
    rail: &str,
    columns: Option<usize>,
) -> (Cell, Vec<String>) {
    let Some(columns) = columns else {
        let silence = silence.map_or_else(String::new, |silence| format!("; {silence}"));
        return (Cell::whole(style, &format!("{words}{silence}")), Vec::new());
    };
    let cell = Cell::new(style, &words);
    let Some(silence) = silence else { return (cell, Vec::new()) };
    let room = columns.saturating_sub(rail.chars().count());
    let (rail, room) = if room < NARROWEST { ("", columns) } else { (rail, room) };
    let silence = wrapped(&[Line::new(2, HELD, &silence)], Some(room));
    (cell, silence.lines().map(|line| format!("{NAME}{rail}{NAME:#}{line}")).collect())
}

/// Formats what root does in a task as a row below the row of root.
fn in_task(rail: &str, other: &InTask, now: i64, columns: Option<usize>) -> Row {
    let style = agent_style(other.doing.state());
    let (doing, below) = apart(style, other.doing.words_apart(now), rail, columns);
    Row { cells: vec![Cell::new(DIM, "").after(rail), Cell::new(DIM, &other.named()), doing], below }
}

/// Formats an agent as a row of a table. `now` is the time in milliseconds since 1970, and `columns` the width of the
/// terminal, if there is one.
pub(crate) fn row(branch: &Branch<'_>, now: i64, columns: Option<usize>) -> Row {
    let Branch { before, below: rail, agent } = branch;
    let waiting = match agent.waiting {
        0 => String::new(),
        1 => "1 message waits".to_owned(),
        count => format!("{count} messages wait"),
    };
    let named = match &agent.name {
        Some(name) => format!("{} “{name}”", agent.role),
        None if agent.role == agent.id.as_str() => String::new(),
        None => agent.role.clone(),
    };
    let (doing, below) = apart(agent_style(agent.state), doing(agent, now), rail, columns);
    let cells = vec![
        Cell::new(NAME, agent.id.as_str()).after(before),
        Cell::new(PLAIN, &named),
        doing,
        Cell::new(HELD, &waiting),
        Cell::new(DIM, agent.service.as_ref().map_or("", |service| service.as_str())),
        Cell::new(DIM, &usage(&agent.usage)),
    ];
    Row { cells, below }
}

/// Formats what an agent is doing, such as `waiting for a1 (m000000006), 12 s`, and whom else it waits for. The second
/// text is about its server, if that is silent.
fn doing(agent: &AgentView, now: i64) -> (String, Option<String>) {
    let (words, silence) = agent.doing.words_apart(now);
    if matches!(agent.state, AgentState::Waiting | AgentState::Ended) {
        return (words, silence);
    }
    // The words of the state `asking` already say that the agent waits for the user.
    let others = agent.waits_for.iter().filter(|id| agent.state != AgentState::Asking || !id.is_user());
    let whom: Vec<&str> = others.map(|id| if id.is_user() { "you" } else { id.as_str() }).collect();
    let words = if whom.is_empty() { words } else { format!("{words}, waits for {}", whom.join(", ")) };
    (words, silence)
}

/// An agent and its place in the tree.
pub(crate) struct Branch<'a> {
    /// The lines of the tree to the left of the agent, three characters per level.
    pub(crate) before: String,
    /// The lines of the tree to the left of a line that stands between the agent and its children.
    pub(crate) below: String,
    pub(crate) agent: &'a AgentView,
}

/// Arranges agents as a tree: each agent stands below its parent, and the children of an agent keep their given order.
/// An agent whose parent is not in the list becomes a root. The user is left out.
pub(crate) fn tree(agents: &[AgentView]) -> Vec<Branch<'_>> {
    let there: BTreeSet<&AgentId> = agents.iter().map(|agent| &agent.id).collect();
    let mut below: BTreeMap<Option<&AgentId>, Vec<&AgentView>> = BTreeMap::new();
    for agent in agents.iter().filter(|agent| !agent.id.is_user()) {
        let parent = agent.parent.as_ref().filter(|parent| !parent.is_user() && there.contains(parent));
        below.entry(parent).or_default().push(agent);
    }
    let mut branches = Vec::with_capacity(agents.len());
    // A stack of agents that are not in `branches` yet. Each agent comes with two prefixes: the lines of the tree to
    // the left of the agent, and the lines to the left of its children.
    let mut open: Vec<(&AgentView, String, String)> = Vec::new();
    let roots = below.remove(&None).unwrap_or_default();
    open.extend(roots.into_iter().rev().map(|root| (root, String::new(), String::new())));
    while let Some((agent, before, around)) = open.pop() {
        let children = below.remove(&Some(&agent.id)).unwrap_or_default();
        let rail = format!("{around}{}", if children.is_empty() { " " } else { "│" });
        for (at, child) in children.into_iter().rev().enumerate() {
            // The children come in reverse order, so the first child in this loop is the last child of the agent. Its
            // line ends the drawn branch.
            let (turn, rail) = if at == 0 { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            open.push((child, format!("{around}{turn}"), format!("{around}{rail}")));
        }
        branches.push(Branch { before, below: rail, agent });
    }
    branches
}

#[cfg(test)]
mod tests {
    use super::super::examples::{NOW, agent, agents, silent, task_id};
    use super::*;
    use crate::output::table::without_styles;
    use polity_society::id::{MessageId, TaskId};
    use polity_view::{About, Doing};
    use proptest::prelude::*;

    #[test]
    fn a_tree_in_words() {
        insta::assert_snapshot!(without_styles(&words(&agents(), &[], NOW, None)), @r#"
root                                                  waiting for agent-sae2 (m000000002), 1 min 5 s                             local  3 calls, 4800 + 81 tokens
├─ agent-sae2      组长                               thinking at local, 12 s, 81 tokens, waits for agent-7cwh  2 messages wait  local  12 calls, 19200 + 324 tokens
│  ├─ agent-7cwh   阅读者 “Ann”                       parked: the database is damaged                           1 message waits  local
│  └─ writer-11aa  red <U+001B>[31m<U+0007> and more  ended                                                                      local
└─ clerk-22bb      clerk                              paused, 1 min                                                              local
"#);
    }

    #[test]
    fn each_task_of_root_has_a_row() {
        let other = |task: &str| InTask {
            task: TaskId::new(task),
            title: "what is it?".to_owned(),
            doing: Doing::Ready { task: TaskId::new(task), since: NOW },
        };
        let root = agent("root", None);
        let others = [other("t-7"), other("t-8")];
        let shown = |agents: &[AgentView]| without_styles(&words(agents, &others, NOW, None));
        insta::assert_snapshot!(shown(std::slice::from_ref(&root)), @r#"
root                            idle   local
      and in t-7 “what is it?”  ready
      and in t-8 “what is it?”  ready
"#);
        insta::assert_snapshot!(shown(&[root, agent("ida", Some("root"))]), @r#"
root                              idle   local
│       and in t-7 “what is it?”  ready
│       and in t-8 “what is it?”  ready
└─ ida                            idle   local
"#);
    }

    #[test]
    fn an_agent_that_asks_the_person_does_not_wait_for_the_person_as_well() {
        let check = |doing: Doing, whom: &[&str], expect: &str| {
            let waits_for = whom.iter().map(|id| AgentId::new(*id)).collect();
            let agent = AgentView { state: doing.state(), doing, waits_for, ..agent("root", None) };
            assert_eq!(super::doing(&agent, NOW), (expect.to_owned(), None));
        };
        let about = About::Question(MessageId::new("m-1"));
        let asking = Doing::Asking { task: task_id(), about, since: NOW - 10_000 };
        let ready = Doing::Ready { task: task_id(), since: NOW };
        check(asking.clone(), &["user"], "asking you, 10 s");
        check(asking, &["clerk", "user"], "asking you, 10 s, waits for clerk");
        check(ready.clone(), &["clerk", "user"], "ready, waits for clerk, you");
        check(ready, &[], "ready");
    }

    #[test]
    fn all_words_about_a_silent_server_are_shown() {
        let root = AgentView { state: AgentState::Thinking, doing: silent(), ..agent("root", None) };
        let agents = [root.clone(), agent("ida", Some("root"))];
        let shown = |columns: usize| without_styles(&words(&agents, &[], NOW, Some(columns)));
        insta::assert_snapshot!(shown(80), @r#"
root    thinking at local  local
│  silent for 12 s; polity ends this attempt in 48 s, then asks it again
└─ ida  idle               local
"#);
        insta::assert_snapshot!(shown(40), @r#"
root    thinking at local  local
│  silent for 12 s; polity ends this
│    attempt in 48 s, then asks it again
└─ ida  idle               local
"#);
        let waits_for = vec![AgentId::new("agent-7cwh"), AgentId::new("agent-sae2")];
        let piped = words(&[AgentView { waits_for, ..root }], &[], NOW, None);
        assert_eq!(
            without_styles(&piped),
            "root  thinking at local, waits for agent-7cwh, agent-sae2; silent for 12 s; polity ends this attempt \
             in 48 s, then asks it again  local"
        );
    }

    #[test]
    fn the_words_about_a_silent_server_fit_beside_a_deep_tree() {
        // Each agent has hired the next one.
        let ids: Vec<String> = (0..8).map(|depth| format!("a{depth}")).collect();
        let above = |depth: usize| depth.checked_sub(1).map(|above| ids[above].as_str());
        let mut agents: Vec<AgentView> =
            ids.iter().enumerate().map(|(depth, id)| agent(id, above(depth))).collect();
        agents[7] = AgentView { state: AgentState::Thinking, doing: silent(), ..agents[7].clone() };
        let shown = without_styles(&words(&agents, &[], NOW, Some(40)));
        let below: Vec<&str> = shown.lines().skip(agents.len()).collect();
        assert_eq!(below, ["  silent for 12 s; polity ends this", "    attempt in 48 s, then asks it again"]);
    }

    #[test]
    fn one_finished_agent_is_told_apart_from_several() {
        assert_eq!(not_shown(1), "1 finished agent is not shown; --all lists it");
        assert_eq!(not_shown(2), "2 finished agents are not shown; --all lists them");
    }

    #[test]
    fn those_whose_parents_are_not_shown_stand_for_themselves() {
        let agents = agents();
        let some: Vec<AgentView> =
            agents.into_iter().filter(|agent| agent.state == AgentState::Thinking).collect();
        insta::assert_snapshot!(without_styles(&words(&some, &[], NOW, None)), @r#"agent-sae2  组长  thinking at local, 12 s, 81 tokens, waits for agent-7cwh  2 messages wait  local  12 calls, 19200 + 324 tokens"#);
    }

    proptest! {
        #[test]
        fn every_agent_stands_once_and_below_its_parent(parents in proptest::collection::vec(any::<prop::sample::Index>(), 0..30)) {
            let mut agents = vec![agent("root", None)];
            for (at, parent) in parents.iter().enumerate() {
                let parent = agents[parent.index(agents.len())].id.clone();
                agents.push(agent(&format!("a-{at}"), Some(parent.as_str())));
            }
            let branches = tree(&agents);
            let ids: BTreeSet<&AgentId> = branches.iter().map(|branch| &branch.agent.id).collect();
            prop_assert_eq!(branches.len(), agents.len());
            prop_assert_eq!(ids.len(), agents.len());
            for (at, branch) in branches.iter().enumerate().skip(1) {
                let depth = |branch: &Branch<'_>| branch.before.chars().count() / 3;
                let above = branches[..at].iter().rev().find(|above| depth(above) < depth(branch));
                prop_assert_eq!(above.map(|above| &above.agent.id), branch.agent.parent.as_ref());
            }
        }
    }
}
