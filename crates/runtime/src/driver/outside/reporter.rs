//! Writes the progress of a call as events.

use crate::handles::Handles;
use crate::head::head;
use polity_hands::call::Progress;
use polity_llm::ToolCall;
use polity_society::id::CallId;
use polity_store::{Conversation, events};
use polity_view::Event;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The shortest time between two progress events of a call.
const PAUSE: Duration = Duration::from_millis(250);

/// The writer of the progress events of a call. After each event, it pauses before it writes the next event.
pub(super) struct Reporter {
    newest: watch::Sender<String>,
    writer: JoinHandle<()>,
}

impl Reporter {
    pub(super) fn new(handles: &Arc<Handles>, conversation: &Conversation, call: &ToolCall) -> Self {
        let (newest, mut changed) = watch::channel(String::new());
        let (handles, owner) = (Arc::clone(handles), conversation.clone());
        let (id, tool) = (CallId::new(call.id.clone()), call.name.clone());
        let writer = tokio::spawn(async move {
            while changed.changed().await.is_ok() {
                let text = changed.borrow_and_update().clone();
                let event = Event::ToolProgress {
                    task: owner.task.clone(),
                    agent: owner.agent.clone(),
                    call: id.clone(),
                    tool: tool.clone(),
                    text: head(&text),
                };
                let write =
                    handles.store.write(move |tx| Box::pin(async move { events::append(tx, &event).await }));
                if let Err(error) = write.await {
                    tracing::warn!(%error, "failed to write the progress of a tool");
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self { newest, writer }
    }

    pub(super) fn progress(&self) -> Progress {
        let newest = self.newest.clone();
        Progress::new(move |text| {
            newest.send_replace(text.to_owned());
        })
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.writer.abort();
    }
}
