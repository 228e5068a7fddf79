//! Passes messages of another protocol (MCP) on to the daemon, without interpreting them.

use crate::client::Client;
use crate::error::Error;
use crate::sse::Parser;
use crate::transport::Asked;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response};
use std::collections::VecDeque;

/// Header with the id of a session of the relayed protocol.
pub const SESSION: &str = "mcp-session-id";

/// The answer to a relayed message, piece by piece.
pub struct Relayed {
    response: Response,
    form: Form,
    read: VecDeque<String>,
}

/// The format of an answer.
enum Form {
    /// One JSON object.
    Whole,
    /// A stream of events.
    Events(Parser),
    /// Nothing is left to read.
    Ended,
}

impl Client {
    /// Passes a message with these headers on to the route `/mcp`. Tools may take minutes to answer, so the caller
    /// should use an [`unhurried`](Client::unhurried) client.
    pub async fn relay(&self, headers: &[(String, String)], message: Vec<u8>) -> Result<Relayed, Error> {
        self.exchange(Method::POST, headers, Some(message)).await
    }

    /// Opens the stream of messages that are not part of the answer to a request. `headers` must contain the header of
    /// a session.
    pub async fn relay_stream(&self, headers: &[(String, String)]) -> Result<Relayed, Error> {
        self.exchange(Method::GET, headers, None).await
    }

    /// Ends the session that the headers name.
    pub async fn relay_end(&self, headers: &[(String, String)]) -> Result<(), Error> {
        self.exchange(Method::DELETE, headers, None).await.map(drop)
    }

    async fn exchange(
        &self,
        method: Method,
        headers: &[(String, String)],
        body: Option<Vec<u8>>,
    ) -> Result<Relayed, Error> {
        let door = self.transport.door()?;
        let mut sent = HeaderMap::new();
        sent.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        sent.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in headers {
            // A header with an invalid name or value is not sent. If the daemon needs this header, the daemon reports
            // that the header is missing.
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
                sent.insert(name, value);
            }
        }
        let asked = Asked { headers: sent, body, ..Asked::new(method, &["mcp"]) };
        let request = self.transport.request(&door, &asked)?;
        let response = self.transport.exchange(&door, request).await?;
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().to_owned();
        match kind.as_str() {
            "text/event-stream" => {
                Ok(Relayed { response, form: Form::Events(Parser::default()), read: VecDeque::new() })
            }
            "application/json" => Ok(Relayed { response, form: Form::Whole, read: VecDeque::new() }),
            _ if response.status().is_success() => {
                Ok(Relayed { response, form: Form::Ended, read: VecDeque::new() })
            }
            _ => Err(self.transport.refused(&door, response).await),
        }
    }
}

impl Relayed {
    /// Returns the id of the session that the daemon begins with this answer.
    pub fn session(&self) -> Option<&str> {
        self.response.headers().get(SESSION)?.to_str().ok()
    }

    /// Waits for the next message of the answer; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<String>, Error> {
        loop {
            if let Some(message) = self.read.pop_front() {
                return Ok(Some(message));
            }
            let url = self.response.url().to_string();
            let lost =
                |error: &dyn std::error::Error| Error::Lost { url: url.clone(), reason: error.to_string() };
            match &mut self.form {
                Form::Ended => return Ok(None),
                Form::Whole => {
                    let mut body = Vec::new();
                    while let Some(chunk) = self.response.chunk().await.map_err(|error| lost(&error))? {
                        body.extend_from_slice(&chunk);
                    }
                    self.form = Form::Ended;
                    let text = String::from_utf8_lossy(&body).trim().to_owned();
                    if !text.is_empty() {
                        return Ok(Some(text));
                    }
                }
                Form::Events(parser) => match self.response.chunk().await.map_err(|error| lost(&error))? {
                    None => self.form = Form::Ended,
                    Some(chunk) => {
                        let frames = parser.push(&chunk).map_err(|error| lost(&error))?;
                        self.read.extend(
                            frames.into_iter().map(|frame| frame.data).filter(|data| !data.trim().is_empty()),
                        );
                    }
                },
            }
        }
    }
}
