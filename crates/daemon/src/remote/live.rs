//! What the agents of a society are doing at this moment, as lines for a terminal. The data come from the glimpses of
//! an event stream. A glimpse is a short report of what an agent is doing and what its model has just written.

use crate::output::table::{DIM, HELD, NAME, PLAIN, painted};
use crate::output::wrapped::{Line, wrapped};
use crate::output::{harmless, shortened};
use polity_society::id::{AgentId, TaskId};
use polity_view::{Doing, Glimpse, Said};
use std::collections::BTreeMap;
use unicode_width::UnicodeWidthChar;

/// Maximum number of agents that are shown.
const AGENTS: usize = 6;
/// Maximum number of lines for all agents together; the first agent is shown even if it needs more. On a narrow terminal,
/// the words about silent servers take many lines, and lines above the first row of the terminal cannot be removed.
const LINES: usize = 18;
/// Maximum number of lines for the text that root's model is writing; the end of the text is shown.
const TEXT_LINES: usize = 4;
/// Number of bytes to keep at the end of a text: more than the lines can show.
const KEPT: usize = 4_000;

/// The agents that are at work.
#[derive(Debug, Default)]
pub(crate) struct Live {
    agents: BTreeMap<(AgentId, TaskId), AtWork>,
}

/// What one agent is doing, and the part of the model's answer that has arrived so far.
#[derive(Debug)]
struct AtWork {
    doing: Doing,
    saying: Saying,
}

/// What has arrived of a model's unfinished answer. Only the ends of long texts are kept.
#[derive(Debug, Default)]
pub(crate) struct Saying {
    answer: u64,
    text: String,
    reasoning: String,
    calls: Vec<String>,
}

impl Live {
    /// Takes in a glimpse of the event stream, which tells what one agent is doing.
    pub(crate) fn see(&mut self, glimpse: Glimpse) {
        let Glimpse { agent, task, doing, said } = glimpse;
        let Some(doing) = doing else {
            self.agents.remove(&(agent, task));
            return;
        };
        let entry = self.agents.entry((agent, task));
        let at_work = entry.or_insert_with(|| AtWork { doing: doing.clone(), saying: Saying::default() });
        if !matches!(doing, Doing::Thinking { .. }) {
            at_work.saying = Saying::default();
        }
        at_work.doing = doing;
        if let Some(said) = said {
            at_work.saying.hear(said);
        }
    }

    /// Forgets what all agents are doing. The caller does this when the event stream is connected again, because
    /// glimpses may have been lost while the stream was not connected.
    pub(crate) fn forget(&mut self) {
        self.agents.clear();
    }

    /// Returns the lines for the agents of these tasks, root first: what the agent is doing, how long its server has been
    /// silent and what happens when, and the end of the text that its model is writing. Lines that are wider than
    /// `columns` are cut and end with `…`, but the words about a silent server go on in the next line. If `tasks` is
    /// empty, returns the lines for all tasks. If agents work in several tasks, the line of each agent names its task.
    pub(crate) fn lines(&self, tasks: &[TaskId], columns: usize, now: i64) -> Vec<String> {
        let mut agents: Vec<_> =
            self.agents.iter().filter(|((_, task), _)| tasks.is_empty() || tasks.contains(task)).collect();
        let has_several = agents.windows(2).any(|pair| pair[0].0.1 != pair[1].0.1);
        agents.sort_by_key(|((agent, _), at_work)| (!agent.is_root(), order(&at_work.doing)));
        let mut more = agents.len();
        let mut lines = Vec::new();
        for ((agent, task), at_work) in agents.into_iter().take(AGENTS) {
            let (words, silence) = at_work.doing.words_apart(now);
            let (name, words) = (painted(NAME, agent.as_str()), painted(PLAIN, &words));
            let mut own = vec![match has_several {
                true => format!("{name} {} {words}", painted(DIM, &format!("in {task}"))),
                false => format!("{name} {words}"),
            }];
            if let Some(silence) = silence {
                let silence = wrapped(&[Line::new(2, HELD, &silence)], Some(columns));
                own.extend(silence.lines().map(str::to_owned));
            }
            if agent.is_root() {
                own.extend(at_work.saying.lines(columns));
            } else if let Some(line) = at_work.saying.line() {
                own.push(format!("  {}", painted(DIM, &line)));
            }
            if !lines.is_empty() && lines.len() + own.len() > LINES {
                break;
            }
            lines.append(&mut own);
            more -= 1;
        }
        if more > 0 {
            lines.push(painted(DIM, &format!("{more} more are at work")));
        }
        lines.iter().map(|line| shortened(line, columns)).collect()
    }
}

/// Returns the sort key of an agent with this activity: the agent that is nearest to an answer comes first.
fn order(doing: &Doing) -> (u8, u64) {
    match doing {
        Doing::Thinking { .. } => (0, 0),
        Doing::Running { .. } => (1, 0),
        Doing::Retrying { .. } => (2, 0),
        Doing::Queued { place, .. } => (3, place.unwrap_or_default()),
        _ => (4, 0),
    }
}

impl Saying {
    /// Adds the next piece of the answer, or begins another answer.
    pub(crate) fn hear(&mut self, said: Said) {
        if said.answer != self.answer {
            *self = Self { answer: said.answer, ..Self::default() };
        }
        add(&mut self.text, &said.text, said.text_skipped);
        add(&mut self.reasoning, &said.reasoning, said.reasoning_skipped);
        if !said.calls.is_empty() {
            self.calls = said.calls;
        }
    }

    /// Returns the end of the answer as one line; `None` if nothing has been said.
    pub(crate) fn line(&self) -> Option<String> {
        if let Some(tool) = self.calls.last() {
            return Some(format!("→ {tool}"));
        }
        let said = if self.text.trim().is_empty() { &self.reasoning } else { &self.text };
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let count = words.chars().count();
        let end: String = words.chars().skip(count.saturating_sub(60)).collect();
        (!end.is_empty()).then(|| if count > 60 { format!("…{end}") } else { end })
    }

    /// Returns the end of the answer as several lines: first the text, then the tool calls. While there is no text yet,
    /// one dim line of the reasoning stands in its place.
    fn lines(&self, columns: usize) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.reasoning.trim().is_empty() && self.text.trim().is_empty() {
            let last = self.reasoning.trim_end().lines().next_back().unwrap_or_default();
            lines.push(format!("  {}", painted(DIM, &format!("({})", last.trim()))));
        }
        let width = columns.saturating_sub(2).max(1);
        let text = harmless(&self.text);
        let rows: Vec<String> = text.lines().flat_map(|line| folded(line, width)).collect();
        lines.extend(rows.iter().skip(rows.len().saturating_sub(TEXT_LINES)).map(|row| format!("  {row}")));
        if !self.calls.is_empty() {
            lines.push(format!("  {}", painted(DIM, &format!("→ {}", self.calls.join(", ")))));
        }
        lines
    }
}

fn add(text: &mut String, piece: &str, skipped: bool) {
    if skipped {
        text.push('…');
    }
    text.push_str(piece);
    if text.len() > 2 * KEPT {
        text.drain(..text.ceil_char_boundary(text.len() - KEPT));
    }
}

/// Folds a line into rows of at most this width.
fn folded(line: &str, width: usize) -> Vec<String> {
    let (mut rows, mut row, mut used) = (Vec::new(), String::new(), 0);
    for character in line.chars() {
        let needed = character.width().unwrap_or_default();
        if used + needed > width && !row.is_empty() {
            rows.push(std::mem::take(&mut row));
            used = 0;
        }
        row.push(if character == '\t' { ' ' } else { character });
        used += needed;
    }
    if !row.is_empty() {
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::without_styles;
    use polity_society::id::ServiceId;
    use polity_view::{NextAttempt, Silence};
    use proptest::prelude::*;

    fn thinking(tokens: u64) -> Doing {
        Doing::Thinking {
            task: TaskId::new("t-1"),
            service: ServiceId::new("local"),
            attempt: 1,
            since: 1_000,
            first_byte: Some(2_000),
            tokens,
            silence: None,
        }
    }

    /// The server of this agent has sent nothing since 1,000.
    fn silent() -> Doing {
        let silence = Silence { since: 1_000, until: 61_000, then: NextAttempt::Retry, fallback: None };
        Doing::Thinking {
            task: TaskId::new("t-1"),
            service: ServiceId::new("local"),
            attempt: 1,
            since: 1_000,
            first_byte: None,
            tokens: 0,
            silence: Some(silence),
        }
    }

    fn glimpse(agent: &str, doing: Option<Doing>, said: Option<Said>) -> Glimpse {
        Glimpse { agent: AgentId::new(agent), task: TaskId::new("t-1"), doing, said }
    }

    fn said(text: &str, reasoning: &str, calls: &[&str]) -> Option<Said> {
        let calls = calls.iter().map(|call| (*call).to_owned()).collect();
        Some(Said {
            answer: 1,
            text: text.to_owned(),
            reasoning: reasoning.to_owned(),
            calls,
            ..Said::default()
        })
    }

    #[track_caller]
    fn check(live: &Live, expect: &[&str]) {
        let lines = live.lines(&[TaskId::new("t-1")], 40, 4_000);
        assert_eq!(lines.iter().map(|line| without_styles(line)).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn root_is_first_and_says_what_its_model_says() {
        let mut live = Live::default();
        let queued = Doing::Queued {
            task: TaskId::new("t-1"),
            service: ServiceId::new("local"),
            place: Some(1),
            since: 4_000,
            closed_until: None,
        };
        live.see(glimpse("helper-1", Some(queued), None));
        live.see(glimpse("root", Some(thinking(3)), said("", "first\nwell then", &[])));
        check(
            &live,
            &["root thinking at local, 3 s, 3 tokens", "  (well then)", "helper-1 queued for local, place 1"],
        );
        live.see(glimpse("root", Some(thinking(9)), said("It is \u{1b}[2J", "", &[])));
        live.see(glimpse("root", Some(thinking(9)), said("done.", "", &["send_message"])));
        check(
            &live,
            &[
                "root thinking at local, 3 s, 9 tokens",
                "  It is <U+001B>[2Jdone.",
                "  → send_message",
                "helper-1 queued for local, place 1",
            ],
        );
        live.see(glimpse("helper-1", None, None));
        live.see(glimpse("root", None, None));
        check(&live, &[]);
    }

    #[test]
    fn all_words_about_a_silent_server_are_shown() {
        let mut live = Live::default();
        live.see(glimpse("root", Some(silent()), None));
        live.see(glimpse("helper-1", Some(thinking(0)), None));
        let check = |columns: usize, expect: &[&str]| {
            let lines = live.lines(&[], columns, 13_000);
            assert_eq!(lines.iter().map(|line| without_styles(line)).collect::<Vec<_>>(), expect);
        };
        check(
            80,
            &[
                "root thinking at local",
                "  silent for 12 s; polity ends this attempt in 48 s, then asks it again",
                "helper-1 thinking at local, 12 s",
            ],
        );
        check(
            40,
            &[
                "root thinking at local",
                "  silent for 12 s; polity ends this",
                "    attempt in 48 s, then asks it again",
                "helper-1 thinking at local, 12 s",
            ],
        );
    }

    #[test]
    fn on_a_narrow_terminal_fewer_agents_are_shown() {
        let mut live = Live::default();
        for agent in ["root", "a", "b", "c", "d", "e"] {
            live.see(glimpse(agent, Some(silent()), None));
        }
        let lines = live.lines(&[], 20, 13_000);
        let lines: Vec<String> = lines.iter().map(|line| without_styles(line)).collect();
        assert_eq!(lines.len(), LINES + 1, "{lines:?}");
        assert_eq!(lines.last().map(String::as_str), Some("3 more are at work"));
    }

    #[test]
    fn the_lines_of_several_tasks_name_their_tasks() {
        let mut live = Live::default();
        live.see(glimpse("root", Some(thinking(0)), None));
        live.see(Glimpse { task: TaskId::new("t-2"), ..glimpse("root", Some(thinking(0)), None) });
        let lines = |tasks: &[TaskId]| {
            let lines = live.lines(tasks, 40, 4_000);
            lines.iter().map(|line| without_styles(line)).collect::<Vec<String>>()
        };
        assert_eq!(lines(&[]), ["root in t-1 thinking at local, 3 s", "root in t-2 thinking at local, 3 s"]);
        assert_eq!(lines(&[TaskId::new("t-2")]), ["root thinking at local, 3 s"]);
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(texts in prop::collection::vec("[a-z字 \n\u{1b}]{0,50}", 0..8), columns in 1_usize..60) {
            let mut live = Live::default();
            for (index, text) in texts.iter().enumerate() {
                let agent = if index % 2 == 0 { "root" } else { "helper-1" };
                let doing = if index % 3 == 0 { silent() } else { thinking(1) };
                live.see(glimpse(agent, Some(doing), said(text, text, &[])));
            }
            for line in live.lines(&[], columns, 0) {
                let width: usize = without_styles(&line).chars().filter_map(UnicodeWidthChar::width).sum();
                prop_assert!(width <= columns, "{line:?}");
                prop_assert!(!line.contains('\n'));
            }
        }
    }
}
