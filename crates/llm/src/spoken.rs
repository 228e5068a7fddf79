//! Reads tool calls that a model wrote as text. It does no I/O: it gets a text and returns calls.
//!
//! Small models often write a call into their answer and leave `tool_calls` empty. [`read`] turns such an answer into
//! calls, but only if the answer contains nothing except calls. In case of doubt, [`read`] returns [`Spoken::Text`]. If
//! it misses a call, this costs only one turn. But if it returns a call that the model did not mean, this call changes
//! something in the society.
//!
//! A *form* is a way of writing calls, such as JSON, XML tags or Python. Some forms have a mark such as `<tool_call>`,
//! which models write only around calls. Such a form is a *tag form*.

mod begun;
mod cursor;
mod harmony;
mod lenient;
mod named;
mod python;
mod react;
mod reader;
mod remains;
mod shape;
mod stop;
mod thoughts;
mod tokens;
mod tools;
mod xml;

pub use remains::has_remains;
pub use thoughts::without_thoughts;

use reader::Reader;
use serde_json::{Map, Value};
use tools::Tools;

/// A tool that was offered to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered<'a> {
    /// The name of the tool, as in the request.
    pub name: &'a str,
    /// The names of the tool's parameters. A call may name no tool. Then its arguments are compared with these names,
    /// to find out which tool they fit.
    pub parameters: &'a [&'a str],
}

/// The result of reading the text of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Spoken {
    /// The text consists of these calls, in this order.
    Calls(Vec<SpokenCall>),
    /// The model clearly meant the text as a call, but the text cannot be read. The caller must not run any part of it.
    Broken {
        /// The tool, if the text names it or the arguments identify it.
        tool: Option<String>,
        /// What is wrong, in one English sentence for the model.
        problem: String,
    },
    /// The text is not a call.
    Text,
}

/// One call that a model wrote as text.
#[derive(Clone, Debug, PartialEq)]
pub struct SpokenCall {
    /// The name of an offered tool. Inside a tag such as `<tool_call>`, it may be the name of a tool that was not
    /// offered.
    pub name: String,
    /// The arguments as the model wrote them, not checked against a schema.
    pub arguments: Map<String, Value>,
}

/// Reads the whole text of an answer. `offered` contains the tools of the request. If the request has no tools, no
/// text is read as a call.
pub fn read(text: &str, offered: &[Offered<'_>]) -> Spoken {
    if offered.is_empty() {
        return Spoken::Text;
    }
    let (_, said) = without_thoughts(text);
    let tools = Tools::new(offered);
    let (spoken, has_calls) = Reader::new(tools::without_role(&said), tools).run();
    // Prose at the beginning of a text may introduce calls. But if the text begins with calls, the prose after them
    // introduces no further calls.
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
