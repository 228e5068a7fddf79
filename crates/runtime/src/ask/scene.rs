//! Reads what a request is built from.

use crate::handles::Handles;
use polity_artifacts::index::Stored;
use polity_decide::history::History;
use polity_decide::render;
use polity_society::workspace::{Access, Root};
use polity_store::contacts::ContactRow;
use polity_store::{Conversation, Error, agents, artifacts, contacts, records, roles, tasks};

/// Everything that a request is built from, apart from the service.
pub(super) struct Scene {
    pub(super) agent: agents::AgentRow,
    pub(super) role: Option<polity_society::role::Role>,
    /// The roles that restrict the agent's rights.
    pub(super) chain: Vec<polity_society::rules::Link>,
    pub(super) history: History,
    pub(super) contacts: Vec<ContactRow>,
    pub(super) stored: Vec<Stored>,
    /// The agent's access to a directory of the person, if the agent works in such a directory. Otherwise `None`.
    pub(super) workspace: Option<Access>,
}

/// Reads the scene of a conversation as it is now.
pub(super) async fn look(handles: &Handles, conversation: &Conversation) -> Result<Scene, Error> {
    let mut reader = handles.store.reader().await?;
    let Some(agent) = agents::in_task(&mut reader, conversation).await? else {
        return Err(Error::Damaged { table: "agents", what: format!("{} is missing", conversation.agent) });
    };
    let role = match &agent.role {
        Some(role) => roles::get(&mut reader, role).await?,
        None => None,
    };
    let texts = &handles.registry.current().prompts.texts;
    let history = History::from(records::history(&mut reader, conversation, texts).await?);
    let contacts = contacts::of(&mut reader, &conversation.agent, &conversation.task).await?;
    let stored = artifacts::get_many(&mut reader, &render::artifacts_of(&history)).await?;
    let chain = agents::chain(&mut reader, &conversation.agent).await?;
    let workspace = match tasks::workspace(&mut reader, &conversation.task).await? {
        // An agent with its own worktree works on a copy of the files, so it has no access to the directory of the
        // person.
        Root::Person { access, .. } => {
            let worktree = agents::worktree(&mut reader, &conversation.agent).await?;
            worktree.is_none().then_some(access)
        }
        Root::Made => None,
    };
    Ok(Scene { agent, role, chain, history, contacts, stored, workspace })
}
