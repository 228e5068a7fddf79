//! Sends requests to the model over one connection, which stays open, and reads the streamed answers.

use std::borrow::Cow;

use anyhow::{Result, bail};
use serde::Deserialize;

use super::fixed::Fixed;
use crate::http::Connection;

/// A client of the model server.
pub(crate) struct Asker {
    connection: Connection,
    request: String,
}

/// A tool call of the model. The arguments are complete, because the scripted model sends each call in a single chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Called {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// What the model said.
#[derive(Debug, Default)]
pub(crate) struct Replied {
    pub(crate) text: String,
    pub(crate) calls: Vec<Called>,
}

#[derive(Deserialize)]
struct Chunk<'c> {
    #[serde(borrow)]
    choices: Vec<Choice<'c>>,
}

#[derive(Deserialize)]
struct Choice<'c> {
    #[serde(borrow)]
    delta: Delta<'c>,
}

#[derive(Deserialize)]
struct Delta<'c> {
    #[serde(borrow)]
    content: Option<Cow<'c, str>>,
    #[serde(default)]
    tool_calls: Vec<CallChunk>,
}

#[derive(Deserialize)]
struct CallChunk {
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

impl Asker {
    pub(crate) fn connect(model: &str) -> Result<Self> {
        Ok(Self { connection: Connection::open(model)?, request: String::new() })
    }

    /// Sends a conversation and reads the answer.
    pub(crate) fn ask(&mut self, fixed: &Fixed, history: &str) -> Result<Replied> {
        self.request.clear();
        for part in [&fixed.before, history, &fixed.after] {
            self.request.push_str(part);
        }
        let line = "POST /v1/chat/completions";
        let headers = "content-type: application/json\r\n";
        let mut answer = self.connection.send(line, headers, self.request.as_bytes())?;
        let (mut replied, mut pending, mut read) = (Replied::default(), Vec::new(), 0);
        while answer.piece(&mut pending)? {
            while let Some(length) = pending[read..].iter().position(|byte| *byte == b'\n') {
                replied.hear(&pending[read..read + length])?;
                read += length + 1;
            }
            if read == pending.len() {
                pending.clear();
                read = 0;
            }
        }
        if answer.status != 200 {
            bail!("the model server answered {}", answer.status);
        }
        Ok(replied)
    }
}

impl Replied {
    /// Takes in one line of the stream.
    fn hear(&mut self, line: &[u8]) -> Result<()> {
        let Some(data) = line.strip_prefix(b"data: ") else { return Ok(()) };
        if data == b"[DONE]" {
            return Ok(());
        }
        let chunk: Chunk<'_> = serde_json::from_slice(data)?;
        for choice in chunk.choices {
            self.text.push_str(&choice.delta.content.unwrap_or_default());
            self.calls.extend(choice.delta.tool_calls.into_iter().map(|call| Called {
                id: call.id,
                name: call.function.name,
                arguments: call.function.arguments,
            }));
        }
        Ok(())
    }
}
