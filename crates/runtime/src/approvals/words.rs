//! Texts for the person: why the person is asked, how content from outside reached an agent, and what a permission
//! covers.

use polity_society::policy::{Confinement, Effect, Reason, Remembered, Source, Thing, Unseen};
use polity_store::seen::{self, Holder, Passed, Step};
use polity_store::{Connection, Conversation, Error};

/// Returns how content got from a source to an agent: one line for each step, beginning at the source.
pub(super) async fn way(
    connection: &mut Connection,
    to: &Conversation,
    source: &Source,
) -> Result<Vec<String>, Error> {
    let way = seen::way(connection, to, source).await?;
    Ok(std::iter::once(source.to_string()).chain(way.iter().map(line)).collect())
}

fn line(passed: &Passed) -> String {
    let holder = match &passed.holder {
        Holder::Agent(agent) => agent.to_string(),
        Holder::Artifact(artifact) => artifact.reference(),
        Holder::Workspace => "the workspace".to_owned(),
    };
    match &passed.step {
        Step::Tool { tool } => format!("{holder} read it with {tool}"),
        Step::Message { from, message } => format!("{holder} heard it from {from} ({message})"),
        Step::Artifact { artifact } if passed.holder == Holder::Workspace => {
            format!("{} may have been copied into {holder}", artifact.reference())
        }
        Step::Artifact { artifact } => format!("{holder} opened {}", artifact.reference()),
        Step::Files => format!("{holder} worked in the workspace"),
        Step::Agent { agent } => format!("{agent} put it into {holder}"),
        Step::Hired { from } => format!("{holder} was hired with a text of {from}"),
        Step::Role { from } => format!("{holder} read what a role of {from} offers"),
        Step::Brought { agent, tool } => format!("{agent} may have put it into {holder} with {tool}"),
    }
}

/// Explains in words why the person is asked about a call.
pub(super) fn why(reason: &Reason) -> String {
    match reason {
        Reason::Rule { index, unseen } => {
            let rule = format!("rule {} of tools.policy in app.json says so", index + 1);
            match unseen {
                None => rule,
                Some(unseen) => {
                    format!("{rule}: polity cannot see which commands {} runs", hidden(*unseen))
                }
            }
        }
        Reason::Seen { .. } => {
            "the agent has content from outside, and the call changes something outside the workspace"
                .to_owned()
        }
        Reason::Confinement { confinement } => {
            format!("the command would run {}", sandbox(*confinement))
        }
        Reason::WebChange => "the web request can change something".to_owned(),
        Reason::ServerTool => "the MCP server does not say that the tool only reads".to_owned(),
    }
}

/// Names the part of a text that hides which commands the text runs.
fn hidden(unseen: Unseen) -> &'static str {
    match unseen {
        Unseen::Substitution => "`$(…)`",
        Unseen::Backquotes => "a text in backquotes",
        Unseen::Expansion => "`$…`",
        Unseen::Text => "this text",
    }
}

fn sandbox(confinement: Confinement) -> &'static str {
    match confinement {
        Confinement::Full => "in a full sandbox",
        Confinement::FullWithNetwork => "in a full sandbox, with the network of this machine",
        Confinement::Partial => "in a partial sandbox",
        Confinement::None => "without a sandbox",
    }
}

/// Returns a text that says which calls a permission covers.
pub(crate) fn permitted(remembered: &Remembered) -> String {
    let Remembered { tool, thing, seen, role: _ } = remembered;
    let changes = |effect: &Effect| match effect {
        Effect::Reads => "reads",
        Effect::Changes => "changes",
    };
    let what = match thing {
        Thing::Society | Thing::Other { .. } | Thing::Server { .. } => tool.clone(),
        Thing::Workspace { effect } => format!("{tool}, if it only {} files", changes(effect)),
        Thing::Command { command, confinement } => format!("{tool} {}: {command}", sandbox(*confinement)),
        Thing::Web { host, effect } => {
            let host = host.as_deref().unwrap_or("any host");
            format!("{tool} to {host}, if it {} something", changes(effect))
        }
    };
    if seen.is_empty() {
        return what;
    }
    let seen: Vec<String> = seen.iter().map(Source::to_string).collect();
    format!("{what} (also with content from {})", seen.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_society::id::{AgentId, ArtifactId};

    #[test]
    fn an_agent_opens_an_artifact_and_a_call_copies_it_into_the_workspace() {
        let told = |holder: Holder| {
            line(&Passed { holder, step: Step::Artifact { artifact: ArtifactId::new("a1") } })
        };
        assert_eq!(told(Holder::Agent(AgentId::new("mara"))), "mara opened artifact:a1");
        assert_eq!(told(Holder::Workspace), "artifact:a1 may have been copied into the workspace");
    }

    #[test]
    fn a_rule_that_fits_what_polity_cannot_see_says_so() {
        let check = |unseen: Option<Unseen>, expect: &str| {
            assert_eq!(why(&Reason::Rule { index: 0, unseen }), expect);
        };
        check(None, "rule 1 of tools.policy in app.json says so");
        check(
            Some(Unseen::Substitution),
            "rule 1 of tools.policy in app.json says so: polity cannot see which commands `$(…)` runs",
        );
        check(
            Some(Unseen::Text),
            "rule 1 of tools.policy in app.json says so: polity cannot see which commands this text runs",
        );
    }
}
