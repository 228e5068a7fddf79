//! Power cuts, at many moments and in many ways: whatever was told to anybody is there afterwards, and whole.

mod disk;
mod told;

use fastrand::Rng;
use polity_tests::{Answer, Conversation, Layer, Polity, Record, ScriptedServer, society};
use serde_json::json;

use crate::crash::end;
use crate::support::database::Database;
use crate::support::{app, home, service};
use disk::{Disk, Left};
use told::Told;

const LEADS: usize = 2;
const WORKERS_PER_LEAD: usize = 3;

/// How many power cuts are looked at, at least.
const CUTS: usize = 200;
/// How many of them a daemon goes on after.
const RESUMED: usize = 12;

/// Where the society lives, below the home: the daemon makes the directory.
const DATA: &str = "data/society";

fn play() -> ScriptedServer {
    let play = society(LEADS, WORKERS_PER_LEAD);
    ScriptedServer::start(move |asked: &Conversation| -> Answer { play(asked) })
}

/// A society that was recorded from its first moment to its end.
struct Recorded {
    server: ScriptedServer,
    polity: Polity,
    journal: Vec<Record>,
}

impl Recorded {
    /// Plays one; `disturb` is called while it works.
    fn play(disturb: impl FnOnce(&Layer, &ScriptedServer)) -> Self {
        let server = play();
        let mut polity = home(&server, &json!({}));
        let layer = Layer::below(&mut polity);
        layer.record(&mut polity);
        let running = polity.spawn(&["run", "--data", DATA, "build it", "--json"]);
        disturb(&layer, &server);
        running.wait().expect_code(0);
        let journal = layer.journal();
        end::check(&polity.home().join(DATA), LEADS, WORKERS_PER_LEAD);
        Self { server, polity, journal }
    }

    /// Cuts the power at all moments that matter and at others by lot, and looks at what is left.
    fn cut_everywhere(&self, lots: &mut Rng) {
        let told = Told::read(&self.journal);
        assert!(told.count(self.journal.len()) > 100, "what is told is seen");
        let moments = moments(&self.journal, lots);
        assert!(moments.len() >= CUTS, "{} moments", moments.len());
        let mut disk = Disk::new(&self.polity.data_dir());
        let mut applied = 0;
        let resumed_every = moments.len() / RESUMED;
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
        println!("{} power cuts in {} records", moments.len(), self.journal.len());
    }
}

/// Before every sync, where most is at stake, in every way; and elsewhere by lot.
fn moments(journal: &[Record], lots: &mut Rng) -> Vec<(usize, Left)> {
    let ways = [Left::Nothing, Left::Some, Left::Torn];
    let syncs = journal.iter().enumerate().filter(|(_, record)| record.kind.starts_with("sync"));
    let mut moments: Vec<(usize, Left)> = syncs.flat_map(|(at, _)| ways.map(|left| (at, left))).collect();
    let anywhere = (0..CUTS / 4).map(|number| (lots.usize(0..=journal.len()), ways[number % ways.len()]));
    moments.extend(anywhere);
    moments.extend(ways.map(|left| (journal.len(), left)));
    moments.sort_by_key(|(at, _)| *at);
    moments
}

/// What a power cut has left, in a home of its own.
struct Image(Polity);

impl Image {
    fn new(server: &ScriptedServer) -> Self {
        Self(Polity::new(&json!({"services": [service("one", server, &["text"])]}), &app(&json!({}))))
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
    Recorded::play(|_, _| {}).cut_everywhere(&mut Rng::with_seed(0x000f_f000));
}
