//! A hundred thousand messages wait in one mailbox, or in a thousand mailboxes. The agents must handle them in order,
//! with requests and memory of bounded size, while the daemon still serves other agents.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polity_tests::{Answer, Conversation, Polity, Running, ScriptedServer};
use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::hiring::{Gate, hire};
use crate::support::{app, run, service, start, text_of};

/// Maximum number of new messages in one request.
const PER_REQUEST: usize = 200;
/// The context window of the service, in tokens.
const WINDOW: usize = 44_000;
/// Maximum number of concurrent requests of the service.
const AT_A_TIME: usize = 4;
/// Number of agents that write to each mailbox.
const SENDERS: i64 = 10;
/// Maximum peak memory of the daemon, in MiB. One request with all waiting messages would need several times as much.
const MOST_MEMORY: u64 = 400;
/// Maximum duration of a run. A longer run counts as a defect.
const PATIENCE: Duration = Duration::from_secs(1_200);

/// What the requests have contained since the beginning of the test.
#[derive(Default)]
struct Shown {
    /// The message number that is expected next, for each pair of a receiver and a sender.
    next: Mutex<HashMap<(String, i64), i64>>,
    total: AtomicUsize,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
    largest: AtomicUsize,
}

impl Shown {
    /// Records the new messages in a request. Each sender numbers its messages. Fails if the numbers in this request do
    /// not continue the earlier ones of the same sender.
    fn note(&self, asked: &Conversation) {
        self.largest.fetch_max(tokens(asked), Ordering::SeqCst);
        if sums_up(asked) {
            return;
        }
        let messages = asked.messages();
        let answered =
            messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |at| at + 1);
        let agent = asked.agent_id();
        let mut next = self.next.lock().expect("no panic before");
        let mut count = 0;
        for (sender, number) in messages[answered..].iter().flat_map(|message| entries(&text_of(message))) {
            let expected = next.entry((agent.clone(), sender)).or_default();
            assert_eq!(number, *expected, "sender {sender} of {agent}");
            *expected += 1;
            count += 1;
        }
        assert!(count <= PER_REQUEST, "{count} new messages in one request of {agent}");
        self.total.fetch_add(count, Ordering::SeqCst);
    }

    /// Counts the requests that are under way. Holds back all answers until [`AT_A_TIME`] requests have been under way
    /// at the same time.
    fn among_others(&self, all_there: &Gate, answer: impl FnOnce() -> Answer) -> Answer {
        let under_way = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_under_way.fetch_max(under_way, Ordering::SeqCst);
        if under_way >= AT_A_TIME {
            all_there.open();
        }
        all_there.pass();
        let answer = answer();
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        answer
    }
}

/// Returns the sender and the number of each entry in a text, such as `entry 3/7:`.
fn entries(text: &str) -> Vec<(i64, i64)> {
    let told = text.split("entry ").skip(1);
    let numbers = told.filter_map(|rest| rest.split_once(':')?.0.split_once('/'));
    numbers
        .map(|(sender, number)| (sender.parse().expect("a sender"), number.parse().expect("a number")))
        .collect()
}

/// Estimates the tokens of a request: four ASCII characters count as one token, and each non-ASCII character counts as
/// one token.
fn tokens(asked: &Conversation) -> usize {
    let of_text = |text: &str| {
        let ascii = text.chars().filter(char::is_ascii).count();
        ascii / 4 + text.chars().count() - ascii
    };
    let messages = asked.messages().iter().map(|message| {
        let calls = message["tool_calls"].as_array().map_or(0, |calls| of_text(&json!(calls).to_string()));
        calls + of_text(&text_of(message))
    });
    let tools = asked.body()["tools"].as_array().into_iter().flatten();
    messages.sum::<usize>() + tools.map(|tool| of_text(&tool["function"].to_string())).sum::<usize>()
}

fn sums_up(asked: &Conversation) -> bool {
    asked.system().starts_with("You compress the conversation history")
}

/// Creates a society in which root has hired a reader. All agents have ended their turns. `work` answers all later
/// requests.
fn at_rest(work: impl Fn(&Conversation) -> Answer + Send + Sync + 'static) -> (ScriptedServer, Polity) {
    let rests = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&rests);
    let server = ScriptedServer::start_forgetful(move |asked| {
        if now.load(Ordering::SeqCst) {
            return work(asked);
        }
        let hiring = (asked.agent_id() == "root").then(|| hire(asked, "reader", "get ready")).flatten();
        hiring.unwrap_or_else(|| Answer::say("ready"))
    });
    let mut one = service("one", &server, &["text"]);
    one["contextWindow"] = json!(WINDOW);
    one["maxConcurrentRequests"] = json!(AT_A_TIME);
    let limits: Value = json!({"maxTokensPerTask": null, "maxModelCallsPerTask": null});
    let polity = Polity::new(&json!({"services": [one]}), &app(&json!({"language": "en", "limits": limits})));
    run(&polity, &["get a reader"]).expect_code(0);
    rests.store(true, Ordering::SeqCst);
    (server, polity)
}

/// Queues `each` messages for each of `agents` agents. Each agent gets its messages from ten other agents, in turn.
///
/// The agents are copies of the hired reader, and the messages are copies of the message that the reader received.
fn fill(polity: &Polity, agents: i64, each: i64) {
    let mut database = Database::write(&polity.data_dir());
    database.execute("BEGIN");
    database.execute_with(
        "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
        INSERT INTO agents (id, task, parent, role, name, brief, depth, created_at)
        SELECT 'agent-' || i, task, parent, role, name, brief, depth, created_at FROM agents, n WHERE id LIKE 'reader-%'",
        &[agents + SENDERS],
    );
    database.execute(
        "INSERT INTO contacts (owner, agent, source, since)
        SELECT a.id, c.agent, c.source, c.since FROM agents a, contacts c WHERE a.id LIKE 'agent-%' AND c.owner LIKE 'reader-%'",
    );
    // Make contacts. Each agent gets its messages from the ten agents that follow it, so each of these ten and the
    // agent become contacts of each other.
    database.execute_with(
        "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1),
        s (j) AS (SELECT 1 UNION ALL SELECT j + 1 FROM s WHERE j < ?2),
        pair (one, other) AS (SELECT 'agent-' || i, 'agent-' || (i + j) FROM n, s)
        INSERT INTO contacts (owner, agent, source, introduced_by, since)
        SELECT one, other, 'introduction', 'root', 0 FROM pair UNION SELECT other, one, 'introduction', 'root', 0 FROM pair",
        &[agents, SENDERS],
    );
    // Fill all mailboxes in turn: each gets one message, then each gets another. So the messages of one mailbox are
    // spread over the whole table.
    database.execute_with(
        "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1 * ?2),
        numbered (i, receiver, sender, number, seq) AS (SELECT i, i % ?1, i / ?1 % ?3, i / ?1 / ?3,
            i + (SELECT max(seq) + 1 FROM messages) FROM n)
        INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body, attachments, expects, finality,
            state, created_at)
        SELECT n.seq, printf('m%09d', n.seq), m.task, 'agent-' || (n.receiver + 1 + n.sender), 'reader',
            'agent-' || n.receiver, 'status_report',
            json_object('message_type', 'status_report',
                'text', 'entry ' || n.sender || '/' || n.number || ': the river was crossed in the morning.'),
            '[]', 'nothing', 'final', 'queued', m.created_at
        FROM numbered n, messages m WHERE m.receiver LIKE 'reader-%' AND m.sender = 'root' ORDER BY n.seq",
        &[agents, each, SENDERS],
    );
    database.execute("UPDATE tasks SET state = 'open'");
    database.execute("COMMIT");
    drop(database);
    polity.run(&["db", "check", "--data", "data"]).expect_code(0);
}

/// Waits for the end of a process and returns its peak memory, in MiB.
#[track_caller]
fn peak_of(mut running: Running) -> u64 {
    let status = format!("/proc/{}/status", running.id());
    let mut peak = 0;
    let begun = std::time::Instant::now();
    while !running.has_ended() && begun.elapsed() < PATIENCE {
        let read = std::fs::read_to_string(&status).unwrap_or_default();
        let line = read.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        peak = peak.max(kibibytes.unwrap_or_default() / 1024);
        std::thread::sleep(Duration::from_millis(20));
    }
    running.wait_within(Duration::ZERO).expect_code(0);
    peak
}

/// Checks that each message was handled once, and that the messages of each mailbox were handled in order.
fn check_worked_off(polity: &Polity, messages: i64) {
    let mut database = Database::read(&polity.data_dir());
    assert_eq!(database.number("SELECT count(*) FROM messages WHERE state <> 'done'"), 0);
    let heard =
        database.number("SELECT count(*) FROM records WHERE message IS NOT NULL AND agent LIKE 'agent-%'");
    assert_eq!(heard, messages);
    let overtaken = database.number(
        "SELECT count(*) FROM (SELECT message, lag(message) OVER (PARTITION BY agent ORDER BY seq) AS before
        FROM records WHERE message IS NOT NULL) WHERE before >= message",
    );
    assert_eq!(overtaken, 0);
}

/// Checks that the requests contained all messages and that tokens and memory stayed within their bounds.
#[expect(clippy::print_stdout, reason = "prints the numbers for docs/performance.md")]
fn check_shown(
    what: &str,
    shown: &Shown,
    server: &ScriptedServer,
    messages: i64,
    begun: std::time::Instant,
    peak: u64,
) {
    let largest = shown.largest.load(Ordering::SeqCst);
    let took = begun.elapsed();
    println!(
        "{what}: {messages} messages, {} requests, {took:.1?}, {peak} MiB, {largest} tokens",
        server.request_count()
    );
    assert_eq!(i64::try_from(shown.total.load(Ordering::SeqCst)), Ok(messages));
    assert!(largest <= WINDOW, "{largest}");
    server.assert_clean();
    if cfg!(target_os = "linux") {
        assert!((1..=MOST_MEMORY).contains(&peak), "{peak} MiB");
    }
}

fn one_mailbox(messages: i64) {
    let (shown, other_asked) = (Arc::new(Shown::default()), Gate::default());
    let (noted, gate) = (Arc::clone(&shown), other_asked.clone());
    let (server, polity) = at_rest(move |asked| {
        if asked.role_name() == "reader" && asked.agent_id() != "agent-0" {
            gate.open();
            return Answer::say("42");
        }
        noted.note(asked);
        // In the middle of its messages, the agent with the large mailbox gets no answer until another agent has called
        // a model.
        if noted.total.load(Ordering::SeqCst) > PER_REQUEST {
            gate.pass();
        }
        Answer::say("noted")
    });
    fill(&polity, 1, messages);
    Database::write(&polity.data_dir()).execute(
        "INSERT INTO messages (id, task, sender, sender_role, receiver, type, body, attachments, expects, finality,
            state, created_at)
        SELECT printf('m%09d', (SELECT max(seq) + 1 FROM messages)), task, sender, sender_role, 'agent-1', 'general',
            json_object('text', 'what is six times seven?'), '[]', 'answer', 'final', 'queued', created_at
        FROM messages WHERE sender = 'root' LIMIT 1",
    );
    let begun = std::time::Instant::now();
    let peak = peak_of(start(&polity, &["--resume"]));
    check_shown("one mailbox", &shown, &server, messages, begun, peak);
    check_worked_off(&polity, messages + 1);
}

fn many_mailboxes(agents: i64, each: i64) {
    let (shown, all_there) = (Arc::new(Shown::default()), Gate::default());
    let noted = Arc::clone(&shown);
    let (server, polity) = at_rest(move |asked| {
        noted.among_others(&all_there, || {
            noted.note(asked);
            Answer::say("noted")
        })
    });
    fill(&polity, agents, each);
    let begun = std::time::Instant::now();
    let peak = peak_of(start(&polity, &["--resume"]));
    check_shown("many mailboxes", &shown, &server, agents * each, begun, peak);
    check_worked_off(&polity, agents * each);
    assert_eq!(shown.most_under_way.load(Ordering::SeqCst), AT_A_TIME);
}

#[test]
fn a_large_mailbox_is_worked_off_in_order_while_another_is_served() {
    one_mailbox(10_000);
}

#[test]
fn many_mailboxes_are_worked_off_in_order() {
    many_mailboxes(100, 100);
}

#[test]
#[ignore = "takes minutes: just load"]
fn a_hundred_thousand_messages_for_one_agent() {
    one_mailbox(100_000);
}

#[test]
#[ignore = "takes minutes: just load"]
fn a_hundred_messages_for_each_of_a_thousand_agents() {
    many_mailboxes(1_000, 100);
}
