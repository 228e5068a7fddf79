//! Searches files, and formats the result.

use crate::call::Output;
use crate::files::desk::Desk;
use crate::files::search_files::arguments::{Glob, Wanted};
use crate::files::search_files::walk::{Found, walk};
use grep_matcher::{LineTerminator, Matcher};
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use polity_files::path::on_one_line;
use polity_society::refusal::Refusal;
use serde_json::json;
use std::io;
use std::ops::ControlFlow;
use tokio_util::sync::CancellationToken;

/// Maximum number of characters that the result shows of a line. Of a longer line, it shows only the part around the
/// match.
const MAX_LINE_CHARS: usize = 300;

/// Number of characters before the match that the result shows of such a longer line.
const CHARS_BEFORE_MATCH: usize = 80;

/// Maximum number of characters of the pattern in the heading of the result.
const MAX_HEADING_CHARS: usize = 100;

/// If two lines of the result are not neighbours in the file, the result has this line between them.
const SEPARATOR: &str = "--";

/// The result of a search while it runs.
struct Results {
    text: String,
    chars: usize,
    max_chars: usize,
    /// Number of matching lines, or of files if the search has no pattern.
    count: usize,
    limit: usize,
    files: usize,
    searched: usize,
    /// Number of files that are too large or cannot be read.
    skipped: usize,
    end: End,
}

/// Why a search ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// All files were searched.
    Complete,
    /// The result reached its maximum number of matches or of characters.
    Full,
    Cancelled,
}

impl Results {
    fn new(max_chars: usize, limit: usize) -> Self {
        Self {
            text: String::new(),
            chars: 0,
            max_chars,
            count: 0,
            limit,
            files: 0,
            searched: 0,
            skipped: 0,
            end: End::Complete,
        }
    }

    /// Adds a line, or ends the search if the result would get too long.
    fn push(&mut self, line: &str) -> ControlFlow<()> {
        self.chars = self.chars.saturating_add(line.chars().count()).saturating_add(1);
        if self.chars > self.max_chars {
            self.end = End::Full;
            return ControlFlow::Break(());
        }
        self.text.push_str(line);
        self.text.push('\n');
        ControlFlow::Continue(())
    }

    /// Counts a match, or ends the search if the limit is reached.
    fn count(&mut self) -> ControlFlow<()> {
        if self.count == self.limit {
            self.end = End::Full;
            return ControlFlow::Break(());
        }
        self.count = self.count.saturating_add(1);
        ControlFlow::Continue(())
    }
}

pub(super) fn search(desk: &Desk, wanted: &Wanted, cancel: &CancellationToken) -> Result<Output, Refusal> {
    let start = desk.path(&wanted.path)?;
    let mut results = Results::new(desk.bounds.view_chars, wanted.limit);
    let walked = walk(&desk.workspace, &start, &mut |found| {
        if cancel.is_cancelled() {
            results.end = End::Cancelled;
            return ControlFlow::Break(());
        }
        if wanted.glob.as_ref().is_some_and(|glob| !fits(glob, start.names().len(), found)) {
            return ControlFlow::Continue(());
        }
        results.searched = results.searched.saturating_add(1);
        match &wanted.pattern {
            Some((_, matcher)) => lines(found, matcher, wanted.context, desk.bounds.file_bytes, &mut results),
            None => {
                results.count()?;
                results.files = results.count;
                results.push(&found.path.on_one_line())
            }
        }
    });
    walked.map_err(|error| desk.refusal(error))?;
    match results.end {
        End::Cancelled => Err(Refusal::ToolFailed {
            tool: desk.tool.to_owned(),
            reason: "the search was cancelled".to_owned(),
        }),
        End::Complete | End::Full => Ok(desk.sourced(output(wanted, results))),
    }
}

/// Returns whether a file matches a glob, which may be relative to the workspace or to the start of the search.
fn fits(glob: &Glob, depth: usize, found: &Found<'_>) -> bool {
    let below_start = found.path.names().get(depth..).unwrap_or_default().join("/");
    glob.fits(&found.path.to_string()) || glob.fits(&below_start)
}

/// Formats the result. The heading is separate from the lines of the searched files, and says how many matches and
/// files there are. So no line of a file can forge these counts.
fn output(wanted: &Wanted, results: Results) -> Output {
    let Results { text, count, files, searched, skipped, end, .. } = results;
    if count == 0 {
        let mut said = json!({"matches": 0, "filesSearched": searched});
        if skipped > 0 {
            said["filesSkipped"] = json!(skipped);
        }
        return Output::json(said);
    }
    let plural = |count: usize, one: &str, many: &str| {
        if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
    };
    let files = plural(files, "file", "files");
    let (what, found) = match (&wanted.pattern, &wanted.glob) {
        (Some((pattern, _)), _) => (pattern, format!("{} in {files}", plural(count, "line", "lines"))),
        (None, Some(glob)) => (&glob.written, files),
        (None, None) => (&wanted.path, files),
    };
    let what: String = on_one_line(what).chars().take(MAX_HEADING_CHARS).collect();
    let first = if end == End::Full { "first " } else { "" };
    let more = if end == End::Full { "; there are more, so search for something rarer" } else { "" };
    let left_out = if skipped > 0 {
        format!("; {} not searched", plural(skipped, "file", "files"))
    } else {
        String::new()
    };
    Output::text(format!("search for {what}: {first}{found}{more}{left_out}"), text)
}

/// Searches one file. The matching lines are added to the result only after the whole file was read. If the file turns
/// out to be binary, no line is added.
fn lines(
    found: &Found<'_>,
    matcher: &RegexMatcher,
    context: usize,
    max_bytes: u64,
    results: &mut Results,
) -> ControlFlow<()> {
    let mut lines = Lines {
        path: found.path.on_one_line(),
        matcher,
        lines: Vec::new(),
        left: results.limit.saturating_sub(results.count).saturating_add(1),
        is_binary: IsBinary::No,
    };
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        // The searcher requires the same line terminator as the matcher.
        .line_terminator(LineTerminator::crlf())
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        // The searcher holds a whole line in memory.
        .heap_limit(usize::try_from(max_bytes).ok())
        .build();
    let searched = match found.open() {
        Ok((file, bytes)) if bytes <= max_bytes => searcher.search_file(matcher, &file, &mut lines),
        Ok(_) => Err(io::ErrorKind::FileTooLarge.into()),
        Err(error) => Err(io::Error::other(error)),
    };
    if searched.is_err() {
        results.skipped = results.skipped.saturating_add(1);
        return ControlFlow::Continue(());
    }
    if lines.is_binary == IsBinary::Yes || lines.lines.is_empty() {
        return ControlFlow::Continue(());
    }
    results.files = results.files.saturating_add(1);
    if context > 0 && !results.text.is_empty() {
        results.push(SEPARATOR)?;
    }
    let (lines, flow) = within(&lines.lines, results.limit.saturating_sub(results.count));
    for line in lines {
        results.push(&line.text)?;
        results.count = results.count.saturating_add(usize::from(line.kind == LineKind::Match));
    }
    if flow.is_break() {
        results.end = End::Full;
    }
    flow
}

/// Returns the first `matches` matching lines and their context. Leaves out all further matching lines and the context
/// before them. Also returns `Break` if there are further matching lines.
fn within(lines: &[Line], matches: usize) -> (&[Line], ControlFlow<()>) {
    let is_match = |(_, line): &(usize, &Line)| line.kind == LineKind::Match;
    let Some((at, _)) = lines.iter().enumerate().filter(is_match).nth(matches) else {
        return (lines, ControlFlow::Continue(()));
    };
    let before = &lines[..at];
    let last_match = before.iter().rposition(|line| line.kind == LineKind::Match).unwrap_or_default();
    let separator = before.iter().rposition(|line| line.kind == LineKind::Separator);
    let end = separator.filter(|separator| *separator > last_match).unwrap_or(at);
    (&before[..end], ControlFlow::Break(()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum IsBinary {
    Yes,
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    Match,
    Context,
    Separator,
}

struct Line {
    text: String,
    kind: LineKind,
}

/// A collector of the matching lines of one file and their context.
struct Lines<'m> {
    path: String,
    matcher: &'m RegexMatcher,
    lines: Vec<Line>,
    /// Number of matches that may still be collected. This is one more than the result may still show. If the extra
    /// match is found, there are more matches than the result shows.
    left: usize,
    is_binary: IsBinary,
}

impl Lines<'_> {
    fn push(&mut self, number: Option<u64>, bytes: &[u8], kind: LineKind) {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let (mark, from) = match kind {
            LineKind::Match => {
                (':', self.matcher.find(bytes).ok().flatten().map_or(0, |found| found.start()))
            }
            LineKind::Context | LineKind::Separator => ('-', 0),
        };
        let (path, number, text) = (&self.path, number.unwrap_or_default(), part(bytes, from));
        self.lines.push(Line { text: format!("{path}{mark}{number}{mark} {text}"), kind });
    }
}

/// Returns a line. If the line is too long, returns the part around the byte at `from`.
fn part(bytes: &[u8], from: usize) -> String {
    let line = String::from_utf8_lossy(bytes);
    if line.chars().nth(MAX_LINE_CHARS).is_none() {
        return line.into_owned();
    }
    let before = String::from_utf8_lossy(&bytes[..from.min(bytes.len())]).chars().count();
    let skipped = before.saturating_sub(CHARS_BEFORE_MATCH);
    let mut shown: String = line.chars().skip(skipped).take(MAX_LINE_CHARS).collect();
    if skipped > 0 {
        shown.insert(0, '…');
    }
    if line.chars().nth(skipped.saturating_add(MAX_LINE_CHARS)).is_some() {
        shown.push('…');
    }
    shown
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.left > 0 {
            self.push(found.line_number(), found.bytes(), LineKind::Match);
            self.left = self.left.saturating_sub(1);
        }
        // A later byte may show that the file is binary. So go on to the end of the file, even if there are enough
        // matches.
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        if self.left > 0 {
            self.push(context.line_number(), context.bytes(), LineKind::Context);
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        if self.left > 0 {
            self.lines.push(Line { text: SEPARATOR.to_owned(), kind: LineKind::Separator });
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        if finish.binary_byte_offset().is_some() {
            self.is_binary = IsBinary::Yes;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_around_a_match_that_is_left_out_are_left_out() {
        let check = |kinds: &str, matches: usize, expect: &str| {
            let kind_of = |kind| match kind {
                'm' => LineKind::Match,
                'c' => LineKind::Context,
                _ => LineKind::Separator,
            };
            let lines: Vec<Line> =
                kinds.chars().map(|kind| Line { text: kind.to_string(), kind: kind_of(kind) }).collect();
            let (shown, flow) = within(&lines, matches);
            let shown: String = shown.iter().map(|line| line.text.as_str()).collect();
            assert_eq!(
                (shown.as_str(), flow.is_break()),
                (expect, shown.len() < kinds.len()),
                "{kinds} {matches}"
            );
        };
        check("cmc-cmc", 1, "cmc");
        check("cmc-cmc", 2, "cmc-cmc");
        check("cmc-cmc", 0, "c");
        check("cmccmc", 1, "cmcc");
        check("cmmc", 1, "cm");
        check("m-mcm", 2, "m-mc");
    }

    #[test]
    fn a_long_line_is_shown_around_its_match() {
        assert_eq!(part("é needle".as_bytes(), 3), "é needle");
        let long = format!("{}needle{}", "é".repeat(1000), "x".repeat(1000));
        let shown = part(long.as_bytes(), 2000);
        assert!(shown.starts_with("…é") && shown.ends_with("x…") && shown.contains("needle"), "{shown}");
        assert_eq!(shown.chars().count(), MAX_LINE_CHARS + 2);
        assert!(part(long.as_bytes(), 0).starts_with("éé"));
    }
}
