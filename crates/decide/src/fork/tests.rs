use super::*;
use polity_store::fork::{
    AgentRow, ApprovalRow, ContactRow, GrantRow, InheritedRow, NoteRow, OutputRow, PermissionRow, RecordRow,
    RoleRow, SeenRow, TaskRow, TurnRow,
};
use proptest::prelude::*;

fn turn(id: i64, agent: &str, began_by: &str, state: &str, at: i64) -> TurnRow {
    TurnRow {
        id,
        agent: agent.to_owned(),
        began_by: began_by.to_owned(),
        works_on: Some(began_by.to_owned()),
        state: state.to_owned(),
        created_at: at,
    }
}

fn message(seq: i64, sender: &str, receiver: &str, text: &str, sent_in: Option<i64>) -> MessageRow {
    MessageRow {
        seq,
        id: format!("m{seq:09}"),
        sender: sender.to_owned(),
        sender_role: "a role".to_owned(),
        receiver: receiver.to_owned(),
        message_type: "general".to_owned(),
        body: json!({"text": text}).to_string(),
        attachments: r#"["pic1234567"]"#.to_owned(),
        in_reply_to: None,
        about: None,
        on_behalf_of: None,
        expects: "answer".to_owned(),
        finality: "final".to_owned(),
        introduction: None,
        introduced: None,
        due_at: None,
        state: "done".to_owned(),
        answered_by: None,
        answered_in: None,
        reminded: 1,
        sent_in,
        turn: Some(seq),
        created_at: seq * 10,
    }
}

fn record(seq: i64, agent: &str, turn: i64, body: Value) -> RecordRow {
    let message = body.get("message").and_then(Value::as_str).map(str::to_owned);
    RecordRow { seq, agent: agent.to_owned(), turn, message, body: body.to_string(), created_at: seq * 10 }
}

fn heard(seq: i64, agent: &str, turn: i64, message: i64) -> RecordRow {
    record(seq, agent, turn, json!({"record": "heard", "message": format!("m{message:09}")}))
}

fn note(text: &str, at: i64) -> NoteRow {
    let request = "m000000002".to_owned();
    let answers = json!([request]).to_string();
    NoteRow { agent: "seer-7k2f".to_owned(), request, answers, text: text.to_owned(), created_at: at }
}

fn output(artifact: &str, at: i64) -> OutputRow {
    OutputRow {
        agent: "seer-7k2f".to_owned(),
        request: "m000000002".to_owned(),
        asker: "root".to_owned(),
        artifact: artifact.to_owned(),
        stored_at: at,
    }
}

fn inherited(artifact: &str, at: i64) -> InheritedRow {
    InheritedRow { artifact: artifact.to_owned(), stored_at: at }
}

/// A task in which root hires `seer-7k2f` in turn 1. The person writes to root, and turn 3 is root's turn about this
/// message.
fn task() -> Rows {
    let seer = "seer-7k2f";
    let mut rows = Rows {
        task: TaskRow { service: Some("one".to_owned()), workspace: None },
        roles: vec![RoleRow {
            id: "role-1a2b".to_owned(),
            creator: "root".to_owned(),
            name: "seer".to_owned(),
            prompt: format!("You are {seer}."),
            interface_spec: None,
            service: "eyes".to_owned(),
            required_capabilities: "[]".to_owned(),
            tool_groups: "[]".to_owned(),
            created_at: 11,
        }],
        agents: vec![AgentRow {
            id: seer.to_owned(),
            parent: Some("root".to_owned()),
            role: Some("role-1a2b".to_owned()),
            name: None,
            brief: Some(json!({"objective": format!("{seer}: look (t-12345678)")}).to_string()),
            depth: 1,
            own_worktree: 1,
            hired_in: Some(1),
            ended_at: Some(1_000),
            created_at: 12,
        }],
        contacts: vec![ContactRow {
            owner: "root".to_owned(),
            agent: seer.to_owned(),
            source: "child".to_owned(),
            introduced_by: None,
            since: 12,
        }],
        turns: vec![
            turn(1, "root", "m000000001", "done", 10),
            turn(2, seer, "m000000002", "done", 20),
            turn(3, "root", "m000000003", "done", 30),
        ],
        messages: vec![
            message(1, "user", "root", "look", None),
            message(2, "root", seer, "what is it, seer-7k2f?", Some(1)),
            message(3, "user", "root", "blue", None),
            message(4, seer, "root", "a square", Some(2)),
        ],
        records: vec![
            heard(1, "root", 1, 1),
            record(
                2,
                "root",
                1,
                json!({"record": "tool_finished", "call": "c1",
                "result": {"json": {"id": seer, "roleId": "role-1a2b", "messageIds": ["m000000002"]}}}),
            ),
            heard(3, seer, 2, 2),
            heard(4, "root", 3, 3),
            record(5, seer, 2, json!({"record": "replied", "text": "a square"})),
            record(6, "root", 3, json!({"record": "replied", "text": "done"})),
        ],
        notes: vec![note("seer-7k2f looks", 25), note("seer-7k2f has looked", 35)],
        outputs: vec![output("pic1234567", 25), output("pic7654321", 35)],
        inherited: vec![inherited("pic1234567", 25), inherited("pic7654321", 35)],
        ..Rows::default()
    };
    if let Some(answered) = rows.messages.get_mut(1) {
        answered.answered_by = Some("m000000004".to_owned());
    }
    rows
}

fn names() -> Names {
    let mut names = Names::default();
    for (old, new) in [("t-12345678", "t-new"), ("seer-7k2f", "seer-9999"), ("role-1a2b", "role-9999")] {
        names.ids.insert(old.to_owned(), new.to_owned());
    }
    for seq in 1..=4 {
        names.ids.insert(format!("m{seq:09}"), format!("m{:09}", seq + 100));
        names.messages.insert(seq, seq + 100);
        names.turns.insert(seq, seq + 50);
    }
    names
}

fn copy(turn: i64, change: &Change) -> Rows {
    renamed(kept(task(), turn, change).unwrap().rows, &names())
}

#[test]
fn a_copy_has_what_was_there_when_the_turn_began() {
    let kept = kept(task(), 3, &Change::default()).unwrap();
    assert_eq!((kept.agent.as_str(), kept.message.as_str()), ("root", "m000000003"));
    let rows = kept.rows;
    assert_eq!(rows.records.iter().map(|row| row.seq).collect::<Vec<_>>(), [1, 2, 3]);
    // When turn 3 began, turn 2 of the agent `seer-7k2f` was still open: this agent answered later.
    let states: Vec<_> = rows.turns.iter().map(|row| (row.id, row.state.as_str())).collect();
    assert_eq!(states, [(1, "done"), (2, "open")]);
    let messages: Vec<_> =
        rows.messages.iter().map(|row| (row.seq, row.state.as_str(), row.answered_by.as_deref())).collect();
    assert_eq!(messages, [(1, "done", None), (2, "in_turn", None), (3, "queued", None)]);
    // The agent `seer-7k2f` was ended after turn 3 began, so it is active in the copy.
    assert_eq!(rows.agents[0].ended_at, None);
    assert_eq!(rows.contacts.len(), 1);
}

#[test]
fn a_copy_has_the_texts_and_artifacts_that_were_held_when_the_turn_began() {
    let rows = copy(3, &Change::default());
    let NoteRow { agent, request, answers, text, .. } = &rows.notes[0];
    assert_eq!((agent.as_str(), request.as_str()), ("seer-9999", "m000000102"));
    assert_eq!((answers.as_str(), text.as_str()), (r#"["m000000102"]"#, "seer-9999 looks"));
    let OutputRow { agent, request, asker, artifact, .. } = &rows.outputs[0];
    assert_eq!((agent.as_str(), request.as_str()), ("seer-9999", "m000000102"));
    assert_eq!((asker.as_str(), artifact.as_str()), ("root", "pic1234567"));
    assert_eq!((rows.notes.len(), rows.outputs.len()), (1, 1));
    assert_eq!(rows.inherited, [inherited("pic1234567", 25)]);
    // When turn 2 began, nothing was held yet.
    let earlier = copy(2, &Change::default());
    assert_eq!((earlier.notes.len(), earlier.outputs.len(), earlier.inherited.len()), (0, 0, 0));
}

fn grant(artifact: &str, at: i64) -> GrantRow {
    GrantRow { agent: "seer-7k2f".to_owned(), artifact: artifact.to_owned(), stored_at: at }
}

fn permission(tool: &str, at: i64) -> PermissionRow {
    let (tool, role, calls) = (tool.to_owned(), "seer".to_owned(), "{}".to_owned());
    PermissionRow { tool, role, calls, created_at: at }
}

fn seen(holder: &str, source: &str, at: i64) -> SeenRow {
    let (holder, source) = (format!("agent:{holder}"), source.to_owned());
    SeenRow { holder, source, way: "[]".to_owned(), since: at }
}

/// Turn 3 begins at the time 30. A role, an agent, a contact, a right to open an artifact, a permission and a source are
/// younger. The younger agent was hired in turn 2, which was open when turn 3 began.
#[test]
fn a_copy_has_nothing_that_came_after_the_turn_began() {
    let (seer, later) = ("seer-7k2f", "mara-8p3q");
    let mut rows = task();
    rows.roles.push(RoleRow { id: "role-3c4d".to_owned(), created_at: 35, ..rows.roles[0].clone() });
    let hired =
        AgentRow { id: later.to_owned(), hired_in: Some(2), created_at: 35, ..rows.agents[0].clone() };
    rows.agents.push(hired);
    let known = rows.contacts[0].clone();
    rows.contacts.push(ContactRow { owner: seer.to_owned(), agent: "root".to_owned(), since: 35, ..known });
    rows.grants = vec![grant("pic1234567", 25), grant("pic7654321", 35)];
    rows.permissions = vec![permission("bash", 25), permission("fetch", 35)];
    rows.seen = vec![seen(seer, "files", 25), seen(later, "files", 25), seen(seer, "web", 35)];

    let Rows { roles, agents, contacts, grants, permissions, seen: sources, .. } =
        kept(rows, 3, &Change::default()).unwrap().rows;
    let roles: Vec<&str> = roles.iter().map(|row| row.id.as_str()).collect();
    let agents: Vec<&str> = agents.iter().map(|row| row.id.as_str()).collect();
    let contacts: Vec<&str> = contacts.iter().map(|row| row.agent.as_str()).collect();
    assert_eq!((roles, agents, contacts), (vec!["role-1a2b"], vec![seer], vec![seer]));
    assert_eq!(grants, [grant("pic1234567", 25)]);
    assert_eq!(permissions, [permission("bash", 25)]);
    assert_eq!(sources, [seen(seer, "files", 25)]);
}

/// A task in which `seer-7k2f` asks the person about a call before turn 3 begins. The person allows the call. The first
/// of the `records` is written before turn 3 begins, the second after that. One of the two is the answer of the person.
fn asking(records: [Value; 2]) -> Rows {
    let [third, fifth] = records;
    let mut rows = task();
    let seer = "seer-7k2f";
    let asked = json!({"record": "asked", "call": "c9", "approval": "q7"});
    rows.records = vec![
        heard(1, "root", 1, 1),
        record(2, seer, 2, asked),
        record(3, seer, 2, third),
        heard(4, "root", 3, 3),
        record(5, seer, 2, fifth),
    ];
    rows.approvals = vec![ApprovalRow {
        seq: 7,
        agent: seer.to_owned(),
        turn: 2,
        call: "c9".to_owned(),
        tool: "bash".to_owned(),
        role: "seer".to_owned(),
        arguments: "{}".to_owned(),
        preview: None,
        remembered: "{}".to_owned(),
        why: "a rule".to_owned(),
        scope: "call".to_owned(),
        way: "[]".to_owned(),
        state: "allowed".to_owned(),
        answer: Some("yes".to_owned()),
        note: None,
        asked_at: 25,
        expires_at: 1_000,
        answered_at: Some(40),
    }];
    rows
}

#[test]
fn a_question_that_was_answered_after_the_turn_began_is_open_in_a_copy() {
    let judged = || json!({"record": "judged", "call": "c9"});
    let replied = || json!({"record": "replied", "text": "a square"});
    let mut names = names();
    names.approvals.insert(7, 107);
    let copy_of = |rows| renamed(kept(rows, 3, &Change::default()).unwrap().rows, &names);
    let later = copy_of(asking([replied(), judged()]));
    let question = &later.approvals[0];
    assert_eq!((question.seq, question.turn, question.state.as_str()), (107, 52, "open"));
    assert_eq!((question.answer.as_deref(), question.answered_at), (None, None));
    assert_eq!(later.records[1].body, r#"{"record":"asked","call":"c9","approval":"q107"}"#);
    let earlier = copy_of(asking([judged(), replied()]));
    let question = &earlier.approvals[0];
    assert_eq!((question.state.as_str(), question.answer.as_deref()), ("allowed", Some("yes")));
}

#[test]
fn a_copy_of_the_first_turn_has_only_the_prompt() {
    let rows = kept(task(), 1, &Change::default()).unwrap().rows;
    assert_eq!((rows.notes.len(), rows.outputs.len()), (0, 0));
    assert_eq!((rows.agents.len(), rows.roles.len(), rows.records.len(), rows.messages.len()), (0, 0, 0, 1));
    assert_eq!(rows.messages[0].state, "queued");
}

#[test]
fn a_copy_can_have_another_text_and_another_service() {
    let change = Change { service: Some("two".to_owned()), text: Some("green".to_owned()) };
    let rows = copy(3, &change);
    assert_eq!(rows.task.service.as_deref(), Some("two"));
    assert_eq!(rows.messages[2].body, r#"{"text":"green"}"#);
    let of_seer = kept(task(), 2, &Change { service: Some("two".to_owned()), text: None }).unwrap().rows;
    assert_eq!((of_seer.roles[0].service.as_str(), of_seer.task.service.as_deref()), ("two", Some("one")));
}

#[test]
fn a_turn_that_does_not_fit_is_refused_with_those_that_fit_newest_first() {
    let fitting = |turns: &[(i64, &str)]| -> Vec<Fitting> {
        turns.iter().map(|(turn, agent)| Fitting { turn: *turn, agent: (*agent).to_owned() }).collect()
    };
    let reworded = Change { text: Some("no".to_owned()), ..Change::default() };
    let of_person = fitting(&[(3, "root"), (1, "root")]);
    assert_eq!(kept(task(), 2, &reworded), Err(Refused::NotYours { fitting: of_person.clone() }));
    assert_eq!(kept(task(), 9, &reworded), Err(Refused::NoTurn { fitting: of_person }));
    let all = fitting(&[(3, "root"), (2, "seer-7k2f"), (1, "root")]);
    assert_eq!(kept(task(), 9, &Change::default()), Err(Refused::NoTurn { fitting: all }));

    // A turn without a record cannot begin again.
    let mut rows = task();
    rows.records.retain(|row| row.turn != 2);
    let others = fitting(&[(3, "root"), (1, "root")]);
    assert_eq!(kept(rows, 2, &Change::default()), Err(Refused::NoTurn { fitting: others }));
}

#[test]
fn a_copy_may_only_read_a_directory_of_the_person() {
    let kept_of = |workspace: Option<&str>| {
        let mut rows = task();
        rows.task.workspace = workspace.map(str::to_owned);
        kept(rows, 3, &Change::default()).unwrap().rows.task.workspace
    };
    let of_person = r#"{"kind":"person","directory":"/home/ann/project","access":"write"}"#;
    let to_read = of_person.replace("write", "read");
    assert_eq!(kept_of(Some(of_person)).as_deref(), Some(to_read.as_str()));
    assert_eq!(kept_of(Some(&to_read)).as_deref(), Some(to_read.as_str()));
    assert_eq!(kept_of(None), None);
}

#[test]
fn the_histories_show_the_new_ids() {
    let rows = copy(3, &Change::default());
    assert_eq!(rows.roles[0].prompt, "You are seer-9999.");
    assert_eq!(rows.agents[0].brief.as_deref(), Some(r#"{"objective":"seer-9999: look (t-new)"}"#));
    assert_eq!(rows.agents[0].hired_in, Some(51));
    assert_eq!(rows.messages[1].body, r#"{"text":"what is it, seer-9999?"}"#);
    assert_eq!(
        rows.records[1].body,
        r#"{"record":"tool_finished","call":"c1","result":{"json":{"id":"seer-9999","roleId":"role-9999","messageIds":["m000000102"]}}}"#
    );
    assert_eq!((rows.turns[1].id, rows.turns[1].agent.as_str()), (52, "seer-9999"));
    // References to artifacts stay.
    assert_eq!(rows.messages[0].attachments, r#"["pic1234567"]"#);
}

#[test]
fn an_id_within_a_longer_word_is_another_word() {
    let mut rows = task();
    rows.roles[0].prompt =
        "overseer-7k2f seer-7k2fx x_seer-7k2f 看seer-7k2f看 (seer-7k2f)\nseer-7k2f".to_owned();
    let rows = renamed(rows, &names());
    let expect = "overseer-7k2f seer-7k2fx x_seer-7k2f 看seer-9999看 (seer-9999)\nseer-9999";
    assert_eq!(rows.roles[0].prompt, expect);
}

proptest! {
    #[test]
    fn no_id_of_the_original_is_in_a_copy(
        turn in 1_i64..=3,
        before in "[ ,.:;(\\[\"\\n看]{0,2}",
        after in "[ ,.:;)\\]\"\\n看]{0,2}",
        which in 0_usize..7,
    ) {
        let old: Vec<String> = names().ids.into_keys().collect();
        let mut rows = task();
        let said = format!("{before}{}{after}", old[which % old.len()]);
        rows.messages[0].body = json!({"text": said, "list": [{"deep": said}]}).to_string();
        rows.records[0].body = json!({"record": "replied", "text": said}).to_string();
        rows.roles[0].prompt = said.clone();
        let original = rows.clone();
        let copy = renamed(kept(rows.clone(), turn, &Change::default()).unwrap().rows, &names());
        let all = format!("{copy:?}");
        for id in &old {
            prop_assert!(!all.contains(id.as_str()), "{id} in {all}");
        }
        prop_assert_eq!(rows, original);
    }
}
