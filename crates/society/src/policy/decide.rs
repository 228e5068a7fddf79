//! Decides whether one tool call runs, is refused, or needs an answer of the person.

use super::command::{self, Unseen};
use super::facts::{CallFacts, Confinement, Effect, Reach, Source};
use super::remembered::Remembered;
use super::rule::{Rule, Verdict};
use crate::tool_group::{ServerGroups, ToolGroup};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The call runs.
    Allow,
    /// Polity asks the person before the call runs.
    Ask(Reason, Often),
    /// The call is refused.
    Deny {
        /// The index of the rule in the list `tools.policy`.
        rule: usize,
    },
}

/// Why the person is asked about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Reason {
    /// A rule of `tools.policy` demands that the person is asked.
    Rule {
        /// The index of the rule in the list `tools.policy`.
        index: usize,
        /// Present if the rule fits a command only because polity cannot see all commands that the text runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unseen: Option<Unseen>,
    },
    /// The caller has seen text from outside, and the call changes something outside the workspace.
    Seen {
        /// The sources that the caller has seen.
        sources: BTreeSet<Source>,
    },
    /// The command would not run in a full sandbox.
    Confinement {
        /// What would separate the command from the machine.
        confinement: Confinement,
    },
    /// The web request can change something.
    WebChange,
    /// The MCP tool does not declare that it only reads.
    ServerTool,
}

/// How often the person is asked about the same tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Often {
    /// Polity asks at each call. The answer *yes* allows only the call that the question is about.
    EachTime,
    /// Polity asks once in a task. The answer *yes* allows all calls of this tool in this task.
    OncePerTask,
}

/// Decides about one call.
///
/// A call of a tool in a group that every agent has always runs. For any other call, the first rule that fits decides.
/// If no rule fits, the decision depends on what the call reaches. If the decision is to ask, but the person has
/// allowed such calls before (`remembered`), the call runs without a question. Such a permission never overrides a rule
/// that denies.
pub fn decide(call: &CallFacts, rules: &[Rule], remembered: &[Remembered]) -> Decision {
    if call.group.is_for_everybody() {
        return Decision::Allow;
    }
    let fitting = rules.iter().enumerate().find(|(_, rule)| fits(rule, call));
    let decision = match fitting {
        Some((index, rule)) => match rule.decide {
            Verdict::Allow => Decision::Allow,
            Verdict::Ask => {
                Decision::Ask(Reason::Rule { index, unseen: unseen(rule, call) }, Often::EachTime)
            }
            Verdict::Deny => Decision::Deny { rule: index },
        },
        None => by_default(call),
    };
    match decision {
        Decision::Ask(..) if remembered.iter().any(|answer| answer.covers(call)) => Decision::Allow,
        decision => decision,
    }
}

/// Decides about a call if none of the person's rules fits the call.
fn by_default(call: &CallFacts) -> Decision {
    if !call.seen.is_empty() && call.reach.changes_outside() {
        return Decision::Ask(Reason::Seen { sources: call.seen.clone() }, Often::EachTime);
    }
    match &call.reach {
        // `Other` is a tool that is built into the program. By installing the program, the person has allowed this
        // tool.
        Reach::Society | Reach::ReadsWorkspace | Reach::ChangesWorkspace | Reach::Other(_) => Decision::Allow,
        Reach::Command { confinement, .. } => match confinement {
            // A sandbox has a network only if the person has configured this network. So a command with a network needs
            // no question either.
            Confinement::Full | Confinement::FullWithNetwork => Decision::Allow,
            Confinement::Partial | Confinement::None => {
                Decision::Ask(Reason::Confinement { confinement: *confinement }, Often::EachTime)
            }
        },
        Reach::Web { effect: Effect::Reads, .. } | Reach::Server { effect: Effect::Reads, .. } => {
            Decision::Allow
        }
        Reach::Web { effect: Effect::Changes, .. } => Decision::Ask(Reason::WebChange, Often::EachTime),
        Reach::Server { effect: Effect::Changes, .. } => {
            Decision::Ask(Reason::ServerTool, Often::OncePerTask)
        }
    }
}

/// Returns whether all conditions of a rule fit a call.
fn fits(rule: &Rule, call: &CallFacts) -> bool {
    let Rule { tool: _, group: _, role: _, command, host, write, seen, decide } = rule;
    names_fit(rule, &call.tool, &call.servers.of(&call.group), &call.role)
        && command.as_ref().is_none_or(|pattern| match &call.reach {
            Reach::Command { command, .. } => match decide {
                Verdict::Allow => command::is_allowed_by(pattern, command),
                Verdict::Ask | Verdict::Deny => command::is_caught_by(pattern, command),
            },
            _ => false,
        })
        && host.as_ref().is_none_or(|pattern| match &call.reach {
            Reach::Web { host: Some(host), .. } => pattern.fits(host),
            _ => false,
        })
        && write.is_none_or(|effect| effect == call.reach.effect())
        && (seen.is_empty() || call.seen.iter().any(|source| is_named(source, seen, &call.servers)))
}

/// A rule can fit a command only because polity cannot see all commands that the text runs. Then returns why polity
/// cannot see them. The rule must ask the person, and must fit the call.
fn unseen(rule: &Rule, call: &CallFacts) -> Option<Unseen> {
    match (&rule.command, &call.reach) {
        (Some(pattern), Reach::Command { command, .. }) => command::unseen(pattern, command),
        _ => None,
    }
}

/// Returns whether a rule names `source`. `named` contains the sources that the rule lists. The rule may list an MCP
/// server under its own name, or under the name of a group that the person has put the server into.
fn is_named(source: &Source, named: &[Source], servers: &ServerGroups) -> bool {
    named.contains(source)
        || match source {
            Source::Server(server) => {
                servers.names(server).any(|name| named.contains(&Source::Server(name.clone())))
            }
            Source::Web | Source::Files => false,
        }
}

/// Returns whether the rule's conditions on the tool, the tool's group and the caller's role fit. `groups` contains all
/// groups that the tool is in.
fn names_fit(rule: &Rule, tool: &str, groups: &[ToolGroup], role: &str) -> bool {
    rule.tool.as_ref().is_none_or(|pattern| pattern.fits(tool))
        && rule.group.as_ref().is_none_or(|pattern| groups.iter().any(|group| pattern.fits(&group.name())))
        && rule.role.as_ref().is_none_or(|pattern| pattern.fits(role))
}

/// Returns whether the rules deny every call of this tool by this role. If so, requests to models do not offer the
/// tool. `groups` contains all groups that the tool is in. `always` is the effect that every call of the tool has;
/// `None` if the effect depends on the arguments.
pub fn denies_all(
    tool: &str,
    groups: &[ToolGroup],
    role: &str,
    always: Option<Effect>,
    rules: &[Rule],
) -> bool {
    if groups.iter().any(ToolGroup::is_for_everybody) {
        return false;
    }
    for rule in rules.iter().filter(|rule| names_fit(rule, tool, groups, role)) {
        let Rule { tool: _, group: _, role: _, command, host, write, seen, decide } = rule;
        let effect_fits = match (write, always) {
            (None, _) => true,
            // No call fits this rule.
            (Some(write), Some(always)) if *write != always => continue,
            (Some(_), Some(_)) => true,
            (Some(_), None) => false,
        };
        let fits_every_call = effect_fits && command.is_none() && host.is_none() && seen.is_empty();
        match decide {
            Verdict::Deny if fits_every_call => return true,
            Verdict::Deny => {}
            // Some calls may fit this rule before they fit a rule that denies. Such calls are not denied, so the rules
            // do not deny every call.
            Verdict::Allow | Verdict::Ask => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests;
