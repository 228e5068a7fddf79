//! Many agents: root hires them, or they pass a token.

use std::path::Path;

use anyhow::Result;

use super::pair::{MICROSECOND, MILLISECOND, both, each, settled};
use crate::answers::{Answers, Awaited};
use crate::floor::Work;
use crate::measure::Sample;
use crate::script;

/// Agents that root hires in one task.
const HIRED: usize = 200;
/// Number of agents in the ring.
const RUNNERS: usize = 50;
/// Number of times that the token is passed on, by all agents together.
const HOPS: usize = 500;

pub(super) fn hire(polity: &Path) -> Result<Vec<Sample>> {
    let (run, report, requests) = both(
        polity,
        || script::hiring(HIRED),
        HIRED + HIRED / script::BATCH,
        |subject, meter| {
            let idle = Answers::follow(subject, Awaited::Idle)?;
            let mut client = subject.connect()?;
            settled(meter)?;
            let task = client.post("count the shelves", None)?;
            idle.wait(&task)?;
            Ok(vec![settled(meter)?])
        },
        Work::Hire,
    )?;
    let (polity, floor) = (run.parts[0], report.parts[0]);
    let per_agent = |requests: u64| requests as f64 / HIRED as f64;
    Ok(vec![
        each(polity.cpu, floor.cpu, HIRED, MICROSECOND),
        each(polity.wall, floor.wall, HIRED, MILLISECOND),
        Sample { polity: per_agent(run.requests), floor: Some(per_agent(requests)) },
        Sample { polity: run.peak, floor: Some(report.peak) },
    ])
}

pub(super) fn ring(polity: &Path) -> Result<Vec<Sample>> {
    let (run, report, _) = both(
        polity,
        || script::ring(RUNNERS, HOPS),
        2 * HOPS,
        |subject, meter| {
            let idle = Answers::follow(subject, Awaited::Idle)?;
            let mut client = subject.connect()?;
            let task = client.post(script::GATHER, None)?;
            idle.wait(&task)?;
            settled(meter)?;
            client.post(script::BEGIN, Some(&task))?;
            idle.wait(&task)?;
            Ok(vec![settled(meter)?])
        },
        Work::Ring { agents: RUNNERS },
    )?;
    let (polity, floor) = (run.parts[0], report.parts[0]);
    Ok(vec![each(polity.cpu, floor.cpu, HOPS, MICROSECOND), each(polity.wall, floor.wall, HOPS, MILLISECOND)])
}
