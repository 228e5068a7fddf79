//! Shows the settings of tools and MCP servers as JSON, without secrets. The patterns in the functions list every
//! field: if somebody adds a field to a type, the compiler reports an error here.

use crate::secret::{SecretText, whence};
use crate::settings::{
    SandboxSettings, SearchSettings, ServerLaunch, ServerSandbox, ServerSettings, TaskLimits, ToolSettings,
    Unconfined, WebSettings,
};
use polity_sandbox::{Limits, Network};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use url::Url;

pub(crate) fn tools(tools: &ToolSettings) -> Value {
    let ToolSettings { root, policy, approval_timeout, defer_above, sandbox, web } = tools;
    json!({
        "root": root.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "policy": policy,
        "approval": {"timeoutMs": millis(*approval_timeout)},
        "deferAbove": defer_above.get(),
        "sandbox": show_sandbox(sandbox),
        "web": show_web(web),
    })
}

fn show_sandbox(sandbox: &SandboxSettings) -> Value {
    let SandboxSettings { network, read, allow_none, limits, task_limits } = sandbox;
    let Limits { timeout_ms, memory_bytes, processes, output_bytes, disk_bytes, files } = limits;
    let network = match network {
        Network::None => json!("none"),
        Network::Full => json!("full"),
        Network::Domains(domains) => json!(domains),
    };
    json!({
        "network": network,
        "read": read,
        "allowNone": *allow_none == Unconfined::Allowed,
        "limits": {
            "timeMs": timeout_ms,
            "memoryBytes": memory_bytes,
            "processes": processes,
            "outputBytes": output_bytes,
            "diskBytes": disk_bytes,
            "files": files,
        },
        "taskLimits": show_task_limits(task_limits),
    })
}

fn show_task_limits(limits: &TaskLimits) -> Value {
    let TaskLimits { memory_bytes, processes, disk_bytes, time_ms, output_bytes } = limits;
    json!({
        "memoryBytes": memory_bytes,
        "processes": processes,
        "diskBytes": disk_bytes,
        "timeMs": time_ms,
        "outputBytes": output_bytes,
    })
}

fn show_web(web: &WebSettings) -> Value {
    let WebSettings { allow_hosts, search } = web;
    let search = search.as_ref().map(|search| match search {
        SearchSettings::Searxng(url) => json!(url),
        SearchSettings::WithKey { provider, key } => {
            json!({"provider": <&str>::from(provider), "key": key.whence()})
        }
    });
    json!({"allowHosts": allow_hosts.iter().map(ToString::to_string).collect::<Vec<_>>(), "search": search})
}

/// Returns an MCP server as JSON, with the field names of the file. Arguments, variables and headers may be secret,
/// so they are shown like keys (see [`whence`]). Addresses are shown only up to the host.
pub(crate) fn server(server: &ServerSettings) -> Value {
    let ServerSettings { launch, timeout, groups } = server;
    let mut shown = match launch {
        ServerLaunch::Process { command, args, env, cwd, sandbox } => json!({
            "command": command.written(),
            "args": args.iter().map(SecretText::whence).collect::<Vec<_>>(),
            "env": sources(env),
            "cwd": cwd.as_ref().map(SecretText::written),
            "sandbox": *sandbox == ServerSandbox::On,
        }),
        ServerLaunch::Http { url, headers } => json!({"url": address(url), "headers": sources(headers)}),
    };
    shown["timeoutMs"] = json!(millis(*timeout));
    shown["groups"] = json!(groups.iter().map(ToString::to_string).collect::<Vec<_>>());
    shown
}

fn sources(texts: &BTreeMap<String, SecretText>) -> Map<String, Value> {
    texts.iter().map(|(name, text)| (name.clone(), json!(text.whence()))).collect()
}

/// Shows an address only up to its host, because the addresses of some servers contain a key in the path.
fn address(url: &SecretText) -> String {
    let written = url.written();
    match Url::parse(written) {
        Ok(url) if !written.contains("${") => match url.path() {
            "/" | "/mcp"
                if url.query().is_none() && url.username().is_empty() && url.password().is_none() =>
            {
                url.into()
            }
            _ => format!("{}/…", url.origin().ascii_serialization()),
        },
        _ => whence(written).to_owned(),
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
