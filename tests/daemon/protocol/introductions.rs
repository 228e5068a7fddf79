//! Introductions: an agent becomes a contact of another agent, through agents that know both.

use std::sync::{Arc, OnceLock};

use polity_tests::{Answer, Call, Conversation, ScriptedServer, Sender};
use serde_json::{Value, json};

use crate::support::hiring::{brief, hired};
use crate::support::play::{
    Performed, Play, WAITING, after, batch, contact, hears, introduced, request_id, role, role_with, send,
    spawn, spawn_with, step,
};
use crate::support::{events, home, json_lines, letters, run};

fn spec() -> Value {
    json!({"services": "描述图片", "input_format": "一张图", "output_format": "一段话", "examples": "问：几个人？"})
}

fn wish() -> Value {
    json!({"message_type": "introduction_request", "reason": "有一张图要看", "required_capability": "vision"})
}

fn with(mut payload: Value, key: &str, value: impl Into<Value>) -> Value {
    payload[key] = value.into();
    payload
}

fn answer(target: &str, request: &str) -> Value {
    json!({"message_type": "introduction_response", "target_agent": {"id": target, "roleName": "国王"},
        "usage_hint": "一次一张图", "request_id": request})
}

/// How the request for an introduction gets to `back`, which knows the specialist. The asker sends the request to its
/// parent, `front`, and `front` sends it on.
#[derive(Clone, Copy)]
enum Way {
    /// `front` sends the request to its colleague `back`.
    Colleague,
    /// `front` sends the request to its parent, root, and root sends it to `back`.
    Parent,
}

/// Returns a closing text, which is the same for root, `front` and the asker. It is the specialist's result if this
/// result has arrived, otherwise `…`.
fn pass_on_result(asked: &Conversation) -> Answer {
    Answer::say(if hears(asked, RESULT) { RESULT } else { WAITING })
}

/// The result of the specialist.
const RESULT: &str = "two people";

/// Plays five agents in three generations: root hires `back` and `front`, `back` hires a specialist, and `front` hires
/// an asker. The asker can write to the specialist only after an introduction along the whole chain.
fn chain(way: Way) -> Performed {
    // The specialist's id. The asker must try to write to the specialist before the introduction, and must be refused.
    // So the script gives the id to the asker, although no agent has told it to the asker.
    let specialist: Arc<OnceLock<String>> = Arc::default();
    let known = Arc::clone(&specialist);

    let pass_on = |to: &'static str| {
        after("required_capability", move |asked| {
            send(contact(asked, to), with(wish(), "request_id", request_id(asked)))
        })
    };
    let bring_back = |to: &'static str| {
        after("target_agent: {", move |asked| {
            let target = introduced(asked)["id"].as_str().expect("an id").to_owned();
            send(contact(asked, to), answer(&target, &request_id(asked)))
        })
    };
    let front_asks = match way {
        Way::Colleague => "back",
        Way::Parent => "根智能体",
    };
    let mut root = vec![
        role("back"),
        spawn("back"),
        role("front"),
        Box::new(|asked: &Conversation| {
            let back = hired(asked, "back")?;
            let mut brief = brief("have a picture described");
            brief["collaborators"] = json!([{"agentId": back, "description": "has painters"}]);
            let arguments = json!({"roleId": "front", "taskBrief": brief, "initialMessage": "begin"});
            hears(asked, "back is ready").then(|| vec![Call::new("spawn_agent_with_task", arguments)])
        }),
    ];
    if matches!(way, Way::Parent) {
        root.extend([pass_on("back"), bring_back("front")]);
    }
    let play = Play::default()
        .ending("root", root, pass_on_result)
        .ending(
            "back",
            vec![
                role_with("specialist", json!({"interface_spec": spec()})),
                step(|_| {
                    Call::new("spawn_agent", json!({"roleId": "specialist", "taskBrief": brief("look")}))
                }),
                after("required_capability", |asked| {
                    let asker = asked.heard().into_iter().rev().find_map(|heard| match heard.from {
                        Sender::Agent { id, .. } if heard.text.contains("required_capability") => Some(id),
                        _ => None,
                    });
                    let target = hired(asked, "specialist").expect("a specialist");
                    send(asker.expect("an asker"), answer(&target, &request_id(asked)))
                }),
            ],
            |_| Answer::say("introduced"),
        )
        .ending(
            "front",
            vec![role("asker"), spawn("asker"), pass_on(front_asks), bring_back("asker")],
            pass_on_result,
        )
        .ending(
            "asker",
            vec![
                step(move |_| send(known.get().expect("a specialist").as_str(), json!("let me in"))),
                step(|asked| send(asked.parent_id(), wish())),
                after("target_agent: {", |asked| {
                    let payload = json!({"message_type": "collaboration_request", "text": "who is on it?",
                        "contact_reason": "a picture for the front page"});
                    send(introduced(asked)["id"].clone(), payload)
                }),
                after(RESULT, |_| Call::new("list_contacts", json!({}))),
            ],
            pass_on_result,
        )
        .ending("specialist", vec![], |_| Answer::say(RESULT));
    let script = play.script();
    let server = ScriptedServer::start(move |asked| {
        if asked.role_name() == "back"
            && let Some(id) = hired(asked, "specialist")
        {
            // Ignore the error: an earlier request of `back` may have set the same id.
            let _ = specialist.set(id);
            if !hears(asked, "required_capability") {
                return Answer::say("back is ready");
            }
        }
        script(asked)
    });
    let polity = home(&server, &json!({}));
    let output = run(&polity, &["go", "--json"]).expect_code(0);
    server.assert_clean();
    Performed { lines: json_lines(&output.stdout), output, server, data: polity }
}

/// Plays the chain in one of the two ways, and checks the rules that apply to both.
#[track_caller]
fn assert_chain(way: Way, introductions: usize) {
    let performed = chain(way);
    let said = letters(&performed.lines).pop().expect("an answer");
    assert_eq!(said["text"], RESULT, "{}", performed.output.stdout);
    let (asker, front, specialist) =
        (performed.id("asker"), performed.id("front"), performed.id("specialist"));

    // Before the introduction, the asker's message is refused and not delivered.
    let asked = performed.last_of("asker");
    let sent = asked.results_of("send_message");
    assert_eq!(sent[0].error(), Some("unknown_contact"));
    assert_eq!((sent[1].error(), sent[2].error()), (None, None), "{sent:#?}");
    let heard = performed.last_of("specialist").heard();
    assert_eq!(heard.len(), 1, "the refused message must not arrive: {heard:#?}");

    // An agent that forwards the request names the original request. Each answer names the request to which it belongs.
    let first = sent[1].value["messageIds"][0]["id"].as_str().expect("an id").to_owned();
    let asked_on = performed.last_of("front").results_of("send_message").remove(0);
    assert_eq!(asked_on.arguments["payload"]["request_id"], first);
    assert_eq!(request_id(&performed.last_of("front")), first);
    let told = introduced(&asked);
    assert_eq!((&told["id"], &told["roleName"]), (&json!(specialist), &json!("specialist")));
    assert_eq!(
        told["interface_spec"],
        spec(),
        "the spec must come from the registry, not from the introducer's text"
    );
    let of_front =
        asked.heard().into_iter().find(|heard| heard.text.contains("target_agent")).expect("an introduction");
    assert_eq!(of_front.from, Sender::Agent { role: "front".to_owned(), id: front.clone() });
    assert!(of_front.text.contains("usage_hint: 一次一张图"), "{}", of_front.text);

    // Each introduction must add one contact.
    let added = events(&performed.lines, "contact_added");
    let introduced: Vec<[&Value; 3]> = added
        .iter()
        .filter(|event| event["source"] == "introduction")
        .map(|event| [&event["owner"], &event["agent"], &event["introducedBy"]])
        .collect();
    assert_eq!(introduced.len(), introductions, "{introduced:#?}");
    assert_eq!(introduced.last(), Some(&[&json!(asker), &json!(specialist), &json!(front)]));
    let contacts = asked.results_of("list_contacts").remove(0);
    let contacts = contacts.value["contacts"].as_array().expect("contacts").clone();
    let entry = contacts.iter().find(|contact| contact["id"] == json!(specialist)).expect("an entry");
    assert_eq!(
        (&entry["source"], &entry["introducedBy"], &entry["roleName"], &entry["interface_spec"]),
        (&json!("introduction"), &json!(front), &json!("specialist"), &spec())
    );

    // The asker's first message to the specialist says who the asker is, who introduced it, and why it writes.
    let lines: Vec<&str> = heard[0].text.lines().collect();
    assert_eq!(heard[0].from, Sender::Agent { role: "asker".to_owned(), id: asker.clone() });
    assert_eq!(
        lines[0],
        format!("（自我介绍）我是 asker。职责：do what you are asked。我经 {front} 介绍认识你。")
    );
    assert_eq!(lines[1], "联系原因：a picture for the front page");
    assert!(
        added.iter().any(|event| event["owner"] == json!(specialist)
            && event["agent"] == json!(asker)
            && event["source"] == "first_message"),
        "the first message must make the asker a contact of the specialist"
    );
}

/// Plays everything from the request for an introduction to the first message to the specialist.
/// Tests criteria 2.6, 2.7, 3.1, 3.2, 3.4, 3.6, 3.7, 3.8, 4.3, 5.1, 5.2, 5.3 and 9.4 of
/// `docs/seeds/agent-communication.requirements.md`.
#[test]
fn a_specialist_is_reached_through_a_chain_of_two_introductions() {
    assert_chain(Way::Colleague, 2);
}

/// An agent that gets a request for an introduction may send it on to the next agent.
/// Tests criteria 3.5 and 3.6 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn a_chain_may_be_longer_than_that() {
    assert_chain(Way::Parent, 3);
}

/// An agent that gets a request for an introduction sees the request, its own contacts and their capabilities.
/// Tests criterion 3.3 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn who_is_asked_sees_the_request_and_its_own_contacts_with_what_they_do() {
    let performed = Play::default()
        .part(
            "root",
            vec![
                role_with("painter", json!({"interface_spec": spec(), "requiredCapabilities": ["vision"]})),
                step(|_| Call::new("spawn_agent", json!({"roleId": "painter", "taskBrief": brief("paint")}))),
                role("asker"),
                spawn("asker"),
                after("required_capability", |asked| {
                    send(contact(asked, "asker"), answer(&contact(asked, "painter"), &request_id(asked)))
                }),
            ],
        )
        .ending("asker", vec![step(|_| send("root", wish()))], |asked| {
            Answer::say(if hears(asked, "target_agent") { "thank you" } else { WAITING })
        })
        .perform();
    let requests = performed.asked_by("root");
    let asked = requests.iter().find(|asked| hears(asked, "required_capability")).expect("a request");
    let request = asked.heard().into_iter().find(|heard| heard.text.contains("reason:")).expect("a request");
    assert!(matches!(&request.from, Sender::Agent { role, .. } if role == "asker"));
    let lines: Vec<&str> = request.text.lines().collect();
    assert_eq!(lines[..2], ["reason: 有一张图要看", "required_capability: vision"]);
    let system = asked.system();
    let contacts = system.rsplit_once("【联系人列表】").expect("contacts").1;
    let of_painter =
        contacts.lines().skip_while(|line| !line.contains("｜painter｜")).take(2).collect::<Vec<_>>();
    assert!(of_painter[0].contains("输入: text"), "{contacts}");
    assert!(of_painter[1].contains("描述图片"), "{contacts}");
}

/// If the introducer knows no fitting agent, its answer says so, and the asker works on without an introduction.
/// Tests criterion 3.5 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn nobody_is_an_answer_too() {
    let performed = Play::default()
        .part(
            "root",
            vec![
                role("asker"),
                spawn("asker"),
                after("required_capability", |asked| {
                    let nobody = json!({"message_type": "introduction_response", "target_agent": null,
                        "reason": "我谁也不认识", "request_id": request_id(asked)});
                    send(contact(asked, "asker"), nobody)
                }),
            ],
        )
        .ending("asker", vec![step(|_| send("root", wish()))], |asked| {
            Answer::say(if hears(asked, "target_agent: null") { "without a picture, then" } else { WAITING })
        })
        .perform();
    assert_eq!(letters(&performed.lines).pop().expect("an answer")["text"], "without a picture, then");
    let heard = performed.last_of("asker").heard();
    let answer = heard.iter().find(|heard| heard.text.contains("target_agent: null")).expect("an answer");
    assert!(answer.text.contains("reason: 我谁也不认识"), "{}", answer.text);
    let sources = events(&performed.lines, "contact_added");
    assert!(sources.iter().all(|event| event["source"] != "introduction"), "{sources:?}");
}

/// Makes unsolicited, repeated, invalid and refused introductions. Then checks the result of each introduction, in the
/// same order.
/// Tests criterion 3.7 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn every_other_introduction_has_an_outcome_of_its_own() {
    let performed = Play::default()
        .part(
            "root",
            vec![
                role("painter"),
                spawn("painter"),
                role("writer"),
                spawn("writer"),
                batch(|asked| {
                    let (painter, writer) =
                        (hired(asked, "painter").expect("hired"), hired(asked, "writer").expect("hired"));
                    let introduce = |to: &str, target: Value| {
                        let payload = json!({"message_type": "introduction_response", "target_agent": target, "usage_hint": "x"});
                        send(to, payload)
                    };
                    vec![
                        // No agent has asked for this introduction. The target is given by its id.
                        introduce(&writer, json!({"id": painter})),
                        // The target is an agent that the receiver already knows.
                        introduce(&writer, json!({"id": painter})),
                        // The target is a plain string with the name of the role.
                        introduce(&painter, json!("writer")),
                        // The target is the receiver itself.
                        introduce(&writer, json!({"id": writer})),
                        // The target is the introducer itself.
                        introduce(&writer, json!({"id": "root"})),
                        // The target is the user.
                        introduce(&writer, json!({"id": "user"})),
                        // The introducer does not know the target.
                        introduce(&writer, json!({"id": "nobody-1234"})),
                        // The field `usage_hint` is missing.
                        send(writer.as_str(), json!({"message_type": "introduction_response", "target_agent": {"id": painter}})),
                        // The target has ended.
                        Call::new("terminate_agent", json!({"agentId": painter})),
                        introduce(&writer, json!({"id": painter})),
                    ]
                }),
            ],
        )
        .ending("painter", vec![], |_| Answer::say("painted"))
        .ending("writer", vec![], |_| Answer::say("written"))
        .perform();
    let asked = performed.last_of("root");
    let sent = asked.results_of("send_message");
    let codes: Vec<&str> = sent.iter().map(|result| result.error().unwrap_or("ok")).collect();
    assert_eq!(
        codes,
        [
            "ok",
            "ok",
            "ok",
            "invalid_message",
            "ok",
            "ok",
            "unknown_contact",
            "invalid_message",
            "agent_terminated",
        ]
    );
    assert_eq!(sent[3].value["details"][0]["field"], "target_agent");
    assert_eq!(sent[7].value["details"][0]["field"], "usage_hint");
    let (painter, writer) = (json!(hired(&asked, "painter")), json!(hired(&asked, "writer")));
    let added = events(&performed.lines, "contact_added");
    let introduced: Vec<[&Value; 2]> = added
        .iter()
        .filter(|event| event["source"] == "introduction")
        .map(|event| [&event["owner"], &event["agent"]])
        .collect();
    // Each contact is added only once. The introducer is already a contact of the receiver, so the introducer is not
    // added.
    let user = json!("user");
    assert_eq!(introduced, [[&writer, &painter], [&painter, &writer], [&writer, &user]]);
}

/// The introducer must know both agents.
#[test]
fn nobody_introduces_a_stranger_or_to_a_stranger() {
    let performed = Play::default()
        .part(
            "root",
            vec![role("lead"), spawn("lead"), role("friend"), spawn_with("friend", |_| brief("wait"))],
        )
        .part(
            "lead",
            vec![
                role("hidden"),
                spawn("hidden"),
                batch(|asked| {
                    let hidden = hired(asked, "hidden").expect("hired");
                    vec![
                        // The lead does not know the friend. It knows root and the hidden agent, so only the last call
                        // succeeds.
                        send("friend", answer(&hidden, "m000000001")),
                        send(hidden.as_str(), answer("friend", "m000000001")),
                        send(hidden.as_str(), answer("root", "m000000001")),
                    ]
                }),
            ],
        )
        .ending("friend", vec![], |_| Answer::say("ready"))
        .ending("hidden", vec![], |_| Answer::say("ready"))
        .perform();
    let sent = performed.last_of("lead").results_of("send_message");
    let codes: Vec<&str> = sent.iter().map(|result| result.error().unwrap_or("ok")).collect();
    assert_eq!(codes, ["unknown_contact", "unknown_contact", "ok"]);
}
