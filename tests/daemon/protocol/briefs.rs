//! Task briefs: what a parent must specify when it hires an agent, and what the child sees of the brief.

use polity_tests::{Answer, Call, Conversation};
use serde_json::{Value, json};

use crate::support::events;
use crate::support::hiring::{brief, hired};
use crate::support::play::{Play, after, contact, hears, role, role_with, send, spawn, spawn_with, step};

const REQUIRED: [&str; 5] = ["objective", "constraints", "inputs", "outputs", "completion_criteria"];

/// Returns the parameter schema of a tool that a request offers.
fn parameters(asked: &Conversation, tool: &str) -> Value {
    let tools = asked.body()["tools"].as_array().expect("tools");
    let tool = tools.iter().find(|offered| offered["function"]["name"] == tool).expect("the tool");
    tool["function"]["parameters"].clone()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().filter_map(Value::as_str).collect()
}

/// Two tools hire agents, and the schemas of both require a brief. Most hires use `spawn_agent_with_task`. In the
/// schema of this tool, a brief requires its five fields and no others.
/// Tests criteria 1.1, 1.2 and 1.3 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn a_model_is_told_what_a_brief_must_have_and_may_have() {
    let performed = Play::default().part("root", vec![]).perform();
    let asked = performed.last_of("root");
    for tool in ["spawn_agent", "spawn_agent_with_task"] {
        let parameters = parameters(&asked, tool);
        assert!(names(&parameters["required"]).contains(&"taskBrief"), "{tool}: {parameters}");
    }
    let brief = &parameters(&asked, "spawn_agent_with_task")["properties"]["taskBrief"];
    let mut required = names(&brief["required"]);
    required.sort_unstable();
    let mut expect = REQUIRED;
    expect.sort_unstable();
    assert_eq!(required, expect);
    assert!(brief["properties"]["collaborators"].is_object());
}

/// An incomplete brief is refused, and the refusal names each missing field.
/// Tests criteria 1.1, 1.2 and 1.4 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn a_brief_that_lacks_anything_hires_nobody_and_all_that_it_lacks_is_said() {
    let mut attempts: Vec<(Value, Vec<&str>)> =
        vec![(json!({"roleId": "worker", "initialMessage": "begin"}), REQUIRED.to_vec())];
    for field in REQUIRED {
        for gap in [Value::Null, json!(""), json!(" "), json!(0), json!(7), json!(false)] {
            let mut brief = brief("work");
            brief[field] = gap;
            attempts.push((
                json!({"roleId": "worker", "taskBrief": brief, "initialMessage": "begin"}),
                vec![field],
            ));
        }
        let mut brief = brief("work");
        brief.as_object_mut().expect("fields").remove(field);
        attempts
            .push((json!({"roleId": "worker", "taskBrief": brief, "initialMessage": "begin"}), vec![field]));
    }
    let expected: Vec<Vec<&str>> = attempts.iter().map(|(_, expect)| expect.clone()).collect();
    let calls = Box::new(move |_: &Conversation| {
        let each =
            attempts.iter().map(|(arguments, _)| Call::new("spawn_agent_with_task", arguments.clone()));
        Some(each.collect())
    });
    let performed = Play::default()
        .ending("root", vec![role("worker"), calls], |_| Answer::say("nobody was hired"))
        .perform();
    assert!(events(&performed.lines, "agent_created").is_empty());
    let refused = performed.last_of("root").results_of("spawn_agent_with_task");
    assert_eq!(refused.len(), expected.len());
    for (refused, expect) in refused.iter().zip(expected) {
        assert_eq!(refused.error(), Some("invalid_task_brief"), "{}", refused.text);
        let details = refused.value["details"].as_array().expect("details");
        let fields: Vec<&str> = details.iter().filter_map(|detail| detail["field"].as_str()).collect();
        assert_eq!(fields, expect, "{}", refused.text);
        let advice = refused.value["message"].as_str().expect("advice");
        assert!(advice.contains("details"), "{advice}");
    }
}

/// Every request of the child contains the whole brief with all constraints.
/// Tests criteria 1.3 and 1.5 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn all_of_the_brief_is_in_every_request_of_the_child() {
    let full = json!({
        "objective": "一个产品页",
        "constraints": ["静态网页", "Python 不可用", "no framework"],
        "inputs": {"copy": "in the message"},
        "outputs": "index.html",
        "completion_criteria": ["opens in a browser", "有标题"],
        "references": ["https://example.invalid/style", {"book": 7}],
        "priority": "high",
        "globalConstraints": ["no tracking"],
        "context": "a shop",
        "deliverables": {"page": 1},
    });
    let performed = Play::default()
        .part("root", vec![role("worker"), spawn_with("worker", move |_| full.clone())])
        .ending("worker", vec![step(|_| Call::new("list_contacts", json!({})))], |_| Answer::say("done"))
        .perform();
    let requests = performed.asked_by("worker");
    assert!(requests.len() >= 2);
    for asked in requests {
        let system = asked.system();
        let (_, rest) = system.split_once("\n【任务委托书 Task Brief】\n").expect("the brief");
        let (lines, _) = rest.split_once("\n\n【模型服务】").expect("the end of the brief");
        assert_eq!(
            lines.lines().collect::<Vec<_>>(),
            [
                "目标：一个产品页",
                "技术约束：",
                "- 静态网页",
                "- Python 不可用",
                "- no framework",
                "输入说明：{\"copy\":\"in the message\"}",
                "输出要求：index.html",
                "完成标准：[\"opens in a browser\",\"有标题\"]",
                "参考资料：https://example.invalid/style; {\"book\":7}",
                "优先级：high",
                "globalConstraints: [\"no tracking\"]",
                "context: a shop",
                "deliverables: {\"page\":1}",
            ]
        );
    }
}

/// The brief is not part of the history, so a summary of the history leaves the brief complete.
/// Tests criterion 1.5 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn a_summary_takes_nothing_of_the_brief() {
    let compress =
        step(|_| Call::new("compress_context", json!({"summary": "all done", "keepRecentCount": 1})));
    let performed = Play::default()
        .ending(
            "root",
            vec![
                role("worker"),
                spawn_with("worker", |_| brief("count to seven")),
                after("first", |asked| send(contact(asked, "worker"), json!("again"))),
            ],
            |asked| match hears(asked, "second") {
                true => Answer::say("good"),
                false => Answer::say("…"),
            },
        )
        .ending("worker", vec![compress], |asked| match hears(asked, "again") {
            true => Answer::say("second"),
            false => Answer::say("first"),
        })
        .perform();
    let asked = performed.last_of("worker");
    assert!(asked.text_contains("【历史摘要】"), "{:#?}", asked.messages());
    assert!(asked.system().contains("目标：count to seven"));
}

fn spec() -> Value {
    json!({"services": "描述图片", "input_format": "一张图", "output_format": "一段话", "examples": "问：几个人？"})
}

/// The parent writes a description of each collaborator. The system adds the role and the interface spec of the
/// collaborator to this description.
/// Tests criteria 2.8, 7.1, 7.2, 7.3 and 7.4 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn collaborators_are_contacts_from_the_start_with_all_there_is_to_know_of_them() {
    let performed = Play::default()
        .part(
            "root",
            vec![
                role_with("painter", json!({"interface_spec": spec()})),
                spawn("painter"),
                role("singer"),
                spawn("singer"),
                role("worker"),
                spawn_with("worker", |asked| {
                    let mut brief = brief("work");
                    brief["collaborators"] = json!([
                        {"agentId": hired(asked, "painter"), "description": "paints what you say"},
                        {"agentId": "singer", "description": "sings it"},
                        {"agentId": "user", "description": "knows what it is for"},
                    ]);
                    brief
                }),
            ],
        )
        .ending("painter", vec![], |_| Answer::say("painted"))
        .ending("singer", vec![], |_| Answer::say("sung"))
        .part(
            "worker",
            vec![
                step(|_| Call::new("list_contacts", json!({}))),
                step(|_| send("painter", json!({"text": "paint", "contact_reason": "a page"}))),
                step(|asked| send(contact(asked, "singer"), json!("sing"))),
            ],
        )
        .perform();
    let (painter, singer) = (performed.id("painter"), performed.id("singer"));
    let first = &performed.asked_by("worker")[0];
    let system = first.system();
    assert!(
        system.contains(&format!(
            "协作联系人：{painter}: paints what you say; {singer}: sings it; user: knows what it is for"
        )),
        "{system}"
    );
    let contacts = system.rsplit_once("【联系人列表】\n").expect("contacts").1;
    let of_painter: Vec<&str> =
        contacts.lines().skip_while(|line| !line.contains("painter")).take(2).collect();
    assert_eq!(of_painter[0], format!("- {painter}｜painter｜输入: text｜输出: text,tool_calling"));
    let shown: Value =
        serde_json::from_str(of_painter[1].strip_prefix("  接口说明: ").expect("an interface spec"))
            .expect("JSON");
    assert_eq!(shown, spec());

    let asked = performed.last_of("worker");
    let listed = asked.results_of("list_contacts").remove(0);
    let presets: Vec<[&Value; 3]> = listed.value["contacts"]
        .as_array()
        .expect("contacts")
        .iter()
        .filter(|contact| contact["source"] == "preset")
        .map(|contact| [&contact["id"], &contact["roleName"], &contact["introducedBy"]])
        .collect();
    let root = json!("root");
    let mut expect = vec![
        [json!(painter), json!("painter"), root.clone()],
        [json!(singer), json!("singer"), root.clone()],
        [json!("user"), json!("user"), root],
    ];
    expect.sort_by_key(|entry| entry[0].to_string());
    let mut presets: Vec<[Value; 3]> = presets.into_iter().map(|entry| entry.map(Value::clone)).collect();
    presets.sort_by_key(|entry| entry[0].to_string());
    assert_eq!(presets, expect);

    // The worker can write to its collaborators at once, without an introduction.
    assert!(asked.results_of("send_message").iter().all(|sent| sent.error().is_none()));
    let heard = performed.last_of("painter").heard();
    let letter = heard.iter().find(|heard| heard.text.contains("paint")).expect("a letter");
    assert!(letter.text.contains("我的任务委托书把你列为协作者。"), "{}", letter.text);
    assert!(letter.text.contains("联系原因：a page"), "{}", letter.text);
}

/// A parent can name as collaborators only agents that it knows itself.
/// Tests criterion 7.2 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn a_collaborator_whom_the_parent_does_not_know_hires_nobody() {
    let performed = Play::default()
        .ending(
            "root",
            vec![
                role("worker"),
                spawn_with("worker", |_| {
                    let mut brief = brief("work");
                    brief["collaborators"] =
                        json!([{"agentId": "user", "description": "x"}, {"agentId": "ghost-1234"}]);
                    brief
                }),
            ],
            |_| Answer::say("nobody was hired"),
        )
        .perform();
    let refused = performed.last_of("root").results_of("spawn_agent_with_task").remove(0);
    assert_eq!((refused.error(), &refused.value["to"]), (Some("unknown_contact"), &json!("ghost-1234")));
    assert!(events(&performed.lines, "agent_created").is_empty());
}

/// A role's prompt may name the agent to ask, and each agent of the role sees that name.
/// Tests criteria 7.5 and 7.6 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn a_role_may_say_whom_to_ask_for_what() {
    let performed = Play::default()
        .part(
            "root",
            vec![
                role("painter"),
                spawn("painter"),
                step(|asked| {
                    let painter = hired(asked, "painter").expect("hired");
                    let prompt = format!("You write. For pictures ask {painter}; for prices ask root.");
                    Call::new("create_role", json!({"name": "writer", "rolePrompt": prompt}))
                }),
                spawn("writer"),
            ],
        )
        .ending("painter", vec![], |_| Answer::say("painted"))
        .ending("writer", vec![], |_| Answer::say("written"))
        .perform();
    let said = format!("You write. For pictures ask {}; for prices ask root.", performed.id("painter"));
    assert!(performed.last_of("writer").system().contains(&said));
}
