//! Renames elements that the Markdown writer does not know, so that their texts do not run together. Also flattens
//! lists, quotations and tables that are nested too deeply. Otherwise, the Markdown writer would take very long: at
//! each level of nesting, it copies all lines of the inner levels again.

use dom_query::{Document, NodeRef};

/// Maximum nesting of lists, quotations and tables. Deeper levels are flattened.
const DEEPEST: usize = 8;

pub(super) fn simplify(document: &Document) {
    // An `aside` inside the main text is a remark. It becomes a `div`, so that it is kept. An `aside` outside the main
    // text keeps its name, and `main_part` removes it.
    for remark in document.select("main aside, article aside, [role=main] aside").nodes() {
        remark.rename("div");
    }
    let mut open: Vec<(NodeRef<'_>, usize)> = vec![(document.root(), 0)];
    while let Some((node, depth)) = open.pop() {
        for child in node.element_children() {
            let name = child.node_name().unwrap_or_default();
            let nested = match &*name {
                "ul" | "ol" | "blockquote" | "table" | "dl" | "menu" if depth >= DEEPEST => {
                    child.rename("div");
                    depth
                }
                "ul" | "ol" | "blockquote" | "table" => depth + 1,
                "menu" => {
                    child.rename("ul");
                    depth + 1
                }
                "dt" | "dd" | "figcaption" | "summary" | "address" | "legend" | "option" => {
                    child.rename("p");
                    depth
                }
                "kbd" | "samp" | "tt" => {
                    child.rename("code");
                    depth
                }
                "details" | "fieldset" | "center" | "hgroup" | "search" => {
                    child.rename("div");
                    depth
                }
                _ => depth,
            };
            open.push((child, nested));
        }
    }
}
