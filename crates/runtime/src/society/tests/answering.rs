//! Checks that no result is lost. The test plays random societies whose process crashes from time to time. Some models
//! follow the rules of answering; other models forget or break these rules. If one agent requests a result and another
//! agent makes it, the result must reach the agent that requested it.
//!
//! [`script`] contains the models. The next action of a model depends only on the seed and on the content of the
//! request, so a repeated call gets the same answer. [`verdict`] reads the database at the end, and returns the
//! violations.

mod script;
mod verdict;

use super::*;
use crate::testing::{app_registry, template};
use polity_store::Durability;
use script::Script;
use std::path::PathBuf;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// In this order: the number of societies that are played, the seed of the first society, and the number of threads
/// that play them.
const SOCIETIES: u64 = 500;
const FIRST_SEED: u64 = 1;
const SHARES: u64 = 2;

/// The time limit of a society. A society normally takes well under a second.
const HANGS: Duration = Duration::from_secs(300);

/// One society that is played, including its crashes.
struct Play {
    seed: u64,
    directory: TempDir,
    registry: Arc<Registry>,
    script: Arc<Script>,
}

/// Why a run of the process ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Crashed,
    Idle,
}

fn life() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

impl Play {
    fn new(seed: u64, registry: &Arc<Registry>, template: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::copy(template, directory.path().join(DATABASE)).unwrap();
        Self { seed, directory, registry: Arc::clone(registry), script: Arc::new(Script::new(seed)) }
    }

    async fn start(&self) -> Society {
        let parts = Parts {
            registry: Arc::clone(&self.registry),
            model: script::model(self.script.clone()),
            hands: polity_hands::table::Hands::none(),
            extractor: None,
        };
        Society::start(self.directory.path(), parts).await.unwrap()
    }

    /// Lets the society work until the task is idle, or until the script crashes the process.
    async fn work(&self, society: &Society) -> End {
        let mut newest = society.newest_event();
        let idle = async {
            loop {
                newest.mark_unchanged();
                if society.open_tasks().await.unwrap().is_empty() {
                    return;
                }
                newest.changed().await.unwrap();
            }
        };
        tokio::select! {
            () = idle => End::Idle,
            () = self.script.crashed() => End::Crashed,
            () = tokio::time::sleep(HANGS) => panic!("seed {}: the society hangs", self.seed),
        }
    }

    /// Plays a society to the end, and returns the violations.
    fn play(&self) -> Vec<String> {
        let first = life();
        let mut end = first.block_on(async {
            let society = self.start().await;
            let prompt = Prompt { text: "go".to_owned(), attachments: Vec::new(), service: None };
            society.prompt(prompt).await.unwrap();
            self.work(&society).await
        });
        first.shutdown_background();
        while end == End::Crashed {
            self.wait_for_the_dead();
            let next = life();
            end = next.block_on(async {
                let society = self.start().await;
                self.work(&society).await
            });
            next.shutdown_background();
        }
        self.wait_for_the_dead();
        life().block_on(async {
            let (store, _signals) = Store::open(&self.file(), Durability::Normal).await.unwrap();
            let violations = verdict::violations(&mut store.reader().await.unwrap()).await;
            store.close().await;
            violations
        })
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join(DATABASE)
    }

    /// Waits until no transaction is running. A real process writes nothing after a crash. But after the simulated
    /// crash of this test, the last transaction may still be running.
    fn wait_for_the_dead(&self) {
        life().block_on(async {
            let options = polity_sql::Options::new(&self.file(), polity_sql::Access::Write);
            let mut connection = options.connect().unwrap();
            polity_sql::query("BEGIN EXCLUSIVE").execute(&mut connection).await.unwrap();
            polity_sql::query("ROLLBACK").execute(&mut connection).await.unwrap();
            connection.close().unwrap();
        });
    }
}

/// Plays several societies, and counts the deeds of their models by name. If a check of a society fails, the function
/// panics with the seed of this society.
fn play(first: u64, societies: u64) -> script::Deeds {
    let (registry, template, _kept) = life().block_on(async {
        let (template, kept) = template().await;
        (Arc::new(app_registry(&serde_json::json!({"synchronous": "normal"})).await), template, kept)
    });
    std::thread::scope(|scope| {
        let share = |share: u64| {
            let (registry, template) = (&registry, &template);
            scope.spawn(move || {
                let mut deeds = script::Deeds::default();
                for seed in (first..first + societies).filter(|seed| seed % SHARES == share) {
                    let play = Play::new(seed, registry, template);
                    let violations = play.play();
                    assert!(
                        violations.is_empty(),
                        "seed {seed}; play it again with POLITY_ANSWERING_FIRST={seed} and \
                         POLITY_ANSWERING_SOCIETIES=1:\n{}",
                        violations.join("\n")
                    );
                    deeds.add(&play.script.deeds());
                }
                deeds
            })
        };
        let shares: Vec<_> = (0..SHARES).map(share).collect();
        let mut all = script::Deeds::default();
        for share in shares {
            all.add(&share.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    })
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| value.parse().unwrap())
}

/// Checks four things. If somebody requests work and an agent does it, the result reaches the one who requested it. The
/// person sees no text of root twice. The last final text of root to the person contains the complete result. At the
/// end, no agent waits for another agent.
#[test]
fn no_result_is_lost_however_models_keep_the_rules() {
    let societies = from_environment("POLITY_ANSWERING_SOCIETIES", SOCIETIES);
    let deeds = play(from_environment("POLITY_ANSWERING_FIRST", FIRST_SEED), societies);
    println!("{societies} societies: {deeds:?}");
    // A deed that hardly ever occurs is not really tested. So each deed must occur at least 20 times.
    if societies >= SOCIETIES {
        for (deed, number) in deeds.all() {
            assert!(number >= 20, "{deed}: {number}");
        }
    }
}
