//! The facts that a server reports about itself and one of its models.

use polity_society::content::{Capability, Direction};
use std::collections::BTreeMap;
use std::fmt;

/// The kinds of servers that report more than a list of models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Server {
    /// Ollama, which answers `api/show` and `api/ps`.
    Ollama,
    /// LM Studio, which answers `api/v0/models`.
    LmStudio,
    /// The server of llama.cpp, which answers `props`.
    LlamaCpp,
    /// vLLM, which adds context windows to its list of models.
    Vllm,
    /// OpenRouter, which adds context windows and capabilities to its list of models.
    OpenRouter,
    /// Any other server, which reports at most a list of models.
    #[default]
    Other,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ollama => "Ollama",
            Self::LmStudio => "LM Studio",
            Self::LlamaCpp => "llama.cpp",
            Self::Vllm => "vLLM",
            Self::OpenRouter => "OpenRouter",
            Self::Other => "the server",
        })
    }
}

/// Whether a model has a capability, according to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// The model has the capability.
    Has,
    /// The model does not have the capability.
    HasNot,
}

impl Support {
    pub(crate) fn when(has: bool) -> Self {
        if has { Self::Has } else { Self::HasNot }
    }
}

/// A context window with fewer tokens than this counts as small. The rules for agents, together with a task brief,
/// already take thousands of tokens.
pub const SMALL_WINDOW: u64 = 8_192;

/// The context window of a model, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The window that the server gives the model now.
    pub in_force: Option<u64>,
    /// The largest window that the model supports.
    pub largest: Option<u64>,
}

impl Window {
    /// Returns the window that the server gives the model now, if the declared window is small and the server gives
    /// more. A person may declare a smaller window than the server gives, but hardly a small one: such a declaration
    /// comes from the time before the server was started with a larger window.
    pub(crate) fn instead_of(self, declared: u64) -> Option<u64> {
        self.in_force.filter(|there| declared < SMALL_WINDOW && *there > declared)
    }
}

/// The facts that a server reports. An absent value means that the server does not report it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The kind of server.
    pub server: Server,
    /// Names of the models that the server lists.
    pub models: Option<Vec<String>>,
    /// Input capabilities that the model has or does not have.
    pub input: BTreeMap<Capability, Support>,
    /// Output capabilities that the model has or does not have.
    pub output: BTreeMap<Capability, Support>,
    /// The model's context window. If the server does not report one of its sizes, this size is absent.
    pub window: Window,
}

impl Facts {
    /// Returns what the server reports about a capability. For [`Direction::Both`], always returns `None`.
    pub fn told(&self, capability: &Capability, direction: Direction) -> Option<Support> {
        let side = match direction {
            Direction::Input => &self.input,
            Direction::Output => &self.output,
            Direction::Both => return None,
        };
        side.get(capability).copied()
    }

    /// Adds the facts from a further answer of the server. If both answers report the same fact, the further answer
    /// replaces the earlier one.
    pub(crate) fn add(&mut self, other: Self) {
        if other.server != Server::Other {
            self.server = other.server;
        }
        self.models = other.models.or(self.models.take());
        self.input.extend(other.input);
        self.output.extend(other.output);
        self.window.in_force = other.window.in_force.or(self.window.in_force);
        self.window.largest = other.window.largest.or(self.window.largest);
    }

    /// Returns the name under which the server lists a model.
    pub(crate) fn listed<'f>(&'f self, model: &str) -> Option<&'f str> {
        find(self.models.as_deref()?, self.server, model)
    }
}

/// Finds the name under which a model is listed.
pub(crate) fn find<'m>(models: &'m [String], server: Server, model: &str) -> Option<&'m str> {
    let named = |name: &str| models.iter().find(|listed| *listed == name).map(String::as_str);
    let as_it_is = || named(model);
    // `qwen3` is short for `qwen3:latest`.
    let latest = || (!model.contains(':')).then(|| named(&format!("{model}:latest"))).flatten();
    // OpenRouter accepts a model's name with a suffix such as `:nitro`. The suffix chooses among the providers of the
    // model. The list of models contains only the names without a suffix.
    let variant = || named(model.rsplit_once(':')?.0).filter(|_| server == Server::OpenRouter);
    // Gemini lists names with the prefix `models/`, but also accepts them without it.
    let prefixed = || named(&format!("models/{model}"));
    as_it_is().or_else(latest).or_else(variant).or_else(prefixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_under_which_models_are_listed() {
        let models: Vec<String> = ["qwen3:latest", "a/b", "models/gemini", "c"].map(str::to_owned).to_vec();
        let check = |server: Server, model: &str, expect: Option<&str>| {
            assert_eq!(find(&models, server, model), expect, "{model}");
        };
        check(Server::Ollama, "qwen3", Some("qwen3:latest"));
        check(Server::Ollama, "qwen3:8b", None);
        check(Server::Other, "c", Some("c"));
        check(Server::Other, "C", None);
        check(Server::Other, "gemini", Some("models/gemini"));
        check(Server::OpenRouter, "a/b:nitro", Some("a/b"));
        check(Server::Other, "a/b:nitro", None);
        check(Server::Other, "", None);
    }

    #[test]
    fn of_two_answers_the_later_counts_where_it_says_something() {
        let mut facts = Facts {
            models: Some(vec!["m".to_owned()]),
            window: Window { in_force: None, largest: Some(10) },
            ..Facts::default()
        };
        facts.input.insert(Capability::VISION, Support::Has);
        let mut other = Facts { server: Server::Ollama, ..Facts::default() };
        other.input.insert(Capability::VISION, Support::HasNot);
        other.window.in_force = Some(5);
        facts.add(other);
        assert_eq!(facts.server, Server::Ollama);
        assert_eq!(facts.models, Some(vec!["m".to_owned()]));
        assert_eq!(facts.told(&Capability::VISION, Direction::Input), Some(Support::HasNot));
        assert_eq!(facts.window, Window { in_force: Some(5), largest: Some(10) });
    }
}
