//! polity without work: how fast it starts, what it keeps in memory, how large it is.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;

use super::pair::{MILLISECOND, each};
use crate::floor;
use crate::measure::Sample;
use crate::process::{cpu, memory};
use crate::subject::Subject;

/// Time from the start until the memory is read.
const AT_REST: Duration = Duration::from_secs(2);
/// The address of the configured model server. These scenarios ask no model, so this is the discard port.
const NO_MODEL: &str = "127.0.0.1:9";

pub(super) fn start(polity: &Path) -> Result<Vec<Sample>> {
    let subject = Subject::start(polity, NO_MODEL)?;
    let polity_cpu = cpu(subject.process())?;
    let directory = TempDir::with_prefix("polity-bench-floor-")?;
    let floor = floor::start(directory.path())?;
    let floor_cpu = cpu(floor.process())?;
    Ok(vec![sample(subject.ready_after, floor.ready_after), sample(polity_cpu, floor_cpu)])
}

fn sample(polity: Duration, floor: Duration) -> Sample {
    each(polity, floor, 1, MILLISECOND)
}

pub(super) fn idle(polity: &Path) -> Result<Vec<Sample>> {
    let subject = Subject::start(polity, NO_MODEL)?;
    let directory = TempDir::with_prefix("polity-bench-floor-")?;
    let floor = floor::start(directory.path())?;
    std::thread::sleep(AT_REST);
    let resident = memory(subject.process(), "VmRSS")?;
    Ok(vec![Sample { polity: resident, floor: Some(memory(floor.process(), "VmRSS")?) }])
}

pub(super) fn binary(polity: &Path) -> Result<Vec<Sample>> {
    let size = |path: &Path| -> Result<f64> { Ok(std::fs::metadata(path)?.len() as f64 / 1e6) };
    let as_built = size(polity)?;
    let directory = TempDir::with_prefix("polity-bench-")?;
    let stripped = directory.path().join("polity");
    let mut sizes = vec![as_built];
    // On a machine without `strip`, the table has no size for the stripped binary.
    let stripping = Command::new("strip").arg("-o").arg(&stripped).arg(polity).status();
    if stripping.is_ok_and(|status| status.success()) {
        sizes.push(size(&stripped)?);
    }
    Ok(sizes.into_iter().map(|polity| Sample { polity, floor: None }).collect())
}
