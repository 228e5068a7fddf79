//! Fetches a page and converts it to text.

mod charset;
mod filename;
mod kind;

use bytes::Bytes;
use tokio::sync::Semaphore;
use url::Url;

use crate::error::Error;
use crate::html::{Cut, Link, Part, Readable, read_html};
use crate::request::{Request, Response};
use crate::shown::visible_chars;
use crate::web::{Call, Web};

use kind::Kind;

/// The value of `Accept` in requests for a page.
const ACCEPT: &str =
    "text/html,application/xhtml+xml,text/markdown,text/plain;q=0.9,application/json;q=0.9,*/*;q=0.8";

/// Limits how many pages the process converts at the same time: each conversion holds a permit. The limit is needed
/// because a hostile page can keep a thread busy for seconds.
static CONVERSIONS: Semaphore = Semaphore::const_new(4);

/// The content that was found at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Page {
    /// The content can be read as text.
    Text(Box<TextPage>),
    /// The content is not text and is returned as bytes.
    Other(OtherPage),
}

/// A page as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPage {
    /// The HTTP status. It can be an error, such as 404: a page with an error has a text too.
    pub status: u16,
    /// The address that answered, after all redirects.
    pub url: Url,
    /// The media type, without parameters.
    pub mime: String,
    /// The title of the page.
    pub title: Option<String>,
    /// The author, as the page names them.
    pub byline: Option<String>,
    /// The name of the site.
    pub site: Option<String>,
    /// When the page was published, according to the page itself.
    pub published: Option<String>,
    /// Markdown if the page was HTML, otherwise the text as it is. The same page always gives the same text.
    pub text: String,
    /// The part of the page from which the text comes.
    pub part: Part,
    /// The links of an HTML page, each once, at most 200.
    pub links: Vec<Link>,
    /// Number of characters of hidden text that were left out.
    pub hidden: usize,
    /// Whether a part of the page is missing because the page exceeded a bound.
    pub cut: Cut,
}

/// A page that is not text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherPage {
    /// The HTTP status.
    pub status: u16,
    /// The address that answered, after all redirects.
    pub url: Url,
    /// The media type that the server declares, without parameters.
    pub mime: String,
    /// A name for the file, without directories.
    pub filename: String,
    /// The bytes.
    pub bytes: Bytes,
}

impl Web {
    /// Fetches a page and reads it. HTML becomes Markdown, other text stays as it is, and all other bodies are returned
    /// as bytes.
    pub async fn page(&self, url: &str, call: &Call) -> Result<Page, Error> {
        let request = Request::new("GET", url, [("accept", ACCEPT)], None)?;
        let work = async {
            let response = self.follow(request, call).await?;
            let permit = CONVERSIONS.acquire().await.map_err(|_| Error::Conversion)?;
            let converted = tokio::task::spawn_blocking(move || {
                let page = page_of(response);
                drop(permit);
                page
            });
            converted.await.map_err(|_| Error::Conversion)
        };
        self.bounded(call, work).await
    }
}

impl Response {
    /// Returns the body as text, or `None` if the body is not text. HTML is not converted.
    pub fn text(&self) -> Option<String> {
        let content_type = self.content_type.as_deref().unwrap_or_default();
        match kind::of(content_type, &self.body).0 {
            _ if self.body.is_empty() => Some(String::new()),
            Kind::Html | Kind::Text => Some(visible_chars(&charset::decode(&self.body, content_type))),
            Kind::Other => None,
        }
    }

    /// Returns the media type without parameters. It comes from the header `Content-Type`. If this header is missing,
    /// the media type is guessed from the body.
    pub fn mime(&self) -> String {
        kind::of(self.content_type.as_deref().unwrap_or_default(), &self.body).1
    }

    /// Returns a file name under which the body can be saved. The file name contains no directories.
    pub fn filename(&self) -> String {
        filename::of(&self.headers, &self.final_url)
    }
}

/// Converts a response to a page. Pure. For a long HTML page, the conversion may take a second.
pub fn page_of(response: Response) -> Page {
    let Response { status, final_url: url, content_type, headers, body, .. } = response;
    let content_type = content_type.unwrap_or_default();
    let (kind, mime) = kind::of(&content_type, &body);
    let text = match kind {
        Kind::Html => {
            let html = charset::decode(&body, &content_type);
            let Readable { title, byline, site, published, language: _, markdown, part, links, hidden, cut } =
                read_html(&html, &url);
            TextPage {
                status,
                url,
                mime,
                title,
                byline,
                site,
                published,
                text: markdown,
                part,
                links,
                hidden,
                cut,
            }
        }
        Kind::Text => TextPage {
            status,
            url,
            mime,
            title: None,
            byline: None,
            site: None,
            published: None,
            text: visible_chars(&charset::decode(&body, &content_type)),
            part: Part::Whole,
            links: Vec::new(),
            hidden: 0,
            cut: Cut::Whole,
        },
        Kind::Other => {
            let filename = filename::of(&headers, &url);
            return Page::Other(OtherPage { status, url, mime, filename, bytes: body });
        }
    };
    Page::Text(Box::new(text))
}

#[cfg(test)]
mod tests;
