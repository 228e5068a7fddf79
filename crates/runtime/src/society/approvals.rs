//! Questions to the person about calls, and the permissions that the person gave.

use super::Society;
use crate::approvals::{self as questions, AnswerError, PermissionError};
use polity_society::id::{ApprovalId, PermissionId};
use polity_society::policy::Remembered;
use polity_store::Error;
use polity_store::approvals::{self, Approval, Permission};
use polity_view::{ApprovalAnswer, ApprovalFilter, ApprovalPage, ApprovalView, PermissionView};

impl Society {
    /// Returns a page of questions, newest first.
    pub async fn approvals(&self, filter: &ApprovalFilter) -> Result<ApprovalPage, Error> {
        let mut reader = self.handles.store.reader().await?;
        let (approvals, next) = approvals::list(&mut reader, filter).await?;
        Ok(ApprovalPage { approvals: approvals.into_iter().map(shown).collect(), next })
    }

    /// Returns a question; `None` if there is no question with this id.
    pub async fn approval(&self, id: &ApprovalId) -> Result<Option<ApprovalView>, Error> {
        let mut reader = self.handles.store.reader().await?;
        Ok(approvals::get(&mut reader, id).await?.map(shown))
    }

    /// Accepts the person's answer to a question. The agent whose call caused the question then continues its turn.
    pub async fn answer_approval(
        &self,
        id: ApprovalId,
        answer: ApprovalAnswer,
    ) -> Result<ApprovalView, AnswerError> {
        let ApprovalAnswer { answer, reason } = answer;
        questions::answer(&self.handles.store, id, answer, reason).await.map(shown)
    }

    /// Returns all permissions, oldest first.
    pub async fn permissions(&self) -> Result<Vec<PermissionView>, Error> {
        let mut reader = self.handles.store.reader().await?;
        let all = approvals::permissions(&mut reader, None).await?;
        Ok(all.into_iter().map(permission).collect())
    }

    /// Removes a permission. The person is then asked again before each call that the permission would have allowed.
    pub async fn remove_permission(&self, id: PermissionId) -> Result<(), PermissionError> {
        questions::remove_permission(&self.handles.store, id).await
    }
}

fn shown(approval: Approval) -> ApprovalView {
    let Approval { id, asker, asked, state, answer, note, asked_at, answered_at } = approval;
    ApprovalView {
        id,
        task: asker.task,
        agent: asker.agent,
        role: asked.role,
        tool: asked.tool,
        arguments: asked.arguments,
        preview: asked.preview,
        why: asked.why,
        way: asked.way,
        state,
        answer,
        reason: note,
        asked_at: asked_at.as_millis(),
        expires_at: asked.expires_at.as_millis(),
        answered_at: answered_at.map(|at| at.as_millis()),
    }
}

fn permission(permission: Permission) -> PermissionView {
    let Permission { id, task, tool, role, calls, created_at } = permission;
    let in_words = serde_json::from_value::<Remembered>(calls.clone());
    PermissionView {
        id,
        task,
        tool,
        role,
        // A permission that a later version of polity wrote may be unknown to this version. Such a permission is
        // shown as it is stored.
        calls: in_words.map_or_else(|_| calls.to_string(), |remembered| questions::permitted(&remembered)),
        created_at: created_at.as_millis(),
    }
}
