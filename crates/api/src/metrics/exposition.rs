//! The text format of Prometheus, version 0.0.4.

use std::fmt::Write;

/// A builder of a text in this format. For each family of samples, the caller calls `family` once, and then
/// `sample` once per sample.
#[derive(Default)]
pub(super) struct Exposition {
    text: String,
    name: &'static str,
}

/// The type of a family of samples.
#[derive(Clone, Copy)]
pub(super) enum Sort {
    /// The values of the family can increase and decrease.
    Gauge,
    /// The values of the family never decrease.
    Counter,
}

impl Exposition {
    /// Begins a family of samples with its help text and type.
    pub(super) fn family(&mut self, name: &'static str, sort: Sort, help: &str) {
        let sort = match sort {
            Sort::Gauge => "gauge",
            Sort::Counter => "counter",
        };
        self.name = name;
        self.put(format_args!("# HELP {name} {help}\n# TYPE {name} {sort}\n"));
    }

    /// Adds a sample to the current family.
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let name = self.name;
        match labels.as_slice() {
            [] => self.put(format_args!("{name} {value}\n")),
            labels => self.put(format_args!("{name}{{{}}} {value}\n", labels.join(","))),
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(text);
    }
}

/// Escapes a label value for use between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families() {
        let mut out = Exposition::default();
        out.family("a_total", Sort::Counter, "What it is.");
        out.sample(&[], 3.0);
        out.sample(&[("service", "a\"b\\c\nd"), ("model", "模型")], 0.5);
        out.family("b", Sort::Gauge, "Another.");
        let expect = "# HELP a_total What it is.\n# TYPE a_total counter\na_total 3\n\
                      a_total{service=\"a\\\"b\\\\c\\nd\",model=\"模型\"} 0.5\n\
                      # HELP b Another.\n# TYPE b gauge\n";
        assert_eq!(out.finish(), expect);
    }
}
