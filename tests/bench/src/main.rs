//! Measures what polity costs, against a floor: the least code that does the same durable work.
//!
//! In each round, each scenario is played twice with the same scripted model: first by a release build of `polity`, and
//! then by the floor. The table shows the median of all rounds. `docs/performance.md` explains how to read the table.

mod http;
mod process;

mod model;
mod reply;
mod script;

mod answers;
mod floor;
mod subject;

mod measure;
mod scenario;

mod options;
mod table;
#[cfg(test)]
mod tests;

use std::io::Write;

use anyhow::{Context, Result};

use measure::Scenario;
use options::Options;
use table::Row;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.peek().is_some_and(|first| first == floor::SUBCOMMAND) {
        return floor::run();
    }
    let mut options = Options::parse(arguments)?;
    // Make the path absolute. The daemons run in other directories, where a relative path would lead elsewhere.
    options.polity = std::fs::canonicalize(&options.polity)
        .with_context(|| format!("there is no binary {}", options.polity.display()))?;
    let rows = measure(&options)?;
    write!(std::io::stdout(), "{}", table::text(&rows))?;
    if let Some(path) = &options.json {
        let json = serde_json::to_string_pretty(&table::json(&rows, options.rounds))?;
        std::fs::write(path, json).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}

/// Plays all rounds. Each round plays every scenario once. So if the machine is slow for a minute, the other rounds of
/// a scenario are not affected.
fn measure(options: &Options) -> Result<Vec<Row>> {
    let measures = options.scenarios.iter().flat_map(|scenario| scenario.measures());
    let mut rows: Vec<Row> = measures.map(|measure| Row { measure, samples: Vec::new() }).collect();
    for round in 1..=options.rounds {
        for scenario in &options.scenarios {
            // The size of the binary is the same in every round, so measure it only once.
            if *scenario == Scenario::Binary && round > 1 {
                continue;
            }
            writeln!(std::io::stderr(), "round {round} of {}: {}", options.rounds, scenario.name())?;
            let samples = scenario::play(*scenario, &options.polity)
                .with_context(|| format!("failed to play {}", scenario.name()))?;
            let lines = rows.iter_mut().filter(|row| row.measure.scenario == *scenario);
            for (row, sample) in lines.zip(samples) {
                row.samples.push(sample);
            }
        }
    }
    Ok(rows)
}
