//! Answers that are bad, chosen by a seed and by what is asked, and a record of all that was answered.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use polity_tests::{Answer, Call, Conversation};
use serde_json::{Value, json};

use super::society::{Act, act, name};

/// So many of a hundred requests are answered badly.
const BAD: u8 = 30;
/// So many attempts of one call fail at most, all services together. One more is left for a failure that the call shares
/// with others, and the last for a good answer.
const MOST_OF_A_CALL: u32 = 4;
/// How long a service that asks for a pause wants to be left alone.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// One way to answer badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// 429 that asks for [`PAUSE`].
    Paused,
    /// 429 that asks for no pause at all.
    PausedForNothing,
    /// 429 that asks for a pause until some time ago.
    PausedUntilThen,
    /// 429 without a word about when to come back.
    RateLimited,
    /// 500.
    Down,
    /// 503.
    Overloaded,
    Hang,
    Reset,
    Half,
    Torn,
    BrokenJson,
    Html,
    /// Neither text nor calls.
    Empty,
    UnknownTool,
    /// Calls that all have one id.
    DoubledIds,
    /// Arguments that are not quite JSON.
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
    /// What the failure of the attempt is called; `None` for an answer, however odd.
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

    /// Whether it is one of those that open a circuit.
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

/// The calls, or two harmless ones, all with an id that the history may have already.
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

/// The calls, the first without its last brace.
fn malformed(act: Act) -> Answer {
    let Act::Call(mut calls) = act else { panic!("there are calls") };
    let first = calls.first_mut().expect("a call");
    first.arguments.pop();
    Answer::calls(calls)
}

/// A request and how it was answered.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    /// Which call it belongs to: the same agent with the same history.
    pub(super) call: u64,
    pub(super) agent: String,
    pub(super) service: String,
    pub(super) arrived: Instant,
    /// Just before the answer began to go out.
    pub(super) answered: Instant,
    /// `None` for a good answer.
    pub(super) fault: Option<Fault>,
}

/// How many calls a service takes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Places {
    One,
    Three,
}

/// The models of all services.
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
    /// How many attempts of a call have failed since it was answered last.
    failed: BTreeMap<u64, u32>,
    /// How often a service has failed in a row in a way that opens its circuit.
    in_a_row: BTreeMap<String, u32>,
}

impl Chaos {
    pub(super) fn new(seed: u64, places: Places, hopeless: Option<&'static str>) -> Self {
        Self { seed, places, hopeless, state: Mutex::default() }
    }

    /// All requests so far, in the order of their answers.
    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).exchanges.clone()
    }

    /// Answers a request, well or badly.
    pub(super) fn answer(&self, asked: &Conversation) -> Answer {
        let arrived = Instant::now();
        let act = act(asked);
        let (agent, call) = (asked.agent_id(), hash(&(asked.agent_id(), &history(asked))));
        let service = asked.model().strip_suffix("-model").expect("a model of ours").to_owned();
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
            // Nothing that would be an answer, and nothing that others have to wait for.
            fault = [Fault::Down, Fault::RateLimited, Fault::Html, Fault::Torn][lots.usize(..4)];
        } else if failed >= MOST_OF_A_CALL {
            return None;
        } else if of_service().count() >= 15 && times(Fault::Paused) == 0 {
            fault = Fault::Paused;
        } else if self.places == Places::One && (40..46).contains(&of_service().count()) {
            // A while that opens the circuit.
            fault = Fault::Overloaded;
        } else if !bad {
            return None;
        }
        let fault = match fault {
            // These take time.
            Fault::Paused if times(fault) >= 2 => Fault::RateLimited,
            Fault::Hang if times(fault) >= 1 => Fault::Reset,
            // Later in a turn, silence is an answer; twice in a row, it is the end of the turn.
            Fault::Empty if seen > 0 || asked.messages().len() > 2 || asked.heard().len() > 1 => Fault::Html,
            Fault::Malformed if matches!(act, Act::Say(_)) => Fault::DoubledIds,
            Fault::UnknownTool | Fault::Malformed if was_refused(asked) => Fault::Half,
            _ => fault,
        };
        // Where another failure in a row would have a second probe of the circuit fail, one failure more than a call
        // must stand is shared by all who wait. Calls that are under way together may fail in another order.
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

/// Whether a call of the newest batch was refused.
fn was_refused(asked: &Conversation) -> bool {
    let newest = asked.messages().iter().rev().take_while(|message| message["role"] != "assistant").count();
    let results = asked.tool_results();
    results.iter().rev().take(newest).any(|result| result.error().is_some())
}

/// The history as it goes over the wire, without the system message, which differs from service to service.
fn history(asked: &Conversation) -> String {
    let messages = asked.messages().get(1..).unwrap_or_default();
    Value::Array(messages.to_vec()).to_string()
}

/// What is the same in every run that comes to this request: who asks, what it has called, and what it has heard; not the
/// ids, which are drawn by lot.
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
