//! The tool `http_request`.

use super::access::{Access, URL, call, host_in, origin, refusal};
use crate::arguments::{self, Argued};
use crate::call::{Arguments, File, Invocation, Output, Source};
use crate::files::{Files, PathArgument};
use crate::tool::{Effect, Needs, Reach, Tool};
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use polity_web::{Request, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const NAME: &str = "http_request";

const SAVE_TO: &str = "saveTo";

const NEEDS: &[Needs] =
    &[Needs { argument: SAVE_TO, group: ToolGroup::Files, reach: Reach::ChangesWorkspace }];

/// The tool that sends a request and returns the answer unchanged.
pub(super) struct HttpRequest {
    access: Arc<Access>,
    files: Files,
}

impl HttpRequest {
    pub(super) fn new(access: Arc<Access>, files: Files) -> Self {
        Self { access, files }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Given {
    method: String,
    url: String,
    headers: Option<BTreeMap<String, String>>,
    /// A text, or a JSON value, which models often write instead of a text.
    #[schemars(with = "Option<String>")]
    body: Option<Value>,
    save_to: Option<String>,
}

impl Argued for Given {
    const NAMES: &'static [&'static str] = &["method", URL, "headers", "body", SAVE_TO];
}

impl Given {
    /// Returns whether the method of the request can change anything on the web.
    fn web_effect(&self) -> Effect {
        let method = self.method.trim().to_ascii_uppercase();
        if matches!(method.as_str(), "GET" | "HEAD") { Effect::Reads } else { Effect::Changes }
    }

    fn effect(&self) -> Effect {
        if self.save_to.is_some() { Effect::Changes } else { self.web_effect() }
    }

    fn saved_at(&self) -> Option<PathArgument<'_>> {
        self.save_to.as_deref().map(|path| PathArgument { tool: NAME, argument: SAVE_TO, path })
    }

    fn request(&self) -> Result<Request, Refusal> {
        let mut headers: Vec<(&str, &str)> =
            self.headers.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let body = self.body.as_ref().map(|body| match body {
            Value::String(text) => Bytes::from(text.clone()),
            structured => {
                if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                    headers.push(("content-type", "application/json"));
                }
                Bytes::from(structured.to_string())
            }
        });
        Request::new(&self.method, &self.url, headers, body).map_err(|error| refusal(NAME, &error))
    }
}

impl Tool for HttpRequest {
    fn name(&self) -> &str {
        NAME
    }

    fn group(&self) -> ToolGroup {
        ToolGroup::Web
    }

    fn needs(&self) -> &[Needs] {
        NEEDS
    }

    fn parameters(&self) -> Value {
        arguments::schema_of::<Given>()
    }

    fn reach(&self, arguments: &Arguments) -> Reach {
        let effect = arguments::read::<Given>(arguments).map_or(Effect::Changes, |given| given.web_effect());
        Reach::Web { host: host_in::<Given>(arguments), effect }
    }

    /// A call that saves the answer also changes the workspace.
    fn effect(&self, arguments: &Arguments) -> Effect {
        arguments::read::<Given>(arguments).map_or(Effect::Changes, |given| given.effect())
    }

    /// Refuses a call before anything is sent, if its request is malformed, or if the wanted file could not be written.
    /// Returns the path of this file, so that the record of the call names it.
    fn prepare<'a>(&'a self, invocation: &'a Invocation) -> BoxFuture<'a, Result<Value, Refusal>> {
        async move {
            let given: Given = arguments::read(&invocation.arguments)?;
            given.request()?;
            let Some(at) = given.saved_at() else { return Ok(Value::Null) };
            let path = self.files.check(&invocation.caller, at).await?;
            Ok(json!({ "path": path }))
        }
        .boxed()
    }

    fn brings<'a>(&'a self, invocation: &'a Invocation) -> BoxFuture<'a, BTreeSet<Source>> {
        async move {
            let given: Option<Given> = arguments::read(&invocation.arguments).ok();
            let saves = given.is_some_and(|given| given.save_to.is_some());
            saves.then_some(Source::Web).into_iter().collect()
        }
        .boxed()
    }

    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        async move {
            let given: Given = arguments::read(&invocation.arguments)?;
            let request = given.request()?;
            invocation.progress.report(&format!("{} {}", request.method(), request.url()));
            let web = self.access.web().map_err(|error| refusal(NAME, &error))?;
            let answer = web.request(request, &call(&invocation)).await;
            let answer = answer.map_err(|error| refusal(NAME, &error))?;
            let output = match given.saved_at() {
                None => shown(&answer),
                Some(at) => {
                    let saved = self.files.write(&invocation.caller, at, answer.body.clone()).await;
                    saved_output(&answer, saved)
                }
            };
            Ok(output.from_source(Source::Web))
        }
        .boxed()
    }
}

/// Formats an answer for the model. If the content is a text, the headers and the text become a quotation. Any other
/// content becomes a file.
fn shown(answer: &Response) -> Output {
    let Some(text) = answer.text() else { return as_file(answer, about(answer)) };
    let headers = answer.headers.iter().map(|(name, value)| format!("{name}: {value}\n"));
    let text = format!("{}\n{text}", headers.collect::<String>());
    Output::text(format!("{}, with headers", origin(answer.final_url.as_str(), answer.status)), text)
}

fn as_file(answer: &Response, said: Value) -> Output {
    Output::json(said).with_file(File {
        bytes: answer.body.clone(),
        declared_mime: Some(answer.mime()),
        filename: Some(answer.filename()),
    })
}

/// Reports an answer that the call wanted to save. The request was already sent, so the answer must not be lost. If the
/// answer could not be saved, the result contains it as a file.
fn saved_output(answer: &Response, saved: Result<String, Refusal>) -> Output {
    let mut said = about(answer);
    match saved {
        Ok(path) => {
            said["savedTo"] = json!(path);
            Output::json(said)
        }
        Err(refusal) => {
            said["notSaved"] = json!(refusal.code());
            as_file(answer, said)
        }
    }
}

fn about(answer: &Response) -> Value {
    let headers: Vec<String> =
        answer.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    json!({
        "url": answer.final_url.as_str(),
        "status": answer.status,
        "headers": headers,
        "bytes": answer.body.len(),
    })
}
