//! Commands that polity suggests to the user. They repeat the options with which the user has selected the society:
//! without these options, they would reach another society, or read another configuration.

use clap::{ArgMatches, Command};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The long options that select a society.
const SELECTING: [&str; 2] = ["config", "data"];
/// The name of the program at the beginning of a command.
const PROGRAM: &str = "polity ";
/// The characters that end a command in a sentence.
const ENDS: [char; 9] = ['`', ',', ';', '(', ')', '\n', '，', '；', '。'];

/// The options of this process that suggested commands repeat. Set at most once, when the command line is parsed.
static OF_THIS_PROCESS: OnceLock<Options> = OnceLock::new();

/// Remembers the options of the command line. `command` describes all commands.
pub(crate) fn remember(matches: &ArgMatches, command: fn() -> Command) {
    // `set` fails if the options are known already. They are the same then, because a process has one command line.
    let _ = OF_THIS_PROCESS.set(Options::of(matches, command));
}

/// Returns a text in which each command of polity repeats the options of this process. The text must come from polity
/// itself: in a text of an agent or a file, a command must stay as it is.
pub(crate) fn repeating(text: &str) -> Cow<'_, str> {
    match OF_THIS_PROCESS.get() {
        Some(options) if !options.commands.is_empty() => Cow::Owned(options.added_to(text)),
        Some(_) | None => Cow::Borrowed(text),
    }
}

/// Quotes a path for a shell, if it needs quotes.
pub(crate) fn quoted(path: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-+:@%".contains(character);
    if !path.is_empty() && path.chars().all(is_plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}

/// An option that the user gave.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Given {
    /// The long name, without dashes.
    name: &'static str,
    value: String,
}

/// The options that each command repeats.
#[derive(Debug, Default)]
struct Options {
    /// The names of commands, such as `db check`, and the given options that each of them takes. Empty if the user gave
    /// no option.
    commands: BTreeMap<String, Vec<Given>>,
}

impl Options {
    fn of(matches: &ArgMatches, command: fn() -> Command) -> Self {
        let mut chosen = matches;
        while let Some((_, inner)) = chosen.subcommand() {
            chosen = inner;
        }
        let given = |name: &'static str| {
            let value = chosen.try_get_one::<PathBuf>(name).ok().flatten()?;
            Some(Given { name, value: value.display().to_string() })
        };
        let given: Vec<Given> = SELECTING.into_iter().filter_map(given).collect();
        let mut options = Self::default();
        if given.is_empty() {
            return options;
        }
        for command in command().get_subcommands() {
            options.learn(command.get_name(), command, &given);
            for inner in command.get_subcommands() {
                options.learn(&format!("{} {}", command.get_name(), inner.get_name()), inner, &given);
            }
        }
        options
    }

    fn learn(&mut self, name: &str, command: &Command, given: &[Given]) {
        let takes =
            |given: &&Given| command.get_arguments().any(|known| known.get_long() == Some(given.name));
        self.commands.insert(name.to_owned(), given.iter().filter(takes).cloned().collect());
    }

    /// Inserts the options after the name of each command, unless the command has them already.
    fn added_to(&self, text: &str) -> String {
        let mut whole = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(PROGRAM) {
            let (before, after) = rest.split_at(at + PROGRAM.len());
            whole.push_str(before);
            rest = after;
            let is_part_of_word = before[..at]
                .ends_with(|last: char| last.is_ascii_alphanumeric() || ['/', '.', '_', '-'].contains(&last));
            if is_part_of_word {
                continue;
            }
            let Some((name, given)) = self.command_at(after) else { continue };
            let (name, after) = after.split_at(name.len());
            whole.push_str(name);
            rest = after;
            let own = after.split(ENDS).next().unwrap_or_default();
            for Given { name, value } in given {
                if !own.contains(&format!("--{name}")) {
                    whole.push_str(&format!(" --{name} {}", quoted(value)));
                }
            }
        }
        whole.push_str(rest);
        whole
    }

    /// Returns the command with whose name a text begins, and its options. `db check` precedes `db`.
    fn command_at(&self, text: &str) -> Option<(&str, &[Given])> {
        let is_named = |name: &str| {
            let after = text.strip_prefix(name);
            after.is_some_and(|after| {
                !after.starts_with(|next: char| next.is_ascii_alphanumeric() || ['_', '-'].contains(&next))
            })
        };
        let named = self.commands.iter().filter(|(name, _)| is_named(name));
        named.max_by_key(|(name, _)| name.len()).map(|(name, given)| (name.as_str(), given.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Arguments;
    use clap::CommandFactory;

    fn check(line: &[&str], text: &str, expect: &str) {
        let line = std::iter::once("polity").chain(line.iter().copied());
        let matches = Arguments::command().try_get_matches_from(line).unwrap();
        assert_eq!(Options::of(&matches, Arguments::command).added_to(text), expect);
    }

    #[test]
    fn suggested_commands_repeat_the_options_that_they_take() {
        let both = ["run", "--config", "c d", "--data", "data", "hello"];
        check(&both, "run `polity doctor --fix`", "run `polity doctor --config 'c d' --data data --fix`");
        check(&both, "polity resume root", "polity resume --data data root");
        check(&both, "`polity db check`, or polity db.", "`polity db check --data data`, or polity db.");
        check(
            &both,
            "answer with: polity approve q1, or polity deny q1",
            "answer with: polity approve --data data q1, or polity deny --data data q1",
        );
        check(&both, "运行 polity serve，再试", "运行 polity serve --config 'c d' --data data，再试");
        check(
            &["status", "--config", "c"],
            "polity run --resume; polity gc",
            "polity run --config c --resume; polity gc --config c",
        );
        check(
            &["db", "check", "--data", "d"],
            "(`polity gc` removes them)",
            "(`polity gc --data d` removes them)",
        );
    }

    #[test]
    fn all_other_texts_stay_as_they_are() {
        let stays = |line: &[&str], text: &str| check(line, text, text);
        stays(&["status"], "polity run --resume");
        let data = ["status", "--data", "d"];
        stays(&data, "polity doctor --data d, and its entry");
        stays(&data, "polity runs; another polity works there; polity completions; ./polity run");
        stays(&data, "polity: no daemon serves polity");
    }
}
