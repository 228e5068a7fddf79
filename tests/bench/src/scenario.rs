//! The scenarios: each is played by polity, then by the floor, with the same scripted model.

mod pair;

mod at_rest;
mod society;
mod turns;

use std::path::Path;

use anyhow::Result;

use crate::measure::{Sample, Scenario};

/// Plays one round of a scenario, and returns a sample for each of its measures.
pub(crate) fn play(scenario: Scenario, polity: &Path) -> Result<Vec<Sample>> {
    match scenario {
        Scenario::Turn => turns::one_at_a_time(polity),
        Scenario::Turn64 => turns::at_the_same_time(polity),
        Scenario::Ring => society::ring(polity),
        Scenario::Hire => society::hire(polity),
        Scenario::History => turns::history(polity),
        Scenario::Start => at_rest::start(polity),
        Scenario::Idle => at_rest::idle(polity),
        Scenario::Stream => turns::stream(polity),
        Scenario::Binary => at_rest::binary(polity),
    }
}
