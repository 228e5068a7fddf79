//! Titles of tasks, printed above the messages if a command prints those of several tasks. A title is the first line of
//! the prompt.

use super::one_line;
use crate::failure::Failure;
use polity_runtime::Society;
use polity_society::id::{AgentId, TaskId};
use polity_view::Event;
use polity_view::EventFilter;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum length of a title, in characters.
const TITLE_CHARS: usize = 60;
/// Events per page when reading the store.
const PAGE: u32 = 500;

/// The titles of the tasks whose messages are printed; empty if there is only one task.
#[derive(Default)]
pub(crate) struct Titles(BTreeMap<TaskId, String>);

impl Titles {
    /// Reads the titles of tasks that earlier processes began, from the events of their prompts.
    pub(crate) async fn read(society: &Society, tasks: &BTreeSet<TaskId>) -> Result<Self, Failure> {
        let user = AgentId::user();
        let mut titles = BTreeMap::new();
        let mut seen = 0;
        while titles.len() < tasks.len() && seen < society.first_event() {
            let page = society.events_after(seen, PAGE, &EventFilter::default()).await?;
            if page.events.is_empty() {
                break;
            }
            seen = page.next;
            for entry in page.events {
                if let Event::MessageAccepted { task, from, text, .. } = entry.event
                    && from == user.as_str()
                    && tasks.contains(&task)
                {
                    titles.entry(task).or_insert_with(|| title(&text));
                }
            }
        }
        Ok(Self(titles))
    }

    /// Adds the title of a new task, taken from its prompt.
    pub(crate) fn add(&mut self, task: TaskId, prompt: &str) {
        self.0.insert(task, title(prompt));
    }

    /// Returns the title of a task; none if there is only one task.
    pub(crate) fn of(&self, task: &TaskId) -> Option<&str> {
        self.0.get(task).map(String::as_str)
    }
}

fn title(prompt: &str) -> String {
    one_line(prompt.trim_start().lines().next().unwrap_or_default(), TITLE_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles() {
        let check = |prompt: &str, expect: &str| assert_eq!(title(prompt), expect);
        check("看看这张图片", "看看这张图片");
        check("\n  First  line \r\nsecond", "First line");
        check(&"字".repeat(61), &format!("{}…", "字".repeat(60)));
    }
}
