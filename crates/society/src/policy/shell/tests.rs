use super::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::process::Command;

fn words(text: &str) -> Option<Vec<String>> {
    simple_command(text)
}

#[test]
fn the_words_of_a_simple_command() {
    let check = |text: &str, expect: &[&str]| {
        assert_eq!(
            words(text).as_deref(),
            Some(&expect.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()[..]),
            "{text}"
        );
    };
    check("git push", &["git", "push"]);
    check("  git \t push \n", &["git", "push"]);
    check(r#"g'i't "pu"sh"#, &["git", "push"]);
    check(r"\git pu\sh", &["git", "push"]);
    check("gi\\\nt push", &["git", "push"]);
    check(r"$'\x67it' $'pu\163h' $'a\'b'", &["git", "push", "a'b"]);
    check(r#"echo "a \"b\" \c" 'd \e'"#, &["echo", "a \"b\" \\c", "d \\e"]);
    check("ls *.rs ~/x [a-c]? '*'", &["ls", "*.rs", "~/x", "[a-c]?", "*"]);
    check("[ -f x ]", &["[", "-f", "x", "]"]);
    check("find . -name '*.rs' -exec x {} +", &["find", ".", "-name", "*.rs", "-exec", "x", "{}", "+"]);
    check("echo '' a#b", &["echo", "", "a#b"]);
    check("echo a=b 'c;d' \"e|f\" g\\&h", &["echo", "a=b", "c;d", "e|f", "g&h"]);
    check("echo 文件", &["echo", "文件"]);
}

#[test]
fn what_is_no_simple_command() {
    for text in [
        "",
        " ",
        "a; b",
        "a;",
        "a && b",
        "a || b",
        "a | b",
        "a |& b",
        "a &",
        "a\nb",
        "a $(b)",
        "a `b`",
        "a \"$(b)\"",
        "a \"`b`\"",
        "a > b",
        "a >> b",
        "a < b",
        "a 2>&1",
        "a &> b",
        "a << E\nE",
        "a <<< b",
        "a <(b)",
        "a >(b)",
        "(a)",
        "{ a; }",
        "! a",
        "time a",
        "if a",
        "X=1 a",
        "X=1",
        "a $X",
        "a ${X}",
        "a \"$X\"",
        "a $((1))",
        "a {b,c}",
        "a {1..3}",
        "*",
        "~/a",
        "$X",
        "a 'b",
        "a \"b",
        "a $'b",
        "a `b",
        "f() { a; }",
        "function f { a; }",
        "[[ a ]]",
        "coproc a",
        "''",
        "a # b\nc",
        "a\0b",
        "a $\"b$X\"",
        "a $[1]",
        "a )",
    ] {
        assert_eq!(words(text), None, "{text}");
    }
}

/// Compares the words of random texts with the words that bash finds.
#[test]
fn bash_finds_the_same_words() {
    const SCRIPT: &str = r#"PATH=; set -fr; f() { printf '%s\0' "$#" "$@"; }; for text; do eval "f $text" || printf 'wrong\0'; done"#;
    if Command::new("bash").args(["-c", ":"]).status().is_err() {
        return;
    }
    let text = "[ab'\"\\\\ \n\t$x{},=#;|&<>()!`1*?\\[\\]~-]{1,12}|([ab]|'[ab\\\\\"$]*'|\"[ab']*\"|\\\\[ab' \"$\n]|\\$'[ab]*(\\\\[nt'\"\\\\x61])*'| |\t){1,8}";
    let strategy = proptest::collection::vec(text, 4000);
    let texts = strategy.new_tree(&mut TestRunner::deterministic()).unwrap().current();
    // This test omits texts with `~`. The script puts `f` before each text, so bash does not expand a `~` at the
    // beginning of the text in the same way as without `f`.
    let simple: Vec<(String, Vec<String>)> = texts
        .into_iter()
        .filter(|text| !text.contains('~') && !text.contains('!'))
        .filter_map(|text| Some((text.clone(), simple_command(&text)?)))
        .map(|(text, words)| (text.trim().to_owned(), words))
        .collect();
    assert!(simple.len() > 1000, "only {} texts are simple commands", simple.len());
    for some in simple.chunks(500) {
        let output = Command::new("bash")
            // If this module has a bug, bash may run a dangerous command that a random text contains. So the script
            // forbids redirections to files (`set -r`) and finds no programs (`PATH=`).
            .args(["--noprofile", "--norc", "-c", SCRIPT, "bash"])
            .args(some.iter().map(|(text, _)| text))
            .env("LC_ALL", "C.UTF-8")
            .output()
            .unwrap();
        let mut found =
            output.stdout.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        for (text, words) in some {
            let count: usize =
                found.next().unwrap().parse().unwrap_or_else(|_| panic!("bash refuses {text:?}"));
            let of_bash: Vec<String> = found.by_ref().take(count).collect();
            assert_eq!(words, &of_bash, "{text:?}");
        }
    }
}

proptest! {
    #[test]
    fn every_text_is_read_or_uncertain(text in "[ab'\"\\\\ \n$x{},=#;|&<>()`1]{0,30}") {
        let _ = (simple_command(&text), parts(&text));
    }
}

#[test]
fn a_deep_or_long_text_is_uncertain() {
    assert!(parts(&"$(".repeat(10_000)).is_none());
    assert!(parts(&format!("{}a{}", "$(".repeat(100), ")".repeat(100))).is_none());
    assert!(parts(&"${x:-".repeat(10_000)).is_none());
    assert!(parts(&"`\\".repeat(10_000)).is_none());
    assert!(parts(&"a;".repeat(100_000)).is_none());
    assert!(parts("a $(b)").is_some());
}
