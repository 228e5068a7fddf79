//! Breaks styled texts into lines of a given width. Wide characters, such as Chinese ones, take two columns.

use anstyle::Style;
use unicode_width::UnicodeWidthChar;

/// A piece of text in one style.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) style: Style,
    pub(super) text: String,
}

/// What happens to a word that is longer than a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LongWords {
    /// The word stays whole and the terminal breaks it, so that people can still click and copy a long web address.
    Whole,
    /// The word is broken, so that a column of a table keeps its width.
    Broken,
}

/// Chinese punctuation that must not begin a line.
const NOT_FIRST: &str = "，。、；：？！）》】」』”’…";

/// One character of a line, with its style and its width.
#[derive(Clone, Copy)]
struct Glyph {
    style: Style,
    character: char,
    width: usize,
}

/// Breaks pieces into lines and adds the styles. A line also ends where a piece contains a newline.
pub(super) fn lines(pieces: &[Piece], width: usize, long_words: LongWords) -> Vec<String> {
    broken(pieces, width, long_words).iter().map(|line| runs(line)).collect()
}

/// Breaks pieces into lines. Returns each line with its styles, and its width in columns.
pub(super) fn measured(pieces: &[Piece], width: usize, long_words: LongWords) -> Vec<(String, usize)> {
    let lines = broken(pieces, width, long_words);
    lines.iter().map(|line| (runs(line), line.iter().map(|glyph| glyph.width).sum())).collect()
}

/// Returns the width that a text needs if it is not broken: the width of its widest line.
pub(super) fn natural_width(pieces: &[Piece]) -> usize {
    measured(pieces, usize::MAX, LongWords::Whole)
        .into_iter()
        .map(|(_, width)| width)
        .max()
        .unwrap_or_default()
}

fn broken(pieces: &[Piece], width: usize, long_words: LongWords) -> Vec<Vec<Glyph>> {
    let glyphs = pieces.iter().flat_map(|piece| {
        let style = piece.style;
        let of = move |character: char| {
            // A tab has no fixed width, so a space replaces it.
            let character = if character == '\t' { ' ' } else { character };
            Glyph { style, character, width: character.width().unwrap_or_default() }
        };
        piece.text.chars().map(of)
    });
    let mut lines = Vec::new();
    let mut line: Vec<Glyph> = Vec::new();
    let mut taken = 0;
    // The last place at which the line may be broken: the number of characters before the break, or 0 if there is no
    // such place yet.
    let mut may_break = 0;
    for glyph in glyphs {
        if glyph.character == '\n' {
            lines.push(trimmed(std::mem::take(&mut line)));
            (taken, may_break) = (0, 0);
            continue;
        }
        let is_wide = glyph.width > 1 && !NOT_FIRST.contains(glyph.character);
        let after_wide =
            line.last().is_some_and(|last| last.width > 1) && !NOT_FIRST.contains(glyph.character);
        if !line.is_empty() && glyph.width > 0 && (is_wide || after_wide) {
            may_break = line.len();
        }
        let is_space = glyph.character == ' ';
        if taken + glyph.width > width && !is_space && !line.is_empty() {
            if may_break == 0 && long_words == LongWords::Broken {
                may_break = line.len();
            }
            if may_break > 0 {
                let rest = line.split_off(may_break);
                lines.push(trimmed(std::mem::replace(&mut line, rest)));
                taken = line.iter().map(|glyph| glyph.width).sum();
                may_break = 0;
            }
        }
        // Drop the spaces at a break: they stand on neither line.
        if is_space && line.is_empty() && !lines.is_empty() {
            continue;
        }
        line.push(glyph);
        taken += glyph.width;
        if is_space {
            may_break = line.len();
        }
    }
    lines.push(trimmed(line));
    lines
}

fn trimmed(mut line: Vec<Glyph>) -> Vec<Glyph> {
    while line.last().is_some_and(|glyph| glyph.character == ' ') {
        line.pop();
    }
    line
}

/// Adds the styles to a line: neighbours with the same style share one pair of escape sequences.
fn runs(line: &[Glyph]) -> String {
    line.chunk_by(|one, next| one.style == next.style)
        .map(|run| {
            let text: String = run.iter().map(|glyph| glyph.character).collect();
            painted(run.first().map_or_else(Style::new, |glyph| glyph.style), &text)
        })
        .collect()
}

/// Puts a text into a style.
pub(super) fn painted(style: Style, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{style}{text}{style:#}") }
}
