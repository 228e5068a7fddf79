//! The work of each scenario, as the floor does it.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use super::asker::{Asker, Replied};
use super::fixed::Fixed;
use super::order::Work;
use super::store::{Row, Store};
use crate::process::{Meter, Used};
use crate::script;

/// Threads that play the hired agents.
const HANDS: usize = 8;

/// What all clients of a floor share.
pub(crate) struct Floor {
    pub(crate) store: Store,
    pub(crate) model: String,
    pub(crate) fixed: Fixed,
}

/// A client: it plays one turn after the other.
struct Player<'f> {
    floor: &'f Floor,
    number: usize,
    asker: Asker,
}

impl Floor {
    /// Does the work. Returns the time and the processor time of each part of the work.
    pub(crate) fn play(&self, work: &Work) -> Result<Vec<Used>> {
        match work {
            Work::Start => Ok(Vec::new()),
            Work::Turns { clients, warm_up, turns } => self.turns(*clients, *warm_up, *turns),
            Work::History { parts } => self.history(parts),
            Work::Hire => self.hire(),
            Work::Ring { agents } => self.ring(*agents),
        }
    }

    fn player(&self, number: usize) -> Result<Player<'_>> {
        Ok(Player { floor: self, number, asker: Asker::connect(&self.model)? })
    }

    fn players(&self, count: usize) -> Result<Vec<Player<'_>>> {
        (0..count).map(|number| self.player(number)).collect()
    }

    fn turns(&self, clients: usize, warm_up: usize, turns: usize) -> Result<Vec<Used>> {
        let mut players = self.players(clients)?;
        let turn = |player: &mut Player<'_>, turn: usize| {
            player.turn(&self.fixed, &format!("task-{turn}"), &prompt(turn))
        };
        together(&mut players, 0..warm_up, &turn)?;
        let mut meter = Meter::of(std::process::id())?;
        together(&mut players, warm_up..warm_up + turns, &turn)?;
        Ok(vec![meter.lap()?])
    }

    fn history(&self, parts: &[usize]) -> Result<Vec<Used>> {
        let mut player = self.player(0)?;
        let mut meter = Meter::of(std::process::id())?;
        let part = |turns: &usize| {
            for turn in 0..*turns {
                player.turn(&self.fixed, "task", &prompt(turn))?;
            }
            meter.lap()
        };
        parts.iter().map(part).collect()
    }

    fn hire(&self) -> Result<Vec<Used>> {
        let (mut root, mut hands) = (self.player(0)?, self.players(HANDS)?);
        let of_agent = self.fixed.of_agent();
        let mut meter = Meter::of(std::process::id())?;
        self.store.commit(vec![message("root", &user("hire"))])?;
        loop {
            let replied = root.ask(&self.fixed, "root")?;
            let mut rows = vec![message("root", &assistant(&replied))];
            let mut hired = Vec::new();
            for call in &replied.calls {
                rows.push(message("root", &result(&call.id)));
                if call.name == "create_role" {
                    continue;
                }
                rows.push(Row::Agent { id: call.id.clone(), brief: call.arguments.clone() });
                rows.push(message(&call.id, &user("please count the shelf")));
                hired.push(call.id.clone());
            }
            self.store.commit(rows)?;
            if replied.calls.is_empty() {
                break;
            }
            together(&mut hands, 0..hired.len(), &|hand: &mut Player<'_>, at: usize| {
                let replied = hand.ask(&of_agent, &hired[at])?;
                let report = message("root", &user(&replied.text));
                self.store.commit(vec![message(&hired[at], &assistant(&replied)), report])
            })?;
        }
        Ok(vec![meter.lap()?])
    }

    fn ring(&self, agents: usize) -> Result<Vec<Used>> {
        let mut player = self.player(0)?;
        let of_agent = self.fixed.of_agent();
        let name = |hop: usize| format!("agent-{}", script::place(hop, agents));
        self.store.commit(vec![message(&name(0), &user("token 0."))])?;
        let mut meter = Meter::of(std::process::id())?;
        for hop in 0.. {
            let agent = name(hop);
            let passed = player.ask(&of_agent, &agent)?;
            let mut rows = vec![message(&agent, &assistant(&passed))];
            let Some(call) = passed.calls.first() else {
                self.store.commit(rows)?;
                break;
            };
            let arguments: Value = serde_json::from_str(&call.arguments)?;
            let text = arguments["payload"]["text"].as_str().context("a call without a text")?;
            rows.push(message(&agent, &result(&call.id)));
            rows.push(message(&name(hop + 1), &user(text)));
            self.store.commit(rows)?;
            let rested = player.ask(&of_agent, &agent)?;
            self.store.commit(vec![message(&agent, &assistant(&rested))])?;
        }
        Ok(vec![meter.lap()?])
    }
}

impl Player<'_> {
    /// Plays a turn: message, request, answer.
    fn turn(&mut self, fixed: &Fixed, conversation: &str, prompt: &str) -> Result<()> {
        self.floor.store.commit(vec![message(conversation, &user(prompt))])?;
        let replied = self.ask(fixed, conversation)?;
        self.floor.store.commit(vec![message(conversation, &assistant(&replied))])
    }

    fn ask(&mut self, fixed: &Fixed, conversation: &str) -> Result<Replied> {
        let history = self.floor.store.history(self.number, conversation)?;
        self.asker.ask(fixed, &history)
    }
}

/// Calls `play` once for each number. All players work at the same time. A player that is free takes the next number.
fn together(
    players: &mut [Player<'_>],
    numbers: std::ops::Range<usize>,
    play: &(impl Fn(&mut Player<'_>, usize) -> Result<()> + Sync),
) -> Result<()> {
    let next = AtomicUsize::new(numbers.start);
    let one_by_one = |player: &mut Player<'_>| -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                return Ok(());
            }
            play(player, number)?;
        }
    };
    if let [only] = players {
        return one_by_one(only);
    }
    std::thread::scope(|scope| {
        let playing: Vec<_> = players.iter_mut().map(|player| scope.spawn(|| one_by_one(player))).collect();
        playing.into_iter().try_for_each(|played| played.join().map_err(|_| anyhow!("a client panicked"))?)
    })
}

/// Returns the prompt of a turn: the same for polity and for the floor.
pub(crate) fn prompt(turn: usize) -> String {
    format!("When does the harbour open on day {turn}?")
}

fn message(conversation: &str, body: &Value) -> Row {
    Row::Message { conversation: conversation.to_owned(), body: body.to_string() }
}

/// Returns a message from the user, with the header that polity adds.
fn user(text: &str) -> Value {
    json!({"role": "user", "content": format!("【Message from the user】\n{text}")})
}

fn assistant(replied: &Replied) -> Value {
    if replied.calls.is_empty() {
        return json!({"role": "assistant", "content": replied.text});
    }
    let calls = replied.calls.iter().map(|call| {
        let function = json!({"name": call.name, "arguments": call.arguments});
        json!({"id": call.id, "type": "function", "function": function})
    });
    json!({"role": "assistant", "content": null, "tool_calls": calls.collect::<Value>()})
}

fn result(call: &str) -> Value {
    json!({"role": "tool", "tool_call_id": call, "content": "{\"id\":\"m000000001\",\"state\":\"queued\"}"})
}
