//! What tasks are called where the answers of several are printed: by the first line of the prompt.

use super::one_line;
use crate::failure::Failure;
use polity_runtime::view::EventFilter;
use polity_runtime::{Event, Society};
use polity_society::id::{AgentId, TaskId};
use std::collections::{BTreeMap, BTreeSet};

/// How much of a prompt is a title, in characters.
const TITLE_CHARS: usize = 60;
/// How many events are read at once.
const PAGE: u32 = 500;

/// The titles of the tasks whose answers are printed; none where it is one task alone.
#[derive(Default)]
pub(crate) struct Titles(BTreeMap<TaskId, String>);

impl Titles {
    /// The titles of tasks that other processes have begun, by what the events tell of their prompts.
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

    /// Adds the title of a task that begins with this prompt.
    pub(crate) fn add(&mut self, task: TaskId, prompt: &str) {
        self.0.insert(task, title(prompt));
    }

    /// The title of a task, where it needs one.
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
