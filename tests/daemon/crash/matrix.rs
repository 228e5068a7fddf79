//! The crash matrix. The process of a scenario dies at a failure point. The next process continues the scenario and
//! dies at the next point, and so on. In the end, the scenario must have the same result as without any kill.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use fastrand::Rng;
use polity_tests::{Output, Polity, ScriptedServer};

use super::ledger::{self, Ledger, missing, transcripts};
use super::points::{POINTS, RECOVERY, UNREACHED};
use super::scenarios::{SCENARIOS, Scenario};
use crate::support::database::Database;

/// Minimum number of kills in the test that runs with all other tests.
const KILLS: usize = 100;
/// Minimum number of kills in the test of the command `just crash-matrix`. The caller can give another number.
const MANY_KILLS: usize = 1000;
/// Number of scenarios that are played at the same time.
const AT_ONCE: usize = 2;

/// A planned death: the process dies when it reaches this point for the `hit`-th time, counted from 1.
#[derive(Clone, Debug)]
struct Kill {
    point: &'static str,
    hit: usize,
}

/// How a process ended.
enum Ended {
    /// The process died at the failure point.
    Died,
    /// The process ended by itself, with this exit code.
    Finished(i32),
}

/// A scenario that is being played, in as many processes as it needs.
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

    /// Continues the scenario in a new process.
    ///
    /// If an earlier process died before it had stored anything to resume, a second new process begins the scenario
    /// again.
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
            // An earlier process was killed after the backup was complete. So this process only reports that the backup
            // exists.
            Some(2) if !self.died.is_empty() && ended.stderr.contains("is there already") => {
                Ended::Finished(0)
            }
            Some(code) => Ended::Finished(code),
        }
    }

    /// Continues the scenario in a process that dies if it reaches the planned point.
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

    /// Compares the end of this run with the end of the scenario without kills.
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
            verdict.lost.push(format!("{:?} was not printed, but {:?}", self.scenario.said, self.printed));
        }
        if code != undisturbed.code {
            verdict.invalid.push(format!("the exit code is {code}, not {}", undisturbed.code));
        }
        if check != undisturbed.check {
            verdict
                .invalid
                .push(format!("`polity db check` ends with {check:?}, not {:?}", undisturbed.check));
        }
        verdict
    }
}

impl Drop for Run<'_> {
    /// Prints the kills so far if the test panics, because then no verdict prints them.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let told = format!("{} died at {:?}\n", self.scenario.name, self.died);
            let _ = std::io::Write::write_all(&mut std::io::stderr(), told.as_bytes());
        }
    }
}

/// What is compared at the end of a scenario: exit codes and the ledger of the database.
struct Seen {
    code: i32,
    check: Option<i32>,
    ledger: Ledger,
}

/// The end of a scenario without kills, and the points that it passed.
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
            panic!("{} was killed from outside", scenario.name)
        };
        let log = std::fs::read_to_string(log).expect("the points that were passed");
        let known = |name: &str| POINTS.iter().find(|point| **point == name).copied();
        let passed =
            log.lines().map(|name| known(name).unwrap_or_else(|| panic!("{name} is not in `POINTS`")));
        let undisturbed = Self { passed: passed.collect(), seen: run.look(code) };
        let verdict = run.judge(code, &undisturbed.seen);
        assert!(verdict.is_good(), "{} undisturbed: {verdict:#?}", scenario.name);
        undisturbed
    }

    /// Returns how often the scenario passes each point.
    fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for point in &self.passed {
            *counts.entry(*point).or_default() += 1;
        }
        counts
    }

    /// Returns one kill for each point of [`RECOVERY`] that this scenario passes.
    fn recovery(&self) -> impl Iterator<Item = Kill> {
        let passed = RECOVERY.iter().filter(|point| self.passed.contains(point));
        passed.map(|point| Kill { point, hit: 1 })
    }

    /// Returns the position of a kill among all points that the undisturbed scenario passes.
    fn place(&self, kill: &Kill) -> Option<usize> {
        let hits = self.passed.iter().enumerate().filter(|(_, point)| **point == kill.point);
        hits.map(|(place, _)| place).nth(kill.hit - 1)
    }
}

/// The problems of a run. If the run was right, all lists are empty.
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

/// The totals of kills and problems at one point.
#[derive(Default)]
struct Row {
    kills: usize,
    lost: usize,
    doubled: usize,
    invalid: usize,
}

/// The results of all runs.
#[derive(Default)]
struct Table {
    rows: BTreeMap<&'static str, Row>,
    /// A description of each run with problems.
    wrong: Vec<String>,
}

impl Table {
    fn kills(&self) -> usize {
        self.rows.values().map(|row| row.kills).sum()
    }

    /// Adds the verdict of a run. A run can be killed at several points, and its problems count for each of these
    /// points.
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

    /// Fails in three cases: a run had problems, no run was killed at a point that can be reached, or there were fewer
    /// than `kills` kills.
    #[track_caller]
    fn assert_good(&self, kills: usize) {
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
        let never: BTreeSet<&str> =
            POINTS.iter().copied().filter(|point| !self.rows.contains_key(point)).collect();
        let reasoned: BTreeSet<&str> = UNREACHED.iter().map(|(point, _)| *point).collect();
        assert_eq!(
            never, reasoned,
            "the points without a kill (left) differ from those listed in `UNREACHED` (right)"
        );
        assert!(self.kills() >= kills, "only {} kills", self.kills());
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

/// Plays a scenario again and again until all planned kills are done or dropped. After each kill, the next process
/// resumes the society. So one society can die at several points.
fn work_off(scenario: &Scenario, undisturbed: &Undisturbed, kills: Vec<Kill>, table: &Mutex<Table>) {
    let mut left = VecDeque::from(kills);
    while !left.is_empty() {
        let mut run = Run::new(scenario);
        let code = loop {
            let Some(kill) = left.pop_front() else {
                match run.go_on(&[]) {
                    Ended::Finished(code) => break code,
                    Ended::Died => panic!("{} was killed from outside", scenario.name),
                }
            };
            match run.die(&kill) {
                Ended::Died => {}
                Ended::Finished(code) => {
                    // The process ended without reaching the point. If an earlier process of this society was killed,
                    // that process may already have passed the point. So this kill is tried first in the next society.
                    // Otherwise, the scenario did not reach the point at all, and the kill is dropped.
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

/// Plays every scenario once, without kills.
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

/// Calls `done` for each item of `work`, with [`AT_ONCE`] items at the same time.
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

/// Kills the process at every point. For each point, the test uses the first scenario that passes the point. It tries
/// up to two kills there: one at the first passage, and one at the middle passage, such as the fifth of ten.
#[test]
fn everything_happens_once_wherever_the_process_dies() {
    let undisturbed = undisturbed();
    let table = Mutex::new(Table::default());
    // Some scenarios pass a point only by chance, so the process may not die there. Then the next round tries the point
    // again, with the next scenario that passes it.
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
            // Sort the kills in the order in which a run reaches their points, so that one society can die at many
            // points.
            kills.sort_by_key(|kill| here.place(kill));
            // Put the kills during recovery into the middle of the list, because most work is unfinished at that time.
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

/// Returns the kills at a point that a scenario passes `count` times. One kill is at the first passage, and one at the
/// middle passage, such as the fifth of ten. If both are the same passage, returns only one kill.
fn hits(point: &'static str, count: usize) -> impl Iterator<Item = Kill> {
    BTreeSet::from([1, (count / 2).max(1)]).into_iter().map(move |hit| Kill { point, hit })
}

/// Plays all scenarios in rounds until there are enough kills. If a scenario passes a point several times, the process
/// dies at one of these times, which the test chooses at random. The command `just crash-matrix` runs this test.
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
                // In the first round, the process dies when it first passes a point, so that every point is tried.
                // Later rounds choose one of the counted passages at random. They never choose from the last quarter,
                // because the count varies a little between runs.
                let hit = if rounds == 1 { 1 } else { lots.usize(1..=(count * 3 / 4).max(1)) };
                Kill { point, hit }
            };
            let mut kills: Vec<Kill> = undisturbed.counts().into_iter().map(draw).collect();
            match rounds % 2 {
                0 => lots.shuffle(&mut kills),
                _ => kills.sort_by_key(|kill| undisturbed.place(kill)),
            }
            // Insert the kills during recovery at random places in the list.
            for kill in undisturbed.recovery() {
                kills.insert(lots.usize(0..=kills.len()), kill);
            }
            work.push((*scenario, undisturbed, kills));
        }
        at_once(work, |(scenario, undisturbed, kills)| work_off(scenario, undisturbed, kills, &table));
    }
    let table = table.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut told = String::new();
    // Writing to a `String` cannot fail.
    let _ = write!(told, "seed {seed}, {rounds} rounds with {} scenarios\n\n{table}\n", SCENARIOS.len());
    let _ = write!(
        told,
        "| SIGKILL from outside, at random moments in {in_societies} societies | {at_random} | 0 | 0 | 0 |"
    );
    println!("{told}");
    table.assert_good(wanted - at_random);
}
