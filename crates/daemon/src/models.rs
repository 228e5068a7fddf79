//! The models of a society: model servers over HTTP, and the built-in rehearsal models, with which people try polity
//! out. The scheme of a service's base URL decides whether a server or a rehearsal model is called.

use crate::hands::{hands, hands_without_servers};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use polity_hands::command::{BASH, Commands};
use polity_hands::table::Hands;
use polity_llm::{CallError, ChatModel, Endpoint, HttpModel, Listener, Reply, Request};
use polity_registry::Registry;
use polity_rehearsal::{RehearsalModel, SCHEME};
use polity_runtime::Parts;
use polity_society::policy::Confinement;
use std::path::Path;
use std::sync::Arc;

/// Returns the models, the tools and the configuration for a society that works in this process.
pub(crate) fn parts(registry: Arc<Registry>, data: &Path) -> Parts {
    let hands = hands(data, &registry);
    let model = Models { http: HttpModel::default(), commands: hands.commands().cloned() };
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
    commands: Option<Arc<Commands>>,
}

impl Models {
    /// Returns a request as the rehearsal gets it. Outside a full sandbox, polity asks the person about each command,
    /// and a rehearsal in a pipe would end with the question. So the rehearsal runs commands only in a full sandbox.
    fn for_rehearsal(&self, request: &Request) -> Request {
        let mut request = request.clone();
        let confinement = self.commands.as_ref().map(|commands| commands.confinement());
        if confinement != Some(Confinement::Full) {
            request.tools.retain(|tool| tool.name != BASH);
        }
        request
    }
}

impl ChatModel for Models {
    fn call<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        request: &'a Request,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        if endpoint.base_url.starts_with(SCHEME) {
            ready(Ok(polity_rehearsal::answer(&self.for_rehearsal(request), &endpoint.model))).boxed()
        } else {
            self.http.call(endpoint, request, listener)
        }
    }
}
