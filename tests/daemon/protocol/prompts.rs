//! The system message of a request: its parts and their order.

use polity_tests::{Answer, ScriptedServer};
use serde_json::json;

use crate::support::hiring::{boss_and_worker, hired};
use crate::support::{asked_by, home, run};

/// Checks that the text contains these lines in this order.
#[track_caller]
fn assert_in_order(text: &str, lines: &[&str]) {
    let mut rest = text;
    for line in lines {
        let Some((_, after)) = rest.split_once(line) else {
            panic!("{line:?} does not come next in:\n{rest}\n--- of ---\n{text}")
        };
        rest = after;
    }
}

/// The system message contains the brief, the facts and the contacts in this order.
/// Tests criterion 1.5 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn it_holds_the_brief_the_facts_and_the_contacts_in_order() {
    let server = ScriptedServer::start(boss_and_worker(|_| Answer::say("done")));
    run(&home(&server, &json!({})), &["work"]).expect_code(0);
    let root = asked_by(&server, "root").pop().expect("a request");
    let worker = hired(&root, "worker").expect("a worker");
    let asked = asked_by(&server, &worker).pop().expect("a request");
    let contact = "- root｜";
    assert_in_order(
        &asked.system(),
        &[
            "You are a worker.",
            "\n【任务委托书 Task Brief】\n",
            "目标：be a worker",
            "技术约束：无",
            "输入说明：the first message",
            "输出要求：one line of text",
            "完成标准：the line is said",
            "\n【运行时信息】\n",
            &format!("agentId={worker}\n"),
            "parentAgentId=root\n",
            "roleName=worker\n",
            "serviceId=one\n",
            "capabilities.input=text\n",
            "capabilities.output=text,tool_calling\n",
            "\n【联系人列表】\n",
            contact,
        ],
    );
    assert_in_order(
        &root.system(),
        &[
            "【运行时信息】\nagentId=root\nparentAgentId=user\n",
            "【联系人列表】\n- user｜",
            &format!("- {worker}｜worker｜输入: text｜输出: text,tool_calling"),
        ],
    );
    assert!(!root.system().contains("【任务委托书 Task Brief】\n"), "root must not have a brief");
}

#[test]
fn what_came_before_the_contacts_stays_the_same_from_call_to_call() {
    let server = ScriptedServer::start(boss_and_worker(|_| Answer::say("done")));
    run(&home(&server, &json!({})), &["work"]).expect_code(0);
    let before = |system: &str| system.split("\n【联系人列表】\n").next().map(str::to_owned);
    let asked = asked_by(&server, "root");
    assert!(asked.len() >= 4);
    for later in &asked {
        assert_eq!(before(&later.system()), before(&asked[0].system()));
    }
}

#[test]
fn english_prompts_speak_english_alone() {
    let server = ScriptedServer::start(|_| Answer::say("done"));
    run(&home(&server, &json!({"language": "en"})), &["work"]).expect_code(0);
    let asked = server.requests()[0].conversation();
    let is_chinese = |character: char| matches!(character, '\u{3400}'..='\u{9fff}');
    for message in asked.messages() {
        let text = message.to_string();
        let found: String = text.chars().filter(|&character| is_chinese(character)).collect();
        assert_eq!(found, "", "{text}");
    }
    assert!(!asked.body()["tools"].to_string().contains(is_chinese));
}
