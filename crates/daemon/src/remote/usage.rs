//! `polity usage`: calls, tokens and costs by task, agent and service.

use super::words;
use super::{Shape, Source, named_party, named_task};
use crate::failure::Failure;
use crate::output::table::{Cell, DIM, NAME, PLAIN, painted, table};
use crate::output::width::width;
use clap::Args;
use polity_view::{UsageFilter, UsageSum, UsageView};

/// `polity usage`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    shape: Shape,
    /// Only the usage of this task.
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Only the usage of this agent.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let client = arguments.source.client().await?;
    let filter = UsageFilter {
        task: named_task(&client, arguments.task).await?,
        agent: named_party(&client, arguments.agent).await?,
    };
    let usage = client.usage(&filter).await?;
    arguments.shape.one(&usage, |usage| in_words(usage, width()))?;
    Ok(0)
}

fn in_words(usage: &UsageView, columns: Option<usize>) -> String {
    let spent = |usage: &UsageSum| match words::usage(usage) {
        nothing if nothing.is_empty() => "nothing".to_owned(),
        something => something,
    };
    let mut parts = vec![painted(PLAIN, &format!("in all: {}", spent(&usage.total)))];
    let mut part = |name: &str, rows: Vec<Vec<Cell>>| {
        if !rows.is_empty() {
            parts.push(format!("{}\n{}", painted(DIM, name), table(&rows, columns)));
        }
    };
    let row = |name: String, usage: &UsageSum| {
        vec![Cell::new(NAME, &name).after("  "), Cell::new(PLAIN, &spent(usage))]
    };
    part("by task", usage.by_task.iter().map(|by| row(by.task.to_string(), &by.usage)).collect());
    part("by agent", usage.by_agent.iter().map(|by| row(by.agent.to_string(), &by.usage)).collect());
    let service = usage.by_service.iter();
    part(
        "by service and model",
        service.map(|by| row(format!("{}/{}", by.service, by.model), &by.usage)).collect(),
    );
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::examples::usage;
    use super::*;
    use crate::output::table::without_styles;

    #[test]
    fn usage_in_words() {
        insta::assert_snapshot!(without_styles(&in_words(&usage(), None)), @r#"
in all: 15 calls, 24000 + 405 tokens, 0.0123
by task
  task-4x2k  15 calls, 24000 + 405 tokens
by agent
  agent-sae2  12 calls, 19200 + 324 tokens
  root        3 calls, 4800 + 81 tokens
by service and model
  local/qwen3-vl:8b  15 calls, 24000 + 405 tokens
"#);
    }

    #[test]
    fn nothing_was_spent() {
        let nothing = UsageView {
            total: UsageSum::default(),
            by_task: Vec::new(),
            by_agent: Vec::new(),
            by_service: Vec::new(),
        };
        assert_eq!(without_styles(&in_words(&nothing, None)), "in all: nothing");
    }
}
