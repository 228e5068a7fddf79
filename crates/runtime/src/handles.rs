//! The parts that an agent's driver works with. No methods but the gates' own, and given to nothing but the driver.

use crate::budget::Budgets;
use crate::kept::Kept;
use crate::tools::outside::OutsideTool;
use crate::trust::Trusts;
use polity_artifacts::BlobStore;
use polity_llm::{ChatModel, Endpoint, Gate};
use polity_registry::{Registry, Service};
use polity_society::id::ServiceId;
use polity_store::Store;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// What drives an agent.
pub(crate) struct Handles {
    /// The database.
    pub(crate) store: Store,
    /// The bytes of artifacts.
    pub(crate) blobs: BlobStore,
    /// The configuration.
    pub(crate) registry: Arc<Registry>,
    /// What answers.
    pub(crate) model: Arc<dyn ChatModel>,
    /// Who may ask now.
    pub(crate) gates: Gates,
    /// Cancelled when nothing new is to be begun: what is under way is written, and left for the next start.
    pub(crate) draining: CancellationToken,
    /// What tasks may still spend.
    pub(crate) budgets: Budgets,
    /// Which media the services have refused.
    pub(crate) trusts: Trusts,
    /// What was made of stored bytes for earlier requests.
    pub(crate) kept: Kept,
    /// The program that gets text out of documents, if there is one.
    pub(crate) extractor: Option<PathBuf>,
    /// Tools that reach outside.
    pub(crate) outside: Vec<OutsideTool>,
}

/// One gate per service, shared by all agents.
#[derive(Default)]
pub(crate) struct Gates(Mutex<HashMap<ServiceId, Gated>>);

/// A gate and the server behind it.
struct Gated {
    gate: Arc<Gate>,
    endpoint: Endpoint,
}

impl Gates {
    /// The gate of a service, as wide as its configuration says now. What is known of a server holds for it alone: with
    /// another address, model or key the service begins afresh.
    pub(crate) fn of(&self, service: &Service) -> Arc<Gate> {
        // A gate holds no state that a panic elsewhere could leave half-made.
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gated = gates.entry(service.id.clone()).or_insert_with(|| Gated {
            gate: Arc::new(Gate::new(service.max_concurrent)),
            endpoint: service.endpoint.clone(),
        });
        if !gated.endpoint.is_same_server(&service.endpoint) {
            gated.endpoint = service.endpoint.clone();
            gated.gate.forget();
        }
        gated.gate.set_max_concurrent(service.max_concurrent);
        Arc::clone(&gated.gate)
    }

    /// The gate of a service, if it stands before that very server still.
    pub(crate) fn known(&self, service: &Service) -> Option<Arc<Gate>> {
        let gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gated =
            gates.get(&service.id).filter(|gated| gated.endpoint.is_same_server(&service.endpoint))?;
        Some(Arc::clone(&gated.gate))
    }
}

impl fmt::Debug for Handles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handles").finish_non_exhaustive()
    }
}
