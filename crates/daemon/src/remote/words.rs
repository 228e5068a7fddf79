//! Formats small values, such as times and usage, in the same way in every list.

use crate::output::table::{BAD, BUSY, DIM, HELD, PLAIN};
use crate::suggested::quoted;
use anstyle::Style;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use polity_society::message::MessageState;
use polity_view::Outcome;
use polity_view::{AgentState, TaskState, TaskView, UsageSum};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::OnceLock;

/// The function that returns the time zone of all shown times. The tests of this crate do not set it. They show UTC, so
/// their results do not depend on the machine.
static ZONE: OnceLock<fn() -> TimeZone> = OnceLock::new();

/// Returns the option `--data` for a command that polity suggests, with a blank before it; empty if the user did not
/// give the option.
pub(crate) fn data_option(data: Option<&str>) -> String {
    data.map_or_else(String::new, |data| format!(" --data {}", quoted(data)))
}

/// Returns the time now, in milliseconds since 1970.
pub(crate) fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Makes this process show times in the local time zone. Without this call, it shows them in UTC.
pub(crate) fn show_local_times() {
    // `set` fails only if this function was called before.
    let _ = ZONE.set(TimeZone::system);
}

/// Formats a time to the second, in the zone of [`show_local_times`]. `at` is in milliseconds since 1970.
pub(crate) fn moment(at: i64) -> String {
    moment_in(at, ZONE.get().map_or(TimeZone::UTC, |zone| zone()))
}

fn moment_in(at: i64, zone: TimeZone) -> String {
    Timestamp::from_millisecond(at)
        .map(|at| at.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S").to_string())
        .unwrap_or_else(|_| at.to_string())
}

/// Formats the time of day, in the same zone as [`moment`].
pub(crate) fn clock(at: i64) -> String {
    moment(at).split_once(' ').map_or_else(String::new, |(_, time)| time.to_owned())
}

/// Formats usage, such as `2 calls, 1200 + 34 tokens, 0.0123`; empty if there were no calls.
pub(crate) fn usage(usage: &UsageSum) -> String {
    let UsageSum { calls, prompt_tokens, completion_tokens, cost } = usage;
    if *calls == 0 {
        return String::new();
    }
    let plural = if *calls == 1 { "" } else { "s" };
    let cost = cost.map_or_else(String::new, |cost| format!(", {cost:.4}"));
    format!("{calls} call{plural}, {prompt_tokens} + {completion_tokens} tokens{cost}")
}

/// Returns the name of an enum variant, as JSON spells it.
pub(crate) fn name_of(variant: &impl Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(other) => other.to_string(),
        // Serializing a variant without fields never fails.
        Err(_) => String::new(),
    }
}

/// Parses the name of an enum variant, as JSON spells it, from the command line.
pub(crate) fn variant<T: DeserializeOwned>(name: &str) -> Result<T, String> {
    // The error of serde lists the valid names.
    serde_json::from_value(serde_json::Value::String(name.to_owned())).map_err(|error| error.to_string())
}

/// Returns the style for the state of an agent.
pub(crate) fn agent_style(state: AgentState) -> Style {
    match state {
        AgentState::Thinking | AgentState::Running => BUSY,
        AgentState::Queued | AgentState::Ready | AgentState::Waiting => PLAIN,
        AgentState::Asking | AgentState::Retrying | AgentState::Parked | AgentState::Paused => HELD,
        AgentState::Idle | AgentState::Ended => DIM,
    }
}

/// Returns the style for the state of a message.
pub(crate) fn message_style(state: MessageState) -> Style {
    match state {
        MessageState::Failed | MessageState::Bounced | MessageState::Unanswered => BAD,
        MessageState::InTurn => BUSY,
        MessageState::Delayed | MessageState::Queued | MessageState::Done | MessageState::Answered => DIM,
    }
}

/// Returns the outcome of an idle task, or the state of any other task, with the style for this text.
pub(crate) fn standing(task: &TaskView) -> (Style, String) {
    match (task.state, task.outcome) {
        (TaskState::Open, _) => (BUSY, "open".to_owned()),
        (TaskState::Idle, None) => (DIM, "idle".to_owned()),
        (TaskState::Idle, Some(outcome)) => (outcome_style(outcome), name_of(&outcome)),
    }
}

fn outcome_style(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Answered => DIM,
        Outcome::AwaitsUser => HELD,
        Outcome::Unanswered | Outcome::NoModel | Outcome::Limited => BAD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let check = |at: i64, expect: &str| assert_eq!(moment_in(at, TimeZone::UTC), expect);
        check(0, "1970-01-01 00:00:00");
        check(1_700_000_000_999, "2023-11-14 22:13:20");
        check(i64::MAX, "9223372036854775807");
    }

    #[test]
    fn what_was_spent() {
        let check = |calls, cost, expect: &str| {
            let sum = UsageSum { calls, prompt_tokens: 1200, completion_tokens: 34, cost };
            assert_eq!(usage(&sum), expect);
        };
        check(0, None, "");
        check(1, None, "1 call, 1200 + 34 tokens");
        check(2, Some(0.01234), "2 calls, 1200 + 34 tokens, 0.0123");
    }

    #[test]
    fn variants_by_name() {
        assert_eq!(variant::<AgentState>("parked"), Ok(AgentState::Parked));
        let error = variant::<AgentState>("asleep").unwrap_err();
        assert!(error.contains("thinking") && error.contains("ended"), "{error}");
        assert_eq!(name_of(&AgentState::Thinking), "thinking");
        assert_eq!(name_of(&Outcome::AwaitsUser), "awaits_user");
    }
}
