//! The tool `fetch_page`.

use super::access::{Access, URL, call, host_in, origin, refusal};
use crate::arguments::{self, Argued};
use crate::call::{Arguments, File, Invocation, Output, Source};
use crate::tool::{Effect, Reach, Tool};
use futures::future::{BoxFuture, FutureExt};
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use polity_web::{Cut, OtherPage, Page, TextPage};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

const NAME: &str = "fetch_page";

/// Maximum number of characters of a page in one result.
const SHOWN_CHARS: usize = 16_000;

/// The tool that returns the readable text of a page. If a page is not text, the tool returns it as a file.
pub(super) struct FetchPage {
    access: Arc<Access>,
}

impl FetchPage {
    pub(super) fn new(access: Arc<Access>) -> Self {
        Self { access }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Given {
    url: String,
    offset: Option<usize>,
}

impl Argued for Given {
    const NAMES: &'static [&'static str] = &[URL, "offset"];
}

impl Tool for FetchPage {
    fn name(&self) -> &str {
        NAME
    }

    fn group(&self) -> ToolGroup {
        ToolGroup::Web
    }

    fn parameters(&self) -> Value {
        arguments::schema_of::<Given>()
    }

    fn reach(&self, arguments: &Arguments) -> Reach {
        Reach::Web { host: host_in::<Given>(arguments), effect: Effect::Reads }
    }

    fn always(&self) -> Option<Effect> {
        Some(Effect::Reads)
    }

    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        async move {
            let Given { url, offset } = arguments::read(&invocation.arguments)?;
            invocation.progress.report(&format!("GET {url}"));
            let web = self.access.web().map_err(|error| refusal(NAME, &error))?;
            let page = web.page(&url, &call(&invocation)).await;
            let output = match page.map_err(|error| refusal(NAME, &error))? {
                Page::Text(page) => text(&page, offset.unwrap_or_default())?,
                Page::Other(page) => file(page),
            };
            Ok(output.from_source(Source::Web))
        }
        .boxed()
    }
}

/// Returns a part of a page, beginning at the character `offset`.
fn text(page: &TextPage, offset: usize) -> Result<Output, Refusal> {
    let whole = written(page);
    let count = whole.chars().count();
    if offset > 0 && offset >= count {
        let problem = FieldProblem::new("offset", Fault::Rule(format!("the page has {count} characters")));
        return Err(Refusal::InvalidArguments(vec![problem]));
    }
    let shown: String = whole.chars().skip(offset).take(SHOWN_CHARS).collect();
    let end = offset.saturating_add(SHOWN_CHARS);
    let mut origin = origin(page.url.as_str(), page.status);
    if offset > 0 || end < count {
        origin.push_str(&format!(", characters {offset}-{} of {count}", end.min(count)));
    }
    if end < count {
        origin.push_str(&format!("; continue with offset {end}"));
    } else if page.cut == Cut::Shortened {
        origin.push_str("; the rest of the page is too large");
    }
    Ok(Output::text(origin, shown))
}

/// Formats a page: title, author, site and date, then the text, then the links that the text does not contain. The
/// result depends only on the page. So an `offset` means the same place in every call that fetches the same page.
fn written(page: &TextPage) -> String {
    let lines = [
        ("Title", &page.title),
        ("Author", &page.byline),
        ("Site", &page.site),
        ("Published", &page.published),
    ];
    let said = lines.iter().filter_map(|(name, text)| Some(format!("{name}: {}\n", text.as_ref()?)));
    let mut text: String = said.collect();
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&page.text);
    let elsewhere: Vec<String> = page
        .links
        .iter()
        .filter(|link| !page.text.contains(link.url.as_str()))
        .map(|link| format!("\n- [{}]({})", link.text, link.url))
        .collect();
    if !elsewhere.is_empty() {
        text.push_str("\n\nOther links:");
        text.extend(elsewhere);
    }
    text
}

fn file(page: OtherPage) -> Output {
    let OtherPage { status, url, mime, filename, bytes } = page;
    let said = json!({"url": url.as_str(), "status": status, "mimeType": mime, "bytes": bytes.len()});
    Output::json(said).with_file(File { bytes, declared_mime: Some(mime), filename: Some(filename) })
}
