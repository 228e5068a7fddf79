//! An hour of load: at any time, forty tasks run with 25 agents each. The model server has faults, the configuration
//! changes, and some clients are killed. The last sixth of the hour is compared with the second sixth. The daemon must
//! not use more memory, descriptors, threads or processor time per call at the end.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use polity_tests::{Answer, Conversation, Polity, Running, ScriptedServer, society};
use serde_json::{Value, json};

use crate::support::{app, service};

const LEADS: usize = 4;
const WORKERS_PER_LEAD: usize = 5;
/// Number of tasks that run at the same time: 1,000 agents in all.
const TASKS: usize = 40;
/// The test kills clients at random. On average, it kills one client in this many.
const KILLED: usize = 20;
/// Time between two changes of the configuration.
const RELOAD: Duration = Duration::from_secs(2);
/// Time between two measurements.
const SAMPLE: Duration = Duration::from_secs(1);
/// Number of equal parts of the test's time. The test compares the second part with the last part.
const PARTS: u32 = 6;
/// Maximum growth from the second part to the last, in percent.
const GROWTH: u64 = 10;
/// Clock ticks per second in `/proc/<pid>/stat`. For programs, this number is the same on every Linux machine.
const TICKS: u64 = 100;

/// Answers a request as `play` does, but gives three of a hundred requests a faulty answer.
fn faulty(asked: &Conversation, play: &impl Fn(&Conversation) -> Answer) -> Answer {
    match fastrand::usize(0..1_000) {
        0..10 => Answer::error(503, json!({"error": {"message": "overloaded"}})),
        10..20 => Answer::reset(),
        20..29 => play(asked).half(),
        29 => play(asked).stuck(),
        _ => play(asked),
    }
}

/// What the daemon uses at one moment.
#[derive(Clone, Copy, Default)]
struct Sample {
    /// Processor time since the start, in ticks.
    ticks: u64,
    /// Number of model requests since the start.
    calls: u64,
    /// Resident memory, in KiB.
    memory: u64,
    descriptors: u64,
    threads: u64,
}

impl Sample {
    fn take(daemon: u32, calls: usize) -> Self {
        let read =
            |name: &str| std::fs::read_to_string(format!("/proc/{daemon}/{name}")).expect("the daemon runs");
        let stat = read("stat");
        // The times are fields 14 and 15. Count the fields from the end of field 2, the program's name in parentheses,
        // because this name may contain spaces.
        let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
        let ticks = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().expect("ticks")).sum();
        let status = read("status");
        let value = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of the status");
            line.split_whitespace().next().expect("a value").parse().expect("a number")
        };
        let memory = value("VmRSS:");
        let threads = value("Threads:");
        let descriptors = std::fs::read_dir(format!("/proc/{daemon}/fd")).expect("descriptors").count();
        Self { ticks, calls: calls as u64, memory, descriptors: descriptors as u64, threads }
    }
}

/// What the daemon used in one part of the test's time. The values are medians of the samples, except the processor
/// time for each call.
#[derive(Clone, Copy)]
struct Part {
    calls: u64,
    /// Processor time for each call, in microseconds.
    cost: u64,
    memory: u64,
    descriptors: u64,
    threads: u64,
}

impl Part {
    fn of(samples: &[Sample]) -> Self {
        let (first, last) = (samples[0], samples[samples.len() - 1]);
        let median = |value: fn(&Sample) -> u64| {
            let mut values: Vec<u64> = samples.iter().map(value).collect();
            values.sort_unstable();
            values[values.len() / 2]
        };
        let calls = last.calls - first.calls;
        Self {
            calls,
            cost: (last.ticks - first.ticks) * 1_000_000 / TICKS / calls.max(1),
            memory: median(|sample| sample.memory),
            descriptors: median(|sample| sample.descriptors),
            threads: median(|sample| sample.threads),
        }
    }

    /// Lists what has grown by more than [`GROWTH`] since an earlier part.
    fn grown_since(&self, before: &Self) -> Vec<String> {
        let values = [
            ("the cost of a call", before.cost, self.cost),
            ("memory", before.memory, self.memory),
            ("descriptors", before.descriptors, self.descriptors),
            ("threads", before.threads, self.threads),
        ];
        let grown = values.into_iter().filter(|(_, before, now)| now * 100 > before * (100 + GROWTH));
        grown.map(|(what, before, now)| format!("{what}: {before}, then {now}")).collect()
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, cost, memory, descriptors, threads } = self;
        write!(f, "| {calls} | {cost} | {} | {descriptors} | {threads} |", memory / 1024)
    }
}

/// Returns an `llmservices.json`. The description of its service contains `version`, so each version is a change.
fn services(server: &ScriptedServer, version: usize) -> Value {
    let mut one = service("one", server, &["text"]);
    one["description"] = json!(format!("version {version}"));
    one["timeouts"] = json!({"firstByteMs": 2_000, "betweenBytesMs": 2_000});
    one["maxConcurrentRequests"] = json!(16);
    json!({"services": [one]})
}

fn serve(polity: &Polity) -> Running {
    let daemon = polity.spawn(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
    daemon.stderr_line("ready");
    daemon
}

/// The command `just soak` runs this test. The variable `POLITY_SOAK_MINUTES` sets the duration of the test in minutes.
#[test]
#[ignore = "takes an hour: `just soak`"]
fn an_hour_of_load_makes_nothing_grow() {
    let minutes: u32 =
        std::env::var("POLITY_SOAK_MINUTES").map_or(60, |text| text.parse().expect("a number"));
    let part = Duration::from_secs(60) * minutes / PARTS;
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let play = society(LEADS, WORKERS_PER_LEAD);
    let server = ScriptedServer::start_forgetful(move |asked| {
        count.fetch_add(1, Ordering::Relaxed);
        faulty(asked, &play)
    });
    let settings = json!({"retry": {"maxAttempts": 8, "baseDelayMs": 1, "maxDelayMs": 20}});
    let polity = Polity::new(&services(&server, 0), &app(&settings));
    let daemon = serve(&polity);
    let stop = AtomicBool::new(false);
    let (finished, killed) = (AtomicUsize::new(0), AtomicUsize::new(0));

    let parts: Vec<Part> = std::thread::scope(|scope| {
        for _ in 0..TASKS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let client = polity.spawn(&["run", "--data", "data", "build it"]);
                    if fastrand::usize(0..KILLED) == 0 {
                        // Kill the client some time after its start, so that it can send its prompt first. The daemon
                        // continues the task without the client.
                        std::thread::sleep(Duration::from_millis(fastrand::u64(500..2_000)));
                        client.kill9();
                        killed.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    let output = client.wait_within(Duration::from_secs(600)).expect_code(0);
                    assert!(output.stdout.ends_with("all done\n"), "{}", output.stdout);
                    finished.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(|| {
            for version in 1.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                polity.write_config("llmservices.json", &services(&server, version).to_string());
                std::thread::sleep(RELOAD);
            }
        });
        println!(
            "| part | calls | µs per call | MiB | descriptors | threads |\n|---:|---:|---:|---:|---:|---:|"
        );
        let parts = (1..=PARTS).map(|number| {
            let (began, mut samples) = (Instant::now(), Vec::new());
            while began.elapsed() < part {
                samples.push(Sample::take(daemon.id(), calls.load(Ordering::Relaxed)));
                std::thread::sleep(SAMPLE);
            }
            let part = Part::of(&samples);
            println!("| {number} {part}");
            part
        });
        let parts = parts.collect();
        stop.store(true, Ordering::Relaxed);
        parts
    });
    println!(
        "{} tasks finished, {} clients killed",
        finished.load(Ordering::Relaxed),
        killed.load(Ordering::Relaxed)
    );
    server.assert_clean();
    daemon.terminate();
    daemon.wait().expect_code(0);
    assert!(finished.load(Ordering::Relaxed) > TASKS, "too few tasks were finished");
    let grown = parts[PARTS as usize - 1].grown_since(&parts[1]);
    assert!(grown.is_empty(), "{grown:?}");
}
