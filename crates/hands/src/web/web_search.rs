//! The tool `web_search`.

use super::access::{Access, call, refusal};
use crate::arguments::{self, Argued};
use crate::call::{Arguments, Invocation, Output, Source};
use crate::tool::{Effect, Reach, Tool};
use futures::future::{BoxFuture, FutureExt};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use polity_web::Hit;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

const NAME: &str = "web_search";

/// Number of results if the call does not ask for another number.
const HITS: usize = 8;

/// The tool that searches the web with the search provider in the settings.
pub(super) struct WebSearch {
    access: Arc<Access>,
}

impl WebSearch {
    pub(super) fn new(access: Arc<Access>) -> Self {
        Self { access }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Given {
    query: String,
    limit: Option<usize>,
}

impl Argued for Given {
    const NAMES: &'static [&'static str] = &["query", "limit"];
}

impl Tool for WebSearch {
    fn name(&self) -> &str {
        NAME
    }

    fn group(&self) -> ToolGroup {
        ToolGroup::Web
    }

    fn parameters(&self) -> Value {
        arguments::schema_of::<Given>()
    }

    fn reach(&self, _: &Arguments) -> Reach {
        Reach::Web { host: None, effect: Effect::Reads }
    }

    fn always(&self) -> Option<Effect> {
        Some(Effect::Reads)
    }

    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        async move {
            let Given { query, limit } = arguments::read(&invocation.arguments)?;
            invocation.progress.report(&format!("searches: {query}"));
            let web = self.access.web().map_err(|error| refusal(NAME, &error))?;
            let hits = web.search(&query, limit.unwrap_or(HITS), &call(&invocation)).await;
            let hits = hits.map_err(|error| refusal(NAME, &error))?;
            Ok(shown(&hits).from_source(Source::Web))
        }
        .boxed()
    }
}

fn shown(hits: &[Hit]) -> Output {
    let origin = match hits.len() {
        0 => "web search: no results; try other words".to_owned(),
        count => format!("web search: {count} results"),
    };
    let lines = hits.iter().enumerate().map(|(at, Hit { title, url, snippet })| {
        format!("{}. {title}\n   {url}\n   {snippet}\n", at.saturating_add(1))
    });
    Output::text(origin, lines.collect::<String>())
}
