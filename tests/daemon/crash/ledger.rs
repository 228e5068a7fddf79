//! The ledger of a society: lines that tell what happened according to its database. Placeholders such as role names
//! replace the ids, so the lines are the same in every run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use polity_tests::ScriptedServer;
use serde_json::Value;

use crate::support::database::Database;

/// The lines of a ledger, each with the number of its occurrences.
pub(super) type Ledger = BTreeMap<String, usize>;

/// Queries of the database. They return one line for each row that must exist exactly once.
///
/// The queries leave out what agents say while they wait, because these texts depend on how many messages arrive
/// together. If an agent fails again and again, the daemon parks it (the agent does nothing until somebody resumes it)
/// and sends a notice. Every resumption that fails repeats the notice. So the queries count equal notices as one.
const LINES: &[&str] = &[
    "SELECT 'agent ' || id || ' of ' || coalesce(parent, '-') || ' as ' || coalesce(role, '-')
        || CASE WHEN ended_at IS NULL THEN '' ELSE ', ended' END
        || ': ' || CASE WHEN json_valid(brief) THEN json_extract(brief, '$.objective') ELSE '' END FROM agents
        WHERE parent IS NOT NULL",
    "SELECT 'role ' || name || ' of ' || creator FROM roles",
    "SELECT 'contact ' || agent || ' of ' || owner || ', ' || source || ' by ' || coalesce(introduced_by, '-') FROM contacts",
    "SELECT 'message from ' || sender || ' to ' || receiver || ', ' || type || ', ' || state
        || CASE WHEN expects = 'nothing' THEN '' WHEN answered_by IS NULL THEN ', open' ELSE ', answered' END
        || ': ' || body FROM messages WHERE (receiver <> 'user' OR finality <> 'interim') AND body <> '{\"text\":\"…\"}'
        AND substr(body, 1, 18) <> '{\"notice\":\"parked\"'",
    "SELECT DISTINCT 'told ' || receiver || ': ' || body FROM messages WHERE substr(body, 1, 18) = '{\"notice\":\"parked\"'",
    "SELECT 'artifact of ' || owner || ', ' || mime_type || ', ' || coalesce(filename, label, '-') || ', ' || size FROM artifacts",
    "SELECT 'grant to ' || agent || ' of ' || owner || '’s ' || coalesce(filename, label, '-')
        FROM artifact_grants JOIN artifacts ON artifact = id",
    "SELECT 'task ' || state || ', nudged ' || nudged || ', ' || coalesce(stopped_by, '-') FROM tasks",
    "SELECT 'hold on ' || agent FROM holds",
    "SELECT 'open turn of ' || agent FROM turns WHERE state = 'open'",
    "SELECT 'tool result of ' || agent FROM records WHERE substr(body, 1, 24) = '{\"record\":\"tool_finished\"'",
    "SELECT 'summary of ' || agent FROM records WHERE substr(body, 1, 21) = '{\"record\":\"compacted\"'",
];

/// Reads the ledger of a data directory.
pub(super) fn read(data: &Path, server: &ScriptedServer) -> Ledger {
    let mut database = Database::read(data);
    let names = names(&mut database, server);
    let mut ledger = Ledger::new();
    for query in LINES {
        for [line] in database.texts::<1>(query) {
            *ledger.entry(normal(line, &names)).or_default() += 1;
        }
    }
    ledger
}

/// Some texts, such as ids, differ between runs. Returns each of these texts with its placeholder. Longer texts come
/// first, because one id may be part of another id.
fn names(database: &mut Database, server: &ScriptedServer) -> Vec<(String, String)> {
    let agents = database
        .texts::<2>("SELECT agents.id, roles.name FROM agents JOIN roles ON roles.id = agents.role")
        .into_iter()
        .map(|[id, role]| (id, format!("<{role}>")));
    let roles = database.texts::<1>("SELECT id FROM roles").into_iter().map(|[id]| (id, "<role>".to_owned()));
    let messages =
        database.texts::<1>("SELECT id FROM messages").into_iter().map(|[id]| (id, "<message>".to_owned()));
    let artifacts =
        database.texts::<1>("SELECT id FROM artifacts").into_iter().map(|[id]| (id, "<artifact>".to_owned()));
    let server = [(server.base_url(), "<server>".to_owned())];
    let mut names: Vec<(String, String)> =
        agents.chain(roles).chain(messages).chain(artifacts).chain(server).collect();
    names.sort_by_key(|(id, _)| std::cmp::Reverse(id.len()));
    names
}

fn normal(line: String, names: &[(String, String)]) -> String {
    let line = names.iter().fold(line, |line, (id, name)| match line.contains(id.as_str()) {
        true => line.replace(id.as_str(), name),
        false => line,
    });
    // A text may still name an artifact that has been removed.
    let mut parts = line.split("artifact:");
    let before = parts.next().unwrap_or_default().to_owned();
    parts.fold(before, |before, after| {
        let after = after.trim_start_matches("<artifact>");
        format!(
            "{before}artifact:<artifact>{}",
            after.trim_start_matches(|c: char| c.is_ascii_alphanumeric())
        )
    })
}

/// Lists the lines that the ledger `here` contains more often than the ledger `from`.
pub(super) fn missing(from: &Ledger, here: &Ledger) -> Vec<String> {
    let missing = here.iter().filter_map(|(line, count)| {
        let short = count.saturating_sub(from.get(line).copied().unwrap_or_default());
        (short > 0).then(|| format!("{short} × {line}"))
    });
    missing.collect()
}

/// Lists messages that were handled twice and answers that were recorded twice.
pub(super) fn doubled(data: &Path, server: &ScriptedServer) -> Vec<String> {
    let mut database = Database::read(data);
    let heard = database.texts::<1>(
        "SELECT message FROM records WHERE message IS NOT NULL GROUP BY message HAVING count(*) > 1",
    );
    let mut doubled: Vec<String> =
        heard.into_iter().map(|[message]| format!("{message} was handled twice")).collect();
    // There must be at least as many different requests as recorded answers. No two answers can belong to equal
    // requests, because each recorded answer appears in the agent's later requests.
    let bodies: BTreeSet<_> = server.requests().into_iter().map(|request| request.raw).collect();
    let recorded = database.number("SELECT count(*) FROM model_calls");
    if recorded > i64::try_from(bodies.len()).expect("few") {
        doubled.push(format!("{recorded} answers for {} different requests", bodies.len()));
    }
    let told = database.number("SELECT count(*) FROM events WHERE kind = 'message_accepted'");
    if told > database.number("SELECT count(*) FROM messages") {
        doubled.push("a message has two events".to_owned());
    }
    doubled
}

/// Lists messages whose state is `done` although no record contains them.
pub(super) fn unheard(data: &Path) -> Vec<String> {
    let unheard = Database::read(data).texts::<1>(
        "SELECT id FROM messages WHERE receiver <> 'user' AND state = 'done'
         AND id NOT IN (SELECT message FROM records WHERE message IS NOT NULL)",
    );
    unheard.into_iter().map(|[message]| format!("{message} is done, but no agent has received it")).collect()
}

/// The number of replies in the records of all conversations, and the problems found there.
pub(super) struct Transcripts {
    pub(super) replies: i64,
    pub(super) problems: Vec<String>,
}

impl Transcripts {
    /// Adds a problem if a conversation has ended although a call in it has no result. The calls in `asked` wait for
    /// the user, so it is no problem if these calls have no result.
    fn has_ended(&mut self, conversation: &str, open: &mut Vec<String>, asked: &[String]) {
        open.retain(|call| !asked.contains(call));
        if !open.is_empty() {
            self.problems.push(format!("{conversation} has calls without results: {open:?}"));
            open.clear();
        }
    }
}

/// Checks every call of every reply in all conversations. The call must have exactly one result before the model speaks
/// again.
pub(super) fn transcripts(database: &mut Database) -> Transcripts {
    let rows = database.texts::<3>("SELECT agent, task, body FROM records ORDER BY agent, task, seq");
    // If a call waits for the user's permission, it is right that it has no result yet.
    let asked: Vec<String> = database
        .texts::<1>("SELECT call FROM approvals WHERE state = 'open'")
        .into_iter()
        .flatten()
        .collect();
    let mut found = Transcripts { replies: 0, problems: Vec::new() };
    let mut open: Vec<String> = Vec::new();
    let mut before = String::new();
    for [agent, task, body] in rows {
        let record: Value = serde_json::from_str(&body).expect("a record");
        let conversation = format!("{agent} in {task}");
        if conversation != before {
            found.has_ended(&before, &mut open, &asked);
            before = conversation;
        }
        match record["record"].as_str().expect("the kind of a record") {
            "replied" => {
                if !open.is_empty() {
                    found.problems.push(format!("{before} spoke before its calls had results: {open:?}"));
                }
                let calls = record["calls"].as_array().into_iter().flatten();
                open = calls.map(|call| call["id"].as_str().expect("an id").to_owned()).collect();
                found.replies += 1;
            }
            "tool_finished" => {
                let call = record["call"].as_str().expect("a call");
                match open.iter().position(|open| open == call) {
                    Some(place) => drop(open.remove(place)),
                    None => found.problems.push(format!("{before} has more than one result for {call}")),
                }
            }
            _ => {}
        }
    }
    found.has_ended(&before, &mut open, &asked);
    found
}
