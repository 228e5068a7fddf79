//! The rules between agents, models and servers, as the requests show them.

mod briefs;
mod contacts;
mod formats;
mod guidance;
mod introductions;
mod messages;
mod prompts;
mod tools;
mod wire;
