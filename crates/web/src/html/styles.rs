//! Decides which style declarations hide text. Only styles in the page itself count; linked style sheets are not
//! fetched.

/// Whether style declarations hide their element or show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Hides,
    Shows,
}

/// A rule of a style sheet that hides or shows elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) selector: String,
    /// How specific the selector is: its number of ids, then of classes and attributes, then of elements.
    pub(super) specificity: (usize, usize, usize),
    pub(super) effect: Effect,
}

/// Maximum number of rules per page. All style sheets of the page count together.
pub(super) const MOST_RULES: usize = 200;

/// Maximum length of a selector, in bytes. Rules with a longer selector are ignored.
const LONGEST_SELECTOR: usize = 200;

/// Returns the effect of declarations, such as those in an attribute `style`, on their element. Returns `None` if the
/// declarations neither hide nor show the element.
pub(super) fn effect_of(declarations: &str) -> Option<Effect> {
    let mut effect = None;
    let mut is_out_of_flow = false;
    let mut is_far_away = false;
    let mut is_tiny = false;
    let mut clips = false;
    for declaration in declarations.split(';') {
        let Some((name, value)) = declaration.split_once(':') else { continue };
        let name = name.trim().to_ascii_lowercase();
        let value = value.to_ascii_lowercase().replace("!important", "");
        let value = value.trim();
        match name.as_str() {
            "display" if value == "none" => effect = Some(Effect::Hides),
            "visibility" if matches!(value, "hidden" | "collapse") => effect = Some(Effect::Hides),
            "content-visibility" if value == "hidden" => effect = Some(Effect::Hides),
            "display" | "visibility" => effect = effect.or(Some(Effect::Shows)),
            "opacity" | "font-size" if number(value).is_some_and(|number| number < 0.05) => {
                effect = Some(Effect::Hides);
            }
            "color" if value == "transparent" => effect = Some(Effect::Hides),
            "text-indent" if number(value).is_some_and(|number| number <= -500.0) => {
                effect = Some(Effect::Hides)
            }
            "left" | "right" | "top" | "bottom" | "margin-left" | "margin-top" | "inset" => {
                is_far_away |= number(value).is_some_and(|number| number <= -500.0);
            }
            "position" => is_out_of_flow = matches!(value, "absolute" | "fixed"),
            "width" | "height" | "max-width" | "max-height" => {
                is_tiny |= number(value).is_some_and(|number| (0.0..=1.0).contains(&number))
                    && !value.ends_with('m');
            }
            "overflow" => clips = matches!(value, "hidden" | "clip"),
            "clip" | "clip-path" if value.contains("rect(0") || value.contains("inset(") => clips = true,
            "transform" if value.starts_with("scale(0)") => effect = Some(Effect::Hides),
            _ => {}
        }
    }
    if (is_out_of_flow && is_far_away) || (is_tiny && clips) {
        effect = Some(Effect::Hides);
    }
    effect
}

/// Reads the number at the start of a value.
fn number(value: &str) -> Option<f64> {
    let end = value
        .find(|char: char| !(char.is_ascii_digit() || matches!(char, '-' | '+' | '.')))
        .unwrap_or(value.len());
    value.get(..end)?.parse().ok()
}

/// Reads the rules of a style sheet that hide or show elements.
pub(super) fn rules(sheet: &str) -> Vec<Rule> {
    let sheet = without_comments(sheet);
    let mut rules = Vec::new();
    let mut rest = sheet.as_str();
    while let Some((before, behind)) = rest.split_once('{') {
        // The text before `{` may contain the `}` of an earlier block, such as `@media screen { … }`.
        let prelude = before.rsplit(['}', ';']).next().unwrap_or_default().trim();
        if prelude.starts_with('@') {
            rest = if applies(prelude) { behind } else { after_block(behind) };
            continue;
        }
        let (declarations, after) = behind.split_once('}').unwrap_or((behind, ""));
        rest = after;
        let Some(effect) = sheet_effect(declarations) else { continue };
        for selector in prelude.split(',').map(str::trim) {
            if rules.len() >= MOST_RULES {
                return rules;
            }
            if let Some(specificity) = specificity(selector) {
                rules.push(Rule { selector: selector.to_owned(), specificity, effect });
            }
        }
    }
    rules
}

/// Returns the effect of a rule of a style sheet. Ignores `opacity`: on many sites, the text is transparent at first
/// and a script shows it later.
fn sheet_effect(declarations: &str) -> Option<Effect> {
    let counted: Vec<&str> = declarations
        .split(';')
        .filter(|declaration| !declaration.trim_start().to_ascii_lowercase().starts_with("opacity"))
        .collect();
    effect_of(&counted.join(";"))
}

/// Returns whether the rules in a block apply on a screen. `prelude` is the text before the block, such as
/// `@media screen`.
fn applies(prelude: &str) -> bool {
    let prelude = prelude.to_ascii_lowercase();
    let is_for_screens = prelude.starts_with("@media")
        && !prelude.contains(['('])
        && (prelude.contains("screen") || prelude.contains("all"))
        && !prelude.contains("not ");
    is_for_screens || prelude.starts_with("@layer") || prelude.starts_with("@supports")
}

/// Returns the text after the end of a block. `inside` begins inside the block. The block may contain other blocks.
fn after_block(inside: &str) -> &str {
    let mut depth = 1_usize;
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return inside.get(at + 1..).unwrap_or_default();
        }
    }
    ""
}

fn without_comments(sheet: &str) -> String {
    let mut plain = String::with_capacity(sheet.len());
    let mut rest = sheet;
    while let Some((before, comment)) = rest.split_once("/*") {
        plain.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    plain
}

/// Returns the specificity of a selector, or `None` if the selector is too long or depends on a state, as `:hover`
/// does.
fn specificity(selector: &str) -> Option<(usize, usize, usize)> {
    if selector.is_empty() || selector.len() > LONGEST_SELECTOR || selector.contains(':') {
        return None;
    }
    let ids = selector.matches('#').count();
    let classes = selector.matches(['.', '[']).count();
    let elements = selector
        .split([' ', '>', '+', '~'])
        .filter(|part| part.starts_with(|first: char| first.is_ascii_alphabetic()))
        .count();
    Some((ids, classes, elements))
}
