//! The models there are: servers over HTTP, and the rehearsal in the process. The endpoint says which is meant.

use crate::failure::Failure;
use futures::future::BoxFuture;
use polity_llm::{CallError, ChatModel, Endpoint, HttpModel, Reply, Request};
use polity_registry::Registry;
use polity_rehearsal::{RehearsalModel, SCHEME};
use polity_runtime::{Parts, in_full};
use std::sync::Arc;

/// What a society in this process is made of.
pub(crate) fn parts(registry: Arc<Registry>) -> Result<Parts, Failure> {
    let http = HttpModel::new().map_err(|error| Failure::Defect(in_full(&error)))?;
    Ok(with_model(registry, Arc::new(Models { http, rehearsal: RehearsalModel })))
}

/// What a society is made of that is only read. No model is ever asked, so it has the one that needs no connections.
pub(crate) fn reading_parts(registry: Arc<Registry>) -> Parts {
    with_model(registry, Arc::new(RehearsalModel))
}

fn with_model(registry: Arc<Registry>, model: Arc<dyn ChatModel>) -> Parts {
    Parts { registry, model, outside_tools: Vec::new(), extractor: std::env::current_exe().ok() }
}

/// Both of them.
struct Models {
    /// Servers.
    http: HttpModel,
    /// The one that needs none.
    rehearsal: RehearsalModel,
}

impl ChatModel for Models {
    fn call<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        if endpoint.base_url.starts_with(SCHEME) {
            self.rehearsal.call(endpoint, request)
        } else {
            self.http.call(endpoint, request)
        }
    }
}
