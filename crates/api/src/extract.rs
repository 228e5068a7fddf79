//! What handlers take out of a request, with problems where it is not there.

use crate::problem::Problem;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

/// The parameters of the query.
pub(crate) struct Wanted<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Wanted<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(wanted)) => Ok(Self(wanted)),
            Err(rejection) => Err(Problem::bad_request(rejection.body_text())),
        }
    }
}
