//! Tool calls that a model wrote as text. Pure: reads a text, and says which calls it is.
//!
//! Small models often write a call into their answer and leave `tool_calls` empty. [`read`] takes such an answer as the
//! call, but only if the whole answer is calls. Every doubt ends in [`Spoken::Text`]: a missed call costs one turn, and a
//! call that nobody meant does something in the society.

mod begun;
mod cursor;
mod harmony;
mod lenient;
mod named;
mod python;
mod react;
mod reader;
mod shape;
mod stop;
mod thoughts;
mod tokens;
mod tools;
mod xml;

pub use thoughts::without_thoughts;

use reader::Reader;
use serde_json::{Map, Value};
use tools::Tools;

/// A tool that was offered to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered<'a> {
    /// Its name, as in the request.
    pub name: &'a str,
    /// The names of its parameters. They decide to which tool bare arguments belong.
    pub parameters: &'a [&'a str],
}

/// What the text of an answer is.
#[derive(Clone, Debug, PartialEq)]
pub enum Spoken {
    /// Nothing but calls, in this order.
    Calls(Vec<SpokenCall>),
    /// Clearly meant as a call, but it cannot be read. Nothing of it is called.
    Broken {
        /// The tool, if the text names it or its arguments show it.
        tool: Option<String>,
        /// What is wrong, in one English sentence for the model.
        problem: String,
    },
    /// An ordinary text.
    Text,
}

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub struct SpokenCall {
    /// The name of an offered tool. In a tag form it may be a name that was not offered.
    pub name: String,
    /// The arguments, as the model wrote them: no schema was applied.
    pub arguments: Map<String, Value>,
}

/// Reads the whole text of an answer. `offered` are the tools of the request; without any, everything is text.
pub fn read(text: &str, offered: &[Offered<'_>]) -> Spoken {
    if offered.is_empty() {
        return Spoken::Text;
    }
    let (_, said) = without_thoughts(text);
    let tools = Tools::new(offered);
    let (spoken, has_calls) = Reader::new(tools::without_role(&said), tools).run();
    // Calls before prose: a later tag does not make the prose a lead-in.
    if has_calls || !matches!(spoken, Spoken::Text) {
        return spoken;
    }
    match tokens::after_lead_in(&said) {
        Some(rest) => Reader::new(rest, tools).after_prose().run().0,
        None => Spoken::Text,
    }
}

#[cfg(test)]
mod tests;
