//! Parses HTML into a tree of bounded depth and size.
//!
//! The tree builder of the HTML library needs quadratic time for deeply nested tags, and multiplies elements if
//! formatting tags are never closed. So a filter between the tokenizer and the tree builder drops tags beyond the
//! bounds. The text inside a dropped tag stays.

mod attributes;
mod sink;

use std::cell::Cell;

use dom_query::{Document, NodeId};
use html5ever::buffer_queue::BufferQueue;
use html5ever::interface::Tracer;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    CharacterTokens, CommentToken, ParseError, StartTag, TagToken, Token, TokenSink, TokenSinkResult,
    Tokenizer, TokenizerOpts,
};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts, TreeSink};

use sink::Counted;

/// Maximum number of elements that are open at the same time. An open formatting element, such as `b`, counts twice.
const DEEPEST: usize = 200;

/// Maximum number of nodes of a tree.
const MOST_NODES: usize = 150_000;

/// Maximum number of attributes of an element. Further attributes are dropped.
const MOST_ATTRIBUTES: usize = 40;

/// Whether a page exceeded a bound, so that a part of it is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// All of the page was read.
    #[default]
    Whole,
    /// The end of the page is missing, or tags are missing that were nested too deeply.
    Shortened,
}

/// Parses a document. Also returns whether a part of the document is missing because it exceeded a bound.
pub(super) fn document(html: &str) -> (Document, Cut) {
    let options = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let filter =
        Filter { builder: TreeBuilder::new(Counted::default(), options), cut: Cell::new(Cut::Whole) };
    let tokenizer = Tokenizer::new(filter, TokenizerOpts::default());
    let input = BufferQueue::default();
    let html = attributes::bounded(html);
    // Feed the text to the tokenizer in pieces, so that the tokenizer stops soon after the tree is full.
    let mut rest = &*html;
    while !rest.is_empty() && !tokenizer.sink.is_full() {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(16 * 1024));
        rest = behind;
        input.push_back(StrTendril::from_slice(piece));
        // The filter never interrupts the tokenizer, so one call reads the whole piece.
        let _ = tokenizer.feed(&input);
    }
    tokenizer.end();
    let Filter { builder, cut } = tokenizer.sink;
    (builder.sink.finish(), if rest.is_empty() { cut.get() } else { Cut::Shortened })
}

struct Filter {
    builder: TreeBuilder<NodeId, Counted>,
    cut: Cell<Cut>,
}

impl Filter {
    fn is_full(&self) -> bool {
        self.builder.sink.nodes() >= MOST_NODES
    }

    fn is_deep(&self) -> bool {
        let open = Count(Cell::new(0));
        self.builder.trace_handles(&open);
        open.0.get() >= DEEPEST
    }

    fn dropped(&self) -> TokenSinkResult<NodeId> {
        self.cut.set(Cut::Shortened);
        TokenSinkResult::Continue
    }
}

/// Counts the elements that the tree builder has open at the moment.
struct Count(Cell<usize>);

impl Tracer for Count {
    type Handle = NodeId;

    fn trace_handle(&self, _node: &NodeId) {
        self.0.set(self.0.get() + 1);
    }
}

impl TokenSink for Filter {
    type Handle = NodeId;

    fn process_token(&self, mut token: Token, line: u64) -> TokenSinkResult<NodeId> {
        match &mut token {
            CommentToken(_) | ParseError(_) => return TokenSinkResult::Continue,
            TagToken(tag) if tag.kind == StartTag => {
                // The content of these elements, such as `script`, is not markup. The tokenizer learns this from the
                // start tag, so the filter must not drop the start tag, even if the tag is nested too deeply.
                let changes_tokenizer = matches!(
                    &*tag.name,
                    "script"
                        | "style"
                        | "textarea"
                        | "title"
                        | "xmp"
                        | "iframe"
                        | "noembed"
                        | "noframes"
                        | "plaintext"
                );
                if self.is_full() || (self.is_deep() && !changes_tokenizer) {
                    return self.dropped();
                }
                if tag.attrs.len() > MOST_ATTRIBUTES {
                    tag.attrs.truncate(MOST_ATTRIBUTES);
                }
            }
            CharacterTokens(_) if self.is_full() => return self.dropped(),
            _ => {}
        }
        match self.builder.process_token(token, line) {
            // Nothing runs the scripts of the page, so continue after the end of a script.
            TokenSinkResult::Script(_) | TokenSinkResult::EncodingIndicator(_) => TokenSinkResult::Continue,
            other
            @ (TokenSinkResult::Continue | TokenSinkResult::Plaintext | TokenSinkResult::RawData(_)) => other,
        }
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}
