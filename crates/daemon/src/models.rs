//! The models there are: servers over HTTP, and the rehearsal in the process. The endpoint says which is meant.

use futures::future::BoxFuture;
use polity_llm::{CallError, ChatModel, Endpoint, HttpModel, Reply, Request};
use polity_rehearsal::{RehearsalModel, SCHEME};

/// Both of them.
pub(crate) struct Models {
    /// Servers.
    pub(crate) http: HttpModel,
    /// The one that needs none.
    pub(crate) rehearsal: RehearsalModel,
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
