//! The shell command that the lead runs in a workspace. The command only reads.

/// Returns the command. It counts the lines of the file at `path`. Without a path, it counts the names at the top of
/// the workspace.
pub(crate) fn counting(path: Option<&str>) -> String {
    match path {
        Some(path) => format!("wc -l {}", quoted(path)),
        None => "ls | wc -l".to_owned(),
    }
}

/// Writes a path as one word of a shell command. If the path begins with `-`, puts `./` before it. Otherwise the
/// command would read the path as an option.
fn quoted(path: &str) -> String {
    let path = if path.starts_with('-') { format!("./{path}") } else { path.to_owned() };
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "._/-".contains(character);
    if !path.is_empty() && path.chars().all(is_plain) {
        path
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_is_one_word_of_the_command() {
        let check = |path: &str, expect: &str| assert_eq!(counting(Some(path)), expect);
        check("docs/README.md", "wc -l docs/README.md");
        check("a b.md", "wc -l 'a b.md'");
        check("-x.md", "wc -l ./-x.md");
        check("$(touch x).md", "wc -l '$(touch x).md'");
        check("it's; touch x.md", r"wc -l 'it'\''s; touch x.md'");
        check("文.md", "wc -l '文.md'");
        assert_eq!(counting(None), "ls | wc -l");
    }
}
