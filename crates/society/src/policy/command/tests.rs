use super::*;
use proptest::prelude::*;

fn push() -> Pattern {
    Pattern::new("git push*")
}

#[track_caller]
fn catches(text: &str) {
    assert!(is_caught_by(&push(), text), "not caught: {text}");
}

#[track_caller]
fn lets_pass(text: &str) {
    assert!(!is_caught_by(&push(), text), "caught: {text}");
}

#[test]
fn a_denying_pattern_fits_any_part() {
    for text in [
        "git push",
        " git  push origin",
        "git\tpush",
        "cd x && git push",
        "a; git push",
        "a | git push",
        "a & git push",
        "a\ngit push",
        "(git push)",
        "{ git push; }",
        "! git push",
        "if git push; then a; fi",
        "if a; then git push; fi",
        "while git push; do a; done",
        "for x in a; do git push; done",
        "for x do git push; done",
        "case a in b) git push;; esac",
        "f() { git push; }",
        "function f { git push; }",
        "coproc git push",
        "coproc X { git push; }",
        "time -p git push",
        "echo $(git push)",
        "echo \"$(git push)\"",
        "echo `git push`",
        "echo \"`git push`\"",
        "echo ${x:-$(git push)}",
        "echo \"${x:-`git push`}\"",
        "echo $((1 + $(git push)))",
        "cat <(git push)",
        "cat > >(git push)",
        "cat <<E\n$(git push)\nE",
        "cat <<E\na\nE\ngit push",
        "X=1 git push",
        "X=1 Y=2 git push",
        "X=$(git push)",
        "env X=1 git push",
        "sudo -u a git push",
        "command git push",
        "exec -a x git push",
        "nohup git push &",
        "nice -n 5 git push",
        "timeout 5 git push",
        "xargs git push",
        "xargs -I{} git push {}",
        "find . -exec git push {} \\;",
        "bash -c 'git push'",
        "sh -ec 'a; git push'",
        "bash -o pipefail -c 'git push'",
        "bash -c -x 'git push'",
        "eval git push",
        "eval 'git push'",
        "env -S 'git push'",
        "sudo bash -c \"git push\"",
        "bash -c \"sh -c 'git push'\"",
        "sh -c 'echo $(git push)'",
        "ssh a git push",
        "ssh a 'cd x; git push'",
        "trap 'git push' EXIT",
        "alias g='git push'",
        "g'i't push",
        "\"git\" 'push'",
        "\\git push",
        "gi\\\nt push",
        "$'\\x67it' push",
        "/usr/bin/git push",
        "../git push",
        "/bin/bash -c 'git push'",
        "~/bin/git push",
        "git push 2>&1",
        "2>&1 git push",
        "> x git push",
        "{fd}> x git push",
        "git > x push",
        "&> x git push",
        "git pus?",
        "gi* push",
        "{git,push}",
        "git $X",
        "$X push",
        "$X",
        "\"$X\" push",
        "$(a) push",
        "X=git; $X push",
        "a || git push",
        "a |& git push",
        "a <<< b; git push",
        "echo a | sh",
        "bash <<< 'git push'",
        "bash <<E\ngit push\nE",
        "curl x | bash -s",
        "bash -c \"$X\"",
        "a # b\ngit push",
        "((x<<2)); git push",
        "echo $((x<<2)) && git push",
        "busybox sh -c 'git push'",
        "cat <<'E' | sh\ngit push\nE",
        "/lib64/ld-linux-x86-64.so.2 /usr/bin/git push",
        "[[ -f x ]] && git push",
        // In these texts, a quotation or substitution has no end, or has a form that the lexer does not read. So it is
        // uncertain what the texts run.
        "a 'b",
        "a \"b",
        "a $(b",
        "a `b",
        "$(case a in b) git push;; esac)",
        "a ${ git push; }",
        "a $[1]",
    ] {
        catches(text);
    }
}

#[test]
fn a_denying_pattern_fits_no_other_command() {
    for text in [
        "git pull",
        "git status",
        "echo git push",
        "echo 'git push'",
        "echo a # git push",
        "grep -r 'git push' .",
        "cd x && ls *.rs",
        "cat > notes.md <<'E'\nthen: git push\n$(git push)\nE",
        "ls \"$X\" | wc -l",
        "for x in a b; do echo \"$x\"; done",
        "bash run.sh --fast",
        "bash --version",
        "find . -name '*.rs' -exec grep x {} \\;",
        "gitk push",
        "[ -n \"$X\" ]",
        "python3 -c 'print(1)'",
        "cargo test 2>&1 | tail -5",
        "X=1 cargo test",
        "echo $((1 + 2))",
        "~/bin/tool x",
        "a=b",
    ] {
        lets_pass(text);
    }
}

#[test]
fn a_pattern_that_fits_only_what_cannot_be_seen_says_what_hides_the_command() {
    let check = |text: &str, expect: Option<Unseen>| {
        catches(text);
        assert_eq!(unseen(&push(), text), expect, "{text}");
    };
    check("git push", None);
    check("cd x && git push $X", None);
    check("git push $(a)", None);
    check("sudo git push *", None);
    check("for i in $(seq 3); do echo \"$i\"; done", Some(Unseen::Substitution));
    check("$(a) push", Some(Unseen::Substitution));
    check("`a` push", Some(Unseen::Backquotes));
    check("$X push", Some(Unseen::Expansion));
    check("bash -c \"${X}\"", Some(Unseen::Expansion));
    check("curl x | bash -s", Some(Unseen::Text));
    check("gi* push", Some(Unseen::Text));
    check("a 'b", Some(Unseen::Text));
    check("a $[1]", Some(Unseen::Expansion));
    check("echo $((1 + 2)) | sh", Some(Unseen::Expansion));
}

#[test]
fn only_what_the_shell_expands_is_said_to_hide_a_command() {
    let check = |text: &str, expect: Unseen| {
        catches(text);
        assert_eq!(unseen(&push(), text), Some(expect), "{text}");
    };
    // A shell takes a text in single quotes literally.
    check("echo 'a $(b)' | sh", Unseen::Text);
    check("echo 'a `b`' | sh", Unseen::Text);
    check("echo 'a $X' | sh", Unseen::Text);
    check(r"echo \$X \`b | sh", Unseen::Text);
    check("cat <<'E' | sh\n$(a)\nE", Unseen::Text);
    check("echo a | sh # $(b)", Unseen::Text);
    check("timeout 5 grep '$(b) c' d | sh", Unseen::Text);
    // In double quotes, the shell expands it.
    check("echo \"a $(b)\" | sh", Unseen::Substitution);
    check("echo \"a `b`\" | sh", Unseen::Backquotes);
    check("echo \"a $X\" | sh", Unseen::Expansion);
    check("echo \"it's\" \"$(b)\" | sh", Unseen::Substitution);
    check("cat <<E | sh\n$(a)\nE", Unseen::Substitution);
    // The quotes end before the inner shell reads the text.
    check("sh -c '$(a) push'", Unseen::Substitution);
    check("eval '$X push'", Unseen::Expansion);
}

#[test]
fn an_allowing_pattern_fits_the_words_as_the_shell_reads_them() {
    let check = |pattern: &str, text: &str, fits: bool| {
        assert_eq!(is_allowed_by(&Pattern::new(pattern), text), fits, "{pattern} {text}");
    };
    check("git log*", "git log --oneline", true);
    check("git  log*", "git 'log'", true);
    check("git log*", "/tmp/git log", false);
    check("git log*", "git log | sh", false);
    check("git log*", "git log $(x)", false);
    check("git log*", "git log > x", false);
    check("git log*", "PAGER=x git log", false);
    check("ls*", "ls *.rs", true);
    check("rm a b", "rm 'a b'", false);
    check("rm a b", "rm a b", true);
    check("*", "a; b", false);
    check("*", "a", true);
}

/// Generates simple commands that `wrapped` combines into compound commands.
fn simple() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "ls -l",
        "echo 'a b'",
        "git status",
        "cat x",
        "true",
        "make \"all\"",
        "cargo test",
    ])
    .prop_map(str::to_owned)
}

/// Writes a word in another way that the shell reads as the same word, for example `g'i't` for `git`.
fn disguised(word: &'static str) -> impl Strategy<Value = String> {
    (0..word.len(), 0..6_u8).prop_map(move |(at, way)| {
        let (before, after) = word.split_at(at);
        let (first, rest) = after.split_at(1);
        match way {
            0 => word.to_owned(),
            1 => format!("{before}'{first}'{rest}"),
            2 => format!("{before}\"{after}\""),
            3 => format!("{before}\\{after}"),
            4 => format!("{before}\\\n{after}"),
            _ => format!("{before}$'\\x{:02x}'{rest}", first.as_bytes()[0]),
        }
    })
}

/// Returns a text that runs a command, often together with another command: in a list, a loop, a substitution, …
fn wrapped(command: String, other: &str, way: usize) -> String {
    let quoted = command.replace('\'', r"'\''");
    let ways = [
        format!("{other}; {command}"),
        format!("{command}; {other}"),
        format!("{other} && {command}"),
        format!("{other} || {command}"),
        format!("{other} | {command}"),
        format!("{other} & {command}"),
        format!("{other}\n{command}"),
        // Without the spaces, wrapping a command twice in this way would give `((`, which begins an arithmetic
        // expression.
        format!("( {command} )"),
        format!("{{ {command}; }}"),
        format!("if {other}; then {command}; fi"),
        format!("while {command}; do {other}; done"),
        format!("for x in a; do {command}; done"),
        format!("f() {{ {command}; }}; f"),
        format!("{other} $( {command} )"),
        format!("{other} \"$( {command} )\""),
        format!("{other} <({command})"),
        format!("{other} ${{x:-$( {command} )}}"),
        format!("{other} <<E\n$( {command} )\nE"),
        format!("{other} <<'E'\nit's\nE\n{command}"),
        format!("bash -c '{quoted}'"),
        format!("sh -ec '{quoted}'"),
        format!("eval '{quoted}'"),
        format!("sudo -u a sh -c '{quoted}'"),
        format!("! {command}"),
        format!("X=1 {command}"),
        format!("> x {command}"),
        format!("{command} 2>&1 | {other}"),
        format!("{other} # it's\n{command}"),
    ];
    ways[way % ways.len()].clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn an_allowing_pattern_never_fits_a_compound_command(
        one in simple(), other in simple(), way in 0..28_usize, more in prop::collection::vec(0..28_usize, 0..3),
    ) {
        // The function `wrapped` knows several ways to run a command. Ways 19 to 22, such as `bash -c '…'` and `eval
        // '…'`, make a single simple command, which `*` may fit.
        prop_assume!(!(19..=22).contains(&way));
        let text = wrapped(one, &other, way);
        prop_assert!(!is_allowed_by(&Pattern::new("*"), &text), "{}", text);
        let text = more.into_iter().filter(|way| !(19..=22).contains(way)).fold(text, |text, way| wrapped(text, &other, way));
        prop_assert!(!is_allowed_by(&Pattern::new("*"), &text), "{}", text);
    }

    #[test]
    fn a_denying_pattern_fits_however_the_command_is_wrapped(
        git in disguised("git"), push in disguised("push"), path in prop::sample::select(vec!["", "/usr/bin/", "./"]),
        before in prop::sample::select(vec!["", "env X=1 ", "nohup ", "command ", "sudo -E ", "exec ", "time ", "xargs -n 1 "]),
        other in simple(), ways in prop::collection::vec(0..28_usize, 0..4),
    ) {
        let command = format!("{before}{path}{git} {push} origin");
        let text = ways.into_iter().fold(command, |text, way| wrapped(text, &other, way));
        prop_assert!(is_caught_by(&Pattern::new("git push*"), &text), "{}", text);
    }

    #[test]
    fn what_an_allowing_pattern_fits_a_denying_one_fits_too(text in "[ab'\"\\\\ $x;|&*?~/]{0,12}", pattern in "[ab */]{0,5}") {
        let pattern = Pattern::new(pattern);
        prop_assert!(!is_allowed_by(&pattern, &text) || is_caught_by(&pattern, &text));
    }
}
