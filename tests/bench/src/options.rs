//! The command line.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::measure::Scenario;

/// How to call the bench.
pub(crate) const USAGE: &str = "usage: polity-bench --polity PATH [--rounds N] [--only NAME] [--json FILE]";

/// Number of rounds if the command line does not have `--rounds`.
const ROUNDS: usize = 5;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// The `polity` binary to measure.
    pub(crate) polity: PathBuf,
    pub(crate) rounds: usize,
    pub(crate) scenarios: Vec<Scenario>,
    /// A file for the results as JSON.
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options =
            Self { polity: PathBuf::new(), rounds: ROUNDS, scenarios: Scenario::ALL.to_vec(), json: None };
        while let Some(option) = arguments.next() {
            let value = arguments.next().with_context(|| format!("{option} needs a value\n{USAGE}"))?;
            match &*option {
                "--polity" => options.polity = PathBuf::from(value),
                "--rounds" => {
                    options.rounds = value.parse().context("--rounds must be a number")?;
                }
                "--only" => {
                    let named = Scenario::ALL.iter().find(|scenario| scenario.name() == value);
                    options.scenarios =
                        vec![*named.with_context(|| format!("there is no scenario {value}"))?];
                }
                "--json" => options.json = Some(PathBuf::from(value)),
                _ => bail!("there is no option {option}\n{USAGE}"),
            }
        }
        if options.polity.as_os_str().is_empty() {
            bail!("--polity is missing\n{USAGE}");
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn the_options_have_defaults_and_unknown_ones_are_refused() {
        let options = parse("--polity p --only ring").unwrap();
        assert_eq!((options.rounds, &*options.scenarios), (5, &[Scenario::Ring][..]));
        assert!(parse("--polity p --only circle").is_err());
        assert!(parse("--polity p --fast yes").is_err());
        assert!(parse("--rounds 3").is_err());
    }
}
