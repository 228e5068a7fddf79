//! `polity status`: which daemon serves a data directory, who is at work, and what is stuck.

mod words;

use super::advice::{Process, going_on};
use super::reload::problem_in_words;
use super::root::{InTask, in_other_tasks};
use super::{Shape, Source};
use crate::failure::Failure;
use crate::output::table::{BAD, DIM, HELD, PLAIN};
use crate::output::width::width;
use crate::output::wrapped::{Line, wrapped};
use crate::output::{Form, print_json, show};
use crate::suggested::repeating;
use clap::Args;
use polity_view::{ConfigView, MAX_PAGE, NowFilter, NowView, Severity, Stuck};
use serde::Serialize;
use words::{Setting, card, in_task, stuck};

/// `polity status`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    shape: Shape,
    /// Maximum number of agents, and of things that are stuck.
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PAGE)))]
    limit: u32,
}

/// What `--json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    /// The address of the daemon; absent if none serves the data directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    process: Process,
    data_dir: String,
    config: ConfigView,
    now: NowView,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let data = arguments.source.data_path()?;
    let client = arguments.source.client().await?;
    let url = if client.is_in_process() { None } else { Some(client.url()?) };
    let config = client.config().await?;
    let now = client.now(&NowFilter { limit: Some(arguments.limit) }).await?;
    let process = Process::of(&client, &data)?;
    let data_dir = data.display().to_string();
    let status = Status { url, process, data_dir, config, now };
    match arguments.shape.form() {
        Form::Json => print_json(&status)?,
        Form::Text => {
            let of_root = status.now.working.iter().find(|card| card.agent.id.is_root());
            let others = match of_root {
                Some(card) => in_other_tasks(&client, Some(&card.active_in)).await?,
                None => Vec::new(),
            };
            let setting = Setting { data: arguments.source.named_data(), process };
            show(&wrapped(&lines(&status, &others, &setting), width()))?;
        }
    }
    Ok(0)
}

/// Returns the lines of the status, before they are broken to the width of the terminal. `others` is what root does in
/// the tasks that its card does not show.
fn lines(status: &Status, others: &[InTask], setting: &Setting) -> Vec<Line> {
    let Status { url, process, data_dir, config, now } = status;
    let mut lines = vec![match (process, url) {
        (Process::Daemon, Some(url)) => Line::new(0, PLAIN, &format!("daemon: {url}")),
        (Process::Daemon, None) | (Process::Nothing, _) => {
            Line::new(0, HELD, "no daemon serves this data directory; nothing runs")
        }
        (Process::Other, _) => Line::new(
            0,
            HELD,
            "no daemon serves this data directory; another polity works there, and what it does at this moment is not known",
        ),
    }];
    // Only a command for it resumes a paused agent. The things that `--limit` leaves out may be of any kind.
    let paused = now.stuck.iter().filter(|thing| matches!(thing.stuck, Stuck::Paused { .. })).count();
    let is_held_up = now.stuck_total > paused as u64;
    if let Some(words) = going_on(*process).filter(|_| now.working_total > 0 || is_held_up) {
        lines.push(Line::new(0, HELD, &repeating(words)));
    }
    lines.push(Line::new(0, PLAIN, &format!("data: {data_dir}")));
    let directory = config.directory.as_deref().unwrap_or("built in");
    let in_force = if *process == Process::Daemon { " is in force" } else { "" };
    lines.push(Line::new(
        0,
        PLAIN,
        &format!("configuration: {directory}; revision {}{in_force}", config.revision),
    ));
    for problem in &config.problems {
        let style = if problem.severity == Severity::Error { BAD } else { HELD };
        lines.push(Line::new(2, style, &problem_in_words(problem)));
    }
    section(&mut lines, &at_work(now), now.working.len(), now.working_total);
    for agent in &now.working {
        lines.extend(card(agent, now.at));
        if agent.agent.id.is_root() {
            lines.extend(others.iter().map(|other| in_task(other, now.at)));
        }
    }
    section(&mut lines, &are_stuck(now), now.stuck.len(), now.stuck_total);
    for thing in &now.stuck {
        lines.extend(stuck(thing, now.at, setting));
    }
    lines
}

fn section(lines: &mut Vec<Line>, title: &str, shown: usize, total: u64) {
    lines.push(Line::new(0, PLAIN, ""));
    let more = total.saturating_sub(shown as u64);
    let more = if more == 0 { String::new() } else { format!("; {more} not shown (--limit)") };
    lines.push(Line::new(0, if total == 0 { DIM } else { PLAIN }, &format!("{title}{more}")));
}

fn at_work(now: &NowView) -> String {
    let at_work = match (now.at_work_total, now.running) {
        (0, _) => "nobody is at work".to_owned(),
        (1, true) => "1 agent is at work".to_owned(),
        (count, true) => format!("{count} agents are at work"),
        (1, false) => "1 agent has work".to_owned(),
        (count, false) => format!("{count} agents have work"),
    };
    match now.working_total.saturating_sub(now.at_work_total) {
        0 => at_work,
        1 => format!("{at_work}, 1 agent waits for an answer"),
        count => format!("{at_work}, {count} agents wait for an answer"),
    }
}

fn are_stuck(now: &NowView) -> String {
    match now.stuck_total {
        0 => "nothing is stuck".to_owned(),
        1 => "1 thing is stuck".to_owned(),
        count => format!("{count} things are stuck"),
    }
}

#[cfg(test)]
mod tests;
