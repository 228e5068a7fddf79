//! What programs that speak of conversations ask: which request became which message of which task, and what was given
//! as its answer. Who maps conversations to tasks decides; this writes it down, so that a restart changes nothing.

use crate::exchanges::{self, Exchange, Given, NewExchange};
use crate::{Error, Store, events};
use polity_society::id::{AgentId, MessageId, TaskId};

/// The exchanges of a society. `Society::exchanges` gives it.
#[derive(Clone, Debug)]
pub struct Exchanges {
    store: Store,
}

impl Exchanges {
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// The exchange with this key.
    pub async fn by_key(&self, key: &str) -> Result<Option<Exchange>, Error> {
        exchanges::by_key(&mut *self.store.reader().await?, key).await
    }

    /// The newest exchange in which the same was asked, with its number. Numbers are never used again, whatever is
    /// forgotten.
    pub async fn like(&self, request: &str) -> Result<Option<(Exchange, i64)>, Error> {
        exchanges::like(&mut *self.store.reader().await?, request).await
    }

    /// The newest exchange at whose answer a conversation stands still: one that has gone on since is not meant, but for
    /// what failed.
    pub async fn ending(&self, reply: &str) -> Result<Option<Exchange>, Error> {
        exchanges::ending(&mut *self.store.reader().await?, reply).await
    }

    /// The fingerprint of a conversation up to the answer of the exchange that this message began; none where it has none.
    pub async fn reply_to(&self, message: &MessageId) -> Result<Option<String>, Error> {
        exchanges::reply_to(&mut *self.store.reader().await?, message).await
    }

    /// Writes a request down. Where one has its key already, that one stays; gives the one that is there now.
    pub async fn begin(&self, new: NewExchange) -> Result<Exchange, Error> {
        let written =
            self.store.write(move |tx| Box::pin(async move { exchanges::insert(tx, &new).await })).await?;
        written.ok_or(Error::WrongRows { what: "an exchange", expected: 1, hit: 0 })
    }

    /// Notes which message a request became.
    pub async fn sent(&self, key: String, task: TaskId, message: MessageId) -> Result<(), Error> {
        self.store
            .write(move |tx| Box::pin(async move { exchanges::sent(tx, &key, &task, &message).await }))
            .await
    }

    /// Notes that the answer is given. The first one stays.
    pub async fn answered(&self, key: String, given: Given) -> Result<(), Error> {
        self.store.write(move |tx| Box::pin(async move { exchanges::answered(tx, &key, &given).await })).await
    }

    /// Notes that there is no answer.
    pub async fn failed(&self, key: String) -> Result<(), Error> {
        self.store.write(move |tx| Box::pin(async move { exchanges::failed(tx, &key).await })).await
    }

    /// The message that is the answer of an exchange: the last word of the first turn in which whoever was asked has
    /// said one to the person since it heard the message it awaits. It is known once that turn has ended, or the task has
    /// come to rest. Where the message of the exchange replies to a question, only what comes after it counts. What was given in an earlier exchange that awaits the same is not given again.
    pub async fn answer_of(&self, key: &str) -> Result<Option<MessageId>, Error> {
        exchanges::answer(&mut *self.store.reader().await?, key).await
    }

    /// The task and the message that the person has written under a key of its own.
    pub async fn posted(&self, key: &str) -> Result<Option<(TaskId, MessageId)>, Error> {
        exchanges::posted(&mut *self.store.reader().await?, key).await
    }

    /// Of those that an exchange is with, one that the person has paused: nothing comes from it until it is resumed.
    pub async fn paused(&self, key: &str) -> Result<Option<AgentId>, Error> {
        exchanges::paused(&mut *self.store.reader().await?, key).await
    }

    /// The number of the event that told of a message; none once it was removed.
    pub async fn event_of(&self, message: &MessageId, task: &TaskId) -> Result<Option<i64>, Error> {
        let entry = events::of_message(&mut *self.store.reader().await?, message, task).await?;
        Ok(entry.map(|entry| entry.seq))
    }
}

#[cfg(test)]
mod tests;
