//! The services that can be used now, and the choice of one for a role.

use crate::problem::{Place, Problem, Severity};
use crate::services::Service;
use crate::settings;
use crate::sources::{Origin, Taken};
use polity_society::content::{Capabilities, Capability, Direction};
use polity_society::id::ServiceId;
use std::sync::Arc;

/// One complete revision of the services. It is immutable and contains at least one service.
#[derive(Clone, Debug)]
#[doc(alias = "LlmServiceRegistry")]
pub struct Catalogue {
    revision: u64,
    origin: Origin,
    services: Vec<Arc<Service>>,
    default: Arc<Service>,
}

/// The service that a role wants. A role can name a service, or state requirements. If it does neither, it accepts any
/// service.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceWish<'a> {
    /// The service that the role names; `None` if the role names no service.
    pub service_id: Option<&'a ServiceId>,
    /// What the role requires: names of input or output capabilities, or capability tags.
    pub required: &'a [String],
}

/// The service that was chosen for a [`ServiceWish`].
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The chosen service. It always comes from the catalogue that made the choice.
    pub service: Arc<Service>,
    /// The reason for the choice.
    pub why: Why,
}

/// The reason why a service was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The role names this service.
    Named,
    /// The role names this id, but no such service exists, so the default was chosen.
    NamedIsGone(ServiceId),
    /// The service meets some or all of the requirements. No other service meets more requirements.
    Matched {
        /// The requirements that the service does not meet.
        missing: Vec<String>,
    },
    /// The role requires nothing, so the default was chosen.
    Default,
    /// No service meets any of the requirements, so the default was chosen.
    NoMatch,
}

impl Catalogue {
    /// Builds a catalogue.
    /// If `default` is not the id of a service, the first service becomes the default, and a problem is returned.
    pub(crate) fn new(revision: u64, taken: &Taken, default: Option<&ServiceId>) -> (Self, Option<Problem>) {
        let first = Arc::clone(&taken.first);
        let all: Vec<_> = std::iter::once(&taken.first).chain(&taken.others).cloned().collect();
        let named = default.and_then(|id| all.iter().find(|service| service.id == *id).cloned());
        let problem = (default.is_some() && named.is_none()).then(|| Problem {
            file: settings::FILE.to_owned(),
            place: Place::Pointer("/defaultService".to_owned()),
            severity: Severity::Error,
            what: "is not the id of a service".to_owned(),
            done: format!("the service {:?} is used as the default", first.id.as_str()),
        });
        let origin = taken.origin.clone();
        (Self { revision, origin, services: all, default: named.unwrap_or(first) }, problem)
    }

    /// Returns the number of this revision. While the program runs, each change gives a higher number.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns where the services come from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns all services, in the order of the file.
    pub fn services(&self) -> &[Arc<Service>] {
        &self.services
    }

    /// Returns the service for roles that name no service and require nothing.
    pub fn default_service(&self) -> &Arc<Service> {
        &self.default
    }

    /// Returns the service with that id; `None` if no service has the id.
    pub fn service(&self, id: &ServiceId) -> Option<&Arc<Service>> {
        self.services.iter().find(|service| service.id == *id)
    }

    /// Returns the service that a role or a task names. If `id` is `None`, or if the named service does not exist,
    /// returns the default service.
    pub fn service_for(&self, id: Option<&ServiceId>) -> &Arc<Service> {
        id.and_then(|id| self.service(id)).unwrap_or_else(|| self.default_service())
    }

    /// Returns whether a service has a capability in this direction (input or output). If there is no service with this
    /// id, returns `false` and logs a warning.
    #[doc(alias = "hasCapability")]
    pub fn has_capability(&self, id: &ServiceId, capability: &Capability, direction: Direction) -> bool {
        self.capabilities(id).is_some_and(|capabilities| capabilities.has(capability, direction))
    }

    /// Returns the capabilities of a service. If there is no service with this id, returns `None` and logs a warning.
    #[doc(alias = "getCapabilities")]
    pub fn capabilities(&self, id: &ServiceId) -> Option<&Capabilities> {
        let service = self.service(id);
        if service.is_none() {
            tracing::warn!(service = %id, revision = self.revision, "asked for the capabilities of an unknown service");
        }
        service.map(|service| &service.capabilities)
    }

    /// Returns the services that have a capability in this direction (input or output), in the order of the file.
    #[doc(alias = "getServicesByCapability")]
    pub fn services_with(&self, capability: &Capability, direction: Direction) -> Vec<&Arc<Service>> {
        self.services.iter().filter(|service| service.capabilities.has(capability, direction)).collect()
    }

    /// Returns the names of all capabilities (input and output) and all tags of the services, without duplicates.
    pub fn available(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for name in self.services.iter().flat_map(|service| names(service)) {
            if !all.contains(&name) {
                all.push(name);
            }
        }
        all
    }

    /// If the role names a service, chooses this service, or the default service if no such service exists. Otherwise
    /// chooses the service that meets the largest number of the role's requirements. If several services meet this
    /// number, prefers the default service, then the first of them in the file. If no service meets any requirement,
    /// chooses the default service.
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
        // If several services lack the same number of requirements, `min_by_key` returns the first of them. The default
        // is preferred, because `candidates` begins with it.
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
    /// Returns the requirements that the service does not meet. A capability or a tag can meet a requirement.
    pub fn lacks(&self, required: &[String]) -> Vec<String> {
        missing(self, required)
    }
}

/// Returns the requirements that a service does not meet. A capability or a tag can meet a requirement. Letter case
/// does not matter, because models write names in any case.
fn missing(service: &Service, required: &[String]) -> Vec<String> {
    let has = |wanted: &String| names(service).any(|name| name.eq_ignore_ascii_case(wanted.trim()));
    required.iter().filter(|wanted| !has(wanted)).cloned().collect()
}

/// Returns everything that a requirement may name: the capabilities and the tags of a service.
fn names(service: &Service) -> impl Iterator<Item = &str> {
    let Capabilities { input, output } = &service.capabilities;
    let capabilities = input.iter().chain(output).map(Capability::as_str);
    capabilities.chain(service.capability_tags.iter().map(String::as_str))
}

#[cfg(test)]
mod tests;
