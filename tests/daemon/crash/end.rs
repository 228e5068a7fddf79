//! Checks the database of a finished society of leads and workers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::LAST_WORDS;
use super::ledger::{Transcripts, transcripts};
use crate::support::database::Database;

/// Some things must happen exactly once. Fails if one of them has happened twice or not at all.
#[track_caller]
pub(crate) fn check(data: &Path, leads: usize, workers_per_lead: usize) {
    let mut database = Database::read(data);
    let agents = agents(&mut database, leads, workers_per_lead);
    contacts(&mut database, &agents);
    messages(&mut database, &agents);
    artifacts(&mut database, &agents);
    records(&mut database);
    assert_eq!(
        database.number("SELECT count(*) FROM turns WHERE state <> 'done'"),
        0,
        "there are open turns"
    );
    assert_eq!(database.texts("SELECT state FROM tasks"), [["idle".to_owned()]]);
    let damage = database.texts("PRAGMA integrity_check");
    assert_eq!(damage, [["ok".to_owned()]]);
    let orphans = database.rows("PRAGMA foreign_key_check");
    assert!(orphans.is_empty());
}

/// The hired agents, and who hired them.
struct Agents {
    leads: BTreeSet<String>,
    /// Each worker with its lead.
    workers: BTreeMap<String, String>,
}

impl Agents {
    /// Returns each hired agent with the agent that hired it.
    fn parents(&self) -> Vec<(&str, &str)> {
        let of_leads = self.leads.iter().map(|lead| (lead.as_str(), "root"));
        let of_workers = self.workers.iter().map(|(worker, lead)| (worker.as_str(), lead.as_str()));
        of_leads.chain(of_workers).collect()
    }
}

fn agents(database: &mut Database, leads: usize, workers_per_lead: usize) -> Agents {
    assert_eq!(database.number("SELECT count(*) FROM agents WHERE ended_at IS NOT NULL"), 0);
    let rows = database.texts::<4>(
        "SELECT agents.id, coalesce(agents.parent, ''), coalesce(roles.name, ''), coalesce(agents.brief, 'null')
         FROM agents LEFT JOIN roles ON roles.id = agents.role",
    );
    assert_eq!(
        rows.len(),
        2 + leads + leads * workers_per_lead,
        "expected root, the user and the hired agents"
    );
    let roles = database.texts::<2>("SELECT creator, name FROM roles");
    let unique: BTreeSet<_> = roles.iter().collect();
    assert_eq!(roles.len(), 1 + leads, "expected one role of root and one of each lead");
    assert_eq!(unique.len(), roles.len(), "a role was created twice");

    let mut agents = Agents { leads: BTreeSet::new(), workers: BTreeMap::new() };
    let mut objectives: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for [id, parent, role, brief] in rows {
        let objective = objective(&brief);
        match role.as_str() {
            "lead" => {
                assert_eq!(parent, "root");
                agents.leads.insert(id);
            }
            "worker" => {
                agents.workers.insert(id, parent.clone());
            }
            _ => continue,
        }
        let objectives = objectives.entry(parent).or_default();
        assert!(objectives.insert(objective.clone()), "an agent was hired twice: {objective}");
    }
    let wanted = |role: &str, count: usize| -> BTreeSet<String> {
        (1..=count).map(|number| format!("be {role} {number} of {count}")).collect()
    };
    assert_eq!(objectives.remove("root"), Some(wanted("lead", leads)));
    assert_eq!(objectives.keys().collect::<BTreeSet<_>>(), agents.leads.iter().collect());
    for hired in objectives.values() {
        assert_eq!(*hired, wanted("worker", workers_per_lead));
    }
    agents
}

fn objective(brief: &str) -> String {
    let brief: Value = serde_json::from_str(brief).expect("a brief");
    brief["objective"].as_str().unwrap_or_default().to_owned()
}

fn contacts(database: &mut Database, agents: &Agents) {
    let mut expected: BTreeSet<[String; 3]> = BTreeSet::new();
    let mut knows = |owner: &str, agent: &str, source: &str| {
        expected.insert([owner, agent, source].map(str::to_owned));
    };
    knows("user", "root", "system");
    knows("root", "user", "system");
    for (child, parent) in agents.parents() {
        knows(child, parent, "parent");
        knows(parent, child, "child");
    }
    let found = database.texts::<3>("SELECT owner, agent, source FROM contacts");
    assert_eq!(found.len(), expected.len());
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
}

fn messages(database: &mut Database, agents: &Agents) {
    let unfinished = database
        .texts::<3>("SELECT id, receiver, state FROM messages WHERE state <> 'done' AND receiver <> 'user'");
    assert!(unfinished.is_empty(), "{unfinished:?}");
    let unanswered =
        database.number("SELECT count(*) FROM messages WHERE expects = 'answer' AND answered_by IS NULL");
    assert_eq!(unanswered, 0);

    let mut expected: Vec<(String, String, String)> = Vec::new();
    let mut sent = |from: &str, to: &str, text: String| expected.push((from.to_owned(), to.to_owned(), text));
    sent("user", "root", "build it".to_owned());
    sent("root", "user", LAST_WORDS.to_owned());
    for (child, parent) in agents.parents() {
        let role = if agents.leads.contains(child) { "lead" } else { "worker" };
        sent(child, parent, format!("{role} {child} done"));
    }
    let briefs = database.texts::<3>("SELECT id, parent, brief FROM agents WHERE brief IS NOT NULL");
    for [child, parent, brief] in &briefs {
        sent(parent, child, format!("please {}", objective(brief)));
    }
    let rows = database.texts::<4>("SELECT sender, receiver, body, finality FROM messages");
    let mut found: Vec<(String, String, String)> = Vec::new();
    for [sender, receiver, body, finality] in rows {
        let text = text_of(&body);
        // Root may tell the user several times that root waits. The number of these messages depends on how many
        // reports arrive together. So check only the text of these messages.
        if receiver == "user" && finality == "interim" {
            assert!(text.starts_with("waiting: "), "{text}");
            continue;
        }
        found.push((sender, receiver, text));
    }
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
    let said = database.number("SELECT count(*) FROM messages WHERE receiver = 'user'");
    let turns = database.number("SELECT count(*) FROM turns WHERE agent = 'root'");
    assert_eq!(said, turns, "each turn of root must send the user one message");
}

/// Returns the first line of the text in a payload.
fn text_of(body: &str) -> String {
    let body: Value = serde_json::from_str(body).expect("a body");
    let text = [&body["text"], &body["payload"]["text"], &body["Payload"]["text"]];
    let text = text.into_iter().find_map(Value::as_str);
    // Only the first line is the same in every run: below it, a worker names the artifact that it has stored.
    let text = text.unwrap_or_else(|| panic!("no text in {body}"));
    text.lines().next().unwrap_or_default().to_owned()
}

fn artifacts(database: &mut Database, agents: &Agents) {
    let mut owners: Vec<String> =
        database.texts::<1>("SELECT owner FROM artifacts").into_iter().map(|[owner]| owner).collect();
    owners.sort_unstable();
    let workers: Vec<String> = agents.workers.keys().cloned().collect();
    assert_eq!(owners, workers, "each worker must have stored one report");
    let blobs = database.number("SELECT count(DISTINCT blob) FROM artifacts");
    assert_eq!(blobs, i64::try_from(workers.len()).expect("few"), "two reports are the same");
}

/// Checks every call of every reply in all conversations. The call must have exactly one result before the model speaks
/// again.
fn records(database: &mut Database) {
    let Transcripts { replies, problems } = transcripts(database);
    assert!(problems.is_empty(), "{problems:#?}");
    assert_eq!(
        database.number("SELECT count(*) FROM model_calls"),
        replies,
        "each answer must be counted once"
    );
    assert_eq!(
        database.number("SELECT count(*) FROM events WHERE kind = 'message_accepted'"),
        database.number("SELECT count(*) FROM messages"),
        "each message must have one event"
    );
}
