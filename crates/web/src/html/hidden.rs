//! Removes the elements of a page that a reader does not see. Hidden text may contain orders to a model.

use std::collections::HashMap;

use dom_query::{Document, NodeId, NodeRef};

use super::styles::{Effect, MOST_RULES, Rule, effect_of, rules};

/// Elements whose content browsers never show as text.
const NO_TEXT: &[&str] = &[
    "script", "style", "noscript", "template", "iframe", "object", "embed", "applet", "canvas", "audio",
    "video", "map", "svg", "datalist", "noembed", "noframes", "param", "source", "track",
];

/// Removes scripts, styles and all hidden elements. Returns how many characters the hidden elements had. The characters
/// of scripts and styles do not count.
pub(super) fn remove(document: &Document) -> usize {
    let hiding = by_style_sheets(document);
    let mut hidden = 0;
    let mut open: Vec<NodeRef<'_>> = vec![document.root()];
    let mut removed = Vec::new();
    while let Some(node) = open.pop() {
        for child in node.element_children() {
            if is_no_text(&child) {
                removed.push(child);
            } else if is_hidden(&child, &hiding) {
                hidden += child.normalized_char_count();
                removed.push(child);
            } else {
                open.push(child);
            }
        }
    }
    for node in removed {
        node.remove_from_parent();
    }
    hidden
}

fn is_no_text(node: &NodeRef<'_>) -> bool {
    NO_TEXT.iter().any(|name| node.has_name(name))
}

fn is_hidden(node: &NodeRef<'_>, hiding: &HashMap<NodeId, Effect>) -> bool {
    let says_true = |name| node.attr(name).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
    let is_hidden_by_attribute = node.has_attr("hidden") || says_true("aria-hidden");
    let is_closed_dialog = node.has_name("dialog") && !node.has_attr("open");
    let by_sheet = hiding.get(&node.id).copied();
    let effect = node.attr("style").and_then(|style| effect_of(&style)).or(by_sheet);
    is_hidden_by_attribute || is_closed_dialog || effect == Some(Effect::Hides)
}

/// Returns, for each element, whether the style sheets in the page itself hide or show the element. As in CSS, the
/// rule with the greatest specificity applies; if several rules have this specificity, the last of these rules
/// applies.
fn by_style_sheets(document: &Document) -> HashMap<NodeId, Effect> {
    let sheets = document.select("style");
    let mut found: Vec<Rule> = sheets.nodes().iter().flat_map(|sheet| rules(&sheet.text())).collect();
    found.truncate(MOST_RULES);
    // The sort is stable, so rules with equal specificity keep the order that they have in the page. Below, a later
    // rule overwrites the effect of an earlier rule.
    found.sort_by_key(|rule| rule.specificity);
    let mut effects = HashMap::new();
    for rule in found {
        let Some(matched) = document.try_select(&rule.selector) else { continue };
        for node in matched.nodes() {
            // Ignore rules for the whole body: some pages hide their body until a script shows it.
            if !(node.has_name("html") || node.has_name("body")) {
                effects.insert(node.id, rule.effect);
            }
        }
    }
    effects
}
