//! What a server says about itself and one model of it.

use polity_society::content::{Capability, Direction};
use std::collections::BTreeMap;
use std::fmt;

/// The servers that say more than which models they have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Server {
    /// Ollama.
    Ollama,
    /// LM Studio.
    LmStudio,
    /// The server of llama.cpp.
    LlamaCpp,
    /// vLLM.
    Vllm,
    /// OpenRouter.
    OpenRouter,
    /// Any other.
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

/// Whether a model can do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It can.
    Has,
    /// It cannot.
    HasNot,
}

impl Support {
    pub(crate) fn when(has: bool) -> Self {
        if has { Self::Has } else { Self::HasNot }
    }
}

/// How many tokens a model can have in view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// As the server has set it up now.
    pub in_force: Option<u64>,
    /// What the model could have at most.
    pub largest: Option<u64>,
}

/// What a server says. Whatever it does not say is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// What server it is.
    pub server: Server,
    /// The models that it lists.
    pub models: Option<Vec<String>>,
    /// What the model takes, and what it does not.
    pub input: BTreeMap<Capability, Support>,
    /// What it gives, and what it does not.
    pub output: BTreeMap<Capability, Support>,
    /// Its context window.
    pub window: Window,
}

impl Facts {
    /// What is said of a capability.
    pub fn told(&self, capability: &Capability, direction: Direction) -> Option<Support> {
        let side = match direction {
            Direction::Input => &self.input,
            Direction::Output => &self.output,
            Direction::Both => return None,
        };
        side.get(capability).copied()
    }

    /// Adds what another answer says. Where both say something, the other counts.
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

    /// The name under which the server lists a model.
    pub(crate) fn listed<'f>(&'f self, model: &str) -> Option<&'f str> {
        find(self.models.as_deref()?, self.server, model)
    }
}

/// The name under which a model is listed.
pub(crate) fn find<'m>(models: &'m [String], server: Server, model: &str) -> Option<&'m str> {
    let named = |name: &str| models.iter().find(|listed| *listed == name).map(String::as_str);
    let as_it_is = || named(model);
    // `qwen3` is short for `qwen3:latest`.
    let latest = || (!model.contains(':')).then(|| named(&format!("{model}:latest"))).flatten();
    // `:nitro` and the like choose among those who serve a model; they are not listed.
    let variant = || named(model.rsplit_once(':')?.0).filter(|_| server == Server::OpenRouter);
    // Gemini lists `models/…` and takes the name alone.
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
