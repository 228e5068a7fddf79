//! `polity services`: the model services and the MCP servers, and their state.

use super::words::usage;
use super::{Shape, Source};
use crate::failure::Failure;
use crate::output::table::{BAD, BUSY, Cell, DIM, HELD, NAME, PLAIN, block, painted, table};
use crate::output::width::width;
use crate::output::{Form, show};
use anstyle::Style;
use clap::Args;
use polity_society::content::Capability;
use polity_society::id::ServiceId;
use polity_view::{Circuit, ServerCondition, ServerView, ServiceView};

/// `polity services`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Show only this service, with all details.
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// End the pauses of this service, also those that it asked for, so that the next call is sent at once.
    #[arg(long, requires = "id")]
    try_again: bool,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    shape: Shape,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let client = arguments.source.client().await?;
    match arguments.id {
        Some(id) => {
            let id = ServiceId::new(id);
            let service = if arguments.try_again {
                client.try_service(&id).await?
            } else {
                client.service(&id).await?
            };
            arguments.shape.one(&service, |service| one(service, width()))?;
        }
        None => {
            let services = client.services().await?;
            arguments.shape.list(&services, "there are no services", |services| words(services, width()))?;
            let servers = client.servers().await?;
            // With `--json`, each line is a service, so the MCP servers are left out; programs get them from the API.
            if arguments.shape.form() == Form::Text && !servers.is_empty() {
                show(&in_words(&servers, width()))?;
            }
        }
    }
    Ok(0)
}

fn words(services: &[ServiceView], columns: Option<usize>) -> String {
    let rows: Vec<Vec<Cell>> = services.iter().map(row).collect();
    table(&rows, columns)
}

fn row(service: &ServiceView) -> Vec<Cell> {
    let (style, state) = state(service);
    let default = if service.is_default { "default" } else { "" };
    vec![
        Cell::new(NAME, service.id.as_str()),
        Cell::new(PLAIN, &service.model),
        Cell::new(DIM, default),
        Cell::new(PLAIN, &capabilities(service)),
        Cell::new(style, &state),
        Cell::new(DIM, &agents(service.agents)),
        Cell::new(DIM, &usage(&service.usage)),
    ]
}

fn in_words(servers: &[ServerView], columns: Option<usize>) -> String {
    let rows: Vec<Vec<Cell>> = servers.iter().map(server_row).collect();
    format!("\nMCP servers\n{}", table(&rows, columns))
}

fn server_row(server: &ServerView) -> Vec<Cell> {
    let (style, mut state) = match server.state {
        ServerCondition::Starting => (BUSY, "starting".to_owned()),
        ServerCondition::Connected => (DIM, "connected".to_owned()),
        ServerCondition::Failed => (BAD, "could not be started".to_owned()),
        ServerCondition::Restarting => (HELD, "being started again".to_owned()),
        ServerCondition::Unusable => (BAD, "not started".to_owned()),
        ServerCondition::NotRunning => (DIM, "no daemon is running".to_owned()),
    };
    if let Some(reason) = &server.reason {
        state = format!("{state}: {reason}");
    }
    let tools = match (server.tools, server.left_out) {
        (Some(1), None | Some(0)) => "1 tool".to_owned(),
        (Some(tools), None | Some(0)) => format!("{tools} tools"),
        (Some(tools), Some(left_out)) => format!("{tools} tools, {left_out} left out"),
        (None, _) => String::new(),
    };
    let groups: Vec<String> = server.groups.iter().map(|group| format!("mcp:{group}")).collect();
    vec![
        Cell::new(NAME, server.name.as_str()),
        Cell::new(PLAIN, &tools),
        Cell::new(DIM, &groups.join(", ")),
        Cell::new(style, &state),
    ]
}

fn agents(count: u64) -> String {
    match count {
        0 => String::new(),
        1 => "1 agent".to_owned(),
        count => format!("{count} agents"),
    }
}

/// Formats the capabilities as `input → output`.
fn capabilities(service: &ServiceView) -> String {
    let names = |side: &[Capability]| side.iter().map(Capability::as_str).collect::<Vec<_>>().join(", ");
    format!("{} → {}", names(&service.capabilities.input), names(&service.capabilities.output))
}

/// Returns the most important fact about the state of a service, and its style.
fn state(service: &ServiceView) -> (Style, String) {
    let state = &service.state;
    let failed = || state.last_error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
    if state.circuit == Circuit::Open {
        return (BAD, format!("suspended after failures{}", failed()));
    }
    if let Some(pause) = state.paused_for_ms {
        return (
            HELD,
            format!("asked for a pause of {:.1} s", std::time::Duration::from_millis(pause).as_secs_f64()),
        );
    }
    if state.circuit == Circuit::HalfOpen {
        return (HELD, format!("being tried again{}", failed()));
    }
    if state.last_error.is_some() {
        return (BAD, format!("failed{}", failed()));
    }
    match (state.in_flight, state.waiting) {
        (0, 0) => (DIM, "free".to_owned()),
        (calls, 0) => (BUSY, format!("{calls} in progress")),
        (calls, waiting) => (BUSY, format!("{calls} in progress, {waiting} waiting")),
    }
}

/// Formats all details of a service, one per line.
fn one(service: &ServiceView, columns: Option<usize>) -> String {
    let mut lines = vec![words(std::slice::from_ref(service), columns)];
    let mut line = |name: &str, value: String| {
        lines.push(format!("  {} {}", painted(DIM, &format!("{name}:")), painted(PLAIN, &value)));
    };
    line("name", service.name.clone());
    line("address", service.base_url.clone());
    line("key", if service.key_set { "set" } else { "not set" }.to_owned());
    if !service.capability_tags.is_empty() {
        line("tags", service.capability_tags.join(", "));
    }
    if let Some(window) = service.context_window {
        line("context window", format!("{window} tokens"));
    }
    if let Some(most) = service.max_concurrent {
        line("concurrent requests at most", most.to_string());
    }
    if let Some(fallback) = &service.fallback {
        line("fallback", fallback.to_string());
    }
    if let Some(price) = &service.price {
        line("price per million tokens", format!("{} in, {} out", price.input, price.output));
    }
    if let Some(refused) = &service.refused_media {
        let artifacts: Vec<String> = refused.artifacts.iter().map(|artifact| artifact.reference()).collect();
        let all = if refused.all { "; no media are sent to it any more" } else { "" };
        line("refused media", format!("{}{all}", artifacts.join(", ")));
    }
    if let Some(description) = &service.description {
        lines.push(block("  ", description));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::examples::services;
    use super::*;
    use crate::output::table::without_styles;
    use polity_society::tool_group::ServerName;

    #[test]
    fn services_in_words() {
        insta::assert_snapshot!(without_styles(&words(&services(), None)), @r#"
local  qwen3-vl:8b  default  text, vision → text  1 in progress, 2 waiting                                     2 agents  15 calls, 24000 + 405 tokens
cloud  gpt-5-mini            text, vision → text  suspended after failures: red <U+001B>[31m<U+0007> and more
slow   qwen3-vl:8b           text, vision → text  asked for a pause of 1.5 s                                   1 agent   15 calls, 24000 + 405 tokens
"#);
    }

    #[test]
    fn servers_in_words() {
        let server = |name: &str, state, tools, reason: Option<&str>| ServerView {
            name: ServerName::new(name).unwrap(),
            state,
            tools,
            left_out: tools.map(|_| 0),
            reason: reason.map(str::to_owned),
            groups: Vec::new(),
        };
        let mut hub = server("hub", ServerCondition::Connected, Some(50), None);
        hub.groups = vec![ServerName::new("code").unwrap()];
        hub.left_out = Some(3);
        let servers = [
            server("git", ServerCondition::Connected, Some(12), None),
            hub,
            server("lost", ServerCondition::Unusable, None, Some("the environment variable KEY is not set")),
            server("dead", ServerCondition::Restarting, None, Some("its process exited with code 3")),
            server("off", ServerCondition::NotRunning, None, None),
        ];
        insta::assert_snapshot!(without_styles(&in_words(&servers, None)), @r"
MCP servers
git   12 tools                        connected
hub   50 tools, 3 left out  mcp:code  connected
lost                                  not started: the environment variable KEY is not set
dead                                  being started again: its process exited with code 3
off                                   no daemon is running
");
    }

    #[test]
    fn a_service_in_words() {
        let services = services();
        insta::assert_snapshot!(without_styles(&one(&services[1], None)), @r#"
cloud  gpt-5-mini  text, vision → text  suspended after failures: red <U+001B>[31m<U+0007> and more
  name: Cloud
  address: https://api.example.com/v1
  key: set
  tags: 多模态
  context window: 128000 tokens
  concurrent requests at most: 1
  fallback: local
  price per million tokens: 0.25 in, 2 out
  refused media: artifact:abc; no media are sent to it any more
  red <U+001B>[31m<U+0007> and
  more
"#);
    }
}
