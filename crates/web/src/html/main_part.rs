//! Chooses the readable part of a page, or the whole page, and writes it as Markdown.

use dom_query::{Document, NodeRef};
use dom_smoothie::{Config, Readability, TextMode};

/// The part of a page from which its text comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// The main text, without menus and other elements around it.
    Main,
    /// The whole page, because it has no main text. Lists and forums are examples.
    #[default]
    Whole,
}

#[derive(Debug, Default)]
pub(super) struct Main {
    pub(super) title: Option<String>,
    pub(super) byline: Option<String>,
    pub(super) site: Option<String>,
    pub(super) published: Option<String>,
    pub(super) language: Option<String>,
    pub(super) markdown: String,
    pub(super) part: Part,
}

/// Elements that are removed from a page because they are not part of its text, such as menus and forms.
const SURROUNDINGS: &str = "nav, footer, [role=navigation], [role=banner], [role=contentinfo], [role=search], form \
                            button, button, input, select, textarea, label";

/// Elements that are removed only outside the main text. Inside the main text, a `header` is the head of an article,
/// and an `aside` is a remark.
const OUTER_SURROUNDINGS: &str = "header, aside, [role=complementary]";

pub(super) fn of(document: Document) -> Main {
    let title = title_of(&document);
    let whole = whole(&document.clone());
    let config = Config {
        disable_json_ld: true,
        // Keep the class of a code block, because it names the programming language.
        keep_classes: true,
        text_mode: TextMode::Markdown,
        // A main text must have at least this many characters. The default of 500 characters suits English. A Chinese
        // text with the same content has about 200 characters.
        char_threshold: 200,
        ..Config::default()
    };
    let article =
        Readability::with_document(document, None, Some(config)).and_then(|mut reader| reader.parse());
    let Ok(article) = article else {
        return Main { title, markdown: whole, ..Main::default() };
    };
    let markdown = article.text_content.to_string();
    let is_most = prose(&markdown).saturating_mul(2) >= prose(&whole);
    let (markdown, part) = if is_most { (markdown, Part::Main) } else { (whole, Part::Whole) };
    Main {
        title: Some(article.title).filter(|title| !title.trim().is_empty()).or(title),
        byline: article.byline,
        site: article.site_name,
        published: article.published_time,
        language: article.lang,
        markdown,
        part,
    }
}

/// Writes the whole page, without the elements around its text, such as menus and forms.
fn whole(document: &Document) -> String {
    document.select(SURROUNDINGS).remove();
    let main = document.select("main, [role=main]");
    let outer: Vec<NodeRef<'_>> = document
        .select(OUTER_SURROUNDINGS)
        .nodes()
        .iter()
        .filter(|node| !is_inside_text(node))
        .copied()
        .collect();
    for node in outer {
        node.remove_from_parent();
    }
    for node in document.select("main, header, aside, figure, address").nodes() {
        node.rename("div");
    }
    let root = match main.nodes() {
        [only] => *only,
        _ => document.body().unwrap_or_else(|| document.root()),
    };
    root.md(None).to_string()
}

fn is_inside_text(node: &NodeRef<'_>) -> bool {
    node.ancestors_it(None).any(|above| above.has_name("main") || above.has_name("article"))
}

fn title_of(document: &Document) -> Option<String> {
    ["head title", "title", "h1"]
        .iter()
        .map(|selector| document.select_single(selector).text().trim().to_owned())
        .find(|title| !title.is_empty())
}

/// Counts the letters outside links. A main text has many of them; menus and lists of articles consist mostly of
/// links.
fn prose(markdown: &str) -> usize {
    let mut letters: usize = 0;
    // Letters since the last `[`. If the brackets belong to a link, these letters are subtracted from `letters`.
    let mut in_brackets: usize = 0;
    let mut chars = markdown.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' => {
                chars.next();
            }
            '[' => in_brackets = 0,
            ']' if chars.peek() == Some(&'(') => {
                letters = letters.saturating_sub(in_brackets);
                in_brackets = 0;
                for char in chars.by_ref() {
                    if char == ')' {
                        break;
                    }
                }
            }
            char if char.is_alphanumeric() => {
                letters += 1;
                in_brackets += 1;
            }
            _ => {}
        }
    }
    letters
}
