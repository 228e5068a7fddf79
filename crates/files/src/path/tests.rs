use super::*;
use proptest::prelude::*;

const ROOT: &str = "/data/workspaces/t1";

fn parse(written: &str) -> Result<String, PathFault> {
    let roots = [Path::new(ROOT), Path::new("/private/data/workspaces/t1")];
    WorkspacePath::parse(written, &roots).map(|path| path.to_string())
}

#[test]
fn paths_are_read_as_models_write_them() {
    let check = |written: &str, expect: &str| assert_eq!(parse(written).as_deref(), Ok(expect), "{written}");
    check("src/a.rs", "src/a.rs");
    check("./a", "a");
    check("././/a//b/", "a/b");
    check(".", ".");
    check("./", ".");
    check("a/..", ".");
    check("a/../b", "b");
    check("a/b/../../c", "c");
    check("/workspace", ".");
    check("/workspace/", ".");
    check("/workspace/a", "a");
    check("/workspace/./a/../b", "b");
    check("//workspace//a", "a");
    check("/data/workspaces/t1", ".");
    check("/data/workspaces/t1/src/a.rs", "src/a.rs");
    check("/data/../data/workspaces/t1/a", "a");
    check("/../data/workspaces/t1/a", "a");
    check("/private/data/workspaces/t1/a", "a");
    check("src\\a.rs", "src/a.rs");
    check(".\\a", "a");
    check("a\\..\\b", "b");
    check("\\workspace\\a", "a");
    check("a b/c d", "a b/c d");
    check(" a", " a");
    check("...", "...");
    check("..a", "..a");
    check("a..", "a..");
    check("目录/文件.txt", "目录/文件.txt");
    check("./~/a", "~/a");
    check("a/~", "a/~");
    check("~a", "~a");
    check("workspace/a", "workspace/a");
    check("%2e%2e/a", "%2e%2e/a");
}

#[test]
fn other_texts_are_no_paths() {
    let check = |written: &str, expect: PathFault| assert_eq!(parse(written), Err(expect), "{written:?}");
    for nothing in ["", " ", "\n", "\t  "] {
        check(nothing, PathFault::Empty);
    }
    for nul in ["\0", "a\0", "a\0/../../etc", "/workspace/\0"] {
        check(nul, PathFault::Nul);
    }
    for outside in [
        "..",
        "../",
        "../a",
        "a/../..",
        "a/../../b",
        "./../a",
        "a/b/../../../c",
        "/",
        "//",
        "/..",
        "/etc/passwd",
        "/workspace/../etc/passwd",
        "/workspace/..",
        "/workspaces/a",
        "/workspace2",
        "/Workspace/a",
        "/data/workspaces/t1/..",
        "/data/workspaces/t1/../t2/a",
        "/data/workspaces/t10/a",
        "/data/workspaces",
        "/data",
        "..\\a",
        "a\\..\\..\\b",
        "C:\\Windows",
        "c:/a",
        "C:",
        "\\\\server\\share",
        "~",
        "~/a",
        "~\\a",
        "/proc/self/cwd/a",
        "/dev/stdin",
    ] {
        check(outside, PathFault::Outside);
    }
    check(&"a/".repeat(3000), PathFault::TooLong);
    check(&"a".repeat(256), PathFault::TooLong);
    check(&"é".repeat(128), PathFault::TooLong);
    assert!(parse(&"a".repeat(255)).is_ok());
}

#[test]
fn a_real_directory_called_workspace_is_not_the_alias() {
    let roots = [Path::new("/workspace/t1")];
    let parse = |written| WorkspacePath::parse(written, &roots).map(|path| path.to_string());
    assert_eq!(parse("/workspace/t1/a").as_deref(), Ok("a"));
    assert_eq!(parse("/workspace/t2/a"), Err(PathFault::Outside));
}

#[test]
fn names_with_line_breaks_fill_one_line() {
    assert_eq!(on_one_line("a\nb\u{1b}[0m\u{2028}é"), "a\\nb\\u{1b}[0m\\u{2028}é");
}

/// Generates texts that are likely to confuse a parser of paths.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just("/".to_owned()),
        Just("\\".to_owned()),
        Just("//".to_owned()),
        Just("~".to_owned()),
        Just("C:".to_owned()),
        Just("\0".to_owned()),
        Just("/workspace".to_owned()),
        Just(ROOT.to_owned()),
        Just("/data/workspaces".to_owned()),
        Just("t1".to_owned()),
        Just("\u{2044}".to_owned()),
        Just("．．".to_owned()),
        "[a-c .]{0,3}",
        "\\PC{0,3}",
    ];
    proptest::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, ..ProptestConfig::default() })]

    #[test]
    fn a_path_consists_of_plain_names(written in hostile()) {
        if let Ok(path) = WorkspacePath::parse(&written, &[Path::new(ROOT)]) {
            for name in path.names() {
                prop_assert!(!name.is_empty() && name != "." && name != "..", "{name:?}");
                prop_assert!(!name.contains(['/', '\\', '\0']), "{name:?}");
            }
        }
    }

    #[test]
    fn a_path_is_read_again_as_itself(written in hostile()) {
        let roots = [Path::new(ROOT)];
        if let Ok(path) = WorkspacePath::parse(&written, &roots) {
            for same in [format!("./{path}"), format!("/workspace/{path}"), format!("{ROOT}/{path}")] {
                prop_assert_eq!(WorkspacePath::parse(&same, &roots), Ok(path.clone()), "{}", same);
            }
        }
    }

    #[test]
    fn an_absolute_path_is_inside_exactly_if_its_names_begin_with_a_root(written in hostile()) {
        let absolute = format!("/{written}");
        prop_assume!(!absolute.contains('\0') && !absolute.starts_with("/workspace"));
        let unified = absolute.replace('\\', "/");
        let mut names: Vec<&str> = Vec::new();
        for name in unified.split('/') {
            match name {
                "" | "." => {}
                ".." => drop(names.pop()),
                name => names.push(name),
            }
        }
        let is_inside = names.starts_with(&["data", "workspaces", "t1"]) || names.first() == Some(&"workspace");
        let parsed = WorkspacePath::parse(&absolute, &[Path::new(ROOT)]);
        prop_assert_eq!(parsed.is_ok(), is_inside, "{}", absolute);
    }
}
