//! Chooses the source of the services. There are four sources: the file, the environment, the model servers on this
//! machine, and the built-in rehearsal models. polity uses the first of these that has services.

use crate::problem::{Place, Problem, Severity};
use crate::services::{self, Declaration, Service};
use polity_llm::{Endpoint, MaxTokensField};
use polity_society::content::{Capabilities, Capability};
use polity_society::id::ServiceId;
use polity_society::mime::{MimePattern, MimeType};
use secrecy::SecretString;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

const OPENAI_API_KEY: &str = "OPENAI_API_KEY";
const OPENAI_BASE_URL: &str = "OPENAI_BASE_URL";
const OPENAI_MODEL: &str = "OPENAI_MODEL";

/// Where the services of a catalogue come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The file `llmservices.json`.
    File,
    /// The environment variables `OPENAI_API_KEY`, `OPENAI_BASE_URL` and `OPENAI_MODEL`.
    Environment,
    /// Model servers that were found on this machine. Contains their names, such as `Ollama`.
    Discovered(Vec<String>),
    /// The built-in models, because no other source has a service.
    Rehearsal,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("the services of llmservices.json"),
            Self::Environment => f.write_str("the OpenAI service of OPENAI_API_KEY"),
            Self::Discovered(server_names) => match server_names.as_slice() {
                [server_name] => write!(f, "the {server_name} server found on this machine"),
                _ => write!(f, "the model servers found on this machine: {}", server_names.join(", ")),
            },
            Self::Rehearsal => {
                f.write_str("the built-in rehearsal models, because no other service is there")
            }
        }
    }
}

/// The environment variables that declare a service. The API key itself is not stored here. It is read from its
/// variable at each call. The type has no `Debug`, because people put keys into URLs.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment {
    /// Whether `OPENAI_API_KEY` is set.
    pub openai_api_key: KeyPresence,
    /// The value of `OPENAI_BASE_URL`; `None` if it is unset or empty.
    pub openai_base_url: Option<String>,
    /// The value of `OPENAI_MODEL`; `None` if it is unset or empty.
    pub openai_model: Option<String>,
}

/// Whether the environment contains an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPresence {
    /// The variable has a value.
    Set,
    /// The variable is unset or empty.
    Unset,
}

impl Environment {
    /// Looks up the variables with `variable`. An empty value counts as unset.
    pub fn look_up(variable: impl Fn(&str) -> Option<String>) -> Self {
        let variable =
            |name| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        Self {
            openai_api_key: variable(OPENAI_API_KEY).map_or(KeyPresence::Unset, |_| KeyPresence::Set),
            openai_base_url: variable(OPENAI_BASE_URL),
            openai_model: variable(OPENAI_MODEL),
        }
    }
}

/// A model server that was found on this machine.
#[derive(Clone, Debug)]
pub struct Discovered {
    /// The name of the server software, such as `Ollama`.
    pub server_name: String,
    /// The first service of this server, with the capabilities that the server reports. The first service of the first
    /// server is the default service.
    pub first: Service,
    /// Further services of this server.
    pub others: Vec<Service>,
}

impl Discovered {
    /// Returns all services of this server.
    pub fn services(&self) -> impl Iterator<Item = &Service> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

/// The services in use and their origin. There is at least one service.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) origin: Origin,
    pub(crate) first: Arc<Service>,
    pub(crate) others: Vec<Arc<Service>>,
}

/// What the file and the environment declare.
#[derive(Debug)]
pub(crate) enum Declared {
    /// At least one service. Only the declared services are used.
    Services(Taken),
    /// No service, so polity uses the model servers on this machine or the built-in models.
    Nothing,
}

/// Returns the services of the file, or the service of the environment if the file has none.
/// `text` is the content of the file; `None` if it does not exist.
///
/// # Errors
///
/// Fails if the file or the environment declares services, but none of these is valid. The error contains all problems.
/// The next source is not used in this case, because the user wanted the declared services.
pub(crate) fn declared(
    text: Option<&str>,
    environment: &Environment,
) -> Result<(Declared, Vec<Problem>), Vec<Problem>> {
    let (services, problems) = text.map_or_else(|| Ok((Vec::new(), Vec::new())), services::parse)?;
    let mut services = services.into_iter().map(Arc::new);
    if let Some(first) = services.next() {
        let taken = Taken { origin: Origin::File, first, others: services.collect() };
        return Ok((Declared::Services(taken), problems));
    }
    match (environment.openai_api_key, from_environment(environment)) {
        (KeyPresence::Unset, _) => Ok((Declared::Nothing, problems)),
        (KeyPresence::Set, Ok(taken)) => Ok((Declared::Services(taken), problems)),
        (KeyPresence::Set, Err(problem)) => Err(problems.into_iter().chain([problem]).collect()),
    }
}

fn from_environment(environment: &Environment) -> Result<Taken, Problem> {
    let base_url = environment.openai_base_url.as_deref().unwrap_or("https://api.openai.com/v1");
    // If the URL is wrong, do not use the default URL instead: the server at the default URL must not receive the key.
    let base_url = services::base_url(Value::from(base_url)).map_err(|what| Problem {
        file: OPENAI_BASE_URL.to_owned(),
        place: Place::Whole,
        severity: Severity::Error,
        what: what.to_owned(),
        done: "the OpenAI service is left out".to_owned(),
    })?;
    let model = environment.openai_model.as_deref().unwrap_or("gpt-5-mini");
    let mut endpoint = Endpoint::new(base_url, model);
    endpoint.api_key = SecretString::from(format!("${{{OPENAI_API_KEY}}}"));
    endpoint.dialect.max_tokens_field = MaxTokensField::MaxCompletionTokens;
    let service = Service {
        name: format!("OpenAI {model}"),
        capabilities: Capabilities {
            input: vec![Capability::TEXT, Capability::VISION, Capability::FILE],
            output: vec![Capability::TEXT, Capability::STRUCTURED_OUTPUT, Capability::TOOL_CALLING],
        },
        declared: Declaration::Declared,
        file_types: vec![MimePattern::Exactly(MimeType::PDF)],
        ..Service::new(ServiceId::new("openai"), endpoint)
    };
    Ok(Taken { origin: Origin::Environment, first: Arc::new(service), others: Vec::new() })
}

/// Returns the services of all servers that were found on this machine, or the built-in models if none was found.
pub(crate) fn undeclared(discovered: Vec<Discovered>) -> Taken {
    let mut server_names = Vec::new();
    let mut services = Vec::new();
    for Discovered { server_name, first, others } in discovered {
        server_names.push(server_name);
        services.push(Arc::new(first));
        services.extend(others.into_iter().map(Arc::new));
    }
    let mut services = services.into_iter();
    let Some(first) = services.next() else {
        return rehearsal();
    };
    Taken { origin: Origin::Discovered(server_names), first, others: services.collect() }
}

fn rehearsal() -> Taken {
    let service = |id: &str, name: &str, input: Vec<Capability>| {
        let service = Service {
            name: name.to_owned(),
            capabilities: Capabilities { input, output: vec![Capability::TEXT, Capability::TOOL_CALLING] },
            declared: Declaration::Declared,
            ..Service::new(ServiceId::new(id), Endpoint::new("rehearsal:", id))
        };
        Arc::new(service)
    };
    let everything = vec![Capability::TEXT, Capability::VISION, Capability::AUDIO, Capability::FILE];
    Taken {
        origin: Origin::Rehearsal,
        first: service("rehearsal-text", "Rehearsal, text", vec![Capability::TEXT]),
        others: vec![service("rehearsal-multimodal", "Rehearsal, multimodal", everything)],
    }
}

#[cfg(test)]
mod tests;
