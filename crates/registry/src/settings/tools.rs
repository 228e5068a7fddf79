//! `tools`: which tools agents have, and which of their calls the person must allow.

use super::policy::{self, Servers};
use super::sandbox::{self, SandboxSettings};
use super::web::{self, WebSettings};
use crate::fields::{self, Fields};
use crate::problem::Severity;
use polity_society::policy::Rule;
use polity_society::tool_group::{Grant, ToolGroup, UnknownGroup};
use serde_json::Value;
use std::time::Duration;

/// Which tools agents have, and which of their calls the person must allow.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSettings {
    /// The groups of tools that root has. No other agent has a group that root does not have.
    pub root: Vec<Grant>,
    /// The rules about calls. The first rule that fits a call decides about it.
    pub policy: Vec<Rule>,
    /// The time after which a question to the person expires. The answer is then no.
    pub approval_timeout: Duration,
    /// A share of the context window. If the definitions of all MCP tools would take more than this share, a request of
    /// an agent contains only those MCP tools that the agent has searched for and found.
    pub defer_above: Percent,
    /// The network, the files and the limits of commands.
    pub sandbox: SandboxSettings,
    /// What agents may reach over the web.
    pub web: WebSettings,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            root: Grant::everything(),
            policy: Vec::new(),
            approval_timeout: Duration::from_hours(24),
            defer_above: Percent(10),
            sandbox: SandboxSettings::default(),
            web: WebSettings::default(),
        }
    }
}

/// A share in percent, from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u8);

impl Percent {
    /// Returns the share, if it is at most 100.
    pub fn new(percent: u8) -> Option<Self> {
        (percent <= 100).then_some(Self(percent))
    }

    /// Returns the share as a number from 0 to 100.
    pub fn get(self) -> u8 {
        self.0
    }

    /// Returns this share of a whole, rounded down.
    pub fn of(self, whole: u64) -> u64 {
        let share = u128::from(whole) * u128::from(self.0) / 100;
        // The share is never larger than the whole, so it fits into `u64`.
        u64::try_from(share).unwrap_or(whole)
    }

    /// Reads `10` or `"10%"`.
    fn read(value: Value) -> Result<Self, &'static str> {
        let number = match &value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => {
                text.trim().strip_suffix('%').and_then(|number| number.trim().parse().ok())
            }
            _ => None,
        };
        let percent = number.and_then(|number| u8::try_from(number).ok()).and_then(Self::new);
        percent.ok_or("must be a whole number of percent from 0 to 100, such as 10 or \"10%\"")
    }
}

pub(super) fn read(fields: &mut Fields<'_>, servers: &Servers) -> ToolSettings {
    let default = ToolSettings::default();
    let Some(mut object) = fields.open("tools", "the defaults are used") else {
        return default;
    };
    let tools = ToolSettings {
        root: read_root(&mut object, default.root, servers),
        policy: policy::read(&mut object, servers),
        approval_timeout: read_approval(&mut object, default.approval_timeout),
        defer_above: object.read_or("deferAbove", default.defer_above, Percent::read),
        sandbox: sandbox::read(&mut object),
        web: web::read(&mut object),
    };
    object.finish("it has no effect");
    tools
}

fn read_approval(tools: &mut Fields<'_>, default: Duration) -> Duration {
    let Some(mut object) = tools.open("approval", "the defaults are used") else {
        return default;
    };
    let timeout = object.read_or("timeoutMs", default, fields::milliseconds);
    object.finish("it has no effect");
    timeout
}

fn read_root(object: &mut Fields<'_>, default: Vec<Grant>, servers: &Servers) -> Vec<Grant> {
    let Some(names) = object.read("root", "root has all groups", fields::texts) else { return default };
    let mut grants = Vec::new();
    for name in names {
        let what = match name.parse() {
            Ok(Grant::Group(group)) if group.is_later() => {
                format!("this version does not have the tool group \"{name}\" yet")
            }
            // The entry is not kept, because every agent has this group anyway.
            Ok(Grant::Group(group)) if group.is_for_everybody() => continue,
            Ok(grant) => {
                let is_there = match &grant {
                    Grant::Group(ToolGroup::Server(server)) => servers.contains(server),
                    Grant::Group(_) | Grant::EveryServer => true,
                };
                grants.push(grant);
                if is_there {
                    continue;
                }
                format!("mcpServers has no server or group for \"{name}\"")
            }
            Err(UnknownGroup) => format!("\"{name}\" is not a tool group"),
        };
        object.report(Severity::Warning, "root", what, "it has no effect");
    }
    grants
}
