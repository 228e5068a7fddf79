//! What others may look at.

use super::Society;
use crate::ask::{Bytes, preview};
use crate::handles::Handles;
use polity_artifacts::BlobFile;
use polity_society::id::{AgentId, ArtifactId, MessageId, RoleId, TaskId};
use polity_society::role::Role;
use polity_store::Connection;
use polity_store::view::events::Side;
use polity_store::view::{self as readings, artifacts, facts};
use polity_store::{
    Conversation, Error, agents as agent_rows, artifacts as artifact_rows, events, roles, tasks,
};
use polity_view::{
    AgentDetail, AgentFilter, AgentPage, AgentView, ArtifactFilter, ArtifactPage, ArtifactView, ContactView,
    ConversationView, DataFacts, EventFilter, EventPage, MAX_PAGE, MessageFilter, MessagePage, MessageView,
    RequestPreview, RoleView, TaskFilter, TaskPage, TaskView, UsageFilter, UsageView,
};

/// The bytes of an artifact.
#[derive(Debug)]
pub struct Content {
    /// What is known about it.
    pub artifact: ArtifactView,
    /// The hash of the bytes, in hexadecimal digits: they never change.
    pub hash: String,
    /// The bytes, and how many there are. Their hash was looked at.
    pub file: BlobFile,
}

impl Society {
    /// Tasks, the newest first.
    pub async fn tasks(&self, filter: &TaskFilter) -> Result<TaskPage, Error> {
        let mut moment = self.handles.store.moment().await?;
        let (tasks, next) = readings::tasks::list(&mut moment, filter).await?;
        Ok(TaskPage { tasks, next })
    }

    /// One task.
    pub async fn task(&self, id: &TaskId) -> Result<Option<TaskView>, Error> {
        let mut moment = self.handles.store.moment().await?;
        readings::tasks::get(&mut moment, id).await
    }

    /// Agents, parents before children, with the number of the newest event at that moment.
    pub async fn agents(&self, filter: &AgentFilter) -> Result<AgentPage, Error> {
        let snapshot = self.handles.registry.current();
        let mut moment = self.handles.store.moment().await?;
        let (agents, next) = readings::agents::list(&mut moment, &snapshot.catalogue, filter).await?;
        Ok(AgentPage { agents, next, as_of: events::newest(&mut moment).await? })
    }

    /// One agent, with all that is known of it.
    pub async fn agent(&self, id: &AgentId) -> Result<Option<AgentDetail>, Error> {
        let mut moment = self.handles.store.moment().await?;
        detail(&self.handles, &mut moment, id).await
    }

    /// Whom an agent can write to, oldest entry first, those last that have ended; `None` where there is no such agent.
    pub async fn contacts(&self, id: &AgentId) -> Result<Option<Vec<ContactView>>, Error> {
        let snapshot = self.handles.registry.current();
        let mut moment = self.handles.store.moment().await?;
        if !agent_rows::exists(&mut moment, id.as_str()).await? {
            return Ok(None);
        }
        readings::agents::contacts(&mut moment, &snapshot.catalogue, id).await.map(Some)
    }

    /// One role.
    pub async fn role(&self, id: &RoleId) -> Result<Option<RoleView>, Error> {
        let mut moment = self.handles.store.moment().await?;
        let Some(role) = roles::get(&mut moment, id).await? else { return Ok(None) };
        role_view(&mut moment, role).await.map(Some)
    }

    /// Messages.
    pub async fn messages(&self, filter: &MessageFilter) -> Result<MessagePage, Error> {
        let snapshot = self.handles.registry.current();
        let mut moment = self.handles.store.moment().await?;
        let texts = &snapshot.prompts.texts;
        let (messages, next) = readings::messages::list(&mut moment, texts, filter).await?;
        Ok(MessagePage { messages, next })
    }

    /// One message.
    pub async fn message(&self, id: &MessageId) -> Result<Option<MessageView>, Error> {
        let snapshot = self.handles.registry.current();
        let mut moment = self.handles.store.moment().await?;
        let texts = &snapshot.prompts.texts;
        Ok(readings::messages::by_id(&mut moment, texts, std::slice::from_ref(id)).await?.remove(id))
    }

    /// An agent's part in a task, as it is stored: what lies before a record, or the newest of it. Without a task it is
    /// the one that the agent was hired for, or for root the one that it has worked for last. `None` where there is no
    /// such agent, or it has no such task.
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

    /// What the model of an agent would be sent now; the task is found as for [`Society::conversation`]. `None` where
    /// there is no such agent, it has no such task, or it is the person.
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

    /// Artifacts, the newest first.
    pub async fn artifacts(&self, filter: &ArtifactFilter) -> Result<ArtifactPage, Error> {
        let mut moment = self.handles.store.moment().await?;
        let (artifacts, next) = artifacts::list(&mut moment, filter).await?;
        Ok(ArtifactPage { artifacts, next })
    }

    /// One artifact.
    pub async fn artifact(&self, id: &ArtifactId) -> Result<Option<ArtifactView>, Error> {
        let mut moment = self.handles.store.moment().await?;
        Ok(artifact_rows::get(&mut moment, id).await?.map(artifacts::shown))
    }

    /// One artifact, with the hash of its bytes in hexadecimal digits. The bytes themselves are not looked at.
    pub async fn artifact_and_hash(&self, id: &ArtifactId) -> Result<Option<(ArtifactView, String)>, Error> {
        let mut reader = self.handles.store.reader().await?;
        let stored = artifact_rows::get(&mut reader, id).await?;
        Ok(stored.map(|stored| {
            let hash = stored.blob.as_str().to_owned();
            (artifacts::shown(stored), hash)
        }))
    }

    /// The bytes of an artifact. Fails where they are missing or damaged.
    pub async fn artifact_content(&self, id: &ArtifactId) -> Result<Option<Content>, Error> {
        let mut reader = self.handles.store.reader().await?;
        let stored = artifact_rows::get(&mut reader, id).await?;
        drop(reader);
        let Some(stored) = stored else { return Ok(None) };
        let hash = stored.blob.as_str().to_owned();
        let file = self.handles.blobs.file(&stored.blob).await.map_err(Error::Content)?;
        Ok(Some(Content { artifact: artifacts::shown(stored), hash, file }))
    }

    /// What was spent.
    pub async fn usage(&self, filter: &UsageFilter) -> Result<UsageView, Error> {
        let mut moment = self.handles.store.moment().await?;
        readings::usage::view(&mut moment, filter).await
    }

    /// A page of events after a number, oldest first.
    pub async fn events_after(&self, seq: i64, limit: u32, filter: &EventFilter) -> Result<EventPage, Error> {
        self.events_beside(Side::After(seq), limit, filter).await
    }

    /// The events that lie just before a number, oldest first.
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

    /// What stands in the way of writing now, if anything does. Finding out takes a write.
    pub async fn trouble(&self) -> Option<String> {
        facts::touch(&self.handles.store).await.err().map(|error| error.to_string())
    }

    /// How much there is of everything, and whether the data can be written to now.
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
    let Some(agent) = readings::agents::get(connection, &snapshot.catalogue, id).await? else {
        return Ok(None);
    };
    let AgentView { role_id, .. } = &agent;
    let role = match role_id {
        Some(role) => roles::get(connection, role).await?,
        None => None,
    };
    let brief = agent_rows::get(connection, id).await?.and_then(|row| row.brief);
    Ok(Some(AgentDetail {
        role_prompt: role.as_ref().map(|role| role.prompt.clone()),
        interface_spec: role.as_ref().and_then(|role| role.interface_spec.clone()),
        required_capabilities: role.as_ref().map(|role| role.required_capabilities.clone()),
        tool_groups: role.map(|role| role.tool_groups),
        brief,
        contacts: readings::agents::contacts(connection, &snapshot.catalogue, id).await?,
        tasks: readings::agents::tasks(connection, id, MAX_PAGE).await?,
        holds: readings::agents::holds(connection, id).await?,
        children: readings::agents::children(connection, id).await?,
        agent,
    }))
}

/// What is shown of a role.
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

/// Which conversation of an agent is meant.
pub(super) async fn conversation_of(
    connection: &mut Connection,
    agent: &AgentId,
    task: Option<&TaskId>,
) -> Result<Option<Conversation>, Error> {
    let Some(row) = agent_rows::get(connection, agent).await? else { return Ok(None) };
    let task = match (row.task, task) {
        (Some(own), meant) => Some(own).filter(|own| meant.is_none_or(|meant| meant == own)),
        (None, Some(meant)) => tasks::exists(connection, meant).await?.then(|| meant.clone()),
        (None, None) => match readings::agents::tasks(connection, agent, 1).await?.pop() {
            Some(newest) => Some(newest),
            None => tasks::latest(connection).await?,
        },
    };
    Ok(task.map(|task| Conversation { agent: agent.clone(), task }))
}
