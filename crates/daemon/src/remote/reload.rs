//! `polity config reload`: tells the daemon to read its configuration files now.

use super::{At, Shape};
use crate::failure::{Failure, USAGE};
use crate::output::complain;
use clap::Args;
use polity_society::id::ServiceId;
use polity_view::{ConfigProblem, ConfigView, Severity};

/// `polity config reload`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    at: At,
    #[command(flatten)]
    shape: Shape,
}

/// Runs the command; returns exit code 2 if the daemon cannot use something that the files declare.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let config = arguments.at.client()?.reload().await?;
    for problem in &config.problems {
        complain(&problem_in_words(problem));
    }
    arguments.shape.one(&config, words)?;
    let bad = config.problems.iter().any(|problem| problem.severity == Severity::Error);
    Ok(if bad { USAGE } else { 0 })
}

fn words(config: &ConfigView) -> String {
    let services: Vec<&str> = config.services.iter().map(ServiceId::as_str).collect();
    let services = services.join(", ");
    crate::output::table::block(
        "",
        &format!("configuration {} is in force; services: {services} ({})", config.revision, config.origin),
    )
}

/// Formats a problem of the configuration as one line.
pub(super) fn problem_in_words(problem: &ConfigProblem) -> String {
    let ConfigProblem { file, pointer, line, column, severity, message, done } = problem;
    let mut place = file.clone();
    if let Some(pointer) = pointer {
        place.push_str(&format!(": {pointer}"));
    }
    if let (Some(line), Some(column)) = (line, column) {
        place.push_str(&format!(":{line}:{column}"));
    }
    let warning = match severity {
        Severity::Warning => "warning: ",
        Severity::Error => "",
    };
    let done = if done.is_empty() { String::new() } else { format!("; {done}") };
    format!("{warning}{place}: {message}{done}")
}

#[cfg(test)]
mod tests {
    use super::super::examples::config;
    use super::*;

    #[test]
    fn a_configuration_in_words() {
        let config = config();
        assert_eq!(words(&config), "configuration 3 is in force; services: local, cloud (llmservices.json)");
        let problems: Vec<String> = config.problems.iter().map(problem_in_words).collect();
        insta::assert_snapshot!(problems.join("\n"), @r#"
llmservices.json: /services/0/baseURL: missing; the service "x" is left out
warning: app.json:3:7: unknown field; it has no effect
"#);
    }
}
