//! Power cuts at many moments and in many ways. After each power cut, the database must be undamaged and contain
//! everything that the daemon has told anybody.

mod disk;
mod told;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fastrand::Rng;
use polity_tests::{
    Answer, Conversation, Layer, Order, Output, Polity, Record, ScriptedServer, doubled_reports, society,
};
use serde_json::{Value, json};

use crate::crash::end;
use crate::support::database::Database;
use crate::support::home;
use disk::Disk;
pub(crate) use disk::Left;
use told::ToldFacts;

const LEADS: usize = 2;
const WORKERS_PER_LEAD: usize = 3;

/// Minimum number of power cuts that the test simulates.
const CUTS: usize = 200;
/// Number of moments that are chosen at random.
const ANYWHERE: usize = 20;
/// Number of power cuts after which the test resumes the society. The number is small, because a resumption takes
/// longer than a check.
const RESUMED: usize = 12;

/// Maximum wait until the server has received the request at which a disturbance begins.
const PATIENCE: Duration = Duration::from_secs(60);

/// Path of the data directory of the society, relative to the home. The daemon creates the directory.
const DATA: &str = "data/society";

/// A fault of the machine that begins when the society sends a certain request to a model.
pub(crate) struct Disturbance {
    /// The fault begins when the server has received this many requests and has not yet answered the last of them.
    pub(crate) after: usize,
    /// The orders to the library of `tests/layer`, such as an order to make the next writes fail.
    pub(crate) orders: &'static [(Order, i64)],
}

/// A disturbance ends when it has refused this many calls. So the daemon has tried again before the end.
const REFUSALS: i64 = 5;

/// A finished society, with a journal of everything that it wrote to the disk or told others.
pub(crate) struct Recorded {
    server: ScriptedServer,
    polity: Polity,
    journal: Vec<Record>,
    pub(crate) output: Output,
}

impl Recorded {
    /// Plays a society and records it. The society must reach its end in spite of the disturbances.
    #[track_caller]
    pub(crate) fn play(disturbances: &'static [Disturbance], app: &Value) -> Self {
        let below: Arc<OnceLock<Layer>> = Arc::default();
        let (layer, asked) = (Arc::clone(&below), AtomicUsize::new(0));
        let play = society(LEADS, WORKERS_PER_LEAD);
        let server = ScriptedServer::start(move |conversation: &Conversation| -> Answer {
            let asked = asked.fetch_add(1, Ordering::SeqCst) + 1;
            for disturbance in disturbances.iter().filter(|disturbance| disturbance.after == asked) {
                for &(order, number) in disturbance.orders {
                    layer.get().expect("a layer").order(order, number);
                }
            }
            play(conversation)
        });
        let mut polity = home(&server, app);
        let layer = below.get_or_init(|| Layer::below(&mut polity));
        layer.record(&mut polity);
        let running = polity.spawn(&["run", "--data", DATA, "build it", "--json"]);
        for disturbance in disturbances {
            server.wait_until(PATIENCE, |requests| requests.len() >= disturbance.after);
            layer.wait_for_refusals(layer.refused() + REFUSALS);
            for &(order, _) in disturbance.orders {
                layer.order(order, 0);
            }
        }
        let output = running.wait().expect_code(0);
        assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
        end::check(&polity.home().join(DATA), LEADS, WORKERS_PER_LEAD);
        for request in server.requests() {
            assert_eq!(doubled_reports(&request.conversation()), []);
        }
        Self { journal: layer.journal(), server, polity, output }
    }

    /// Simulates power cuts before every sync and at random moments. After each power cut, checks the data that is
    /// left.
    ///
    /// Returns the number of power cuts.
    #[track_caller]
    pub(crate) fn cut_everywhere(&self, ways: &[Left], lots: &mut Rng) -> usize {
        let told = ToldFacts::read(&self.journal);
        assert!(
            told.count(self.journal.len()) > 100,
            "the journal contains too few messages that the daemon has sent"
        );
        let moments = moments(&self.journal, ways, lots);
        let mut disk = Disk::new(&self.polity.data_dir());
        let mut applied = 0;
        let resumed_every = moments.len().div_ceil(RESUMED);
        for (number, &(moment, left)) in moments.iter().enumerate() {
            for record in &self.journal[applied..moment] {
                disk.apply(record);
            }
            applied = moment;
            let image = Image::new(&self.server);
            disk.cut_power(left, lots, &image.0.data_dir());
            image.check(&told, moment, left);
            if number % resumed_every == 0 {
                image.resume();
            }
        }
        moments.len()
    }
}

/// Returns the moments of the power cuts. There is a power cut before every sync, because most data is at risk then, at
/// some random records of the journal, and at its end.
fn moments(journal: &[Record], ways: &[Left], lots: &mut Rng) -> Vec<(usize, Left)> {
    let syncs = journal.iter().enumerate().filter(|(_, record)| record.kind.starts_with("sync"));
    let mut moments: Vec<usize> = syncs.map(|(at, _)| at).collect();
    moments.extend((0..ANYWHERE).map(|_| lots.usize(0..=journal.len())));
    moments.push(journal.len());
    moments.sort_unstable();
    moments.iter().flat_map(|at| ways.iter().map(|left| (*at, *left))).collect()
}

/// A separate home with the disk contents that a power cut has left.
struct Image(Polity);

impl Image {
    fn new(server: &ScriptedServer) -> Self {
        let mut polity = home(server, &json!({}));
        // Use the library of `tests/layer` to make the test faster. The library does not pass syncs on to the real
        // disk.
        Layer::below(&mut polity);
        Self(polity)
    }

    /// Checks that the database opens undamaged and contains everything that the daemon has told anybody.
    #[track_caller]
    fn check(&self, told: &ToldFacts, moment: usize, left: Left) {
        let data = self.0.home().join(DATA);
        if !data.join("polity.db").exists() {
            assert_eq!(
                told.count(moment),
                0,
                "something was told but there is no database: {left:?} at {moment}"
            );
            return;
        }
        let checked = self.0.run(&["db", "check", "--data", DATA]);
        assert_eq!(checked.code, Some(0), "{left:?} at {moment}: {}", checked.stderr);
        // If the tables do not exist yet, the daemon must not have told anybody anything.
        if checked.stdout.contains("an older polity") {
            assert_eq!(told.count(moment), 0, "{left:?} at {moment}");
            return;
        }
        let missing = told.missing(moment, &mut Database::read(&data));
        assert_eq!(missing, [""; 0], "{left:?} at {moment}");
    }

    /// Resumes the society, which must reach the same end as without the power cut.
    #[track_caller]
    fn resume(&self) {
        let output = self.0.run(&["run", "--data", DATA, "--resume"]);
        if output.code == Some(2) && output.stderr.contains("nothing to resume") {
            return;
        }
        output.expect_code(0);
        end::check(&self.0.home().join(DATA), LEADS, WORKERS_PER_LEAD);
    }
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn what_was_told_survives_a_power_cut_at_any_moment() {
    let ways = [Left::Nothing, Left::Some, Left::Torn];
    let cuts = Recorded::play(&[], &json!({})).cut_everywhere(&ways, &mut Rng::with_seed(0x000f_f000));
    assert!(cuts >= CUTS, "only {cuts} power cuts");
}
