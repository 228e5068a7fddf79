//! Describes the state and the end of commands to the model.

use super::background::Seen;
use super::excerpt::{Fresh, Tail, since};
use super::note::Over;
use super::sums;
use crate::call::{File, Output};
use polity_sandbox::Settings;
use polity_society::command::{CommandEnd, CommandLimit};
use polity_society::id::CommandId;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The field of a result that contains the reference of the whole output, if the result shows only parts of it.
const ARTIFACT: &str = "artifact";

/// Describes the end of a foreground command. If the output is too long to show, the result also contains the whole
/// output as a file.
pub(super) async fn of_end(
    end: &CommandEnd,
    ended: polity_sandbox::Ended,
    timeout_ms: u64,
    settings: &Settings,
) -> Output {
    let polity_sandbox::Ended { duration, output, restored, .. } = ended;
    let fresh = since(&output, 0, Tail::IsFinal);
    let omitted = fresh.omitted;
    let mut result = with_end(json!({}), end, timeout_ms, settings);
    result["output"] = json!(fresh.text);
    result["durationMs"] = json!(milliseconds(duration));
    let result = with_restored(result, &restored);
    let mut made = Output::json(result);
    if omitted > 0 {
        made = with_file(made, &output.file).await;
    }
    // The file is no longer needed. The result contains the whole output as text, or else the bytes of the file.
    let _ = tokio::fs::remove_file(&output.file).await;
    made
}

/// Describes a background command with the output that the agent has not seen yet. Also returns how many bytes of the
/// whole output the agent has seen once it has read this description.
pub(super) async fn of_look(id: &CommandId, seen: Seen, settings: &Settings) -> (Output, u64) {
    match seen {
        Seen::Running(posted) => {
            let output = posted.viewer.as_ref().map(polity_sandbox::Viewer::output).unwrap_or_default();
            let Fresh { text, next, .. } = since(&output, posted.seen, Tail::MayGrow);
            let duration = milliseconds(posted.begun.elapsed());
            let result = json!({"id": id, "running": true, "output": text, "durationMs": duration});
            (Output::json(result).from_sources(posted.sources), next)
        }
        Seen::Ended { over, output, sources } => {
            let Over { end, duration_ms, seen, restored, .. } = over;
            let Fresh { text, next, omitted } = since(&output, seen, Tail::IsFinal);
            let mut result = with_end(json!({"id": id}), &end, settings.limits.timeout_ms, settings);
            result["output"] = json!(text);
            if let Some(duration) = duration_ms {
                result["durationMs"] = json!(duration);
            }
            let made = Output::json(with_restored(result, &restored));
            let made = if omitted > 0 { with_file(made, &output.file).await } else { made };
            (made.from_sources(sources), next)
        }
    }
}

fn with_end(mut result: Value, end: &CommandEnd, timeout_ms: u64, settings: &Settings) -> Value {
    result["exitCode"] = match end {
        CommandEnd::Exited { code } => json!(code),
        _ => Value::Null,
    };
    if let Some(words) = in_words(end, timeout_ms, settings) {
        result["ended"] = json!(words);
    }
    result
}

fn with_restored(mut result: Value, restored: &[PathBuf]) -> Value {
    if !restored.is_empty() {
        // The sandbox has undone the command's changes to these files. The model must not believe that the changes
        // exist.
        let names: Vec<String> = restored.iter().map(|path| path.display().to_string()).collect();
        result["restored"] = json!(names);
    }
    result
}

async fn with_file(made: Output, path: &Path) -> Output {
    let Ok(bytes) = tokio::fs::read(path).await else { return made };
    let (declared_mime, filename) = (Some("text/plain".to_owned()), Some("output.txt".to_owned()));
    made.referring_in(ARTIFACT, File { bytes: bytes.into(), declared_mime, filename })
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Says why polity ended a command. Returns `None` if the command ended by itself.
fn in_words(end: &CommandEnd, timeout_ms: u64, settings: &Settings) -> Option<String> {
    let (limits, of_task) = (&settings.limits, &settings.task_limits);
    Some(match end {
        CommandEnd::Exited { .. } => return None,
        CommandEnd::Limited { limit } => match limit {
            CommandLimit::Time => format!("stopped after {timeout_ms} ms"),
            CommandLimit::Memory => {
                format!("stopped: its processes took more than {} bytes of memory", limits.memory_bytes)
            }
            CommandLimit::Processes => format!("stopped: it had more than {} processes", limits.processes),
            CommandLimit::Output => format!("stopped: it printed more than {} bytes", limits.output_bytes),
            CommandLimit::Disk => {
                let (bytes, files) = (limits.disk_bytes, limits.files);
                format!(
                    "stopped: it added more than {bytes} bytes or {files} files, or the task has too many"
                )
            }
            CommandLimit::TaskMemory => {
                let bytes = of_task.memory_bytes;
                format!("stopped: the commands of this task together took more than {bytes} bytes of memory")
            }
            CommandLimit::TaskProcesses => {
                let processes = of_task.processes;
                format!("stopped: the commands of this task together had more than {processes} processes")
            }
            CommandLimit::TaskTime | CommandLimit::TaskOutput => {
                format!("stopped: {}", sums::in_words(*limit, of_task))
            }
        },
        CommandEnd::Stopped => "stopped".to_owned(),
        CommandEnd::Lost => "stopped by something outside polity".to_owned(),
        CommandEnd::Interrupted => "interrupted when polity ended".to_owned(),
        CommandEnd::Failed { reason } => format!("could not run: {reason}"),
    })
}
