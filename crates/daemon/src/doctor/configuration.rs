//! The check of the configuration files, and of the environment variables that they name.

use super::Network;
use super::report::Section;
use crate::failure::Failure;
use crate::places::ConfigDirectory;
use crate::running::Running;
use polity_probe::{Finding, Severity, circles};
use polity_registry::{Environment, Origin, Place, Problem, Registry};

/// Reads the configuration, and returns the findings. If the configuration can be used, also returns the registry that
/// holds it. If a daemon uses this configuration, the findings say so.
pub(super) async fn look(
    config: &ConfigDirectory,
    network: Network,
    running: Option<&Running>,
) -> (Section, Option<Registry>) {
    let read = match network {
        Network::Asked => crate::config::read(&config.path).await.map_err(|failure| failure.to_string()),
        Network::LeftAlone => {
            let environment = Environment::look_up(|name| std::env::var(name).ok());
            let nobody: polity_registry::Discovery = Box::new(|| Box::pin(async { Vec::new() }));
            let loaded = Registry::load(&config.path, environment, nobody).await;
            loaded.map_err(|error| Failure::from(error).to_string())
        }
    };
    let used = running.map(|running| Finding::ok("daemon_configuration", running.words()));
    let section = |findings: Vec<Finding>| {
        let findings = used.clone().into_iter().chain(findings).collect();
        Section::new("configuration", config.path.display().to_string(), findings)
    };
    let (registry, mut problems) = match read {
        Ok(read) => read,
        Err(why) => {
            let finding =
                Finding::problem("configuration_unusable", why, "correct this; polity cannot start with it");
            return (section(vec![finding]), None);
        }
    };
    problems.extend(registry.unset_variables(|name| std::env::var(name).ok()).await);
    let mut findings: Vec<Finding> = problems.iter().map(of_problem).collect();
    let snapshot = registry.current();
    let services = snapshot.catalogue.services();
    findings.extend(circles(services.iter().map(AsRef::as_ref)));
    findings.push(of_origin(snapshot.catalogue.origin(), services.len()));
    (section(findings), Some(registry))
}

/// Reports that there is no configuration directory.
pub(super) fn missing(failure: &Failure) -> Section {
    let finding = Finding::problem(
        "no_configuration",
        failure.to_string(),
        "correct this; polity cannot start without it",
    );
    Section::new("configuration", "", vec![finding])
}

fn of_problem(problem: &Problem) -> Finding {
    let (severity, code) = match problem.severity {
        polity_registry::Severity::Error => (Severity::Problem, "configuration"),
        polity_registry::Severity::Warning if is_capability(&problem.place) => {
            (Severity::Hint, "capability_name")
        }
        polity_registry::Severity::Warning => (Severity::Warning, "configuration_odd"),
    };
    // The text of the problem already says what is wrong and how polity continues in spite of it. So the advice only
    // says where to correct it.
    let advice = format!("correct it in {}, or in the environment if it names a variable", problem.file);
    Finding { severity, ..Finding::hint(code, problem.to_string(), advice) }
}

/// Returns whether a problem is about a word in a list of capabilities. Such a list may contain any word, so the only
/// possible warning is about a likely typing error: the word resembles a known capability.
fn is_capability(place: &Place) -> bool {
    let Place::Pointer(pointer) = place else { return false };
    let mut parts = pointer.split('/').skip(3);
    parts.next() == Some("capabilities") && parts.count() == 2
}

fn of_origin(origin: &Origin, count: usize) -> Finding {
    let what = format!("services: {count} ({origin})");
    match origin {
        Origin::File | Origin::Environment => Finding::ok("services", what),
        Origin::Discovered(_) => Finding::hint(
            "services_found",
            what,
            "nothing; to choose another model or to keep this one, write it into llmservices.json: `polity` offers that",
        ),
        Origin::Rehearsal => Finding::hint(
            "no_model",
            what,
            "declare a service in llmservices.json, set OPENAI_API_KEY, or start Ollama, LM Studio, llama.cpp or vLLM",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_lists_of_capabilities() {
        let check = |pointer: &str, expect: bool| {
            assert_eq!(is_capability(&Place::Pointer(pointer.to_owned())), expect, "{pointer}");
        };
        check("/services/0/capabilities/input/1", true);
        check("/services/12/capabilities/output/0", true);
        check("/services/0/capabilities/input", false);
        check("/services/0/capabilities", false);
        check("/services/0/apiKey", false);
        assert!(!is_capability(&Place::Whole));
    }
}
