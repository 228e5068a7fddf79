//! After a call of a service has failed, says how to make the next call work. The advice names the file, the field and
//! the value to change. `polity run` and `polity doctor` give the same advice, because both take it from this module.

use crate::services::{FILE, Service};
use polity_llm::{CallError, FailureKind, ServerKind};
use polity_society::id::ServiceId;

/// The smallest context window that polity advises, in tokens. The rules for agents, a task brief and a few tool
/// results fit into it.
const GOOD_WINDOW: u64 = 16_384;

/// What to do about a failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// The kind of failure as a word for programs, such as `model_missing`.
    pub code: &'static str,
    /// What to do, as a text for people.
    pub advice: String,
}

impl Remedy {
    /// Returns what to do about a failed call of a service. `server` is the kind of server, if it is known.
    pub fn of(service: &Service, failure: &CallError, server: Option<ServerKind>) -> Self {
        let (code, advice) = match failure.kind {
            FailureKind::Unreachable => ("unreachable", unreachable(service)),
            FailureKind::TimedOut => (
                "timed_out",
                "check on the server whether the model is loaded, and whether other requests keep it busy; if it only \
                 has to load the model, try again"
                    .to_owned(),
            ),
            FailureKind::RateLimited => ("rate_limited", "wait, or raise the limits of your account".to_owned()),
            FailureKind::Passing => {
                ("server_error", "check the server's log; if the server is overloaded, try again later".to_owned())
            }
            FailureKind::Unauthorized => (
                "key_refused",
                format!("check apiKey of {}, or the environment variable that it names", of_file(service)),
            ),
            FailureKind::ContextOverflow => {
                let larger = larger_window(&service.id, service.context_window, server);
                ("context_overflow", format!("{larger}; or send less at once, or use another service"))
            },
            FailureKind::CallNotParsed => (
                "call_not_parsed",
                "its model writes tool calls in a form that the server does not know: use another model for this \
                 service, or the chat template that belongs to this one"
                    .to_owned(),
            ),
            FailureKind::ToolsRefused => ("no_tools", without_tools(service)),
            FailureKind::NoSuchModel => ("model_missing", missing(service, server)),
            FailureKind::NothingLoaded => (
                "nothing_loaded",
                format!(
                    "load the model {:?} on the server, or set model of {} to a model that is loaded",
                    service.endpoint.model,
                    of_file(service)
                ),
            ),
            FailureKind::WrongAddress => {
                ("wrong_address", format!("set baseURL of {} to that address", of_file(service)))
            }
            FailureKind::Refused if failure.status == Some(404) => {
                ("refused", format!("check model and baseURL of {}", of_file(service)))
            }
            FailureKind::MediaRefused | FailureKind::Refused => (
                "refused",
                format!(
                    "it refuses this request again: check model, extraBody and dialect of {}, or use another service",
                    of_file(service)
                ),
            ),
            FailureKind::BrokenOff => {
                ("broken_off", "check the server's log: the server closed the connection".to_owned())
            }
            FailureKind::NotAnAnswer => (
                "not_an_answer",
                format!(
                    "check baseURL of {}: this address does not offer Chat Completions (most servers need a path such \
                     as /v1)",
                    of_file(service)
                ),
            ),
            FailureKind::Misconfigured => {
                ("misconfigured", format!("correct this in {}, or in the environment", of_file(service)))
            }
        };
        Self { code, advice }
    }
}

/// Returns what to do about a model that takes no tools.
pub fn without_tools(service: &Service) -> String {
    format!(
        "agents work by calling tools: set model of {} to a model that calls tools, or set its capabilities.output to \
         [\"text\"], so that the model gets no tools and can only answer",
        of_file(service)
    )
}

/// Returns what to do if the context window of a service is too small. `window` is the size of the window, if it is
/// known.
pub fn larger_window(id: &ServiceId, window: Option<u64>, server: Option<ServerKind>) -> String {
    let doubled = window.map_or(0, |window| window.saturating_mul(2));
    let tokens = GOOD_WINDOW.max(doubled);
    let how = match server {
        Some(server) => server.how_to_enlarge(tokens),
        None => format!("give the model a context window of {tokens} tokens on its server"),
    };
    let id = id.as_str();
    format!("{how}, and set contextWindow of service {id:?} in {FILE} to {tokens}")
}

fn unreachable(service: &Service) -> String {
    let base_url = &service.endpoint.base_url;
    let is_local = ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| base_url.contains(host));
    if is_local {
        format!("start the server, or correct the port in baseURL of {}", of_file(service))
    } else {
        format!("check baseURL of {}, and whether this machine can reach it", of_file(service))
    }
}

fn missing(service: &Service, server: Option<ServerKind>) -> String {
    let set = format!("set model of {} to a model that the server has", of_file(service));
    match server {
        Some(ServerKind::Ollama) => format!("run `ollama pull {}`, or {set}", service.endpoint.model),
        Some(ServerKind::LmStudio | ServerKind::LlamaCpp | ServerKind::Vllm) | None => set,
    }
}

fn of_file(service: &Service) -> String {
    format!("service {:?} in {FILE}", service.id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_llm::Endpoint;

    fn service(window: Option<u64>) -> Service {
        let endpoint = Endpoint::new("http://127.0.0.1:11434/v1", "gemma3:4b");
        Service { context_window: window, ..Service::new(ServiceId::new("local"), endpoint) }
    }

    fn of(kind: FailureKind, status: Option<u16>) -> String {
        let failure = CallError { kind, message: "why".to_owned(), status, retry_after: None };
        let Remedy { code, advice } = Remedy::of(&service(None), &failure, Some(ServerKind::Ollama));
        format!("{code}: {advice}")
    }

    #[test]
    fn every_failure_has_advice() {
        let all: Vec<String> = FailureKind::ALL.iter().map(|kind| of(*kind, Some(400))).collect();
        insta::assert_snapshot!(all.join("\n"));
        assert!(of(FailureKind::Refused, Some(404)).contains("check model and baseURL"));
    }

    #[test]
    fn the_advised_window_is_larger_than_the_declared_one() {
        for (declared, advised) in [(None, 16_384), (Some(4_096), 16_384), (Some(32_768), 65_536)] {
            let advice = larger_window(&ServiceId::new("local"), declared, None);
            assert!(
                advice.contains(&format!(
                    "contextWindow of service \"local\" in llmservices.json to {advised}"
                )),
                "{advice}"
            );
        }
    }
}
