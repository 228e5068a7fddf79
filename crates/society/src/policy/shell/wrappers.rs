//! Lists the reserved words of shells, and the programs that take a command as arguments and run it, such as `sudo`.

/// Words that begin or continue a compound command, or that change how the shell reads the words after them.
pub(super) const RESERVED: &[&str] = &[
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "select",
    "function", "time", "coproc", "in", "{", "}", "!", "[[", "]]",
];

/// The form in which a program takes a command as arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrapper {
    /// The arguments, perhaps after options, are the words of a command, as in `sudo git push`.
    Words,
    /// The arguments, together or each alone, are the text of a command, as in `eval 'git push'`.
    Text,
    /// The program is a shell. The word after `-c` is the text of a command. Without `-c` and without a script, the
    /// shell reads commands from its standard input.
    Shell,
}

/// Programs and shell builtins that run the command that follows them.
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

const SHELLS: &[&str] = &["ash", "bash", "dash", "fish", "ksh", "mksh", "rbash", "sh", "yash", "zsh"];

/// Returns the form in which a program takes a command as arguments, or `None` if the program runs no other command.
pub(super) fn wrapper(program: &str) -> Option<Wrapper> {
    match program {
        _ if WORDS.contains(&program) => Some(Wrapper::Words),
        _ if TEXT.contains(&program) => Some(Wrapper::Text),
        _ if SHELLS.contains(&program) => Some(Wrapper::Shell),
        // The dynamic loader, such as `/lib64/ld-linux-x86-64.so.2`, runs the program that its arguments name.
        _ if program.starts_with("ld-linux") || program.starts_with("ld-musl") => Some(Wrapper::Words),
        _ => None,
    }
}
