//! The model-based test of the society's rules.
//!
//! The test draws random sequences of operations: tool calls, turns, waiting, restarts. It plays each operation twice.
//! The first time, it uses a real database and the functions of the daemon; the second time, it uses a reference model.
//! The reference model consists of plain maps, and shares no logic with the rules. After each operation, the database
//! and the reference model must give the same result and contain the same rows, and the invariants must hold for the
//! rows of the database. If a check fails, the test shrinks the sequence and prints the shortest sequence that still
//! fails. At the end, every outcome in [`REACHED`] must have occurred at least ten times, because an outcome that
//! hardly ever occurs is not really tested.
//!
//! The files:
//!
//! - [`operation`]: the operations, how often each is drawn, and how a failing sequence is shrunk.
//! - [`choice`]: converts the drawn numbers into agents, requests and arguments.
//! - [`play`]: performs each operation on the database and on the model, and compares them.
//! - [`society`], [`mail`], [`ending`]: the reference model. `society` covers agents, roles and artifacts; `mail`
//!   covers messages, requests and the beginning of turns; `ending` covers the end of turns and what an agent at rest
//!   still owes.
//! - [`rows`]: the tables and columns that the test compares. The database and the model use the same row types.
//! - [`observed`]: finds the rows that an operation has changed in the database.
//! - [`invariants`]: what must hold after every operation, checked on the rows of the database alone.
//!
//! To add an operation, add a variant to `Operation`, draw it in `operation::operation`, and perform it in
//! `Play::perform`. Give the reference model a method for the effect of the operation, and list the outcomes in
//! [`REACHED`]. To add an invariant, add a check to `invariants::violations`. To compare another column or another
//! table, add it to `tables!` in [`rows`].

mod choice;
mod ending;
mod invariants;
mod mail;
mod observed;
mod operation;
mod play;
mod rows;
mod society;

use crate::testing::World;
use crate::testing::model::ScriptedModel;
use choice::{MAX_MESSAGE_CHARS, TASKS};
use operation::{Operation, Sequences};
use play::{BY_THE_WAY, Outcomes, Play, Tracing};
use polity_artifacts::{NewArtifact, prepare};
use polity_hands::table::Hands;
use polity_society::id::ArtifactId;
use polity_store::{Durability, Store};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use serde_json::json;
use society::{MAX_AGENTS, MAX_CHILDREN, MAX_DEPTH, MAX_QUEUE};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Number of sequences that are played, unless `POLITY_MODEL_SEQUENCES` gives another number.
const SEQUENCES: u32 = 1000;
/// Number of operations of each sequence.
const OPERATIONS: usize = 200;

/// The sequences are divided among this many threads. Each thread has its own seed, which is the same at each run.
const SHARES: u8 = 4;

/// The outcomes that must occur at least ten times, by operation.
const REACHED: &[(&str, &[&str])] = &[
    ("create_role", &["ok", "invalid_arguments"]),
    ("find_role_by_name", &["ok"]),
    (
        "spawn_agent",
        &[
            "ok",
            "invalid_arguments",
            "invalid_task_brief",
            "limit_reached",
            "not_child_role",
            "unknown_contact",
        ],
    ),
    (
        "spawn_agent_with_task",
        &[
            "ok",
            "agent_terminated",
            "artifact_not_found",
            "invalid_message",
            "invalid_task_brief",
            "limit_reached",
            "unknown_contact",
        ],
    ),
    (
        "send_message",
        &[
            "ok",
            "agent_terminated",
            "artifact_not_found",
            "invalid_arguments",
            "invalid_message",
            "limit_reached",
            "mailbox_full",
            "unknown_contact",
        ],
    ),
    ("terminate_agent", &["ok", "agent_terminated", "not_descendant"]),
    ("put_artifact", &["ok", "artifact_not_found"]),
    ("get_artifact", &["ok", "artifact_not_found"]),
    ("list_artifacts", &["ok"]),
    ("list_contacts", &["ok"]),
    ("begin_turn", &["ok"]),
    ("overtake", &["ok"]),
    ("take_mail", &["ok"]),
    ("end_turn", &["ok"]),
    ("fail_turn", &["ok"]),
    ("show", &["ok"]),
    ("wait", &["ok"]),
    ("nudge", &["ok"]),
    ("restart", &["ok"]),
    (
        BY_THE_WAY,
        &[
            "reminder",
            "given up",
            "artifact handed over",
            "text held",
            "held text delivered",
            "held supplement delivered",
            "interim text settled",
            "supplement",
            "text repeated",
            "repeated text is the answer",
            "request_id ignored",
            "several answered at once",
            "answer found along the chain",
        ],
    ),
];

/// The place where sequences are played. It creates a database once, and copies it for each sequence.
struct Stage {
    runtime: Runtime,
    world: World,
    template: PathBuf,
    artifact: polity_artifacts::Prepared,
}

impl Stage {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let limits = json!({
            "maxAgentsPerTask": MAX_AGENTS, "maxDepth": MAX_DEPTH, "maxChildren": MAX_CHILDREN,
            "maxQueue": MAX_QUEUE, "maxMessageChars": MAX_MESSAGE_CHARS, "maxPairExchanges": 1_000_000,
            "maxFailedTurns": 1_000_000,
        });
        let (world, artifact) = runtime.block_on(async {
            let world = World::with(&limits).await;
            for task in TASKS.iter().skip(1) {
                world.add_task(task).await;
            }
            world.store.close().await;
            let note = NewArtifact { bytes: "一".into(), ..NewArtifact::default() };
            let artifact = prepare(&world.blobs, note, ArtifactId::new("x"), 1).await.unwrap();
            (world, artifact)
        });
        let template = world.directory.path().join("polity.db");
        Self { runtime, world, template, artifact }
    }

    /// Plays a sequence in a new database. Returns the final state, and the first violation if there is one.
    fn play(&mut self, operations: &[Operation], tracing: Tracing) -> (Play, Result<(), String>) {
        // With the same seed, the ids are the same at each run. The seed applies only to this thread, and the whole
        // sequence runs on this thread.
        fastrand::seed(1);
        let file = self.template.with_file_name("sequence.db");
        std::fs::copy(&self.template, &file).unwrap();
        let Self { runtime, world, artifact, .. } = self;
        let played = runtime.block_on(async {
            // No model is asked: turns end with texts that were drawn.
            let handles = world.handles(ScriptedModel::in_order(Vec::new()), Hands::none());
            let mut play = Play::new(Arc::clone(&world.snapshot), handles, artifact.clone(), tracing);
            // Each restart ends a part of the sequence. Before the next part, the database is closed and opened
            // again.
            for part in operations.split_inclusive(|operation| matches!(operation, Operation::Restart)) {
                let (store, _signals) = Store::open(&file, Durability::Normal).await.unwrap();
                let part = part.to_vec();
                let job = store.write(move |tx| {
                    Box::pin(async move {
                        let result = play.play(tx, &part).await;
                        Ok((play, result))
                    })
                });
                let (played, result) = job.await.unwrap();
                store.close().await;
                if result.is_err() {
                    return (played, result);
                }
                play = played;
            }
            (play, Ok(()))
        });
        std::fs::remove_file(&file).unwrap();
        played
    }
}

fn sequences() -> u32 {
    std::env::var("POLITY_MODEL_SEQUENCES").map_or(SEQUENCES, |number| number.parse().unwrap())
}

/// Plays one thread's part of the sequences. Returns how often each outcome occurred, or the shortest failing sequence.
fn play_share(share: u8) -> Result<Outcomes, String> {
    let stage = RefCell::new(Stage::new());
    let outcomes = RefCell::new(Outcomes::new());
    let config = ProptestConfig {
        cases: sequences().div_ceil(u32::from(SHARES)),
        max_shrink_iters: 3000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[share; 32]));
    let run = runner.run(&Sequences::of(OPERATIONS), |operations| {
        let (play, result) = stage.borrow_mut().play(&operations, Tracing::Off);
        for (outcome, number) in play.outcomes {
            *outcomes.borrow_mut().entry(outcome).or_default() += number;
        }
        result.map_err(TestCaseError::fail)
    });
    match run {
        Ok(()) => Ok(outcomes.into_inner()),
        Err(TestError::Fail(_, operations)) => {
            let (play, result) = stage.borrow_mut().play(&operations, Tracing::On);
            let mut told = "the shortest sequence that fails:\n".to_owned();
            for (number, line) in play.trace.iter().enumerate() {
                let _ = writeln!(told, "{:>3}. {line}", number + 1);
            }
            Err(format!("{told}{}", result.err().unwrap_or_else(|| "it did not fail again".to_owned())))
        }
        Err(TestError::Abort(reason)) => Err(reason.to_string()),
    }
}

#[test]
fn whatever_happens_the_contract_holds() {
    let outcomes = std::thread::scope(|scope| {
        let shares: Vec<_> = (0..SHARES).map(|share| scope.spawn(move || play_share(share))).collect();
        let mut all = Outcomes::new();
        for share in shares {
            match share.join().unwrap() {
                Ok(outcomes) => {
                    outcomes
                        .into_iter()
                        .for_each(|(outcome, number)| *all.entry(outcome).or_default() += number);
                }
                Err(failure) => panic!("{failure}"),
            }
        }
        all
    });
    // An outcome that hardly ever occurs is not really tested.
    for (verb, codes) in REACHED {
        for code in *codes {
            let number = outcomes.get(&(*verb, (*code).to_owned()));
            assert!(number.is_some_and(|number| *number >= 10), "{verb}, {code}: {number:?} of {outcomes:?}");
        }
    }
}
