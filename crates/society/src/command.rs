//! The ways in which an agent's background command can end.

use crate::text::{TextKey, Texts};
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// How a command in the background ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CommandEnd {
    /// The shell ended with this exit code. The code 128 + n stands for signal n.
    Exited {
        /// The exit code.
        code: i32,
    },
    /// The command exceeded a limit.
    Limited {
        /// The limit that the command exceeded.
        limit: CommandLimit,
    },
    /// An agent or the person stopped the command.
    Stopped,
    /// Something outside polity ended the command.
    Lost,
    /// The command was running when polity ended.
    Interrupted,
    /// The sandbox could not be built, so nothing of the command has run.
    Failed {
        /// The reason why the sandbox could not be built, in words.
        reason: String,
    },
}

/// A limit that ends a command. Each limit has a name below `tools.sandbox` in `app.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantArray, IntoStaticStr)]
pub enum CommandLimit {
    /// The time that one command may take.
    #[serde(rename = "limits.timeMs", alias = "limits.timeoutMs")]
    #[strum(serialize = "limits.timeMs")]
    Time,
    /// The memory of one command.
    #[serde(rename = "limits.memoryBytes")]
    #[strum(serialize = "limits.memoryBytes")]
    Memory,
    /// The processes of one command.
    #[serde(rename = "limits.processes")]
    #[strum(serialize = "limits.processes")]
    Processes,
    /// The output of one command.
    #[serde(rename = "limits.outputBytes")]
    #[strum(serialize = "limits.outputBytes")]
    Output,
    /// What one command adds on disk.
    #[serde(rename = "limits.diskBytes")]
    #[strum(serialize = "limits.diskBytes")]
    Disk,
    /// The memory of all commands of a task.
    #[serde(rename = "taskLimits.memoryBytes")]
    #[strum(serialize = "taskLimits.memoryBytes")]
    TaskMemory,
    /// The processes of all commands of a task.
    #[serde(rename = "taskLimits.processes")]
    #[strum(serialize = "taskLimits.processes")]
    TaskProcesses,
    /// The time that all commands of a task run.
    #[serde(rename = "taskLimits.timeMs")]
    #[strum(serialize = "taskLimits.timeMs")]
    TaskTime,
    /// The output of all commands of a task.
    #[serde(rename = "taskLimits.outputBytes")]
    #[strum(serialize = "taskLimits.outputBytes")]
    TaskOutput,
}

impl CommandLimit {
    /// Returns the name of the limit in `app.json`, below `tools.sandbox`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl CommandEnd {
    /// Tells how the command ended. The words continue a sentence that begins with the command.
    pub fn text(&self, texts: &Texts) -> String {
        match self {
            Self::Exited { code } => texts.fill(TextKey::NoticeCommandExited, &[("code", &code.to_string())]),
            Self::Limited { limit } => texts.fill(TextKey::NoticeCommandLimited, &[("limit", limit.name())]),
            Self::Stopped => texts.get(TextKey::NoticeCommandStopped).to_owned(),
            Self::Lost => texts.get(TextKey::NoticeCommandLost).to_owned(),
            Self::Interrupted => texts.get(TextKey::NoticeCommandInterrupted).to_owned(),
            Self::Failed { reason } => texts.fill(TextKey::NoticeCommandFailed, &[("reason", reason)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serde_and_strum_name_the_limits_alike() {
        for limit in CommandLimit::VARIANTS {
            assert_eq!(serde_json::to_value(limit).unwrap(), limit.name());
        }
    }
}
