//! Power cuts, at many moments and in many ways: whatever was told to anybody is there afterwards, and whole.

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
use told::Told;

const LEADS: usize = 2;
const WORKERS_PER_LEAD: usize = 3;

/// How many power cuts are looked at, at least.
const CUTS: usize = 200;
/// How many moments are drawn by lot.
const ANYWHERE: usize = 20;
/// How many of them a daemon goes on after.
const RESUMED: usize = 12;

/// How long the society may take to come so far.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the society lives, below the home: the daemon makes the directory.
const DATA: &str = "data/society";

/// Something that a test does to the machine, when the society has made so many requests.
pub(crate) struct Disturbance {
    /// After how many requests, the last of which is not answered yet.
    pub(crate) after: usize,
    /// What the layer is ordered to do.
    pub(crate) orders: &'static [(Order, i64)],
}

/// How many calls are refused before a disturbance ends: the daemon has tried again by then.
const REFUSALS: i64 = 5;

/// A society that was recorded from its first moment to its end.
pub(crate) struct Recorded {
    server: ScriptedServer,
    polity: Polity,
    journal: Vec<Record>,
    /// What the daemon left behind.
    pub(crate) output: Output,
}

impl Recorded {
    /// Plays one, and disturbs it meanwhile; it comes to its end all the same.
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

    /// Cuts the power at all moments that matter and at others by lot, and looks at what is left.
    #[track_caller]
    pub(crate) fn cut_everywhere(&self, ways: &[Left], lots: &mut Rng) -> usize {
        let told = Told::read(&self.journal);
        assert!(told.count(self.journal.len()) > 100, "what is told is seen");
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

/// Before every sync, where most is at stake, and elsewhere by lot.
fn moments(journal: &[Record], ways: &[Left], lots: &mut Rng) -> Vec<(usize, Left)> {
    let syncs = journal.iter().enumerate().filter(|(_, record)| record.kind.starts_with("sync"));
    let mut moments: Vec<usize> = syncs.map(|(at, _)| at).collect();
    moments.extend((0..ANYWHERE).map(|_| lots.usize(0..=journal.len())));
    moments.push(journal.len());
    moments.sort_unstable();
    moments.iter().flat_map(|at| ways.iter().map(|left| (*at, *left))).collect()
}

/// What a power cut has left, in a home of its own.
struct Image(Polity);

impl Image {
    fn new(server: &ScriptedServer) -> Self {
        let mut polity = home(server, &json!({}));
        // For its speed: it does not wait for the real disk.
        Layer::below(&mut polity);
        Self(polity)
    }

    /// The database opens, all is whole, and all that was told is there.
    #[track_caller]
    fn check(&self, told: &Told, moment: usize, left: Left) {
        let data = self.0.home().join(DATA);
        if !data.join("polity.db").exists() {
            assert_eq!(told.count(moment), 0, "told, and no database is left: {left:?} at {moment}");
            return;
        }
        let checked = self.0.run(&["db", "check", "--data", DATA]);
        assert_eq!(checked.code, Some(0), "{left:?} at {moment}: {}", checked.stderr);
        // Nothing is told before there are tables.
        if checked.stdout.contains("an older polity") {
            assert_eq!(told.count(moment), 0, "{left:?} at {moment}");
            return;
        }
        let missing = told.missing(moment, &mut Database::read(&data));
        assert_eq!(missing, [""; 0], "{left:?} at {moment}");
    }

    /// A daemon goes on from it, to the same end as if nothing had happened.
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
    assert!(cuts >= CUTS, "{cuts} power cuts");
}
