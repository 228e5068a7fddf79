//! Tests of the rules between agents, models and servers. The tests check the requests that the models get.

mod briefs;
mod bytes;
mod contacts;
mod coverage;
mod delays;
mod endings;
mod formats;
mod guidance;
mod injections;
mod introductions;
pub(crate) mod loops;
mod messages;
mod plain_text;
mod prompts;
mod results;
mod tools;
mod wire;
