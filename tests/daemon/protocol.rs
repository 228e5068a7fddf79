//! The rules between agents, models and servers, as the requests show them.

mod messages;
mod prompts;
mod tools;
mod wire;
