//! The parts that the whole runtime shares, such as the store, the configuration and the gates.
//!
//! [`Society`](crate::Society) builds one [`Handles`]. The society, its background tasks, the supervisor and every
//! driver hold a reference to these handles. They pass the reference to the functions that ask models, load artifacts,
//! or do what the person requests. The modules `door` and `rest`, the actions of `steer` and the society tools get no
//! [`Handles`]: they work in a transaction, with a snapshot of the configuration.

use crate::board::Board;
use crate::budget::Budgets;
use crate::kept::Kept;
use crate::tools::{Copying, ToolCache};
use crate::trust::Trusts;
use polity_artifacts::BlobStore;
use polity_hands::table::Hands;
use polity_llm::{ChatModel, Endpoint, Gate};
use polity_registry::{Registry, Service};
use polity_society::id::ServiceId;
use polity_store::Store;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The shared parts. This struct has no methods; each part has its own methods.
pub(crate) struct Handles {
    pub(crate) store: Store,
    /// The bytes of artifacts; their rows are in `store`.
    pub(crate) blobs: BlobStore,
    /// The configuration, which may change while the society runs.
    pub(crate) registry: Arc<Registry>,
    /// The client that calls models, for all services.
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) gates: Gates,
    /// Cancelled when the process is about to end. Agents then begin no new work. Finished steps of their work are
    /// stored, and the next process continues the work.
    pub(crate) draining: CancellationToken,
    /// Shows what each conversation is doing at this moment. Only views read the board.
    pub(crate) board: Arc<Board>,
    /// The budgets of the tasks: what each task may still spend.
    pub(crate) budgets: Budgets,
    /// Which media each service has refused.
    pub(crate) trusts: Trusts,
    /// Pictures, encoded bytes and document texts that were made for earlier requests.
    pub(crate) kept: Kept,
    /// The tools that were built for earlier requests.
    pub(crate) tool_cache: ToolCache,
    /// The program that extracts text from documents, if there is one.
    pub(crate) extractor: Option<PathBuf>,
    /// The tools that reach outside the society.
    pub(crate) hands: Hands,
    /// The tools that copy between artifacts and the files of workspaces, if there are workspaces.
    pub(crate) copying: Option<Copying>,
    /// The directories of polity itself. A workspace must not contain such a directory, and must not be inside one.
    pub(crate) private: Vec<PathBuf>,
}

/// One gate per service, shared by all callers. A gate limits how many calls of its service run at the same time.
#[derive(Default)]
pub(crate) struct Gates(Mutex<HashMap<ServiceId, Gated>>);

/// A gate and the server behind it.
struct Gated {
    gate: Arc<Gate>,
    endpoint: Endpoint,
}

impl Gates {
    /// Returns the gate of a service. The gate admits as many concurrent calls as the configuration now allows. If
    /// the address, the model or the key of the service has changed, the gate forgets what it knew of the old server.
    pub(crate) fn of(&self, service: &Service) -> Arc<Gate> {
        // If another thread panicked while it held the lock, the gates are still valid, so the lock can be used.
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

    /// Returns the gate of a service if it exists and its server is still the same.
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
