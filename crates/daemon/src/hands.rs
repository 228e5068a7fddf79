//! The tools with which agents act outside the society, for example run commands and read web pages.

use crate::servers::ConfiguredServers;
use crate::servers::sandboxed::Launchers;
use polity_hands::shipped::shipped;
use polity_hands::table::Hands;
use polity_registry::{Registry, WebSettings};
use polity_sandbox::Enter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The first argument of a new process of polity that sets up the sandbox of a command.
pub(crate) const SANDBOX_ARGUMENT: &str = "sandbox-enter";

/// The subdirectory of the data directory in which MCP servers in sandboxes have their home directories.
const SERVERS: &str = "servers";

/// Makes a path absolute, because the processes that receive the path run in other directories.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the tools of a society with this data directory, and starts the MCP servers.
pub(crate) fn hands(data: &Path, registry: &Arc<Registry>) -> Hands {
    let settings = Arc::clone(registry);
    let launchers = Launchers {
        enter: enter(),
        directory: absolute(&data.join(SERVERS)),
        hidden: vec![absolute(data), absolute(registry.config_dir())],
        settings: Arc::new(move || settings.current().settings.tools.sandbox.clone()),
        machine: OnceCell::new(),
    };
    let servers = ConfiguredServers::start(Arc::clone(registry), Arc::new(launchers));
    hands_without_servers(data, registry).with_box(servers)
}

/// Returns the tools of a society with this data directory, without the tools of MCP servers. Returns no tools if the
/// path of the running program is unknown. Each call of a tool uses the current settings.
pub(crate) fn hands_without_servers(data: &Path, registry: &Arc<Registry>) -> Hands {
    let Some(enter) = enter() else { return Hands::none() };
    let current = Arc::clone(registry);
    let sandbox = Arc::new(move || current.current().settings.tools.sandbox.clone());
    let current = Arc::clone(registry);
    let web = Arc::new(move || web_settings(&current.current().settings.tools.web));
    shipped(data, registry.config_dir(), enter, sandbox, web)
}

/// Returns what agents may reach over the web. If the key of the search provider is not set, agents cannot search;
/// `polity config check` then names the missing variable.
fn web_settings(settings: &WebSettings) -> polity_web::Settings {
    let resolved = settings.resolve(|name| std::env::var(name).ok());
    resolved.unwrap_or_else(|_| polity_web::Settings {
        allow_hosts: settings.allow_hosts.clone(),
        ..polity_web::Settings::default()
    })
}

/// Returns how to start this program so that it sets up the sandbox of a command; `None` if the path of the program is
/// unknown.
pub(crate) fn enter() -> Option<Enter> {
    let program = std::env::current_exe().ok()?;
    Some(Enter { program, first_arguments: vec![SANDBOX_ARGUMENT.to_owned()] })
}
