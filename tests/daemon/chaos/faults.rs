//! Answers the requests to the models. Some of the answers are bad. A seed, the request and the earlier answers
//! determine each answer. Records all answers.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use polity_tests::{Answer, Call, Conversation};
use serde_json::{Value, json};

use super::society::{Act, act, name};

/// Percentage of requests that get a bad answer.
const BAD: u8 = 30;
/// Maximum number of failed requests of one call, at all services together. After these, the next request gets a good
/// answer. The limit is four because a call has six attempts. The fifth attempt may fail without a request, because
/// another call failed. Then the sixth gets the good answer.
const MOST_OF_A_CALL: u32 = 4;
/// The length of the pause that a service asks for.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// A way in which a model answers badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// HTTP 429 that asks for a pause of [`PAUSE`].
    Paused,
    /// HTTP 429 that asks for a pause of zero seconds.
    PausedForNothing,
    /// HTTP 429 that asks for a pause until a date in the past.
    PausedUntilThen,
    /// HTTP 429 that does not mention a pause.
    RateLimited,
    /// HTTP 500.
    Down,
    /// HTTP 503.
    Overloaded,
    Hang,
    Reset,
    Half,
    Torn,
    BrokenJson,
    Html,
    /// An answer with neither text nor calls.
    Empty,
    UnknownTool,
    /// Calls that all have the same id.
    DoubledIds,
    /// Arguments that are almost JSON.
    Malformed,
}

const FAULTS: [Fault; 16] = [
    Fault::Paused,
    Fault::PausedForNothing,
    Fault::PausedUntilThen,
    Fault::RateLimited,
    Fault::Down,
    Fault::Overloaded,
    Fault::Hang,
    Fault::Reset,
    Fault::Half,
    Fault::Torn,
    Fault::BrokenJson,
    Fault::Html,
    Fault::Empty,
    Fault::UnknownTool,
    Fault::DoubledIds,
    Fault::Malformed,
];

impl Fault {
    /// Returns the kind of failure that the daemon reports in events; `None` if the daemon accepts the bad answer as
    /// a normal answer.
    pub(super) fn failure(self) -> Option<&'static str> {
        match self {
            Self::Paused | Self::PausedForNothing | Self::PausedUntilThen | Self::RateLimited => {
                Some("rate_limited")
            }
            Self::Down | Self::Overloaded => Some("passing"),
            Self::Hang => Some("timed_out"),
            Self::Reset | Self::Half | Self::Torn => Some("broken_off"),
            Self::BrokenJson | Self::Html => Some("not_an_answer"),
            Self::Empty | Self::UnknownTool | Self::DoubledIds | Self::Malformed => None,
        }
    }

    /// Returns whether the fault counts as a failure of the server. After several such failures in a row, the daemon
    /// opens the circuit of the service: it sends the service no requests for a while.
    fn blames_server(self) -> bool {
        matches!(self.failure(), Some("passing" | "timed_out" | "broken_off"))
    }

    fn answer(self, act: Act) -> Answer {
        let error = |status: u16| Answer::error(status, json!({"error": {"message": "no luck this time"}}));
        match self {
            Self::Paused => error(429).retry_after(PAUSE.as_secs()),
            Self::PausedForNothing => error(429).retry_after(0),
            Self::PausedUntilThen => error(429).retry_after_text("Sat, 21 Nov 2015 10:00:00 GMT"),
            Self::RateLimited => error(429),
            Self::Down => error(500),
            Self::Overloaded => error(503),
            Self::Hang => Answer::hang(),
            Self::Reset => Answer::reset(),
            Self::Half => act.answer().half(),
            Self::Torn => act.answer().torn(),
            Self::BrokenJson => Answer::raw("application/json", r#"{"choices": [{"#),
            Self::Html => Answer::raw("text/html", "<!doctype html><title>Router login</title>"),
            Self::Empty => Answer::nothing(),
            Self::UnknownTool => Answer::call("rm_rf", json!({"path": "/"})),
            Self::DoubledIds => with_one_id(act),
            Self::Malformed => malformed(act),
        }
    }
}

/// Returns the intended calls, or two harmless calls if the intended answer contains only text. All these calls have
/// the same id. The history may already contain a call with this id.
fn with_one_id(act: Act) -> Answer {
    let calls = match act {
        Act::Call(calls) => calls,
        Act::Say(_) => vec![Call::new("list_contacts", json!({})), Call::new("list_artifacts", json!({}))],
    };
    let calls: Vec<Value> = (0..)
        .zip(calls)
        .map(|(index, Call { tool, arguments })| {
            let function = json!({"name": tool, "arguments": arguments});
            json!({"index": index, "id": "call_1", "type": "function", "function": function})
        })
        .collect();
    let choice = json!({"index": 0, "delta": {"tool_calls": calls}, "finish_reason": "tool_calls"});
    Answer::raw("text/event-stream", format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [choice]})))
}

/// Returns the intended calls; the arguments of the first call lack their last brace.
fn malformed(act: Act) -> Answer {
    let Act::Call(mut calls) = act else { panic!("expected calls") };
    let first = calls.first_mut().expect("a call");
    first.arguments.pop();
    Answer::calls(calls)
}

/// A request and its answer.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    /// Identifies the call. It is a hash of the agent and its history, because both are the same in all attempts of a
    /// call.
    pub(super) call: u64,
    pub(super) agent: String,
    pub(super) service: String,
    pub(super) arrived: Instant,
    /// The time just before the answer was sent.
    pub(super) answered: Instant,
    /// `None` for a good answer.
    pub(super) fault: Option<Fault>,
}

/// Number of calls that a service takes at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Places {
    One,
    Three,
}

/// Plays the models of all services.
pub(super) struct Chaos {
    seed: u64,
    places: Places,
    /// The name of an agent whose calls all fail.
    hopeless: Option<&'static str>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    exchanges: Vec<Exchange>,
    /// For each call, the number of failed attempts since its last answer.
    failed: BTreeMap<u64, u32>,
    /// For each service, the number of its latest failures in a row. Only failures that can open its circuit count.
    in_a_row: BTreeMap<String, u32>,
}

impl Chaos {
    pub(super) fn new(seed: u64, places: Places, hopeless: Option<&'static str>) -> Self {
        Self { seed, places, hopeless, state: Mutex::default() }
    }

    /// Returns all requests so far, in the order of their answers.
    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).exchanges.clone()
    }

    /// Answers a request with the intended answer, or with a fault.
    pub(super) fn answer(&self, asked: &Conversation) -> Answer {
        let arrived = Instant::now();
        let act = act(asked);
        let (agent, call) = (asked.agent_id(), hash(&(asked.agent_id(), &history(asked))));
        let service = asked.model().strip_suffix("-model").expect("a model of these tests").to_owned();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = self.choose(&state, asked, &act, call, &service);
        let failed = state.failed.entry(call).or_default();
        *failed = if fault.and_then(Fault::failure).is_some() { *failed + 1 } else { 0 };
        let in_a_row = state.in_a_row.entry(service.clone()).or_default();
        *in_a_row = if fault.is_some_and(Fault::blames_server) { *in_a_row + 1 } else { 0 };
        let answered = Instant::now();
        state.exchanges.push(Exchange { call, agent, service, arrived, answered, fault });
        drop(state);
        match fault {
            Some(fault) => fault.answer(act),
            None => act.answer(),
        }
    }

    fn choose(
        &self,
        state: &State,
        asked: &Conversation,
        act: &Act,
        call: u64,
        service: &str,
    ) -> Option<Fault> {
        let of_service = || state.exchanges.iter().filter(|exchange| exchange.service == service);
        let times = |fault: Fault| of_service().filter(|exchange| exchange.fault == Some(fault)).count();
        let seen = state.exchanges.iter().filter(|exchange| exchange.call == call).count();
        let failed = state.failed.get(&call).copied().unwrap_or_default();
        let in_a_row = state.in_a_row.get(service).copied().unwrap_or_default();

        let mut lots = Rng::with_seed(hash(&(self.seed, what_is_asked(asked), seen)));
        let hopeless =
            self.hopeless == Some(name(asked).as_str()) && !asked.system().contains("in its stead");
        let bad = lots.u8(..100) < BAD;
        let mut fault = FAULTS[lots.usize(..FAULTS.len())];
        if hopeless {
            // This agent must never succeed. All its answers are faults of a kind that comes at once and makes no other
            // call wait.
            fault = [Fault::Down, Fault::RateLimited, Fault::Html, Fault::Torn][lots.usize(..4)];
        } else if failed >= MOST_OF_A_CALL {
            return None;
        } else if of_service().count() >= 15 && times(Fault::Paused) == 0 {
            fault = Fault::Paused;
        } else if self.places == Places::One && (40..46).contains(&of_service().count()) {
            // Several failures in a row open the circuit of the service.
            fault = Fault::Overloaded;
        } else if !bad {
            return None;
        }
        let fault = match fault {
            // `Paused` and `Hang` take long. So at each service, `Paused` occurs at most twice, and `Hang` at most
            // once.
            Fault::Paused if times(fault) >= 2 => Fault::RateLimited,
            Fault::Hang if times(fault) >= 1 => Fault::Reset,
            // Only the first request of an agent gets an empty answer. Later in a turn, an empty answer would count as
            // an answer, and two empty answers in a row would end the turn.
            Fault::Empty if seen > 0 || asked.messages().len() > 2 || asked.heard().len() > 1 => Fault::Html,
            Fault::Malformed if matches!(act, Act::Say(_)) => Fault::DoubledIds,
            Fault::UnknownTool | Fault::Malformed if was_refused(asked) => Fault::Half,
            _ => fault,
        };
        // The circuit of a service opens after five failures in a row. The next request is a probe: a single request
        // that tests whether the service works again. So a sixth failure is a failed probe, and it uses up one attempt
        // of every waiting call. The calls can afford one failed probe but not two, so the faults stop before a second
        // probe. With three calls at a time, the limit is lower, because the failures of these calls may come in
        // another order.
        let most_in_a_row = match self.places {
            Places::One => 6,
            Places::Three => 4,
        };
        match fault.blames_server() && in_a_row >= most_in_a_row {
            true => hopeless.then_some(Fault::Html),
            false => Some(fault),
        }
    }
}

/// Returns whether the daemon refused a call in the model's newest answer.
fn was_refused(asked: &Conversation) -> bool {
    let newest = asked.messages().iter().rev().take_while(|message| message["role"] != "assistant").count();
    let results = asked.tool_results();
    results.iter().rev().take(newest).any(|result| result.error().is_some())
}

/// Returns the history in a request, without the system message, which differs between services.
fn history(asked: &Conversation) -> String {
    let messages = asked.messages().get(1..).unwrap_or_default();
    Value::Array(messages.to_vec()).to_string()
}

/// Returns the part of a request that is the same in every run: the name of the agent, the tools that it has called
/// and the texts that it has heard. Leaves out ids, because they are random.
fn what_is_asked(asked: &Conversation) -> (String, Vec<String>, Vec<String>) {
    let called = asked.tool_results().into_iter().map(|result| result.tool).collect();
    let heard = asked.heard().into_iter().flat_map(|heard| {
        let lines =
            heard.text.lines().filter(|line| line.starts_with("result ") || line.starts_with("read "));
        lines.map(str::to_owned).collect::<Vec<String>>()
    });
    let mut heard: Vec<String> = heard.collect();
    heard.sort_unstable();
    (name(asked), called, heard)
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
