//! The methods of [`Society`] that read. They return views, which clients show to people.

use super::Society;
use crate::ask::{Bytes, preview};
use crate::board::{Glimpses, now};
use crate::commands;
use crate::handles::Handles;
use polity_artifacts::BlobFile;
use polity_registry::Settings;
use polity_society::id::{AgentId, ArtifactId, MessageId, RoleId, TaskId};
use polity_society::role::Role;
use polity_society::rules::{Denial, Link, RoleOf, Verdict};
use polity_society::tool_group::ToolGroup;
use polity_store::Connection;
use polity_store::view::events::Side;
use polity_store::view::{self as readings, artifacts, facts};
use polity_store::{
    Conversation, Error, agents as agent_rows, artifacts as artifact_rows, events, roles, sent, tasks,
};
use polity_view::RightView;
use polity_view::{
    AgentDetail, AgentFilter, AgentPage, AgentState, AgentView, ArtifactFilter, ArtifactPage, ArtifactUses,
    ArtifactView, CommandFilter, CommandView, ContactView, ConversationView, DataFacts, EventFilter,
    EventPage, MAX_PAGE, MessageFilter, MessagePage, MessageView, RequestPreview, RoleView, SearchFilter,
    SearchPage, SentRequest, ServiceUsage, TaskFilter, TaskPage, TaskView, UsageFilter, UsageView,
};
use std::sync::Arc;

/// An artifact with its bytes.
#[derive(Debug)]
pub struct ArtifactContent {
    /// The artifact without its bytes, as clients see it.
    pub artifact: ArtifactView,
    /// The hash of the bytes, in hexadecimal digits. The bytes of an artifact never change.
    pub hash: String,
    /// The bytes and their length. The hash of the bytes has been checked.
    pub file: BlobFile,
}

impl Society {
    /// Returns a page of tasks, newest first.
    pub async fn tasks(&self, filter: &TaskFilter) -> Result<TaskPage, Error> {
        let mut moment = self.handles.store.moment().await?;
        let (tasks, next) = readings::tasks::list(&mut moment, filter).await?;
        Ok(TaskPage { tasks, next })
    }

    /// Returns a task; `None` if there is no task with this id.
    pub async fn task(&self, id: &TaskId) -> Result<Option<TaskView>, Error> {
        let mut moment = self.handles.store.moment().await?;
        readings::tasks::get(&mut moment, id).await
    }

    /// Returns a page of agents, parents before children. The page also contains the number of the event that was the
    /// newest when the page was read.
    pub async fn agents(&self, filter: &AgentFilter) -> Result<AgentPage, Error> {
        let snapshot = self.handles.registry.current();
        let moments = self.handles.board.moments(filter.task.as_ref(), now());
        let mut moment = self.handles.store.moment().await?;
        let (agents, next) =
            readings::agents::list(&mut moment, &snapshot.catalogue, &moments, filter).await?;
        let left_out = readings::agents::left_out(&mut moment, &snapshot.catalogue, &moments, filter).await?;
        Ok(AgentPage { agents, next, left_out, as_of: events::newest(&mut moment).await? })
    }

    /// Returns root and all live agents that are not idle, in the order of hiring.
    pub async fn agents_not_idle(&self) -> Result<Vec<AgentView>, Error> {
        let snapshot = self.handles.registry.current();
        let moments = self.handles.board.moments(None, now());
        let mut moment = self.handles.store.moment().await?;
        readings::agents::not_idle(&mut moment, &snapshot.catalogue, &moments).await
    }

    /// Returns an agent as lists show it, without its details; `None` if there is no agent with this id.
    pub async fn listed_agent(&self, id: &AgentId) -> Result<Option<AgentView>, Error> {
        let snapshot = self.handles.registry.current();
        let moments = self.handles.board.moments(None, now());
        let mut moment = self.handles.store.moment().await?;
        readings::agents::get(&mut moment, &snapshot.catalogue, &moments, id).await
    }

    /// Counts the agents in each state except `ended`. Root counts, the person does not.
    pub async fn agent_states(&self) -> Result<Vec<(AgentState, u64)>, Error> {
        let snapshot = self.handles.registry.current();
        let moments = self.handles.board.moments(None, now());
        let mut moment = self.handles.store.moment().await?;
        readings::agents::by_state(&mut moment, &snapshot.catalogue, &moments).await
    }

    /// Returns an agent with all details; `None` if there is no agent with this id.
    pub async fn agent(&self, id: &AgentId) -> Result<Option<AgentDetail>, Error> {
        let mut moment = self.handles.store.moment().await?;
        detail(&self.handles, &mut moment, id).await
    }

    /// Returns the newest contacts of an agent, in the order in which the agent came to know them, with ended agents
    /// last; `None` if there is no such agent.
    pub async fn contacts(&self, id: &AgentId) -> Result<Option<Vec<ContactView>>, Error> {
        let snapshot = self.handles.registry.current();
        let mut moment = self.handles.store.moment().await?;
        if !agent_rows::exists(&mut moment, id.as_str()).await? {
            return Ok(None);
        }
        let contacts = readings::agents::contacts(&mut moment, &snapshot.catalogue, id).await?;
        Ok(Some(contacts.rows))
    }

    /// Returns the running commands of agents, the oldest first. If another process runs the society, returns none.
    pub fn commands(&self, filter: &CommandFilter) -> Vec<CommandView> {
        commands::running(&self.handles, filter)
    }

    /// Returns a role; `None` if there is no role with this id.
    pub async fn role(&self, id: &RoleId) -> Result<Option<RoleView>, Error> {
        let mut moment = self.handles.store.moment().await?;
        let Some(role) = roles::get(&mut moment, id).await? else { return Ok(None) };
        role_view(&mut moment, role).await.map(Some)
    }

    /// Returns a page of messages.
    pub async fn messages(&self, filter: &MessageFilter) -> Result<MessagePage, Error> {
        let snapshot = self.handles.registry.current();
        let mut moment = self.handles.store.moment().await?;
        let texts = &snapshot.prompts.texts;
        let (messages, next) = readings::messages::list(&mut moment, texts, filter).await?;
        Ok(MessagePage { messages, next })
    }

    /// Returns a message; `None` if there is no message with this id.
    pub async fn message(&self, id: &MessageId) -> Result<Option<MessageView>, Error> {
        let snapshot = self.handles.registry.current();
        let mut moment = self.handles.store.moment().await?;
        let texts = &snapshot.prompts.texts;
        Ok(readings::messages::by_id(&mut moment, texts, std::slice::from_ref(id)).await?.remove(id))
    }

    /// Searches the society. Returns a page of results, newest first.
    pub async fn search(&self, filter: &SearchFilter) -> Result<SearchPage, Error> {
        let mut moment = self.handles.store.moment().await?;
        let (hits, next) = readings::search::list(&mut moment, filter).await?;
        Ok(SearchPage { hits, next })
    }

    /// Returns the newest records of an agent in a task, or the newest records before a given record.
    ///
    /// If no task is given, the function uses the task for which the agent was hired. For root, it uses the task that
    /// root worked on last. Returns `None` if there is no such agent, or if the agent does not work in the task.
    pub async fn conversation(
        &self,
        agent: &AgentId,
        task: Option<&TaskId>,
        before: Option<i64>,
        limit: Option<u32>,
    ) -> Result<Option<ConversationView>, Error> {
        let snapshot = self.handles.registry.current();
        let mut moment = self.handles.store.moment().await?;
        let Some(conversation) = conversation_of(&mut moment, agent, task).await? else { return Ok(None) };
        let texts = &snapshot.prompts.texts;
        let (entries, next) =
            readings::conversation::part(&mut moment, texts, &conversation, before, limit).await?;
        Ok(Some(ConversationView { agent: conversation.agent, task: conversation.task, entries, next }))
    }

    /// Returns the request that the model of an agent would get now. Without a task, the function uses the default task
    /// that [`Society::conversation`] describes. Returns `None` if there is no such conversation, or if the agent is
    /// the person.
    pub async fn preview(
        &self,
        agent: &AgentId,
        task: Option<&TaskId>,
        bytes: Bytes,
    ) -> Result<Option<RequestPreview>, Error> {
        if agent.is_user() {
            return Ok(None);
        }
        let mut reader = self.handles.store.reader().await?;
        let conversation = conversation_of(&mut reader, agent, task).await?;
        drop(reader);
        match conversation {
            Some(conversation) => preview(&self.handles, &conversation, bytes).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns a request exactly as it was sent to a model; `None` if no request has this number.
    pub async fn sent(&self, number: i64) -> Result<Option<SentRequest>, Error> {
        let mut moment = self.handles.store.moment().await?;
        sent::get(&mut moment, number).await
    }

    /// Returns a page of artifacts, newest first.
    pub async fn artifacts(&self, filter: &ArtifactFilter) -> Result<ArtifactPage, Error> {
        let mut moment = self.handles.store.moment().await?;
        let (artifacts, next) = artifacts::list(&mut moment, filter).await?;
        Ok(ArtifactPage { artifacts, next })
    }

    /// Returns an artifact without its bytes; `None` if there is no artifact with this id.
    pub async fn artifact(&self, id: &ArtifactId) -> Result<Option<ArtifactView>, Error> {
        let mut moment = self.handles.store.moment().await?;
        Ok(artifact_rows::get(&mut moment, id).await?.map(artifacts::shown))
    }

    /// Returns where an artifact was used; `None` if there is no artifact with this id.
    pub async fn artifact_uses(&self, id: &ArtifactId) -> Result<Option<ArtifactUses>, Error> {
        let mut moment = self.handles.store.moment().await?;
        let Some(stored) = artifact_rows::get(&mut moment, id).await? else { return Ok(None) };
        readings::uses::of(&mut moment, id, &stored.task).await.map(Some)
    }

    /// Returns one artifact, with the hash of its bytes in hexadecimal digits. Does not read the bytes.
    pub async fn artifact_and_hash(&self, id: &ArtifactId) -> Result<Option<(ArtifactView, String)>, Error> {
        let mut reader = self.handles.store.reader().await?;
        let stored = artifact_rows::get(&mut reader, id).await?;
        Ok(stored.map(|stored| {
            let hash = stored.blob.as_str().to_owned();
            (artifacts::shown(stored), hash)
        }))
    }

    /// Returns an artifact with its bytes. Fails if the bytes are missing or damaged.
    pub async fn artifact_content(&self, id: &ArtifactId) -> Result<Option<ArtifactContent>, Error> {
        let mut reader = self.handles.store.reader().await?;
        let stored = artifact_rows::get(&mut reader, id).await?;
        drop(reader);
        let Some(stored) = stored else { return Ok(None) };
        let hash = stored.blob.as_str().to_owned();
        let file = self.handles.blobs.file(&stored.blob).await.map_err(Error::Content)?;
        Ok(Some(ArtifactContent { artifact: artifacts::shown(stored), hash, file }))
    }

    /// Returns the tokens and costs of the model calls that match a filter, in total and grouped.
    pub async fn usage(&self, filter: &UsageFilter) -> Result<UsageView, Error> {
        let mut moment = self.handles.store.moment().await?;
        readings::usage::view(&mut moment, filter).await
    }

    /// Returns the tokens and costs of all model calls, by service and model. The cost of this function does not grow
    /// with the number of calls.
    pub async fn spent(&self) -> Result<Vec<ServiceUsage>, Error> {
        let mut moment = self.handles.store.moment().await?;
        readings::usage::by_model(&mut moment).await
    }

    /// Returns the first events with sequence numbers above `seq`, at most `limit` of them, oldest first.
    pub async fn events_after(&self, seq: i64, limit: u32, filter: &EventFilter) -> Result<EventPage, Error> {
        self.events_beside(Side::After(seq), limit, filter).await
    }

    /// Returns the last events with sequence numbers below `seq`, at most `limit` of them, oldest first.
    pub async fn events_before(
        &self,
        seq: i64,
        limit: u32,
        filter: &EventFilter,
    ) -> Result<EventPage, Error> {
        self.events_beside(Side::Before(seq), limit, filter).await
    }

    async fn events_beside(&self, side: Side, limit: u32, filter: &EventFilter) -> Result<EventPage, Error> {
        let mut moment = self.handles.store.moment().await?;
        readings::events::list(&mut moment, side, filter, limit.clamp(1, MAX_PAGE)).await
    }

    /// Watches what agents are doing, now and in the future. The filter selects the tasks and agents. The `kinds` of
    /// the filter have no effect.
    pub fn glimpses(&self, filter: &EventFilter) -> Glimpses {
        Glimpses::new(Arc::clone(&self.handles.board), filter.clone())
    }

    /// Returns the reason why writing to the database fails now, or `None` if writing works. To find out, this
    /// function writes to the database.
    pub async fn trouble(&self) -> Option<String> {
        facts::touch(&self.handles.store).await.err().map(|error| error.to_string())
    }

    /// Counts the contents of the database, and checks whether writing to the database works now.
    pub async fn data_facts(&self) -> Result<DataFacts, Error> {
        let trouble = self.trouble().await;
        let mut moment = self.handles.store.moment().await?;
        facts::count(&mut moment, trouble).await
    }
}

async fn detail(
    handles: &Handles,
    connection: &mut Connection,
    id: &AgentId,
) -> Result<Option<AgentDetail>, Error> {
    let snapshot = handles.registry.current();
    let moments = handles.board.moments(None, now());
    let Some(agent) = readings::agents::get(connection, &snapshot.catalogue, &moments, id).await? else {
        return Ok(None);
    };
    let AgentView { role_id, .. } = &agent;
    let role = match role_id {
        Some(role) => roles::get(connection, role).await?,
        None => None,
    };
    let brief = agent_rows::get(connection, id).await?.and_then(|row| row.brief);
    let contacts = readings::agents::contacts(connection, &snapshot.catalogue, id).await?;
    let tasks = readings::agents::tasks(connection, id).await?;
    let children = readings::agents::children(connection, id).await?;
    Ok(Some(AgentDetail {
        role_prompt: role.as_ref().map(|role| role.prompt.clone()),
        interface_spec: role.as_ref().and_then(|role| role.interface_spec.clone()),
        required_capabilities: role.as_ref().map(|role| role.required_capabilities.clone()),
        tool_groups: role.map(|role| role.tool_groups),
        rights: rights(&snapshot.settings, &agent_rows::chain(connection, id).await?),
        brief,
        contacts: contacts.rows,
        more_contacts: contacts.more,
        tasks: tasks.rows,
        more_tasks: tasks.more,
        holds: readings::agents::holds(connection, id).await?,
        children: children.rows,
        more_children: children.more,
        agent,
    }))
}

/// The setting that gives root its groups of tools.
const ROOT_GRANTS: &str = "tools.root";

/// Returns for each group of tools whether an agent may use it, and why.
fn rights(settings: &Settings, chain: &[Link]) -> Vec<RightView> {
    let rights = settings.rights(chain);
    let right = |group: ToolGroup| {
        let allowed = rights.decide(&group) == Verdict::Allow;
        let (denied_by, denied_in) = match rights.denial(&group) {
            None => (None, None),
            Some(Denial::Settings) => (None, Some(ROOT_GRANTS.to_owned())),
            Some(Denial::Role { agent, role }) => (Some(agent), Some(role)),
        };
        let origin = rights.origin(&group);
        let root_grant = origin.as_ref().map(|origin| origin.grant.to_string());
        let (granted_by, granted_in) = match origin.map(|origin| origin.role) {
            None => (None, None),
            Some(None) => (None, Some(ROOT_GRANTS.to_owned())),
            Some(Some(RoleOf { agent, role })) => (Some(agent), Some(role)),
        };
        RightView { group, allowed, granted_by, granted_in, root_grant, denied_by, denied_in }
    };
    settings.groups().map(right).collect()
}

/// Builds the view of a role.
pub(super) async fn role_view(connection: &mut Connection, role: Role) -> Result<RoleView, Error> {
    let agents = readings::agents::live_of_role(connection, &role.id).await?;
    Ok(RoleView {
        id: role.id,
        task: role.task,
        creator: role.creator,
        name: role.name.to_string(),
        prompt: role.prompt,
        interface_spec: role.interface_spec,
        service_id: role.service,
        required_capabilities: role.required_capabilities,
        tool_groups: role.tool_groups,
        agents,
    })
}

/// Finds the conversation of an agent in the given task. Without a task, uses the default task that
/// [`Society::conversation`] describes.
pub(super) async fn conversation_of(
    connection: &mut Connection,
    agent: &AgentId,
    task: Option<&TaskId>,
) -> Result<Option<Conversation>, Error> {
    let Some(row) = agent_rows::get(connection, agent).await? else { return Ok(None) };
    let task = match (row.task, task) {
        (Some(own), meant) => Some(own).filter(|own| meant.is_none_or(|meant| meant == own)),
        (None, Some(meant)) => tasks::exists(connection, meant).await?.then(|| meant.clone()),
        (None, None) => match readings::agents::newest_task(connection, agent).await? {
            Some(newest) => Some(newest),
            None => tasks::latest(connection).await?,
        },
    };
    Ok(task.map(|task| Conversation { agent: agent.clone(), task }))
}
