//! The services that can be used now, and which of them is meant.

use crate::problem::{Place, Problem, Severity};
use crate::services::Service;
use crate::settings;
use crate::sources::{Origin, Taken};
use polity_society::content::{Capabilities, Capability, Direction};
use polity_society::id::ServiceId;
use std::sync::Arc;

/// One whole revision of the services. It never changes; there is never no service in it.
#[derive(Clone, Debug)]
#[doc(alias = "LlmServiceRegistry")]
pub struct Catalogue {
    revision: u64,
    origin: Origin,
    services: Vec<Arc<Service>>,
    default: Arc<Service>,
}

/// What is asked of the service of a role.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceWish<'a> {
    /// The service that the role names.
    pub service_id: Option<&'a ServiceId>,
    /// What the role requires: names of input or output capabilities, or capability tags.
    pub required: &'a [String],
}

/// The service that was chosen for a wish.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The service.
    pub service: Arc<Service>,
    /// Why it was chosen.
    pub why: Why,
}

/// Why a service was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The role names it.
    Named,
    /// The role names another one that is not there; this is the default.
    NamedIsGone(ServiceId),
    /// It has most of what is required, or all of it.
    Matched {
        /// What is required and what it has not.
        missing: Vec<String>,
    },
    /// Nothing is required; this is the default.
    Default,
    /// No service has anything of what is required; this is the default.
    NoMatch,
}

impl Catalogue {
    /// Puts a catalogue together. Where `default` is not among the services, the first is the default, and the
    /// problem says so.
    pub(crate) fn new(revision: u64, taken: &Taken, default: Option<&ServiceId>) -> (Self, Option<Problem>) {
        let first = Arc::clone(&taken.first);
        let all: Vec<_> = std::iter::once(&taken.first).chain(&taken.others).cloned().collect();
        let named = default.and_then(|id| all.iter().find(|service| service.id == *id).cloned());
        let problem = (default.is_some() && named.is_none()).then(|| Problem {
            file: settings::FILE.to_owned(),
            place: Place::Pointer("/defaultService".to_owned()),
            severity: Severity::Error,
            what: "is not the id of a service that there is".to_owned(),
            done: format!("the service {:?} is the default", first.id.as_str()),
        });
        let origin = taken.origin.clone();
        (Self { revision, origin, services: all, default: named.unwrap_or(first) }, problem)
    }

    /// The number of this revision. It rises with every change within one run of the program.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Where the services come from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// All services, in the order of the file.
    pub fn services(&self) -> &[Arc<Service>] {
        &self.services
    }

    /// The service that counts where a role asks for nothing.
    pub fn default_service(&self) -> &Arc<Service> {
        &self.default
    }

    /// The service of that id.
    pub fn service(&self, id: &ServiceId) -> Option<&Arc<Service>> {
        self.services.iter().find(|service| service.id == *id)
    }

    /// Whether a service has a capability in that direction. An unknown service has none, and a warning says so.
    #[doc(alias = "hasCapability")]
    pub fn has_capability(&self, id: &ServiceId, capability: &Capability, direction: Direction) -> bool {
        self.capabilities(id).is_some_and(|capabilities| capabilities.has(capability, direction))
    }

    /// What a service takes and gives. An unknown service has none, and a warning says so.
    #[doc(alias = "getCapabilities")]
    pub fn capabilities(&self, id: &ServiceId) -> Option<&Capabilities> {
        let service = self.service(id);
        if service.is_none() {
            tracing::warn!(service = %id, revision = self.revision, "asked for the capabilities of an unknown service");
        }
        service.map(|service| &service.capabilities)
    }

    /// The services that have a capability in that direction, in the order of the file.
    #[doc(alias = "getServicesByCapability")]
    pub fn services_with(&self, capability: &Capability, direction: Direction) -> Vec<&Arc<Service>> {
        self.services.iter().filter(|service| service.capabilities.has(capability, direction)).collect()
    }

    /// Every capability, input or output, and every tag that some service has, each once.
    pub fn available(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for name in self.services.iter().flat_map(|service| names(service)) {
            if !all.contains(&name) {
                all.push(name);
            }
        }
        all
    }

    /// The service that fits a wish: the one that is named; else the one that has most of what is required; else
    /// the default. Between equals the default wins, then the order of the file.
    pub fn choose(&self, wish: ServiceWish<'_>) -> Chosen {
        let default = |why: Why| Chosen { service: Arc::clone(&self.default), why };
        if let Some(id) = wish.service_id {
            let Some(service) = self.service(id) else {
                return default(Why::NamedIsGone(id.clone()));
            };
            return Chosen { service: Arc::clone(service), why: Why::Named };
        }
        if wish.required.is_empty() {
            return default(Why::Default);
        }
        let candidates = std::iter::once(&self.default).chain(&self.services);
        let ranked = candidates.map(|service| (service, missing(service, wish.required)));
        // Of several smallest ones `min_by_key` takes the first.
        let best = ranked.min_by_key(|(_, missing)| missing.len());
        match best {
            Some((service, missing)) if missing.len() < wish.required.len() => {
                Chosen { service: Arc::clone(service), why: Why::Matched { missing } }
            }
            _ => default(Why::NoMatch),
        }
    }
}

impl Service {
    /// What of the required it has neither as a capability nor as a tag.
    pub fn lacks(&self, required: &[String]) -> Vec<String> {
        missing(self, required)
    }
}

/// What of the required a service has not, neither as a capability nor as a tag. Models write names in any case.
fn missing(service: &Service, required: &[String]) -> Vec<String> {
    let has = |wanted: &String| names(service).any(|name| name.eq_ignore_ascii_case(wanted.trim()));
    required.iter().filter(|wanted| !has(wanted)).cloned().collect()
}

/// What a requirement may name of a service: its capabilities and tags.
fn names(service: &Service) -> impl Iterator<Item = &str> {
    let Capabilities { input, output } = &service.capabilities;
    let capabilities = input.iter().chain(output).map(Capability::as_str);
    capabilities.chain(service.capability_tags.iter().map(String::as_str))
}

#[cfg(test)]
mod tests;
