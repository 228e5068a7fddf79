//! The models of a society: model servers over HTTP, and the built-in rehearsal models, with which people try polity
//! out. The scheme of a service's base URL decides whether a server or a rehearsal model is called.

use crate::hands::{hands, hands_without_servers};
use futures::future::BoxFuture;
use polity_hands::table::Hands;
use polity_llm::{CallError, ChatModel, Endpoint, HttpModel, Listener, Reply, Request};
use polity_registry::Registry;
use polity_rehearsal::{RehearsalModel, SCHEME};
use polity_runtime::Parts;
use std::path::Path;
use std::sync::Arc;

/// Returns the models, the tools and the configuration for a society that works in this process.
pub(crate) fn parts(registry: Arc<Registry>, data: &Path) -> Parts {
    let hands = hands(data, &registry);
    let model = Models { http: HttpModel::default(), rehearsal: RehearsalModel };
    with_model(registry, Arc::new(model), hands)
}

/// Returns a model, the tools and the configuration for a society that is only read. Such a society never calls the
/// model, so it gets the rehearsal model, which needs no connections.
pub(crate) fn reading_parts(registry: Arc<Registry>, data: &Path) -> Parts {
    // No tool runs, but a preview of an agent's next request to its model lists the agent's tools.
    let hands = hands_without_servers(data, &registry);
    with_model(registry, Arc::new(RehearsalModel), hands)
}

fn with_model(registry: Arc<Registry>, model: Arc<dyn ChatModel>, hands: Hands) -> Parts {
    Parts { registry, model, hands, extractor: std::env::current_exe().ok() }
}

/// A model that passes each call either to a server over HTTP or to a rehearsal model.
struct Models {
    http: HttpModel,
    rehearsal: RehearsalModel,
}

impl ChatModel for Models {
    fn call<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        request: &'a Request,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        if endpoint.base_url.starts_with(SCHEME) {
            self.rehearsal.call(endpoint, request, listener)
        } else {
            self.http.call(endpoint, request, listener)
        }
    }
}
