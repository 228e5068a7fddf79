//! `tools.policy`: the rules about calls.

use crate::fields::{self, Fields};
use crate::problem::Severity;
use crate::prompts;
use polity_society::policy::{Effect, HostPattern, NotAHost, Pattern, Rule, Source, UnknownSource, Verdict};
use polity_society::tool_group::{ServerName, ToolGroup};
use serde_json::Value;
use std::collections::BTreeSet;

/// The names that may follow `mcp:` in a rule: the names of the servers, and the names of the groups that the servers
/// declare.
pub(super) type Servers = BTreeSet<ServerName>;

/// Reads the rules.
///
/// A mistake in a rule must not give agents more rights. If a rule that allows calls has a wrong condition, the whole
/// rule is left out. If a rule that asks or denies has a wrong condition, only this condition is left out. The rule
/// then asks about or denies more calls. A rule without a valid `decide` counts as a rule that asks.
pub(super) fn read(tools: &mut Fields<'_>, servers: &Servers) -> Vec<Rule> {
    let Some(items) = tools.read("policy", "there are no rules", list) else { return Vec::new() };
    let mut rules = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        rules.extend(read_rule(tools, index, item, servers));
    }
    rules
}

fn list(value: Value) -> Result<Vec<Value>, &'static str> {
    match value {
        Value::Array(items) => Ok(items),
        _ => Err("must be a list of rules"),
    }
}

fn read_rule(tools: &mut Fields<'_>, index: usize, item: Value, servers: &Servers) -> Option<Rule> {
    let mut rule = tools.open_item(("policy", index), item, "the rule is left out")?;
    let decide = rule.required("decide", "the rule asks", fields::member).unwrap_or(Verdict::Ask);
    let done = match decide {
        Verdict::Allow => "the rule is left out",
        Verdict::Ask => "the rule asks whatever this value is",
        Verdict::Deny => "the rule denies whatever this value is",
    };
    let before = rule.errors();
    let read = Rule {
        tool: rule.read("tool", done, fields::name).map(Pattern::new),
        group: rule.read("group", done, fields::name).map(Pattern::new),
        role: rule.read("role", done, fields::name).map(Pattern::new),
        command: rule.read("command", done, fields::name).map(Pattern::new),
        host: rule.read("host", done, |value| {
            let text = fields::name(value).map_err(str::to_owned)?;
            HostPattern::parse(&text).map_err(|wrong: NotAHost| wrong.to_string())
        }),
        write: rule.read("write", done, fields::switch::<Write>).map(|Write(effect)| effect),
        seen: read_seen(&mut rule, done),
        decide,
    };
    warn_of_names(&mut rule, &read, servers);
    let has_errors = rule.errors() > before;
    let unknown = rule.finish(done);
    // A rule that allows calls is not kept if it has an unknown field, because this field may be a misspelt condition.
    let is_kept = decide != Verdict::Allow || (!has_errors && unknown.is_empty());
    is_kept.then_some(read)
}

/// The field `write` of a rule: `true` for calls that change something, `false` for calls that only read.
struct Write(Effect);

impl From<bool> for Write {
    fn from(writes: bool) -> Self {
        Self(if writes { Effect::Changes } else { Effect::Reads })
    }
}

fn read_seen(rule: &mut Fields<'_>, done: &str) -> Vec<Source> {
    let names = rule.read("seen", done, |value| match fields::texts(value) {
        Ok(names) if names.is_empty() => Err("must name at least one source"),
        other => other,
    });
    let sources = names.unwrap_or_default().into_iter().map(|name| name.parse());
    match sources.collect::<Result<_, UnknownSource>>() {
        Ok(sources) => sources,
        Err(unknown) => {
            rule.report(Severity::Error, "seen", unknown.to_string(), done);
            Vec::new()
        }
    }
}

/// Warns of each condition that no call can meet.
fn warn_of_names(fields: &mut Fields<'_>, rule: &Rule, servers: &Servers) {
    const NEVER: &str = "the rule never fits";
    if rule.tool.as_ref().is_some_and(|tool| !is_tool(tool, servers)) {
        fields.report(Severity::Warning, "tool", "there is no such tool", NEVER);
    }
    if rule.group.as_ref().is_some_and(|group| !is_group(group, servers)) {
        fields.report(Severity::Warning, "group", "there is no such tool group", NEVER);
    }
    let is_unknown = |source: &Source| matches!(source, Source::Server(name) if !servers.contains(name));
    if rule.seen.iter().any(is_unknown) {
        let what = "names an MCP server that mcpServers does not have";
        fields.report(Severity::Warning, "seen", what, "nobody can have seen it");
    }
}

fn is_tool(pattern: &Pattern, servers: &Servers) -> bool {
    let built_in = prompts::built_in_tools().iter().any(|tool| pattern.fits(tool));
    // polity knows the tools of an MCP server only while the server runs, so check only the server's name here.
    let of_server = || match pattern.as_str().split_once("__") {
        Some((server, _)) => servers.iter().any(|name| Pattern::new(server).fits(name.as_str())),
        None => pattern.as_str().contains('*') && !servers.is_empty(),
    };
    built_in || of_server()
}

fn is_group(pattern: &Pattern, servers: &Servers) -> bool {
    let of_servers = servers.iter().cloned().map(ToolGroup::Server);
    ToolGroup::BUILT_IN.iter().cloned().chain(of_servers).any(|group| pattern.fits(&group.name()))
        // A rule for the servers `mcp:*` makes sense even before the first server is configured, so it causes no
        // warning.
        || pattern.as_str() == "mcp:*"
}
