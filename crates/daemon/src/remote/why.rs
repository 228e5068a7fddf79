//! `polity why ID`: explains why something is as it is, and what can be done about it.

use super::advice::{Process, needing_daemon};
use super::words::{data_option, now};
use super::{Shape, Source, named_party};
use crate::failure::Failure;
use crate::output::harmless;
use crate::output::table::{DIM, PLAIN, painted};
use crate::suggested::repeating;
use clap::Args;
use polity_view::{Why, WhyFilter, WhyRemedy};

/// `polity why`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The number of an event, or the id of a task, an agent, a message or an artifact.
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
    arguments.shape.one(&why, |why| in_words(why, process, &options, now()))?;
    Ok(0)
}

/// Formats an explanation. The first line is the fact to explain. Each further fact is the cause of the fact above it.
/// The remedies follow. Their commands get `options`, and work with this process. `now` is in milliseconds since 1970.
fn in_words(why: &Why, process: Process, options: &str, now: i64) -> String {
    let mut lines = Vec::new();
    for (place, fact) in why.chain.iter().enumerate() {
        let sentence = painted(PLAIN, &fact.sentence(now));
        lines.push(match place {
            0 => sentence,
            _ => format!("  {} {sentence}", painted(DIM, "because")),
        });
    }
    for remedy in &why.remedies {
        let sentence = remedy.sentence(options);
        let sentence = if needs_daemon(remedy) { needing_daemon(process, &sentence) } else { sentence };
        // A command must stay whole, so this line is not cut.
        lines.push(format!("  {} {}", painted(DIM, "→"), harmless(&repeating(&sentence))));
    }
    lines.join("\n")
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
    use polity_society::id::{AgentId, TaskId};
    use polity_view::Fact;

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
                WhyRemedy::Resume { agent },
                WhyRemedy::RaiseLimit { limit: "maxDepth".to_owned() },
            ],
        };
        let words = |process| without_styles(&in_words(&why, process, " --data home", 0));
        insta::assert_snapshot!(words(Process::Daemon), @r"
mara-7k2f is parked in t-1: red <U+001B>[31m
  because no more
  → go on: polity resume mara-7k2f --alone --data home
  → raise limits.maxDepth in app.json, and write to root again
");
        let without = words(Process::Nothing);
        let expect = "\n  → start polity serve, then go on: polity resume mara-7k2f --alone --data home\n";
        assert!(without.contains(expect), "{without}");
        let expect = "\n  → raise limits.maxDepth in app.json, and write to root again";
        assert!(without.ends_with(expect), "{without}");
    }
}
