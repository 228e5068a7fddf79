//! Words of the shell, and programs that run the command in their arguments.

/// Words that begin or continue a compound command, or that change how the shell reads the rest.
pub(super) const RESERVED: &[&str] = &[
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "select",
    "function", "time", "coproc", "in", "{", "}", "!", "[[", "]]",
];

/// How a program runs a command in its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrapper {
    /// The words that follow, perhaps after options, are a command.
    Words,
    /// The words that follow, together or each alone, are the text of a command.
    Text,
    /// A shell: the word after `-c` is the text of a command. Without a script it reads commands from its input.
    Shell,
}

/// Programs, and words of the shell, that run the command that follows them.
const WORDS: &[&str] = &[
    "builtin",
    "busybox",
    "chroot",
    "chrt",
    "command",
    "coproc",
    "dbus-run-session",
    "doas",
    "env",
    "exec",
    "faketime",
    "fd",
    "find",
    "firejail",
    "flock",
    "for",
    "gosu",
    "ionice",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "parallel",
    "pkexec",
    "proot",
    "select",
    "setarch",
    "setpriv",
    "setsid",
    "stdbuf",
    "strace",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "toybox",
    "unbuffer",
    "unshare",
    "xargs",
    "xvfb-run",
    "function",
    "tsp",
];

/// Programs whose arguments are the text of a command.
const TEXT: &[&str] = &[
    "alias",
    "bind",
    "eval",
    "runuser",
    "script",
    "ssh",
    "su",
    "trap",
    "watch",
    "mapfile",
    "readarray",
    "complete",
];

/// Shells.
const SHELLS: &[&str] = &["ash", "bash", "dash", "fish", "ksh", "mksh", "rbash", "sh", "yash", "zsh"];

/// Returns how a program runs a command in its arguments, if it does.
pub(super) fn wrapper(program: &str) -> Option<Wrapper> {
    match program {
        _ if WORDS.contains(&program) => Some(Wrapper::Words),
        _ if TEXT.contains(&program) => Some(Wrapper::Text),
        _ if SHELLS.contains(&program) => Some(Wrapper::Shell),
        // The loader of programs, such as `/lib64/ld-linux-x86-64.so.2`.
        _ if program.starts_with("ld-linux") || program.starts_with("ld-musl") => Some(Wrapper::Words),
        _ => None,
    }
}
