//! Formats the agents at work, everything that is stuck, and the commands that help.

use crate::output::table::{BAD, DIM, HELD, NAME, PLAIN};
use crate::output::wrapped::Line;
use crate::remote::advice::{self, Advice, Process, deciding};
use crate::remote::root::InTask;
use crate::remote::words::{agent_style, data_option, usage};
use crate::suggested::repeating;
use polity_society::id::{AgentId, ServiceId};
use polity_view::{
    CardView, Cause, Circuit, Deed, LastView, Remedy, ResumeScope, Stuck, StuckView, Trouble, elapsed,
};

/// What suggested commands depend on.
pub(super) struct Setting {
    /// The value of `--data`, if the user gave one.
    pub(super) data: Option<String>,
    /// The process that uses the data directory: it decides which commands work at once.
    pub(super) process: Process,
}

/// Formats an agent: its id and role, what it is doing, its task, what it last did, and what its calls have cost.
pub(super) fn card(card: &CardView, now: i64) -> Vec<Line> {
    let agent = &card.agent;
    let called = match &agent.name {
        Some(name) => format!("{} {} “{name}”", agent.id, agent.role),
        None if agent.role == agent.id.as_str() => agent.id.to_string(),
        None => format!("{} {}", agent.id, agent.role),
    };
    let mut lines =
        vec![Line::new(2, NAME, &called), Line::new(4, agent_style(agent.state), &agent.doing.words(now))];
    let text = |lines: &mut Vec<Line>, text: &str| {
        if !text.is_empty() {
            lines.push(Line::new(4, DIM, text));
        }
    };
    text(
        &mut lines,
        &card.objective.as_ref().map_or_else(String::new, |objective| format!("for: {objective}")),
    );
    text(&mut lines, &card.last.as_ref().map_or_else(String::new, |last| in_words(last, now)));
    text(&mut lines, &usage(&agent.usage));
    lines
}

/// Formats what root does in a task that its card does not show.
pub(super) fn in_task(other: &InTask, now: i64) -> Line {
    let style = agent_style(other.doing.state());
    Line::new(4, style, &format!("{}: {}", other.named(), other.doing.words(now)))
}

fn in_words(last: &LastView, now: i64) -> String {
    let LastView { at, did, text, from, tools } = last;
    let ago = elapsed(*at, now).map_or_else(|| "now".to_owned(), |long| format!("{long} ago"));
    let what = match did {
        Deed::Heard => format!("heard from {}", from.as_deref().unwrap_or("somebody")),
        Deed::Said => "said".to_owned(),
        Deed::Called => format!("called {}", tools.join(", ")),
        Deed::Failed => "failed".to_owned(),
    };
    if text.is_empty() { format!("{what} ({ago})") } else { format!("{what} ({ago}): {text}") }
}

/// Formats something that is stuck, with the commands that help.
pub(super) fn stuck(thing: &StuckView, now: i64, setting: &Setting) -> Vec<Line> {
    let since = elapsed(thing.since, now).map_or_else(String::new, |long| format!(", {long}"));
    let (style, what, quoted) = match &thing.stuck {
        Stuck::Question { agent, text, .. } => (HELD, format!("{agent} asks you{since}"), text.as_str()),
        Stuck::Approval { agent, tool, .. } => {
            (HELD, format!("{agent} asks whether it may call {tool}{since}"), "")
        }
        Stuck::Request { from, to, text, cause, .. } => {
            let from = if from.is_user() { "you wait".to_owned() } else { format!("{from} waits") };
            let why = match cause {
                Cause::Paused => "is paused",
                Cause::Idle => "does nothing about it",
                Cause::Quiet => "has work, but nothing happens",
            };
            (HELD, format!("{from} for {to}, which {why}{since}"), text.as_str())
        }
        Stuck::Parked { agent, reason, asked_by } => {
            let waiting = match asked_by.is_empty() {
                true => String::new(),
                false => format!("; waiting for it: {}", names(asked_by)),
            };
            (BAD, format!("{agent} is parked{since}{waiting}"), reason.as_str())
        }
        Stuck::Paused { agent } if agent.is_root() => {
            (HELD, format!("root is paused and takes no prompts{since}"), "")
        }
        Stuck::Paused { agent } => (HELD, format!("{agent} has work, but is paused{since}"), ""),
        Stuck::Service { service, trouble, circuit, until, reason, agents } => {
            let what = match trouble {
                Trouble::Silent => "has accepted a request and sends nothing",
                Trouble::Failing if *circuit == Circuit::Open => "keeps failing and gets no calls for now",
                Trouble::Failing => "fails",
                Trouble::Paused => "has asked for a pause",
            };
            let left = until.and_then(|until| elapsed(now, until));
            let then = match trouble {
                Trouble::Silent => "polity ends this attempt in",
                Trouble::Failing | Trouble::Paused => "polity asks it again in",
            };
            let left = left.map_or_else(String::new, |left| format!("; {then} {left}"));
            let needed = match agents.is_empty() {
                true => String::new(),
                false => format!("; needed by {}", names(agents)),
            };
            let line = format!("service {service} {what}{since}{left}{needed}");
            (BAD, line, reason.as_deref().unwrap_or_default())
        }
        Stuck::Answered { requests } => {
            let waits: Vec<AgentId> = requests.iter().map(|request| request.agent.clone()).collect();
            let line = format!("a task counts as answered, but root waits for {}{since}", names(&waits));
            (HELD, line, "")
        }
    };
    let mut lines = vec![Line::new(2, style, &what)];
    if let Some(title) = thing.title.as_deref().filter(|_| !quoted.is_empty() || thing.task.is_some()) {
        lines.push(Line::new(4, DIM, &format!("task: {title}")));
    }
    if !quoted.is_empty() {
        lines.push(Line::new(4, PLAIN, quoted));
    }
    let advice = thing.remedies.iter().flat_map(|remedy| advice(remedy, setting)).collect();
    let advice = advice::lines(setting.process, advice);
    lines.extend(advice.iter().map(|line| Line::new(4, DIM, &repeating(&format!("→ {line}")))));
    lines
}

fn names(agents: &[AgentId]) -> String {
    let names: Vec<&str> =
        agents.iter().map(|agent| if agent.is_user() { "you" } else { agent.as_str() }).collect();
    names.join(", ")
}

/// Returns the lines that tell how to carry out a remedy. Each command has its own line and ends it, so that it can be
/// pasted into a shell.
fn advice(remedy: &Remedy, setting: &Setting) -> Vec<Advice> {
    let data = data_option(setting.data.as_deref());
    let command = match remedy {
        Remedy::Write { to, task } if to.is_root() => format!("polity send --task {task}{data} \"…\""),
        Remedy::Write { to, .. } => format!("polity send --to {to}{data} \"…\""),
        Remedy::Decide { approval } => return deciding(setting.process, approval, &data),
        Remedy::Resume { agent, scope: ResumeScope::Agent } => format!("polity resume {agent} --alone{data}"),
        Remedy::Resume { agent, scope: ResumeScope::Subtree } => format!("polity resume {agent}{data}"),
        Remedy::Service { name, services, .. } => {
            let services: Vec<&str> = services.iter().map(|service| service.as_str()).collect();
            let services = services.join(", ");
            format!("give the role {name} another service, such as {services}: polity view{data}")
        }
        Remedy::RunAgain { task, turn, services } => {
            let fork = |service: &ServiceId| {
                Advice::WithDaemon(format!("polity fork {task} --turn {turn} --service {service}{data}"))
            };
            return services.iter().map(fork).collect();
        }
        Remedy::TryAgain { service } => format!("polity services {service} --try-again{data}"),
        // The doctor needs no daemon.
        Remedy::CheckService { service } => {
            let check = format!("check {service} and its entry in llmservices.json: polity doctor{data}");
            return vec![Advice::Always(check)];
        }
        Remedy::StopAgent { agent } => format!("polity stop {agent}{data}"),
        Remedy::StopTask { task } => format!("polity stop {task}{data}"),
    };
    vec![Advice::WithDaemon(command)]
}
