//! `POST /v1/responses`: its body, and what its clients read.

pub(crate) mod reply;
pub(crate) mod request;
