//! The hunks of a conflict: the lines that both sides have changed. Pure.

use serde::Serialize;

/// A refusal shows at most this many characters of each side of a hunk.
const SIDE_CHARS: usize = 2_000;

/// A refusal shows at most this many hunks of a file.
const HUNKS: usize = 20;

/// Lines that both sides have changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Hunk {
    /// The number of the first line, in the workspace that receives the merge.
    pub(crate) line: usize,
    /// The lines in the workspace that receives the merge.
    pub(crate) ours: String,
    /// The lines before both sides changed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base: Option<String>,
    /// The lines in the worktree that is merged.
    pub(crate) theirs: String,
}

/// Returns a length for the conflict markers in a merge of these texts. It is so long that no line of the texts begins
/// with a conflict marker of this length.
pub(crate) fn marker_size(texts: &[&[u8]]) -> usize {
    let run = |line: &[u8]| match line.first() {
        Some(first @ (b'<' | b'|' | b'=' | b'>')) => line.iter().take_while(|byte| *byte == first).count(),
        _ => 0,
    };
    let longest = texts.iter().flat_map(|text| text.split(|byte| *byte == b'\n')).map(run).max();
    longest.unwrap_or(0).max(6) + 1
}

enum Part {
    Common,
    Ours,
    Base,
    Theirs,
}

/// Reads the hunks from the output of `git merge-file --diff3`. The conflict markers in the output have the length
/// `marker_size`.
pub(crate) fn hunks(text: &[u8], marker_size: usize) -> Vec<Hunk> {
    let is_marker = |line: &[u8], byte: u8| {
        let (marker, rest) = line.split_at(marker_size.min(line.len()));
        marker.len() == marker_size
            && marker.iter().all(|found| *found == byte)
            && (rest.is_empty() || rest.starts_with(b" "))
    };
    let mut hunks = Vec::new();
    let (mut ours, mut base, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut part, mut next_line, mut begin, mut with_base) = (Part::Common, 1, 1, false);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        let bare = bare.strip_suffix(b"\r").unwrap_or(bare);
        part = match part {
            Part::Common if is_marker(bare, b'<') => {
                (begin, with_base) = (next_line, false);
                Part::Ours
            }
            Part::Ours if is_marker(bare, b'|') => {
                with_base = true;
                Part::Base
            }
            Part::Ours | Part::Base if is_marker(bare, b'=') => Part::Theirs,
            Part::Theirs if is_marker(bare, b'>') => {
                let side = |lines: &mut Vec<u8>| cut(&std::mem::take(lines));
                let before = side(&mut base);
                hunks.push(Hunk {
                    line: begin,
                    ours: side(&mut ours),
                    base: with_base.then_some(before),
                    theirs: side(&mut theirs),
                });
                Part::Common
            }
            Part::Common => {
                next_line += 1;
                Part::Common
            }
            Part::Ours => {
                next_line += 1;
                ours.extend(line);
                Part::Ours
            }
            Part::Base => {
                base.extend(line);
                Part::Base
            }
            Part::Theirs => {
                theirs.extend(line);
                Part::Theirs
            }
        };
    }
    hunks
}

fn cut(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match text.char_indices().nth(SIDE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// A file in conflict, as the refusal of a merge describes it to the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Conflict {
    /// The path, relative to the workspace.
    pub(crate) path: String,
    /// The kind of the conflict, such as `content`, `modify/delete` or `uncommitted edits`.
    pub(crate) kind: String,
    pub(crate) hunks: Vec<Hunk>,
    /// Number of hunks that are not in `hunks`, because there are too many.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) omitted: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Conflict {
    /// Keeps the first hunks, at most [`HUNKS`], and counts the rest in `omitted`.
    pub(crate) fn new(path: String, kind: &str, mut hunks: Vec<Hunk>) -> Self {
        let omitted = hunks.len().saturating_sub(HUNKS);
        hunks.truncate(HUNKS);
        Self { path, kind: kind.to_owned(), hunks, omitted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hunks_have_lines_and_sides() {
        let text = "one\n<<<<<<< ours\ntwo\nthree\n||||||| base\n2\n=======\nzwei\n>>>>>>> theirs\nfour\n\
                    <<<<<<< ours\n||||||| base\n5\n=======\nfive\n>>>>>>> theirs\n";
        let read = hunks(text.as_bytes(), 7);
        let hunk = |line, ours: &str, base: &str, theirs: &str| Hunk {
            line,
            ours: ours.to_owned(),
            base: Some(base.to_owned()),
            theirs: theirs.to_owned(),
        };
        assert_eq!(read, [hunk(2, "two\nthree\n", "2\n", "zwei\n"), hunk(5, "", "5\n", "five\n")]);
    }

    #[test]
    fn a_line_like_a_marker_is_no_marker() {
        let text = b"<<<<<<< x\n=======\n========\n" as &[u8];
        assert_eq!(marker_size(&[text, b"a"]), 9);
        assert_eq!(marker_size(&[b"a"]), 7);
        assert!(hunks(text, 9).is_empty());
    }

    fn lines() -> impl Strategy<Value = Vec<String>> {
        proptest::collection::vec("[<|=>a]{0,10}", 0..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn no_line_of_a_hunk_is_lost(parts in proptest::collection::vec((lines(), lines(), lines(), lines()), 0..5)) {
            let joined = |lines: &Vec<String>| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            let all: Vec<String> = parts.iter()
                .flat_map(|(common, ours, base, theirs)| [joined(common), joined(ours), joined(base), joined(theirs)])
                .collect();
            let size = marker_size(&all.iter().map(|text| text.as_bytes()).collect::<Vec<_>>());
            let marker = |character: &str| character.repeat(size);
            let mut text = String::new();
            let mut expect = Vec::new();
            let mut line = 1;
            for (common, ours, base, theirs) in &parts {
                line += common.len();
                expect.push(Hunk { line, ours: joined(ours), base: Some(joined(base)), theirs: joined(theirs) });
                line += ours.len();
                text += &format!("{}{} ours\n{}{} base\n{}{}\n{}{} theirs\n", joined(common), marker("<"), joined(ours),
                    marker("|"), joined(base), marker("="), joined(theirs), marker(">"));
            }
            prop_assert_eq!(hunks(text.as_bytes(), size), expect);
        }
    }
}
