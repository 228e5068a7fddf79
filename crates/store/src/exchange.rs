//! The exchanges of clients that use the API of OpenAI. Each exchange stores a request of a client, the message that
//! the request became, the task of this message, and the message that answered the request. The caller decides which
//! task a request belongs to; this module stores that decision, so it survives a restart.

use crate::exchanges::{self, Exchange, GivenAnswer, NewExchange};
use crate::{Error, Store, events};
use polity_society::id::{AgentId, MessageId, TaskId};

/// The exchanges of a society. `Society::exchanges` of the runtime returns this value.
#[derive(Clone, Debug)]
pub struct Exchanges {
    store: Store,
}

impl Exchanges {
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// Returns the exchange with this key.
    pub async fn by_key(&self, key: &str) -> Result<Option<Exchange>, Error> {
        exchanges::by_key(&mut *self.store.reader().await?, key).await
    }

    /// Returns the newest exchange whose request has this fingerprint, and the number of the exchange. A fingerprint
    /// identifies a conversation by its texts. Numbers are never reused, even after a task was forgotten.
    pub async fn like(&self, request: &str) -> Result<Option<(Exchange, i64)>, Error> {
        exchanges::like(&mut *self.store.reader().await?, request).await
    }

    /// Returns the newest exchange whose answer ends a conversation with this fingerprint. An exchange does not count
    /// if a later exchange has continued its conversation. A later exchange that failed has not continued it.
    pub async fn ending(&self, reply: &str) -> Result<Option<Exchange>, Error> {
        exchanges::ending(&mut *self.store.reader().await?, reply).await
    }

    /// Finds the exchange whose request became this message, and returns the fingerprint of its conversation, from the
    /// beginning to the answer. Returns `None` if there is no such exchange, or if it has no answer yet.
    pub async fn reply_to(&self, message: &MessageId) -> Result<Option<String>, Error> {
        exchanges::reply_to(&mut *self.store.reader().await?, message).await
    }

    /// Stores a request and returns its exchange. If the key exists already, the stored exchange stays and is returned.
    pub async fn begin(&self, new: NewExchange) -> Result<Exchange, Error> {
        let written =
            self.store.write(move |tx| Box::pin(async move { exchanges::insert(tx, &new).await })).await?;
        written.ok_or(Error::WrongRows { what: "an exchange", expected: 1, hit: 0 })
    }

    /// Stores which message a request became, and in which task.
    pub async fn sent(&self, key: String, task: TaskId, message: MessageId) -> Result<(), Error> {
        self.store
            .write(move |tx| Box::pin(async move { exchanges::sent(tx, &key, &task, &message).await }))
            .await
    }

    /// Stores which answer a client got. Only the first answer is stored.
    pub async fn answered(&self, key: String, given: GivenAnswer) -> Result<(), Error> {
        self.store.write(move |tx| Box::pin(async move { exchanges::answered(tx, &key, &given).await })).await
    }

    /// Marks an exchange as failed, because the client was told that no answer exists.
    pub async fn failed(&self, key: String) -> Result<(), Error> {
        self.store.write(move |tx| Box::pin(async move { exchanges::failed(tx, &key).await })).await
    }

    /// Returns the answer to the message of an exchange. The search begins with the turn in which the agent read this
    /// message, and goes on to the first turn with a final text to the person. If this turn has several final texts,
    /// the newest of them is the answer.
    ///
    /// The answer is known once this turn has ended or the task has become idle. Two kinds of texts do not count. If
    /// the message of the exchange replies to a question, texts that are older than this message do not count. Another
    /// exchange may await the answer to the same message. The text that is its answer does not count here.
    pub async fn answer_of(&self, key: &str) -> Result<Option<MessageId>, Error> {
        exchanges::answer(&mut *self.store.reader().await?, key).await
    }

    /// Returns the task and the id of the message that the person sent with this idempotency key.
    pub async fn posted(&self, key: &str) -> Result<Option<(TaskId, MessageId)>, Error> {
        exchanges::posted(&mut *self.store.reader().await?, key).await
    }

    /// Returns a paused agent that delays the answer of an exchange: the receiver of the exchange's message, or the
    /// agent that the conversation is with. No answer can come until the person resumes this agent. Returns `None` if
    /// neither agent is paused.
    pub async fn paused(&self, key: &str) -> Result<Option<AgentId>, Error> {
        exchanges::paused(&mut *self.store.reader().await?, key).await
    }

    /// Returns the number of the event about a message, or `None` if the event was removed.
    pub async fn event_of(&self, message: &MessageId, task: &TaskId) -> Result<Option<i64>, Error> {
        let entry = events::of_message(&mut *self.store.reader().await?, message, task).await?;
        Ok(entry.map(|entry| entry.seq))
    }
}

#[cfg(test)]
mod tests;
