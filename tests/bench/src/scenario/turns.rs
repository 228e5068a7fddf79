//! Turns of root: a prompt, a request to the model, an answer.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, anyhow};

use super::pair::{MICROSECOND, MILLISECOND, both, each, settled};
use crate::answers::{Answers, Awaited};
use crate::floor::Work;
use crate::floor::work::prompt;
use crate::measure::Sample;
use crate::process::Used;
use crate::script;
use crate::subject::Client;

/// Number of measured turns of one client.
const ALONE: usize = 200;
/// Number of turns that are played before the measured turns.
const WARM_UP: usize = 20;
/// Number of clients that play at the same time.
const CLIENTS: usize = 64;
/// Number of measured turns of all these clients together.
const TOGETHER: usize = 1000;
/// Number of turns in each part of one conversation: its beginning, its middle and its end.
const PARTS: [usize; 3] = [50, 200, 50];
/// Pieces of one long answer.
const PIECES: usize = 20_000;

pub(super) fn one_at_a_time(polity: &Path) -> Result<Vec<Sample>> {
    let work = Work::Turns { clients: 1, warm_up: WARM_UP, turns: ALONE };
    let (run, report, _) = both(
        polity,
        script::answering,
        WARM_UP + ALONE,
        |subject, meter| {
            let answers = Answers::follow(subject, Awaited::Answer)?;
            let mut client = subject.connect()?;
            for turn in 0..WARM_UP {
                new_task(&mut client, &answers, turn)?;
            }
            settled(meter)?;
            for turn in WARM_UP..WARM_UP + ALONE {
                new_task(&mut client, &answers, turn)?;
            }
            Ok(vec![settled(meter)?])
        },
        work,
    )?;
    let (polity, floor) = (run.parts[0], report.parts[0]);
    Ok(vec![
        each(polity.cpu, floor.cpu, ALONE, MICROSECOND),
        each(polity.wall, floor.wall, ALONE, MILLISECOND),
        Sample { polity: run.peak, floor: Some(report.peak) },
    ])
}

fn new_task(client: &mut Client, answers: &Answers, turn: usize) -> Result<()> {
    let task = client.post(&prompt(turn), None)?;
    answers.wait(&task)
}

pub(super) fn at_the_same_time(polity: &Path) -> Result<Vec<Sample>> {
    let work = Work::Turns { clients: CLIENTS, warm_up: CLIENTS, turns: TOGETHER };
    let (run, report, _) = both(
        polity,
        script::answering,
        CLIENTS + TOGETHER,
        |subject, meter| {
            let answers = Answers::follow(subject, Awaited::Answer)?;
            let mut clients = (0..CLIENTS).map(|_| subject.connect()).collect::<Result<Vec<_>>>()?;
            together(&mut clients, &answers, 0..CLIENTS)?;
            settled(meter)?;
            together(&mut clients, &answers, CLIENTS..CLIENTS + TOGETHER)?;
            Ok(vec![settled(meter)?])
        },
        work,
    )?;
    let (polity, floor) = (run.parts[0], report.parts[0]);
    let rate = |used: Used| TOGETHER as f64 / used.wall.as_secs_f64();
    Ok(vec![
        each(polity.cpu, floor.cpu, TOGETHER, MICROSECOND),
        Sample { polity: rate(polity), floor: Some(rate(floor)) },
        Sample { polity: run.peak, floor: Some(report.peak) },
    ])
}

/// Plays these turns. All clients work at the same time, and each takes the next free turn.
fn together(clients: &mut [Client], answers: &Answers, turns: std::ops::Range<usize>) -> Result<()> {
    let next = AtomicUsize::new(turns.start);
    let one_by_one = |client: &mut Client| -> Result<()> {
        loop {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            if turn >= turns.end {
                return Ok(());
            }
            new_task(client, answers, turn)?;
        }
    };
    std::thread::scope(|scope| {
        let playing: Vec<_> = clients.iter_mut().map(|client| scope.spawn(|| one_by_one(client))).collect();
        playing.into_iter().try_for_each(|played| played.join().map_err(|_| anyhow!("a client panicked"))?)
    })
}

pub(super) fn history(polity: &Path) -> Result<Vec<Sample>> {
    let (run, report, _) = both(
        polity,
        script::answering,
        PARTS.iter().sum(),
        |subject, meter| {
            let answers = Answers::follow(subject, Awaited::Answer)?;
            let mut client = subject.connect()?;
            let mut task: Option<String> = None;
            let mut part = |turns: &usize| {
                for turn in 0..*turns {
                    let posted = client.post(&prompt(turn), task.as_deref())?;
                    answers.wait(&posted)?;
                    task = Some(posted);
                }
                settled(meter)
            };
            PARTS.iter().map(&mut part).collect()
        },
        Work::History { parts: PARTS.to_vec() },
    )?;
    let growth = |parts: &[Used]| {
        let one = |part: usize| parts[part].cpu.as_secs_f64() / PARTS[part] as f64;
        one(2) / one(0)
    };
    let (polity, floor) = (&run.parts, &report.parts);
    Ok(vec![
        Sample { polity: growth(polity), floor: Some(growth(floor)) },
        each(polity[0].cpu, floor[0].cpu, PARTS[0], MICROSECOND),
        each(polity[2].cpu, floor[2].cpu, PARTS[2], MICROSECOND),
    ])
}

pub(super) fn stream(polity: &Path) -> Result<Vec<Sample>> {
    let (run, report, _) = both(
        polity,
        || script::streaming(PIECES),
        1,
        |subject, meter| {
            let answers = Answers::follow(subject, Awaited::Answer)?;
            let mut client = subject.connect()?;
            settled(meter)?;
            new_task(&mut client, &answers, 0)?;
            Ok(vec![settled(meter)?])
        },
        Work::Turns { clients: 1, warm_up: 0, turns: 1 },
    )?;
    let (polity, floor) = (run.parts[0], report.parts[0]);
    Ok(vec![
        each(polity.cpu, floor.cpu, PIECES, MICROSECOND),
        each(polity.wall, floor.wall, PIECES, MICROSECOND),
    ])
}
