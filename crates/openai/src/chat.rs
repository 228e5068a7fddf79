//! `POST /v1/chat/completions`: its body, and what its clients read.

pub(crate) mod reply;
pub(crate) mod request;
