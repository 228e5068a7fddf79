//! One scenario, played by polity and by the floor.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use crate::floor::{self, Fixed, Report, Work};
use crate::measure::Sample;
use crate::model::{Model, Script};
use crate::process::{Meter, Used, memory};
use crate::subject::Subject;

/// Time that polity gets after the last answer to finish its work, such as to mark the task as idle.
const SETTLE: Duration = Duration::from_millis(100);

/// What polity used in a scenario.
pub(super) struct Run {
    pub(super) parts: Vec<Used>,
    /// Peak of the resident memory, in MB.
    pub(super) peak: f64,
    /// Number of requests to the model, including those before the measured part.
    pub(super) requests: u64,
}

/// Plays a scenario first with polity and then with the floor. Each gets a scripted model of its own, with the same
/// script. Returns what both used. The floor takes the fixed part of its requests from polity's first request.
///
/// Fails if either side has sent fewer than `least` requests. Such a side has given up early and would look cheap.
pub(super) fn both(
    polity: &Path,
    script: impl Fn() -> Script,
    least: usize,
    play: impl FnOnce(&Subject, &mut Meter) -> Result<Vec<Used>>,
    work: Work,
) -> Result<(Run, Report, u64)> {
    let complete = |who: &str, requests: u64| match requests < least as u64 {
        true => Err(anyhow!("{who} sent {requests} requests, and {least} belong to the scenario")),
        false => Ok(()),
    };
    let model = Model::start(script())?;
    let subject = Subject::start(polity, &model.address())?;
    let mut meter = Meter::of(subject.process())?;
    let parts = play(&subject, &mut meter)?;
    let run = Run { parts, peak: memory(subject.process(), "VmHWM")?, requests: model.requests() };
    drop(subject);
    complete("polity", run.requests)?;
    let fixed = Fixed::of(&model.first_request().context("polity asked no model")?)?;
    let model = Model::start(script())?;
    let report = floor::measure(work, &model.address(), fixed)?;
    complete("the floor", model.requests())?;
    Ok((run, report, model.requests()))
}

/// Waits for [`SETTLE`], so that polity can finish its work after the last answer, and then ends the part.
pub(super) fn settled(meter: &mut Meter) -> Result<Used> {
    std::thread::sleep(SETTLE);
    let used = meter.lap()?;
    Ok(Used { wall: used.wall.saturating_sub(SETTLE), ..used })
}

/// Makes a sample from a time of polity and a time of the floor. Both times are divided by `count` and given in `unit`.
pub(super) fn each(polity: Duration, floor: Duration, count: usize, unit: Duration) -> Sample {
    let one = |time: Duration| time.as_secs_f64() / unit.as_secs_f64() / count as f64;
    Sample { polity: one(polity), floor: Some(one(floor)) }
}

pub(super) const MICROSECOND: Duration = Duration::from_micros(1);
pub(super) const MILLISECOND: Duration = Duration::from_millis(1);
