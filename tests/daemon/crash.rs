//! Kills the process with `kill -9` again and again, at random moments. Even so, the society must reach the same end,
//! and nothing may happen twice.

pub(crate) mod end;
mod ledger;
mod matrix;
mod once;
mod points;
mod scenarios;

use std::time::Duration;

use fastrand::Rng;
use polity_tests::{Answer, Conversation, Polity, Running, ScriptedServer, doubled_reports, society};
use serde_json::{Value, json};

use crate::support::{home, start};

/// Number of kills in the test.
const KILLS: usize = 100;
const LEADS: usize = 4;
const WORKERS_PER_LEAD: usize = 5;
const LAST_WORDS: &str = "all done";

/// Polling interval while waiting for the moment of a kill.
const GLANCE: Duration = Duration::from_micros(200);

/// How a process ended.
enum Ended {
    /// The process was killed before it ended by itself.
    Killed,
    /// The process was killed before it had stored the prompt, so there was nothing to resume.
    NothingBegun,
    /// The process finished the task.
    Finished,
}

/// The moment at which a process is killed.
#[derive(Debug)]
enum Moment {
    /// When the process has printed this many lines.
    Lines(usize),
    /// When the server has received this many requests from the process. The last of these requests may not be answered
    /// yet.
    Requests(usize),
    Never,
}

impl Moment {
    fn random(lots: &mut Rng) -> Self {
        match lots.bool() {
            true => Self::Lines(lots.usize(0..16)),
            false => Self::Requests(lots.usize(1..5)),
        }
    }
}

/// A society that is played from its prompt to its end, in as many processes as needed.
struct Run {
    server: ScriptedServer,
    polity: Polity,
    printed: String,
    kills: usize,
}

impl Run {
    fn new() -> Self {
        let play = society(LEADS, WORKERS_PER_LEAD);
        let server = ScriptedServer::start(move |asked: &Conversation| -> Answer { play(asked) });
        let polity = home(&server, &json!({}));
        Self { server, polity, printed: String::new(), kills: 0 }
    }

    /// Plays the society to its end. Kills its processes at random moments, until `kills` processes were killed
    /// before they ended by themselves.
    fn play(&mut self, kills: usize, lots: &mut Rng) {
        let mut arguments = ["build it", "--json"];
        loop {
            let moment = if self.kills < kills { Moment::random(lots) } else { Moment::Never };
            let running = start(&self.polity, &arguments);
            match self.attend(running, &moment, Duration::from_micros(lots.u64(0..3000))) {
                Ended::Finished => return,
                Ended::Killed => arguments[0] = "--resume",
                Ended::NothingBegun => arguments[0] = "build it",
            }
        }
    }

    fn attend(&mut self, mut running: Running, moment: &Moment, delay: Duration) -> Ended {
        let asked_before = self.server.request_count();
        let has_come = |running: &Running| match moment {
            Moment::Lines(lines) => running.stdout_line_count() >= *lines,
            Moment::Requests(requests) => self.server.request_count() >= asked_before + requests,
            Moment::Never => false,
        };
        let ended = match moment {
            Moment::Never => running.wait(),
            Moment::Lines(_) | Moment::Requests(_) => {
                while !running.has_ended() && !has_come(&running) {
                    std::thread::sleep(GLANCE);
                }
                std::thread::sleep(delay);
                running.kill9()
            }
        };
        self.printed.push_str(&ended.stdout);
        // The kill may cut off the last printed line. End this line here. Otherwise, the first line of the next process
        // would continue it.
        self.printed.push('\n');
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        match ended.code {
            None => {
                self.kills += 1;
                Ended::Killed
            }
            // An earlier process was killed before it had acknowledged the prompt.
            Some(2) if ended.stderr.contains("nothing to resume") => Ended::NothingBegun,
            Some(_) => {
                ended.expect_code(0);
                Ended::Finished
            }
        }
    }

    /// Returns whether any of the processes has printed the final text for the user.
    fn was_told(&self) -> bool {
        let lines = self.printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines
            .filter(|line| line["event"] == "message_accepted" && line["to"] == "user")
            .any(|message| message["finality"] == "final" && message["text"] == LAST_WORDS)
    }

    /// Fails if any request shows an agent the same report twice.
    fn assert_nothing_heard_twice(&self) {
        for request in self.server.requests() {
            let asked = request.conversation();
            assert_eq!(doubled_reports(&asked), [], "{}", asked.agent_id());
        }
        self.server.assert_clean();
    }
}

#[test]
fn everything_happens_once_however_often_the_process_is_killed() {
    // The seed decides when each kill comes: after a number of lines or of requests. What the process does at that
    // moment depends on the machine. The checks hold for every moment.
    let (kills, runs) = kill_at_random(KILLS, &mut Rng::with_seed(0x0009_0117));
    println!("{kills} kills in {runs} societies of {} agents", LEADS * (WORKERS_PER_LEAD + 1) + 1);
}

/// Plays societies until `wanted` processes were killed before they ended by themselves. Checks the end of each
/// society. Returns the number of kills and the number of societies.
#[track_caller]
fn kill_at_random(wanted: usize, lots: &mut Rng) -> (usize, usize) {
    let (mut kills, mut runs) = (0, 0);
    while kills < wanted {
        let mut run = Run::new();
        run.play(wanted - kills, lots);
        end::check(&run.polity.data_dir(), LEADS, WORKERS_PER_LEAD);
        run.assert_nothing_heard_twice();
        assert!(run.was_told(), "the last words were not printed:\n{}", run.printed);
        kills += run.kills;
        runs += 1;
    }
    (kills, runs)
}
