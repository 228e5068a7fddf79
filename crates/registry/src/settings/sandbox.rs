//! `tools.sandbox`: the network, the files and the limits of commands.

use crate::fields::{self, Fields};
use crate::problem::Severity;
use polity_sandbox::{Domains, Limits, Network, TaskLimits};
use serde_json::Value;
use std::path::PathBuf;

/// The network, the files and the limits of commands.
pub use polity_sandbox::Settings as SandboxSettings;

pub(super) fn read(tools: &mut Fields<'_>) -> SandboxSettings {
    let default = SandboxSettings::default();
    let Some(mut object) = tools.open("sandbox", "the defaults are used") else {
        return default;
    };
    let sandbox = SandboxSettings {
        network: read_network(&mut object),
        read: read_paths(&mut object),
        allow_none: object.read_or("allowNone", default.allow_none, fields::switch),
        limits: read_limits(&mut object),
        task_limits: read_task_limits(&mut object),
    };
    object.finish("it has no effect");
    sandbox
}

fn read_network(object: &mut Fields<'_>) -> Network {
    const NONE: &str = "commands have no network";
    let listed = match object.take("network") {
        None => return Network::None,
        Some(Value::String(word)) if word == "none" => return Network::None,
        Some(Value::String(word)) if word == "full" => return Network::Full,
        Some(value) => fields::texts(value),
    };
    let Ok(listed) = listed else {
        object.report(Severity::Error, "network", "must be \"none\", \"full\" or a list of domains", NONE);
        return Network::None;
    };
    let mut domains = Vec::new();
    for (index, domain) in listed.into_iter().enumerate() {
        let domain = [domain];
        if Domains::new(&domain).is_ok() {
            domains.extend(domain);
        } else {
            let what = "must be a domain such as example.org, or *.example.org for all names below it";
            object.report_item(Severity::Error, ("network", index), what, "it is left out");
        }
    }
    if domains.is_empty() { Network::None } else { Network::Domains(domains) }
}

fn read_paths(object: &mut Fields<'_>) -> Vec<PathBuf> {
    let listed = object.read("read", "commands may read nothing more", fields::texts).unwrap_or_default();
    let mut paths = Vec::new();
    for (index, path) in listed.into_iter().map(PathBuf::from).enumerate() {
        if path.is_absolute() {
            paths.push(path);
        } else {
            object.report_item(
                Severity::Error,
                ("read", index),
                "must be an absolute path",
                "it is left out",
            );
        }
    }
    paths
}

fn read_limits(sandbox: &mut Fields<'_>) -> Limits {
    let default = Limits::default();
    let Some(mut object) = sandbox.open("limits", "the defaults are used") else {
        return default;
    };
    let limits = Limits {
        timeout_ms: object.read_or("timeMs", default.timeout_ms, fields::count),
        memory_bytes: object.read_or("memoryBytes", default.memory_bytes, fields::count),
        processes: object.read_or("processes", default.processes, fields::count),
        output_bytes: object.read_or("outputBytes", default.output_bytes, fields::count),
        disk_bytes: object.read_or("diskBytes", default.disk_bytes, fields::count),
        files: object.read_or("files", default.files, fields::count),
    };
    object.finish("it has no effect");
    limits
}

fn read_task_limits(sandbox: &mut Fields<'_>) -> TaskLimits {
    let default = TaskLimits::default();
    let Some(mut object) = sandbox.open("taskLimits", "the defaults are used") else {
        return default;
    };
    let limits = TaskLimits {
        memory_bytes: object.read_or("memoryBytes", default.memory_bytes, fields::count),
        processes: object.read_or("processes", default.processes, fields::count),
        disk_bytes: object.read_or("diskBytes", default.disk_bytes, fields::count),
        time_ms: object.read_or("timeMs", default.time_ms, fields::count),
        output_bytes: object.read_or("outputBytes", default.output_bytes, fields::count),
    };
    object.finish("it has no effect");
    limits
}
