//! The measures of each scenario, and the goal of each measure.

/// Something that polity and the floor both do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    Turn,
    Turn64,
    Ring,
    Hire,
    History,
    Start,
    Idle,
    Stream,
    Binary,
}

/// The value that a measure should have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    /// There is no goal. The table only shows the value.
    None,
    /// A bound for polity's value divided by the floor's value.
    RatioAtMost(f64),
    AtMost(f64),
    AtLeast(f64),
}

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measure {
    pub(crate) scenario: Scenario,
    pub(crate) what: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) goal: Goal,
}

/// One measurement, in the unit of its measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) polity: f64,
    /// `None` if there is nothing to compare with.
    pub(crate) floor: Option<f64>,
}

impl Scenario {
    pub(crate) const ALL: &[Self] = &[
        Self::Turn,
        Self::Turn64,
        Self::Ring,
        Self::Hire,
        Self::History,
        Self::Start,
        Self::Idle,
        Self::Stream,
        Self::Binary,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Turn64 => "turn64",
            Self::Ring => "ring",
            Self::Hire => "hire",
            Self::History => "history",
            Self::Start => "start",
            Self::Idle => "idle",
            Self::Stream => "stream",
            Self::Binary => "binary",
        }
    }

    /// Returns what a run of the scenario measures, in the order of its samples.
    pub(crate) fn measures(self) -> Vec<Measure> {
        let lines: &[(&str, &str, Goal)] = match self {
            Self::Turn => &[
                ("cpu per turn", "µs", Goal::RatioAtMost(5.0)),
                ("wall per turn", "ms", Goal::None),
                ("peak memory", "MB", Goal::None),
            ],
            Self::Turn64 => &[
                ("cpu per turn", "µs", Goal::RatioAtMost(8.0)),
                ("turns per second", "1/s", Goal::AtLeast(1200.0)),
                ("peak memory", "MB", Goal::None),
            ],
            Self::Ring => {
                &[("cpu per hop", "µs", Goal::RatioAtMost(10.0)), ("wall per hop", "ms", Goal::None)]
            }
            Self::Hire => &[
                ("cpu per agent", "µs", Goal::RatioAtMost(15.0)),
                ("wall per agent", "ms", Goal::None),
                ("requests per agent", "", Goal::None),
                ("peak memory", "MB", Goal::None),
            ],
            Self::History => &[
                ("last over first turns", "", Goal::AtMost(1.3)),
                ("cpu per first turn", "µs", Goal::None),
                ("cpu per last turn", "µs", Goal::None),
            ],
            Self::Start => {
                &[("until ready", "ms", Goal::AtMost(15.0)), ("cpu until ready", "ms", Goal::None)]
            }
            Self::Idle => &[("resident memory", "MB", Goal::AtMost(12.0))],
            Self::Stream => {
                &[("cpu per piece", "µs", Goal::RatioAtMost(3.0)), ("wall per piece", "µs", Goal::None)]
            }
            Self::Binary => {
                &[("size as built", "MB", Goal::AtMost(22.0)), ("size without symbols", "MB", Goal::None)]
            }
        };
        lines.iter().map(|(what, unit, goal)| Measure { scenario: self, what, unit, goal: *goal }).collect()
    }
}
