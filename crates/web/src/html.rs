//! Converts an HTML page into Markdown that contains only what a reader of the page sees. Pure and deterministic.
//!
//! The path of data: *text → `parse` (builds a tree of bounded size) → `hidden` (removes hidden text) → `links`
//! (makes links absolute, or removes them) → `outline` (replaces elements that the Markdown writer does not know) →
//! `main_part` (chooses the readable part, or the whole page, and writes Markdown)*.

mod hidden;
mod links;
mod main_part;
mod outline;
mod parse;
mod styles;

use url::Url;

use crate::shown::{one_line, visible_chars};

pub use links::Link;
pub use main_part::Part;
pub use parse::Cut;

/// Maximum length of the HTML that is parsed, in bytes. The rest of a longer page is left out.
const LONGEST_HTML: usize = 8 * 1024 * 1024;

/// The readable content of an HTML page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readable {
    /// The title of the page.
    pub title: Option<String>,
    /// The author, as the page names them.
    pub byline: Option<String>,
    /// The name of the site.
    pub site: Option<String>,
    /// When the page was published, according to the page itself.
    pub published: Option<String>,
    /// The language, such as `en`.
    pub language: Option<String>,
    /// The readable text.
    pub markdown: String,
    /// The part of the page from which the text comes.
    pub part: Part,
    /// The links of the whole page, each once, at most 200.
    pub links: Vec<Link>,
    /// How many characters of hidden text were left out.
    pub hidden: usize,
    /// Whether a part of the page is missing because the page exceeded a bound.
    pub cut: Cut,
}

/// Reads an HTML document that was found at `url`.
pub fn read_html(html: &str, url: &Url) -> Readable {
    let (html, mut cut) = match html.get(..html.floor_char_boundary(LONGEST_HTML)) {
        Some(start) if start.len() < html.len() => (start, Cut::Shortened),
        Some(_) | None => (html, Cut::Whole),
    };
    let (document, parsed) = parse::document(html);
    if parsed == Cut::Shortened {
        cut = Cut::Shortened;
    }
    let hidden = hidden::remove(&document);
    let links = links::settle(&document, url);
    outline::simplify(&document);
    let main = main_part::of(document);
    let line = |text: Option<String>| text.map(|text| one_line(&text, 300)).filter(|text| !text.is_empty());
    Readable {
        title: line(main.title),
        byline: line(main.byline),
        site: line(main.site),
        published: line(main.published),
        language: line(main.language),
        markdown: tidy(&main.markdown),
        part: main.part,
        links,
        hidden,
        cut,
    }
}

/// Removes all invisible characters, removes spaces at the ends of lines, and replaces several empty lines in a row by
/// one empty line. If exactly two spaces end a line, they stay, because they are a line break in Markdown.
fn tidy(markdown: &str) -> String {
    let visible = visible_chars(markdown);
    let mut tidy = String::with_capacity(visible.len());
    let mut empty = 0;
    for line in visible.lines() {
        let bare = line.trim_end();
        if bare.is_empty() {
            empty += 1;
            continue;
        }
        if !tidy.is_empty() {
            tidy.push_str(if empty > 0 { "\n\n" } else { "\n" });
        }
        empty = 0;
        tidy.push_str(bare);
        if line.len() == bare.len() + 2 && line.ends_with("  ") {
            tidy.push_str("  ");
        }
    }
    tidy.truncate(tidy.trim_end().len());
    tidy
}

#[cfg(test)]
mod tests;
