//! `POST /v1/responses`: the request body and the reply.

pub(crate) mod reply;
pub(crate) mod request;
