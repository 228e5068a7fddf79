//! `polity why ID`: explains why something is as it is, and what can be done about it.

use super::words::{data_option, now};
use super::{Shape, Source, named_party};
use crate::failure::Failure;
use crate::output::table::{DIM, PLAIN, painted};
use crate::suggested::repeating;
use clap::Args;
use polity_view::{Why, WhyFilter};

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
    arguments.shape.one(&why, |why| in_words(why, &options, now()))?;
    Ok(0)
}

/// Formats an explanation. The first line is the fact to explain. Each further fact is the cause of the fact above it.
/// The remedies follow. Their commands get `options`. `now` is in milliseconds since 1970.
fn in_words(why: &Why, options: &str, now: i64) -> String {
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
        lines.push(format!("  {} {}", painted(DIM, "→"), painted(PLAIN, &repeating(&sentence))));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::without_styles;
    use polity_society::id::{AgentId, TaskId};
    use polity_view::{Fact, WhyRemedy};

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
            remedies: vec![WhyRemedy::Resume { agent }],
        };
        insta::assert_snapshot!(without_styles(&in_words(&why, " --data home", 0)), @r"
mara-7k2f is parked in t-1: red <U+001B>[31m
  because no more
  → go on: polity resume mara-7k2f --alone --data home
");
    }
}
