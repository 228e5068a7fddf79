//! `polity why ID`: explains why something is as it is, and what can be done about it.

use super::advice::{self, Advice, Process};
use super::root::{InTask, in_other_tasks};
use super::words::{data_option, now};
use super::{Shape, Source, named_party};
use crate::failure::Failure;
use crate::output::Form;
use crate::output::table::{DIM, PLAIN, painted, whole_line};
use crate::output::width::width;
use crate::output::wrapped::{Line, wrapped};
use crate::suggested::repeating;
use clap::Args;
use polity_society::id::AgentId;
use polity_view::{Fact, Outcome, Why, WhyFilter, WhyRemedy};

/// `polity why`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The number of an event, or the id of a task, an agent, a message, a question about a call or an artifact.
    #[arg(value_name = "ID")]
    id: String,
    /// For an artifact: why it was described to this agent.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// For an artifact: why it was described in this request.
    #[arg(long, value_name = "NUMBER")]
    sent: Option<i64>,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    shape: Shape,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let client = arguments.source.client().await?;
    let filter = WhyFilter { agent: named_party(&client, arguments.agent).await?, sent: arguments.sent };
    let options = data_option(arguments.source.named_data().as_deref());
    let why = client.why(&arguments.id, &filter).await?;
    let process = Process::of(&client, &arguments.source.data_path()?)?;
    let others = if arguments.id == AgentId::root().as_str() && arguments.shape.form() == Form::Text {
        let root = client.agent(&AgentId::root()).await?.agent;
        in_other_tasks(&client, root.doing.task()).await?
    } else {
        Vec::new()
    };
    arguments.shape.one(&why, |why| {
        let mut words = in_words(why, process, &options, now(), width());
        words.extend(others.iter().map(|other| format!("\n{}", in_task(other, &options, now()))));
        words
    })?;
    Ok(0)
}

/// Begins a fact that is the cause of the fact above it.
const BECAUSE: &str = "because";
/// Begins a fact that is no cause of the end of the task.
const ALTHOUGH: &str = "although";

/// Formats an explanation. The first line is the fact to explain. Each further fact is the cause of the fact above it. An
/// unanswered request is no cause if the task has ended with an answer. The remedies follow. Their commands get
/// `options`, and work with this process. `now` is in milliseconds since 1970. `columns` is the width of the terminal, if
/// there is one.
fn in_words(why: &Why, process: Process, options: &str, now: i64, columns: Option<usize>) -> String {
    let mut lines = Vec::new();
    let is_answered = matches!(why.chain.first(), Some(Fact::TaskEnded { outcome: Outcome::Answered, .. }));
    for (place, fact) in why.chain.iter().enumerate() {
        let sentence = fact.sentence(now);
        let link = match (place, fact) {
            (0, _) => {
                lines.push(wrapped(&[Line::new(0, PLAIN, &sentence)], columns));
                continue;
            }
            (_, Fact::Unanswered { .. }) if is_answered => ALTHOUGH,
            _ => BECAUSE,
        };
        let line = Line::new(2, PLAIN, &format!("{link} {sentence}"));
        lines.push(wrapped(&[line], columns).replacen(link, &painted(DIM, link), 1));
    }
    let advice = why.remedies.iter().flat_map(|remedy| {
        let of = if needs_daemon(remedy) { Advice::WithDaemon } else { Advice::Always };
        remedy.sentences(options).into_iter().map(of)
    });
    for line in advice::lines(process, advice.collect()) {
        // A command must stay whole, so this line is not cut.
        lines.push(format!("  {} {}", painted(DIM, "→"), whole_line(&repeating(&line))));
    }
    lines.join("\n")
}

/// Formats what root does in a task that the explanation of root does not show.
fn in_task(other: &InTask, options: &str, now: i64) -> String {
    let line = format!("{}: {}", other.named(), other.doing.words(now));
    let command = format!("polity why {}{options}", other.task);
    format!("{} {}", whole_line(&line), painted(DIM, &format!("({})", repeating(&command))))
}

/// Returns whether a remedy needs a daemon, for its command or for the live view.
fn needs_daemon(remedy: &WhyRemedy) -> bool {
    match remedy {
        WhyRemedy::Introduce { .. }
        | WhyRemedy::UseService { .. }
        | WhyRemedy::AllowGroups { .. }
        | WhyRemedy::Hire { .. }
        | WhyRemedy::Resume { .. }
        | WhyRemedy::Answer { .. }
        | WhyRemedy::Decide { .. }
        | WhyRemedy::Stop { .. }
        | WhyRemedy::Write { .. }
        | WhyRemedy::RunAgain { .. } => true,
        WhyRemedy::AllowRoot { .. }
        | WhyRemedy::Declare { .. }
        | WhyRemedy::RaiseLimit { .. }
        | WhyRemedy::CheckService { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::without_styles;
    use polity_society::id::{MessageId, TaskId};
    use polity_view::{Doing, ResumeScope};

    #[test]
    fn each_further_task_of_root_is_named() {
        let task = TaskId::new("t-7");
        let doing = Doing::Ready { task: task.clone(), since: 0 };
        let other = InTask { task, title: "what is it?".to_owned(), doing };
        assert_eq!(
            without_styles(&in_task(&other, " --data home", 0)),
            "and in t-7 “what is it?”: ready (polity why t-7 --data home)"
        );
    }

    #[test]
    fn an_explanation_in_words() {
        let agent = AgentId::new("mara-7k2f");
        let parked = Fact::Parked {
            agent: agent.clone(),
            task: TaskId::new("t-1"),
            reason: "red \u{1b}[31m".to_owned(),
        };
        let why = Why {
            chain: vec![parked, Fact::Said { text: "no more".to_owned() }],
            remedies: vec![
                WhyRemedy::Resume { agent, scope: ResumeScope::Agent },
                WhyRemedy::RaiseLimit { limit: "maxDepth".to_owned() },
            ],
        };
        let words = |process| without_styles(&in_words(&why, process, " --data home", 0, None));
        insta::assert_snapshot!(words(Process::Daemon), @r"
mara-7k2f is parked in t-1: red <U+001B>[31m
  because no more
  → go on: polity resume mara-7k2f --alone --data home
  → raise limits.maxDepth in app.json, and write to root again
");
        let without = words(Process::Nothing);
        let expect = "\n  → first start a daemon: polity serve\n  \
                      → go on: polity resume mara-7k2f --alone --data home\n";
        assert!(without.contains(expect), "{without}");
        let expect = "\n  → raise limits.maxDepth in app.json, and write to root again";
        assert!(without.ends_with(expect), "{without}");
    }

    #[test]
    fn an_answered_task_is_not_explained_by_what_has_no_answer() {
        let (task, agent) = (TaskId::new("t-1"), AgentId::new("mara"));
        let asked = Fact::Unanswered {
            message: MessageId::from_sequence(6),
            from: "root".to_owned(),
            to: agent.clone(),
            since: None,
        };
        let words = |outcome| {
            let ended = Fact::TaskEnded { task: task.clone(), outcome };
            let stopped = Fact::AgentStopped { agent: agent.clone(), task: task.clone(), at: 0 };
            let why = Why { chain: vec![ended, asked.clone(), stopped], remedies: Vec::new() };
            without_styles(&in_words(&why, Process::Daemon, "", 0, None))
        };
        insta::assert_snapshot!(words(Outcome::Answered), @r"
        nothing is left to do in t-1: it ended with an answer
          although mara has not answered m000000006 of root
          because you stopped the work of mara in t-1
        ");
        assert!(words(Outcome::Unanswered).contains("\n  because mara has not answered"));
    }

    #[test]
    fn a_long_fact_is_whole_and_fits_the_terminal() {
        let reason = ["word"; 30].join(" ");
        let ended = Fact::AgentEnded { agent: AgentId::root(), reason: reason.clone() };
        let why = Why { chain: vec![ended, Fact::Said { text: reason.clone() }], remedies: Vec::new() };
        let words = |columns| without_styles(&in_words(&why, Process::Daemon, "", 0, columns));
        assert_eq!(words(None), format!("root has ended: {reason}\n  because {reason}"));
        let shown = words(Some(40));
        assert!(shown.lines().all(|line| line.len() <= 40), "{shown}");
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(flat(&shown), flat(&words(None)));
        assert_eq!(shown.lines().filter(|line| line.starts_with("  because word")).count(), 1, "{shown}");
    }
}
