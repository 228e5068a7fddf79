//! Leaves binary data out of a unified diff.

use super::fragments::without_runs;
use super::without_bytes;

/// Replaces the binary data in a unified diff with [`LEFT_OUT`](super::LEFT_OUT). A diff shows only a part of a file.
/// The beginning of the data may be missing, so each long run of digits that could be a piece of binary data is
/// replaced, too. In added lines, such runs stay: the model has written these lines, its binary data were taken out of
/// them before, and the person must see what an agent wants to write.
pub fn without_bytes_in_diff(diff: &str) -> String {
    let mut kept = String::with_capacity(diff.len());
    let mut lines = diff.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        // The mark before each line can be a digit of base64. So the search sees the lines without their marks.
        let (mark, line) = marked(line);
        let mut alike = line.to_owned();
        while let Some((_, next)) = lines.peek().copied().map(marked).filter(|next| next.0 == mark) {
            alike.push_str(next);
            lines.next();
        }
        let left = without_bytes(alike);
        let left = if mark == "+" { left } else { without_runs(&left) };
        for line in left.split_inclusive('\n') {
            kept.push_str(mark);
            kept.push_str(line);
        }
    }
    kept
}

/// Splits a line of a diff into its mark and its text. The mark says whether the line was added, removed or neither.
fn marked(line: &str) -> (&str, &str) {
    match line.as_bytes().first() {
        Some(b'+' | b'-' | b' ') => line.split_at(1),
        _ => ("", line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inline::forms::{FORMS, SURROUNDINGS, files, run_left};
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;
    use proptest::sample::select;

    #[test]
    fn a_diff_without_bytes_stays_as_it_is() {
        let diff = "--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n fn main() {\n-    old();\n+    new();\n }\n-\n\\ No newline\n";
        assert_eq!(without_bytes_in_diff(diff), diff);
        assert_eq!(without_bytes_in_diff("--- a/f\n+cut o…"), "--- a/f\n+cut o…");
    }

    #[test]
    fn a_picture_beside_a_change_is_left_out() {
        let bytes: Vec<u8> = b"\x89PNG\r\n\x1a\n".iter().copied().chain(0..=255).collect();
        let base64 = STANDARD.encode(&bytes);
        let image = format!("<img src=\"data:image/png;base64,{base64}\">");
        let diff = format!("@@ -1,2 +1,2 @@\n-<h1>one</h1>\n+<h1>two</h1>\n {image}\n");
        let shown = "@@ -1,2 +1,2 @@\n-<h1>one</h1>\n+<h1>two</h1>\n <img src=\"…\">\n";
        assert_eq!(without_bytes_in_diff(&diff), shown);
        // The picture is in lines, and the diff has only its last lines, or a change in its middle.
        let lines: Vec<&str> =
            base64.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
        let end = lines[1..4].iter().map(|line| format!(" {line}\n")).collect::<String>();
        let shown = without_bytes_in_diff(&format!("{end}+changed\n"));
        assert!(shown.starts_with(" …\n") && shown.ends_with("\n+changed\n"), "{shown}");
        assert_eq!(run_left(&shown, &bytes), None);
        let middle = format!(" {}\n-{}\n+{}\n {}\n", lines[0], lines[1], lines[2], lines[3]);
        let shown = without_bytes_in_diff(&middle);
        assert_eq!(run_left(&shown.replace(&format!("+{}\n", lines[2]), ""), &bytes), None);
    }

    #[test]
    fn what_an_agent_wants_to_write_is_shown() {
        let (old, new) = ("0123456789abcdef".repeat(4), "fedcba9876543210".repeat(4));
        let diff = format!("-checksum = \"{old}\"\n+checksum = \"{new}\"\n");
        let shown = format!("-checksum = \"…\"\n+checksum = \"{new}\"\n");
        assert_eq!(without_bytes_in_diff(&diff), shown);
        let script = format!("+echo {}|base64 -d|sh\n", STANDARD.encode("rm -rf important; ".repeat(5)));
        assert_eq!(without_bytes_in_diff(&script), script);
    }

    proptest! {
        #[test]
        fn no_form_of_a_file_stays_in_a_diff(
            bytes in files(),
            form in select(FORMS.to_vec()),
            surroundings in select(SURROUNDINGS.to_vec()),
            mark in select(vec![' ', '+', '-']),
        ) {
            let text = (surroundings.1)(&(form.1)(&bytes));
            let lines = text.split_inclusive('\n').map(|line| format!("{mark}{line}"));
            let diff = format!("--- a/f\n+++ b/f\n@@ -1 +1 @@\n{}", lines.collect::<String>());
            let kept = without_bytes_in_diff(&diff);
            prop_assert_eq!(run_left(&kept, &bytes), None, "{} in {}: {}", form.0, surroundings.0, kept);
        }
    }
}
