//! The results of all rounds, as a table for people and as JSON.

use serde_json::{Value, json};

use crate::measure::{Goal, Measure, Sample};

/// A measure with its samples, one for each round.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) measure: Measure,
    pub(crate) samples: Vec<Sample>,
}

const HEAD: [&str; 7] = ["scenario", "measure", "polity", "floor", "ratio", "goal", "met"];

impl Row {
    fn polity(&self) -> Option<f64> {
        median(self.samples.iter().map(|sample| sample.polity))
    }

    fn floor(&self) -> Option<f64> {
        median(self.samples.iter().filter_map(|sample| sample.floor))
    }

    /// Returns the median of the ratios of all rounds. Each ratio compares polity with the floor in the same round,
    /// because the machine is about equally busy for both then.
    fn ratio(&self) -> Option<f64> {
        median(self.samples.iter().filter_map(|sample| Some(sample.polity / sample.floor?)))
    }

    /// Returns whether the goal is met; `None` without a goal or without a sample.
    fn met(&self) -> Option<bool> {
        Some(match self.measure.goal {
            Goal::None => return None,
            Goal::RatioAtMost(most) => self.ratio()? <= most,
            Goal::AtMost(most) => self.polity()? <= most,
            Goal::AtLeast(least) => self.polity()? >= least,
        })
    }

    fn cells(&self) -> [String; 7] {
        let unit = self.measure.unit;
        let valued = |value: Option<f64>| {
            value.map_or_else(String::new, |value| format!("{} {unit}", short(value)).trim_end().to_owned())
        };
        let goal = match self.measure.goal {
            Goal::None => String::new(),
            Goal::RatioAtMost(most) => format!("ratio <= {most}"),
            Goal::AtMost(most) => format!("<= {most} {unit}"),
            Goal::AtLeast(least) => format!(">= {least} {unit}"),
        };
        let met = self.met().map_or("", |met| if met { "yes" } else { "no" });
        [
            self.measure.scenario.name().to_owned(),
            self.measure.what.to_owned(),
            valued(self.polity()),
            valued(self.floor()),
            self.ratio().map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            goal.trim_end().to_owned(),
            met.to_owned(),
        ]
    }

    fn json(&self) -> Value {
        let samples =
            self.samples.iter().map(|sample| json!({"polity": sample.polity, "floor": sample.floor}));
        let goal = match self.measure.goal {
            Goal::None => Value::Null,
            Goal::RatioAtMost(most) => json!({"ratioAtMost": most}),
            Goal::AtMost(most) => json!({"atMost": most}),
            Goal::AtLeast(least) => json!({"atLeast": least}),
        };
        json!({
            "scenario": self.measure.scenario.name(), "measure": self.measure.what, "unit": self.measure.unit,
            "polity": self.polity(), "floor": self.floor(), "ratio": self.ratio(),
            "goal": goal, "met": self.met(), "samples": samples.collect::<Value>(),
        })
    }
}

/// Renders the table. Numbers are right-aligned.
pub(crate) fn text(rows: &[Row]) -> String {
    let cells: Vec<[String; 7]> =
        std::iter::once(HEAD.map(str::to_owned)).chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &cells {
        let padded = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            2..=4 => format!("{cell:>width$}"),
            _ => format!("{cell:<width$}"),
        });
        let line: Vec<String> = padded.collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Returns all medians and all samples.
pub(crate) fn json(rows: &[Row], rounds: usize) -> Value {
    json!({"rounds": rounds, "measures": rows.iter().map(Row::json).collect::<Value>()})
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// Writes a number with about three digits.
fn short(value: f64) -> String {
    match value.abs() {
        small if small < 10.0 => format!("{value:.2}"),
        middle if middle < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Scenario;

    fn row(scenario: Scenario, line: usize, samples: &[(f64, Option<f64>)]) -> Row {
        let samples = samples.iter().map(|(polity, floor)| Sample { polity: *polity, floor: *floor });
        Row { measure: scenario.measures()[line], samples: samples.collect() }
    }

    #[test]
    fn the_table_shows_medians_and_whether_goals_are_met() {
        let rows = [
            row(Scenario::Turn, 0, &[(600.0, Some(100.0)), (400.0, Some(100.0)), (900.0, Some(300.0))]),
            row(Scenario::Turn, 1, &[(1.5, Some(0.5))]),
            row(Scenario::Turn64, 1, &[(800.0, Some(6000.0)), (1000.0, Some(6000.0))]),
            row(Scenario::Start, 0, &[(14.96, None)]),
        ];
        let expected = "\
scenario  measure            polity     floor  ratio  goal         met
turn      cpu per turn       600 µs    100 µs   4.00  ratio <= 5   yes
turn      wall per turn     1.50 ms   0.50 ms   3.00
turn64    turns per second  900 1/s  6000 1/s   0.15  >= 1200 1/s  no
start     until ready       15.0 ms                   <= 15 ms     yes
";
        assert_eq!(text(&rows), expected);
        let json = json(&rows, 3);
        assert_eq!(json["measures"][0]["ratio"], 4.0);
        assert_eq!(json["measures"][2]["met"], false);
        assert_eq!(json["measures"][3]["floor"], Value::Null);
    }

    #[test]
    fn a_measure_without_samples_is_neither_met_nor_missed() {
        assert_eq!(row(Scenario::Turn, 0, &[]).met(), None);
    }
}
