//! The scenarios of the crash matrix: small societies that together pass every failure point, and the commands that
//! maintain a data directory.

use polity_tests::{Answer, Call, Conversation, Polity, ScriptedServer, society};
use serde_json::{Value, json};

use crate::protocol::loops::circle;
use crate::support::database::Database;
use crate::support::files::write;
use crate::support::hiring::{boss_and_worker, brief, hired};
use crate::support::play::{
    Play, WAITING, after, batch, contact, hears, introduced, newest_words, request_id, role, send, spawn,
    step,
};
use crate::support::{app, home, run, service};

type Script = Box<dyn Fn(&Conversation) -> Answer + Send + Sync>;

/// A command, the command that continues it after a crash, and everything that both commands need.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// The command that begins the scenario. After a crash, the command `again` continues it.
    pub(super) command: &'static [&'static str],
    pub(super) again: &'static [&'static str],
    /// A text that one of the processes must have printed by the end.
    pub(super) said: &'static str,
    /// Returns the script that plays the models.
    pub(super) script: fn() -> Script,
    /// Creates the home with everything that has to exist before the scenario.
    pub(super) home: fn(&ScriptedServer) -> Polity,
    /// The data directory to check at the end, as a path relative to the home.
    pub(super) data: &'static str,
}

const GO: &[&str] = &["run", "--data", "data", "go"];
const RESUME: &[&str] = &["run", "--data", "data", "--resume"];

/// The values that most scenarios have in common.
const SOCIETY: Scenario = Scenario {
    name: "",
    command: GO,
    again: RESUME,
    said: "all done",
    script: || Box::new(society(2, 2)),
    home: |server| home(server, &json!({})),
    data: "data",
};

/// All scenarios. The scenarios that pass the most points come first.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "society", ..SOCIETY },
    Scenario {
        name: "introduction",
        command: &["run", "--data", "data", "go", "--attach", "notes.txt"],
        said: "it shows two people",
        script: || Box::new(introduction().script()),
        home: |server| {
            let polity = home(server, &json!({}));
            write(&polity, "notes.txt", b"what is known so far");
            polity
        },
        ..SOCIETY
    },
    Scenario { name: "delays", said: "the note has come", script: || Box::new(delays), ..SOCIETY },
    Scenario {
        name: "termination",
        said: "it has ended",
        script: || Box::new(termination().script()),
        ..SOCIETY
    },
    Scenario {
        name: "failure",
        said: "the worker has failed",
        script: || Box::new(failure),
        home: |server| {
            let mut two = service("two", server, &["text"]);
            two["fallback"] = json!("one");
            Polity::new(
                &json!({"services": [service("one", server, &["text"]), two]}),
                &app(&json!({"defaultService": "two"})),
            )
        },
        ..SOCIETY
    },
    Scenario {
        name: "compaction",
        said: "it fits now",
        script: || Box::new(compaction),
        home: |server| home(server, &json!({"language": "en"})),
        ..SOCIETY
    },
    Scenario {
        name: "long answer",
        said: "the worker says: so much to tell",
        script: || Box::new(boss_and_worker(|_| Answer::say("so much to tell ".repeat(100)))),
        home: |server| home(server, &json!({"limits": {"maxMessageChars": 800}})),
        ..SOCIETY
    },
    Scenario {
        name: "limit",
        said: "maxModelCallsPerTask",
        script: || Box::new(|_| Answer::call("list_contacts", json!({}))),
        home: |server| home(server, &json!({"limits": {"maxModelCallsPerTask": 3}})),
        ..SOCIETY
    },
    Scenario {
        name: "files",
        command: &["run", "--data", "data", "go", "--workspace", "project"],
        said: "both files are written",
        script: || Box::new(files),
        home: |server| with_project(server, &json!({})),
        ..SOCIETY
    },
    Scenario {
        name: "question",
        command: &["run", "--data", "data", "go", "--workspace", "project"],
        // The test never answers the question about the call, so no process prints an answer.
        said: "",
        script: || Box::new(files),
        home: |server| {
            with_project(
                server,
                &json!({"tools": {"policy": [{"group": "files", "write": true, "decide": "ask"}]}}),
            )
        },
        ..SOCIETY
    },
    Scenario { name: "nudge", said: "after all", script: || Box::new(nudge), ..SOCIETY },
    Scenario { name: "held text", said: "this is all there is", script: || Box::new(held), ..SOCIETY },
    Scenario { name: "last word", said: "the worker has it", script: || Box::new(last_word), ..SOCIETY },
    Scenario {
        name: "deadlock",
        said: "this is all there is",
        // The agents do not answer the notice of the deadlock. Otherwise, timing would decide which of two waiting
        // agents gets the answer.
        script: || Box::new(|asked| circle(asked, |_| Answer::nothing())),
        ..SOCIETY
    },
    Scenario {
        name: "second try",
        command: RESUME,
        said: "it works now",
        script: || Box::new(|_| Answer::say("it works now")),
        home: |server| {
            let nowhere = json!({"id": "one", "baseURL": "http://127.0.0.1:9/v1", "model": "m"});
            let polity = Polity::new(&json!({"services": [nowhere]}), &app(&json!({})));
            run(&polity, &["go"]).expect_code(5);
            let mended = json!({"services": [service("one", server, &["text"])]});
            polity.write_config("llmservices.json", &mended.to_string());
            polity
        },
        ..SOCIETY
    },
    Scenario {
        name: "unreadable turn",
        command: RESUME,
        said: "damaged row",
        script: || Box::new(|_| Answer::say("hello")),
        home: |server| left_at(server, "driver::replayed@1"),
        ..SOCIETY
    },
    Scenario {
        name: "unreadable mail",
        command: RESUME,
        said: "damaged row",
        script: || Box::new(|_| Answer::say("hello")),
        home: |server| {
            // The process dies within the transaction that begins the turn. So the turn has not begun, and the message
            // is still in the mailbox.
            let polity = left_at(server, "turns::begun@1");
            // This run fails at a damaged row and parks root: root does nothing until it is resumed. The command of the
            // scenario then resumes root.
            let parked = polity.run(RESUME);
            assert!(parked.stderr.contains("damaged row"), "{}", parked.stderr);
            polity
        },
        ..SOCIETY
    },
    Scenario {
        name: "gc",
        command: GC,
        again: GC,
        said: "removed: ",
        script: || Box::new(society(1, 2)),
        home: |server| {
            let polity = home(server, &json!({}));
            // The limits below make `gc` remove the older of these two tasks.
            run(&polity, &["go"]).expect_code(0);
            run(&polity, &["go"]).expect_code(0);
            // Put a blob (the bytes of an artifact) into the trash, as if it had been there for more than a week. `gc`
            // deletes it.
            let batch = polity.data_dir().join("artifacts/trash/1000");
            std::fs::create_dir_all(batch.join("ab")).expect("a trash");
            std::fs::write(batch.join("ab").join("c".repeat(62)), "old").expect("a file");
            let retention = json!({"retention": {"maxEvents": 1, "maxDatabaseBytes": 1}});
            polity.write_config("app.json", &app(&retention).to_string());
            polity
        },
        ..SOCIETY
    },
    Scenario {
        name: "backup",
        command: BACKUP,
        again: BACKUP,
        // If the process dies after its work, the next process prints nothing. So the test expects no text.
        said: "",
        script: || Box::new(society(1, 2)),
        home: |server| {
            let polity = home(server, &json!({}));
            run(&polity, &["go"]).expect_code(0);
            polity
        },
        data: "copy",
    },
];

const GC: &[&str] = &["gc", "--data", "data", "--older-than", "0d"];
const BACKUP: &[&str] = &["db", "backup", "copy", "--data", "data"];

/// A play with three agents: the asker asks root for an introduction to the reader, and then asks the reader.
fn introduction() -> Play {
    let wish = json!({"message_type": "introduction_request", "reason": "a picture", "required_capability": "vision"});
    let root = vec![
        role("reader"),
        step(|_| {
            Call::new("spawn_agent", json!({"roleId": "reader", "taskBrief": brief("look at pictures")}))
        }),
        role("asker"),
        spawn("asker"),
        after("required_capability", |asked| {
            let reader = hired(asked, "reader").expect("a reader");
            let answer = json!({"message_type": "introduction_response", "target_agent": {"id": reader},
                "usage_hint": "one at a time", "request_id": request_id(asked)});
            send(contact(asked, "asker"), answer)
        }),
    ];
    let asker = vec![
        step(move |asked| send(asked.parent_id(), wish.clone())),
        after("target_agent: {", |asked| {
            let reader = introduced(asked)["id"].clone();
            send(reader, json!({"message_type": "collaboration_request", "text": "who is in it?"}))
        }),
    ];
    let pass_on = |asked: &Conversation| match newest_words(asked) {
        Some(said) if said.contains("two people") => Answer::say("it shows two people"),
        _ => Answer::say(WAITING),
    };
    Play::default().ending("root", root, pass_on).ending("asker", asker, pass_on).ending(
        "reader",
        vec![step(|_| {
            Call::new("put_artifact", json!({"type": "note", "content": "two people, and a dog"}))
        })],
        |_| Answer::say("there are two people"),
    )
}

/// Root sends itself two messages: one with a delay and one without.
fn delays(asked: &Conversation) -> Answer {
    let note = |text: &str, delay: u64| {
        let payload = json!({"message_type": "status_report", "text": text});
        Call::new("send_message", json!({"to": "root", "payload": payload, "delayMs": delay}))
    };
    if hears(asked, "the late note") {
        // Root's first turn has already answered the user. So a closing text would change nothing now, and root sends
        // the text as a message instead.
        let told = asked.results_of("send_message").len() > 2;
        let payload = json!({"message_type": "status_report", "text": "the note has come"});
        return if told { Answer::say("done") } else { Answer::calls(vec![send("user", payload)]) };
    }
    match asked.results_of("send_message").len() {
        0 => Answer::calls(vec![note("the late note", 50), note("the early note", 0)]),
        _ => Answer::say(WAITING),
    }
}

/// Root terminates a worker for which a delayed message is still waiting.
fn termination() -> Play {
    let root = vec![
        role("worker"),
        step(|_| Call::new("spawn_agent", json!({"roleId": "worker", "taskBrief": brief("wait")}))),
        batch(|asked| {
            let worker = hired(asked, "worker").expect("hired");
            let late = json!({"to": worker, "payload": "some day", "delayMs": 3_600_000});
            vec![Call::new("send_message", late), Call::new("terminate_agent", json!({"agentId": worker}))]
        }),
    ];
    Play::default().ending("root", root, |_| Answer::say("it has ended"))
}

/// Plays the models of two services. Service `two` is always down. The fallback of service `two` refuses the worker's
/// request.
fn failure(asked: &Conversation) -> Answer {
    if asked.model() == "two-model" {
        return Answer::error(503, json!({"error": {"message": "overloaded"}}));
    }
    if asked.role_name() == "worker" {
        return Answer::error(400, json!({"error": {"message": "not for workers"}}));
    }
    if let Some(hiring) = crate::support::hiring::hire(asked, "worker", "please work") {
        return hiring;
    }
    match asked.text_contains("not for workers") {
        true => Answer::say("the worker has failed"),
        false => Answer::say(WAITING),
    }
}

/// The server rejects the fourth request as too long.
fn compaction(asked: &Conversation) -> Answer {
    if asked.system().starts_with("You compress the conversation history") {
        return Answer::say("Three times looked.");
    }
    if asked.results_of("list_contacts").len() >= 3 {
        let error = json!({"message": "This model's maximum context length is 100 tokens", "code": "context_length_exceeded"});
        return Answer::error(400, json!({"error": error}));
    }
    match asked.text_contains("Three times looked.") {
        true => Answer::say("it fits now"),
        false => Answer::call("list_contacts", json!({})),
    }
}

/// Root writes a file, reads it, and writes another file.
fn files(asked: &Conversation) -> Answer {
    let arguments = match asked.results_of("str_replace_editor").len() {
        0 => json!({"command": "create", "path": "one.txt", "file_text": "made by an agent\n"}),
        1 => json!({"command": "view", "path": "one.txt"}),
        2 => json!({"command": "create", "path": "two.txt", "file_text": "made by an agent\n"}),
        _ => return Answer::say("both files are written"),
    };
    Answer::call("str_replace_editor", arguments)
}

/// Returns a home with an empty directory `project`.
fn with_project(server: &ScriptedServer, fields: &Value) -> Polity {
    let polity = home(server, fields);
    std::fs::create_dir(polity.home().join("project")).expect("a directory");
    polity
}

/// Root works, ends its turn without a text for the user, and gets a nudge: a notice that the user has no result yet.
fn nudge(asked: &Conversation) -> Answer {
    if asked.text_contains("用户还没有收到结果") {
        return Answer::say("after all");
    }
    match asked.has_called("list_contacts") {
        true => Answer::nothing(),
        false => Answer::call("list_contacts", json!({})),
    }
}

/// The lead answers root early. Then the lead is part of a circle of agents that wait for each other. So the daemon
/// holds back the lead's next closing text, and sends this text when the circle breaks.
fn held(asked: &Conversation) -> Answer {
    let is_ready = asked.role_name() == "lead" && hired(asked, "reader").is_some();
    match asked.results_of("send_message").len() {
        0 if is_ready => Answer::calls(vec![send("root", json!({"text": "this much is known"}))]),
        // The lead has asked the reader again, so it ends this turn without a text.
        2.. if is_ready && asked.messages().iter().any(|message| message["content"] == "waiting") => {
            Answer::nothing()
        }
        _ => circle(asked, |_| Answer::nothing()),
    }
}

/// Root ends its turn with a text while root waits for a worker. This text becomes root's final answer.
fn last_word(asked: &Conversation) -> Answer {
    if asked.role_name() == "worker" {
        return Answer::say("done");
    }
    if let Some(hiring) = crate::support::hiring::hire(asked, "worker", "please work") {
        return hiring;
    }
    match asked.heard().len() {
        1 => Answer::say("the worker has it"),
        _ => Answer::nothing(),
    }
}

/// Plays a society until its process dies at this point. Then damages the stored prompt, so that no process can parse
/// it. Returns the home.
fn left_at(server: &ScriptedServer, point: &str) -> Polity {
    let polity = home(server, &json!({}));
    let ended = polity.spawn_with_points(GO, &[("POLITY_FAILURE_POINT", point)]).wait();
    assert_eq!(ended.code, None, "{point} was not hit: {}", ended.stderr);
    Database::write(&polity.data_dir()).execute("UPDATE messages SET body = '{'");
    polity
}
