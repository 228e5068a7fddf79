//! `POST /v1/chat/completions`: the request body and the reply.

pub(crate) mod reply;
pub(crate) mod request;
