//! The crash matrix: each scenario dies at each failure point that it passes, goes on, dies at the next, and comes to
//! the end that it would have come to undisturbed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use fastrand::Rng;
use polity_tests::{Output, Polity, ScriptedServer};

use super::ledger::{self, Ledger, missing, transcripts};
use super::points::{POINTS, RECOVERY, UNREACHED};
use super::scenarios::{SCENARIOS, Scenario};
use crate::support::database::Database;

/// What is done at least in a run of all tests.
const KILLS: usize = 100;
/// What `just crash-matrix` does at least, unless it is told otherwise.
const MANY_KILLS: usize = 1000;
/// How many scenarios are played at the same time.
const AT_ONCE: usize = 2;

/// The process dies when it passes a point for the so many-th time.
#[derive(Clone, Debug)]
struct Kill {
    point: &'static str,
    hit: usize,
}

/// How a process ended.
enum Ended {
    /// At the point that it had to die at.
    Died,
    /// By itself, with this exit code.
    Finished(i32),
}

/// A scenario that is being played, in as many processes as it takes.
struct Run<'s> {
    scenario: &'s Scenario,
    server: ScriptedServer,
    polity: Polity,
    printed: String,
    died: Vec<Kill>,
}

impl<'s> Run<'s> {
    fn new(scenario: &'s Scenario) -> Self {
        let server = ScriptedServer::start((scenario.script)());
        let polity = (scenario.home)(&server);
        Self { scenario, server, polity, printed: String::new(), died: Vec::new() }
    }

    /// One process, or two where the first one has died before there was anything to go on with.
    fn go_on(&mut self, variables: &[(&str, &str)]) -> Ended {
        if !self.died.is_empty() {
            let ended = self.process(self.scenario.again, variables);
            if !(ended.code == Some(2) && ended.stderr.contains("nothing to resume")) {
                return self.ended(&ended);
            }
        }
        let ended = self.process(self.scenario.command, variables);
        self.ended(&ended)
    }

    fn process(&mut self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let ended = self.polity.spawn_with_points(arguments, variables).wait();
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        self.printed.push_str(&ended.stdout);
        ended
    }

    fn ended(&self, ended: &Output) -> Ended {
        match ended.code {
            None => Ended::Died,
            // A backup that was complete when the process died is complaint enough for the next one.
            Some(2) if !self.died.is_empty() && ended.stderr.contains("is there already") => {
                Ended::Finished(0)
            }
            Some(code) => Ended::Finished(code),
        }
    }

    /// Plays on, and dies there if it comes there.
    fn die(&mut self, kill: &Kill) -> Ended {
        let ended = self.go_on(&[("POLITY_FAILURE_POINT", &format!("{}@{}", kill.point, kill.hit))]);
        if matches!(ended, Ended::Died) {
            self.died.push(kill.clone());
        }
        ended
    }

    fn look(&self, code: i32) -> Seen {
        let data = self.polity.home().join(self.scenario.data);
        let check = self.polity.run(&["db", "check", "--data", self.scenario.data]);
        Seen { code, check: check.code, ledger: ledger::read(&data, &self.server) }
    }

    /// What has come of it, compared with what comes of it undisturbed.
    fn judge(&self, code: i32, undisturbed: &Seen) -> Verdict {
        let Seen { check, ledger, .. } = self.look(code);
        let data = self.polity.home().join(self.scenario.data);
        let mut verdict = Verdict {
            lost: missing(&ledger, &undisturbed.ledger),
            doubled: missing(&undisturbed.ledger, &ledger),
            invalid: self.server.take_violations(),
        };
        verdict.lost.extend(ledger::unheard(&data));
        verdict.doubled.extend(ledger::doubled(&data, &self.server));
        verdict.invalid.extend(transcripts(&mut Database::read(&data)).problems);
        if !self.printed.contains(self.scenario.said) {
            verdict.lost.push(format!("{:?} was not printed", self.scenario.said));
        }
        if code != undisturbed.code {
            verdict.invalid.push(format!("the exit code is {code}, not {}", undisturbed.code));
        }
        if check != undisturbed.check {
            verdict.invalid.push(format!("`polity db check` gives {check:?}, not {:?}", undisturbed.check));
        }
        verdict
    }
}

impl Drop for Run<'_> {
    /// Says what had been done when something went wrong that no verdict tells: a process that hangs or panics.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let told = format!("{} died at {:?}\n", self.scenario.name, self.died);
            let _ = std::io::Write::write_all(&mut std::io::stderr(), told.as_bytes());
        }
    }
}

/// How a scenario has ended.
struct Seen {
    code: i32,
    check: Option<i32>,
    ledger: Ledger,
}

/// How a scenario goes when nothing is killed, and the points that it passes.
struct Undisturbed {
    seen: Seen,
    passed: Vec<&'static str>,
}

impl Undisturbed {
    fn play(scenario: &Scenario) -> Self {
        let mut run = Run::new(scenario);
        let log = run.polity.home().join("points.log");
        let Ended::Finished(code) =
            run.go_on(&[("POLITY_FAILURE_POINT_LOG", log.to_str().expect("a path of text"))])
        else {
            panic!("{} was killed by somebody else", scenario.name)
        };
        let log = std::fs::read_to_string(log).expect("the points that were passed");
        let known = |name: &str| POINTS.iter().find(|point| **point == name).copied();
        let passed = log.lines().map(|name| known(name).unwrap_or_else(|| panic!("{name} is not listed")));
        let undisturbed = Self { passed: passed.collect(), seen: run.look(code) };
        let verdict = run.judge(code, &undisturbed.seen);
        assert!(verdict.is_good(), "{} undisturbed: {verdict:#?}", scenario.name);
        undisturbed
    }

    /// How often each point is passed.
    fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for point in &self.passed {
            *counts.entry(*point).or_default() += 1;
        }
        counts
    }

    /// The way back up, as far as this scenario goes it.
    fn recovery(&self) -> impl Iterator<Item = Kill> {
        let passed = RECOVERY.iter().filter(|point| self.passed.contains(point));
        passed.map(|point| Kill { point, hit: 1 })
    }

    /// When that comes, undisturbed.
    fn place(&self, kill: &Kill) -> Option<usize> {
        let hits = self.passed.iter().enumerate().filter(|(_, point)| **point == kill.point);
        hits.map(|(place, _)| place).nth(kill.hit - 1)
    }
}

/// What went wrong; nothing where nothing did.
#[derive(Debug, Default)]
struct Verdict {
    lost: Vec<String>,
    doubled: Vec<String>,
    invalid: Vec<String>,
}

impl Verdict {
    fn is_good(&self) -> bool {
        self.lost.is_empty() && self.doubled.is_empty() && self.invalid.is_empty()
    }
}

/// What came of the kills at one point.
#[derive(Default)]
struct Row {
    kills: usize,
    lost: usize,
    doubled: usize,
    invalid: usize,
}

/// What came of all.
#[derive(Default)]
struct Table {
    rows: BTreeMap<&'static str, Row>,
    /// What went wrong, in words.
    wrong: Vec<String>,
}

impl Table {
    fn kills(&self) -> usize {
        self.rows.values().map(|row| row.kills).sum()
    }

    /// A loss counts for every point at which the society had died.
    fn enter(&mut self, run: &Run<'_>, verdict: &Verdict) {
        for kill in &run.died {
            let row = self.rows.entry(kill.point).or_default();
            row.kills += 1;
            row.lost += verdict.lost.len();
            row.doubled += verdict.doubled.len();
            row.invalid += verdict.invalid.len();
        }
        if !verdict.is_good() {
            self.wrong.push(format!("{} died at {:?}: {verdict:#?}", run.scenario.name, run.died));
        }
    }

    /// Fails where anything went wrong, or a point was never hit.
    #[track_caller]
    fn assert_good(&self, kills: usize) {
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
        let never: BTreeSet<&str> =
            POINTS.iter().copied().filter(|point| !self.rows.contains_key(point)).collect();
        let reasoned: BTreeSet<&str> = UNREACHED.iter().map(|(point, _)| *point).collect();
        assert_eq!(
            never, reasoned,
            "no scenario comes to these, or one comes to what is said to be out of reach"
        );
        assert!(self.kills() >= kills, "{} kills", self.kills());
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "| point | kills | lost | doubled | invalid |\n|---|---:|---:|---:|---:|")?;
        for (point, Row { kills, lost, doubled, invalid }) in &self.rows {
            writeln!(f, "| {point} | {kills} | {lost} | {doubled} | {invalid} |")?;
        }
        for (point, reason) in UNREACHED {
            writeln!(f, "| {point} | not hit: {reason} | | | |")?;
        }
        write!(f, "| all | {} | | | |", self.kills())
    }
}

/// Plays a scenario as often as it takes to make all kills; several in one society where it comes to them.
fn work_off(scenario: &Scenario, undisturbed: &Undisturbed, kills: Vec<Kill>, table: &Mutex<Table>) {
    let mut left = VecDeque::from(kills);
    while !left.is_empty() {
        let mut run = Run::new(scenario);
        let code = loop {
            let Some(kill) = left.pop_front() else {
                match run.go_on(&[]) {
                    Ended::Finished(code) => break code,
                    Ended::Died => panic!("{} was killed by somebody else", scenario.name),
                }
            };
            match run.die(&kill) {
                Ended::Died => {}
                Ended::Finished(code) => {
                    // It may have come past that already, before it died: it is the first in the next society. Where a
                    // society that nobody had disturbed does not come to it, chance is the reason, or the scenario.
                    if !run.died.is_empty() {
                        left.push_front(kill);
                    }
                    break code;
                }
            }
        };
        let verdict = run.judge(code, &undisturbed.seen);
        lock(table).enter(&run, &verdict);
    }
}

fn lock(table: &Mutex<Table>) -> std::sync::MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Plays every scenario once, undisturbed.
fn undisturbed() -> Vec<(&'static Scenario, Undisturbed)> {
    let played = Mutex::new(Vec::new());
    at_once(SCENARIOS.iter().collect(), |scenario| {
        let undisturbed = Undisturbed::play(scenario);
        played.lock().expect("no panic before").push((scenario, undisturbed));
    });
    let mut played = played.into_inner().expect("no panic before");
    played.sort_by_key(|(scenario, _)| SCENARIOS.iter().position(|other| other.name == scenario.name));
    played
}

/// Does several things at the same time, as many as there are hands.
fn at_once<T: Send>(work: Vec<T>, done: impl Fn(T) + Sync) {
    let work = Mutex::new(VecDeque::from(work));
    let next = || work.lock().expect("no panic before").pop_front();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(one) = next() {
                    done(one);
                }
            });
        }
    });
}

/// Every point in the first scenario that passes it, at its first hit and at later ones.
#[test]
fn everything_happens_once_wherever_the_process_dies() {
    let undisturbed = undisturbed();
    let table = Mutex::new(Table::default());
    // What a scenario passed by chance is tried in the next one that passed it.
    for round in 0..SCENARIOS.len() {
        let mut work = Vec::new();
        for (scenario, here) in &undisturbed {
            let is_due = |point: &str| {
                let mut passing = undisturbed.iter().filter(|(_, other)| other.passed.contains(&point));
                let is_here = passing.nth(round).is_some_and(|(other, _)| other.name == scenario.name);
                is_here && !lock(&table).rows.contains_key(point)
            };
            let due = here.counts().into_iter().filter(|(point, _)| is_due(point));
            let mut kills: Vec<Kill> = due.flat_map(|(point, count)| hits(point, count)).collect();
            // In the order in which they come, so that one society can die at many of them.
            kills.sort_by_key(|kill| here.place(kill));
            // The way back up is cut off while there is most to take up.
            if round == 0 && scenario.name == SCENARIOS[0].name {
                let middle = kills.len() / 2;
                kills.splice(middle..middle, here.recovery());
            }
            work.push((*scenario, here, kills));
        }
        at_once(work, |(scenario, undisturbed, kills)| work_off(scenario, undisturbed, kills, &table));
    }
    let table = table.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{table}");
    table.assert_good(KILLS);
}

/// The first hit of a point, and one in the middle.
fn hits(point: &'static str, count: usize) -> impl Iterator<Item = Kill> {
    BTreeSet::from([1, (count / 2).max(1)]).into_iter().map(move |hit| Kill { point, hit })
}

/// `just crash-matrix`: rounds of kills at hits drawn by lot, until there are enough.
#[test]
#[ignore = "takes minutes: `just crash-matrix`"]
fn crash_matrix() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let wanted =
        number("POLITY_CRASH_KILLS").map_or(MANY_KILLS, |wanted| usize::try_from(wanted).expect("a number"));
    let seed = number("POLITY_CRASH_SEED").unwrap_or(0x0009_0117);
    let mut lots = Rng::with_seed(seed);
    let (at_random, in_societies) = super::kill_at_random(wanted / 10, &mut lots);
    let undisturbed = undisturbed();
    let table = Mutex::new(Table::default());
    let mut rounds = 0;
    while lock(&table).kills() + at_random < wanted {
        rounds += 1;
        let mut work = Vec::new();
        for (scenario, undisturbed) in &undisturbed {
            let draw = |(point, count): (&'static str, usize)| {
                // The first round comes to every point; how often a point is passed differs a little.
                let hit = if rounds == 1 { 1 } else { lots.usize(1..=(count * 3 / 4).max(1)) };
                Kill { point, hit }
            };
            let mut kills: Vec<Kill> = undisturbed.counts().into_iter().map(draw).collect();
            match rounds % 2 {
                0 => lots.shuffle(&mut kills),
                _ => kills.sort_by_key(|kill| undisturbed.place(kill)),
            }
            // And the way back up, somewhere.
            for kill in undisturbed.recovery() {
                kills.insert(lots.usize(0..=kills.len()), kill);
            }
            work.push((*scenario, undisturbed, kills));
        }
        at_once(work, |(scenario, undisturbed, kills)| work_off(scenario, undisturbed, kills, &table));
    }
    let table = table.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut told = String::new();
    // Cannot fail: a text takes everything.
    let _ = write!(told, "seed {seed}, {rounds} rounds of {} scenarios\n\n{table}\n", SCENARIOS.len());
    let _ = write!(
        told,
        "| SIGKILL from outside, at random moments of {in_societies} societies | {at_random} | 0 | 0 | 0 |"
    );
    println!("{told}");
    table.assert_good(wanted - at_random);
}
