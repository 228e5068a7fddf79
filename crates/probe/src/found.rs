//! Turns the model servers that were found on this machine into services: asks the servers what their models can do,
//! and chooses among the models. Only [`look`] contacts the servers.

use crate::correction::corrections;
use crate::examine::{Examined, Times};
use crate::facts::{Facts, Server, Support};
use polity_llm::{Endpoint, Found, Inquirer, ServerKind};
use polity_registry::{Declaration, Discovered, Service};
use polity_society::content::{Capabilities, Capability, Direction};
use polity_society::id::ServiceId;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Maximum number of models that a found server is asked about.
const ASKED: usize = 16;
/// The id of the service with the model that agents get by default.
const MAIN: &str = "local";
/// Comes after the id of a server's first service in the id of its second service, whose model can see. The second
/// service exists only if the model of the first cannot see.
const EYES: &str = "-vision";

/// A model of a found server, and what the server reports about it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The name of the model on the server.
    pub model: String,
    /// What the server reports.
    pub facts: Facts,
}

/// Asks all found servers about their models at the same time, and returns the services that polity uses, as [`choose`]
/// does. `question` is the time limit for each question. There are two rounds of questions.
pub async fn look(inquirer: &Inquirer, found: &[Found], question: Duration) -> Vec<Discovered> {
    let asked = found.iter().map(|found| candidates(inquirer, found, question));
    let candidates = futures::future::join_all(asked).await;
    let asked: Vec<(&Found, Vec<Candidate>)> = found.iter().zip(candidates).collect();
    choose(&asked)
}

/// Asks a found server about each of its models.
async fn candidates(inquirer: &Inquirer, found: &Found, question: Duration) -> Vec<Candidate> {
    let asked = found.models.iter().take(ASKED).map(async |model| {
        let service = service(MAIN, found, model);
        let examined = Examined { inquirer, service: &service, times: Times { question, call: question } };
        let mut facts = Facts::default();
        // If the server does not answer, the facts stay empty, and the model counts as one that reads and writes text.
        if examined.survey(&mut facts).await.is_ok() {
            examined.look_at_loaded(&mut facts).await;
        }
        Candidate { model: model.clone(), facts }
    });
    futures::future::join_all(asked).await
}

/// Chooses the services of the found servers, and leaves out servers with no model that writes text. The first
/// remaining server has the services `local` and `local-vision`. The ids of all other services begin with the kind of
/// the server. So all ids differ if no kind of server occurs twice.
pub fn choose(asked: &[(&Found, Vec<Candidate>)]) -> Vec<Discovered> {
    let mut discovered: Vec<Discovered> = Vec::new();
    for (found, candidates) in asked {
        let id = if discovered.is_empty() { MAIN } else { id_of(found.server) };
        discovered.extend(of_server(id, found, candidates));
    }
    discovered
}

fn id_of(server: ServerKind) -> &'static str {
    match server {
        ServerKind::Ollama => "ollama",
        ServerKind::LmStudio => "lm-studio",
        ServerKind::LlamaCpp => "llama-cpp",
        ServerKind::Vllm => "vllm",
    }
}

/// Chooses at most two services of a found server. The first service has this id, and a model that calls tools, if
/// there is one. If this model cannot see, a second service has a model that can. Among equally good models, chooses
/// the first in the server's list. Returns `None` if no model writes text.
fn of_server(id: &str, found: &Found, candidates: &[Candidate]) -> Option<Discovered> {
    let writes = |candidate: &&Candidate| {
        told(candidate, &Capability::TEXT, Direction::Output) != Some(Support::HasNot)
    };
    let rank = |candidate: &&Candidate| match told(candidate, &Capability::TOOL_CALLING, Direction::Output) {
        Some(Support::Has) => 0,
        None => 1,
        Some(Support::HasNot) => 2,
    };
    let first = candidates.iter().filter(writes).min_by_key(rank)?;
    let sees =
        |candidate: &&Candidate| told(candidate, &Capability::VISION, Direction::Input) == Some(Support::Has);
    let eyes =
        if sees(&first) { None } else { candidates.iter().filter(writes).filter(sees).min_by_key(rank) };
    Some(Discovered {
        server_name: found.server.to_string(),
        first: declared(id, found, first),
        others: eyes.map(|eyes| declared(&format!("{id}{EYES}"), found, eyes)).into_iter().collect(),
    })
}

fn told(candidate: &Candidate, capability: &Capability, direction: Direction) -> Option<Support> {
    candidate.facts.told(capability, direction)
}

fn service(id: &str, found: &Found, model: &str) -> Service {
    let endpoint = Endpoint::new(&found.base_url, model);
    Service { name: format!("{} {model}", found.server), ..Service::new(ServiceId::new(id), endpoint) }
}

/// Returns the service with the capabilities and the context window that the server reports.
fn declared(id: &str, found: &Found, candidate: &Candidate) -> Service {
    let mut service = service(id, found, &candidate.model);
    let read = |names: Vec<String>| names.iter().filter_map(|name| Capability::new(name)).collect();
    if let Some(correction) = corrections(&service, &candidate.facts) {
        if let Some(input) = correction.input {
            service.capabilities = Capabilities { input: read(input), ..service.capabilities };
            service.declared = Declaration::InputOnly;
        }
        if let Some(output) = correction.output {
            service.capabilities = Capabilities { output: read(output), ..service.capabilities };
            service.declared = Declaration::Declared;
        }
    }
    service.context_window = window_of(&candidate.facts);
    service
}

/// Returns the context window that a server gives to a model. If the server does not report the window, returns the
/// default window of this kind of server. If no default is known either, returns `None`.
pub(crate) fn window_of(facts: &Facts) -> Option<u64> {
    let usual = crate::answers::ollama::USUAL_WINDOW;
    match (facts.window.in_force, facts.server) {
        (Some(window), _) => Some(window),
        (None, Server::Ollama) => Some(facts.window.largest.map_or(usual, |most| most.min(usual))),
        (None, _) => None,
    }
}

/// Returns the text of an `llmservices.json` that declares these services, with all known facts about them.
pub fn written<'s>(services: impl IntoIterator<Item = &'s Service>) -> String {
    let entry = |service: &Service| {
        let mut entry = Map::new();
        let mut add = |name: &str, value: Value| entry.insert(name.to_owned(), value);
        add("id", json!(service.id.as_str()));
        add("name", json!(service.name));
        add("baseURL", json!(service.endpoint.base_url));
        add("model", json!(service.endpoint.model));
        let names = |list: &[Capability]| json!(list.iter().map(Capability::as_str).collect::<Vec<_>>());
        let Capabilities { input, output } = &service.capabilities;
        match service.declared {
            Declaration::Declared => {
                add("capabilities", json!({"input": names(input), "output": names(output)}));
            }
            Declaration::InputOnly => {
                add("capabilities", json!({"input": names(input)}));
            }
            Declaration::Assumed => {}
        }
        if let Some(window) = service.context_window {
            add("contextWindow", json!(window));
        }
        Value::Object(entry)
    };
    let entries: Vec<Value> = services.into_iter().map(entry).collect();
    format!("{:#}\n", json!({"services": entries}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_registry::parse_services;
    use proptest::prelude::*;

    const VISION: Capability = Capability::VISION;
    const TOOLS: Capability = Capability::TOOL_CALLING;

    fn found() -> Found {
        let base_url = "http://127.0.0.1:11434/v1".to_owned();
        Found { server: ServerKind::Ollama, base_url, models: Vec::new() }
    }

    /// Makes a model from a text such as `name` or `name+vision-tools`. After a `+` comes a capability that the model
    /// has, and after a `-` comes a capability that it lacks.
    fn candidate(text: &str) -> Candidate {
        let mut facts = Facts { server: Server::Ollama, ..Facts::default() };
        let name_end = text.find(['+', '-']).unwrap_or(text.len());
        let (model, mut rest) = text.split_at(name_end);
        while !rest.is_empty() {
            let support = Support::when(rest.starts_with('+'));
            let end = rest.get(1..).and_then(|word| word.find(['+', '-'])).map_or(rest.len(), |end| end + 1);
            match &rest[1..end] {
                "vision" => facts.input.insert(VISION, support),
                "tools" => facts.output.insert(TOOLS, support),
                "text" => facts.output.insert(Capability::TEXT, support),
                other => panic!("{other}"),
            };
            rest = &rest[end..];
        }
        Candidate { model: model.to_owned(), facts }
    }

    fn check(candidates: &[&str], expect: &[&str]) {
        let candidates: Vec<Candidate> = candidates.iter().map(|text| candidate(text)).collect();
        let chosen = of_server(MAIN, &found(), &candidates);
        let services = chosen.iter().flat_map(Discovered::services);
        let shown: Vec<String> = services
            .map(|service| {
                let Capabilities { input, output } = &service.capabilities;
                let names = |list: &[Capability]| {
                    list.iter().map(Capability::to_string).collect::<Vec<_>>().join(" ")
                };
                format!("{} {}: {} | {}", service.id, service.endpoint.model, names(input), names(output))
            })
            .collect();
        assert_eq!(shown, expect, "{candidates:?}");
    }

    #[test]
    fn the_models_that_are_chosen() {
        check(&[], &[]);
        check(&["embedder-text"], &[]);
        check(&["a"], &["local a: text | text"]);
        check(&["a+vision+tools", "b+vision+tools"], &["local a: text vision | text tool_calling"]);
        check(&["a-tools", "b", "c+tools"], &["local c: text | text tool_calling"]);
        check(
            &["a+tools-vision", "b+vision-tools", "c+vision+tools"],
            &["local a: text | text tool_calling", "local-vision c: text vision | text tool_calling"],
        );
        check(&["a-tools-vision"], &["local a: text | text"]);
    }

    /// Checks the ids of all services. `servers` contains the models of each server, separated by spaces.
    fn check_ids(servers: &[(ServerKind, &str)], expect: &[&str]) {
        let found: Vec<Found> =
            servers.iter().map(|(server, _)| Found { server: *server, ..found() }).collect();
        let candidates =
            servers.iter().map(|(_, models)| models.split(' ').map(candidate).collect::<Vec<Candidate>>());
        let asked: Vec<(&Found, Vec<Candidate>)> = found.iter().zip(candidates).collect();
        let chosen = choose(&asked);
        let services = chosen.iter().flat_map(Discovered::services);
        let ids: Vec<&str> = services.map(|service| service.id.as_str()).collect();
        assert_eq!(ids, expect, "{servers:?}");
    }

    #[test]
    fn all_servers_give_services_and_all_ids_differ() {
        let two = "a+tools-vision b-tools+vision";
        check_ids(
            &[
                (ServerKind::Ollama, two),
                (ServerKind::LmStudio, two),
                (ServerKind::LlamaCpp, two),
                (ServerKind::Vllm, two),
            ],
            &[
                "local",
                "local-vision",
                "lm-studio",
                "lm-studio-vision",
                "llama-cpp",
                "llama-cpp-vision",
                "vllm",
                "vllm-vision",
            ],
        );
        check_ids(
            &[(ServerKind::Ollama, "a-vision"), (ServerKind::LmStudio, "b+vision")],
            &["local", "lm-studio"],
        );
        // The first server has no model that writes text, so the next one has the default service.
        check_ids(&[(ServerKind::Ollama, "a-text"), (ServerKind::LmStudio, two)], &["local", "local-vision"]);
        check_ids(&[], &[]);
    }

    #[test]
    fn a_model_without_tools_gets_none() {
        let chosen = of_server(MAIN, &found(), &[candidate("a-tools"), candidate("b-tools")]).unwrap();
        assert!(!chosen.first.tools_allowed());
        let chosen = of_server(MAIN, &found(), &[candidate("a")]).unwrap();
        assert!(chosen.first.tools_allowed(), "tools are tried if the server says nothing");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            vision in prop::option::of(any::<bool>()),
            tools in prop::option::of(any::<bool>()),
            window in prop::option::of(1_u64..1_000_000),
            model in "[a-z\"\\\\:/ä]{1,12}",
        ) {
            let mut facts = Facts { server: Server::LlamaCpp, ..Facts::default() };
            facts.input.extend(vision.map(|has| (VISION, Support::when(has))));
            facts.output.extend(tools.map(|has| (TOOLS, Support::when(has))));
            facts.window.in_force = window;
            let chosen = of_server(MAIN, &found(), &[Candidate { model, facts }]).unwrap();
            let (read, problems) = parse_services(&written([&chosen.first])).unwrap();
            prop_assert_eq!(problems, Vec::new());
            prop_assert_eq!(format!("{:?}", read[0]), format!("{:?}", chosen.first));
        }
    }
}
