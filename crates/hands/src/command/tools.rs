//! The tools of the group `command`.

use super::bash::Bash;
use super::bash_output::BashOutput;
use super::bash_stop::BashStop;
use super::commands::Commands;
use crate::tool::{Tool, Toolbox};
use std::sync::Arc;

/// The tools of the group `command`. If the settings do not allow commands on this machine, there are none.
pub struct CommandTools {
    commands: Arc<Commands>,
    tools: Vec<Arc<dyn Tool>>,
}

impl CommandTools {
    /// Makes the three tools, which share `commands`.
    pub fn new(commands: Arc<Commands>) -> Self {
        let tools: Vec<Arc<dyn Tool>> = vec![
            Arc::new(Bash::new(Arc::clone(&commands))),
            Arc::new(BashOutput::new(Arc::clone(&commands))),
            Arc::new(BashStop::new(Arc::clone(&commands))),
        ];
        Self { commands, tools }
    }
}

impl Toolbox for CommandTools {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        if self.commands.exist() { self.tools.clone() } else { Vec::new() }
    }
}
