//! The prompts explain the protocol to agents in both languages, and the daemon sends these prompts to models
//! (requirement 6 of `docs/seeds/agent-communication.requirements.md`).

use polity_tests::{Answer, ScriptedServer};
use serde_json::json;

use crate::support::play::{Play, role, spawn};
use crate::support::{home, last_asked, run};

/// The texts of the prompt files of one language.
struct Prompts {
    base: &'static str,
    root: &'static str,
    role: &'static str,
    hiring: &'static str,
    tools: &'static str,
    small: &'static str,
    root_small: &'static str,
}

const CHINESE: Prompts = Prompts {
    base: include_str!("../../../prompts/zh/base.txt"),
    root: include_str!("../../../prompts/zh/root.txt"),
    role: include_str!("../../../prompts/zh/role.txt"),
    hiring: include_str!("../../../prompts/zh/hiring.txt"),
    tools: include_str!("../../../prompts/zh/tools.txt"),
    small: include_str!("../../../prompts/zh/small.txt"),
    root_small: include_str!("../../../prompts/zh/root-small.txt"),
};

const ENGLISH: Prompts = Prompts {
    base: include_str!("../../../prompts/en/base.txt"),
    root: include_str!("../../../prompts/en/root.txt"),
    role: include_str!("../../../prompts/en/role.txt"),
    hiring: include_str!("../../../prompts/en/hiring.txt"),
    tools: include_str!("../../../prompts/en/tools.txt"),
    small: include_str!("../../../prompts/en/small.txt"),
    root_small: include_str!("../../../prompts/en/root-small.txt"),
};

/// Checks that the text contains all of these words.
#[track_caller]
fn assert_says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in:\n{text}");
    }
}

/// Checks that at least one line of the text contains all of these words.
#[track_caller]
fn assert_one_line_says(text: &str, words: &[&str]) {
    let says = |line: &str| words.iter().all(|word| line.contains(word));
    assert!(text.lines().any(says), "no line says {words:?} in:\n{text}");
}

const FIELDS: [&str; 5] = ["objective", "constraints", "inputs", "outputs", "completion_criteria"];

/// Root's prompt names and explains each required field of a brief.
/// Tests criterion 6.1 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn root_is_told_the_required_fields_of_a_brief() {
    for (prompts, required) in [(CHINESE, "五个必填字段"), (ENGLISH, "Five required fields")] {
        assert_says(prompts.root, &["taskBrief", required]);
        for field in FIELDS {
            let explained =
                prompts.root.lines().any(|line| line.trim_start().starts_with(&format!("- {field}")));
            assert!(explained, "{field} is not explained in:\n{}", prompts.root);
        }
    }
}

/// The prompts of all agents explain contacts and introductions.
/// Tests criterion 6.2 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn everybody_is_told_of_contacts_and_introductions() {
    assert_says(CHINESE.base, &["Contact Registry", "联系人列表", "只能给联系人发消息", "介绍"]);
    assert_says(
        ENGLISH.base,
        &["contact registry", "Contacts", "You can write to your contacts only", "introduction"],
    );
    for small in [CHINESE.small, ENGLISH.small] {
        assert_says(small, &["introduction_request", "introduction_response", "required_capability"]);
    }
    assert_says(CHINESE.small, &["Contact Registry", "联系人列表"]);
    assert_says(ENGLISH.small, &["contact registry", "Contacts"]);
}

/// The prompts of root and of all other roles ask for a complete brief.
/// Tests criterion 6.3 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn whoever_hires_is_told_to_give_a_whole_brief() {
    for prompts in [CHINESE, ENGLISH] {
        assert_says(prompts.root, &FIELDS);
        assert_one_line_says(prompts.root_small, &FIELDS);
        assert_one_line_says(prompts.hiring, &FIELDS);
    }
}

/// The prompts explain how to ask for an introduction, how to answer, how to forward the request, and how to pass the
/// answer on.
/// Tests criteria 6.4, 3.1, 3.2, 3.3, 3.4, 3.5 and 3.6 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn everybody_is_told_how_to_ask_for_an_introduction_and_how_to_answer() {
    for prompts in [CHINESE, ENGLISH] {
        assert_one_line_says(prompts.base, &["introduction_request", "reason", "required_capability"]);
        assert_one_line_says(
            prompts.base,
            &["introduction_response", "target_agent", "usage_hint", "request_id"],
        );
        assert_one_line_says(
            prompts.base,
            &["introduction_request", "request_id", "introduction_response", "null"],
        );
        assert_one_line_says(prompts.base, &["contact_reason"]);
    }
    assert_one_line_says(CHINESE.base, &["需要职责以外的支持时", "上级或任一联系人"]);
    assert_one_line_says(ENGLISH.base, &["support outside your role", "your parent or any contact"]);
}

/// The prompts ask parents to pass on technical constraints, and give an example.
/// Tests criterion 6.5 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn technical_constraints_must_reach_the_child() {
    for prompt in [CHINESE.root, CHINESE.hiring, CHINESE.root_small] {
        assert_one_line_says(prompt, &["constraints", "静态网页", "Python"]);
    }
    for prompt in [ENGLISH.root, ENGLISH.hiring, ENGLISH.root_small] {
        assert_one_line_says(prompt, &["constraints", "static web page", "Python"]);
    }
    assert_one_line_says(CHINESE.root, &["不得省略或改写"]);
    assert_one_line_says(ENGLISH.root, &["never drop or reword one"]);
}

/// The prompts tell agents three rules: ask in the receiver's format, send no reply to an answer, and do not write the
/// sender, because the system writes it.
/// Tests criteria 4.4, 5.4, 5.6, 9.4 and 9.5 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn everybody_is_told_how_to_write_to_others() {
    assert_one_line_says(CHINESE.base, &["对方有接口说明的，按其格式提出请求"]);
    assert_one_line_says(ENGLISH.base, &["has an interface spec, ask in its format"]);
    assert_one_line_says(CHINESE.base, &["答复不是请求", "不再回复"]);
    assert_one_line_says(ENGLISH.base, &["An answer is not a request", "no reply"]);
    assert_one_line_says(CHINESE.tools, &["from 由系统填写，不要写"]);
    assert_one_line_says(ENGLISH.tools, &["from is stamped by the system, never write it"]);
}

/// The prompts explain that a role's prompt may name the agents to ask, and that a brief may name collaborators.
/// Tests criteria 7.5, 7.6 and 7.1 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn whoever_hires_is_told_how_children_find_each_other() {
    for prompt in [CHINESE.root, CHINESE.hiring] {
        assert_one_line_says(prompt, &["collaborators", "agentId", "description"]);
        assert_one_line_says(prompt, &["rolePrompt", "什么事找谁"]);
    }
    for prompt in [ENGLISH.root, ENGLISH.hiring] {
        assert_one_line_says(prompt, &["collaborators", "agentId", "description"]);
        assert_one_line_says(prompt, &["rolePrompt", "whom to ask for what"]);
    }
}

/// The prompts explain that only the first line of a message names its sender. They also explain the mark `｜`, which
/// the daemon puts before lines of a message that look like lines of the system.
#[test]
fn everybody_is_told_where_the_sender_stands_and_what_the_mark_means() {
    assert_one_line_says(CHINESE.base, &["发送者只以消息首行为准", "“｜”"]);
    assert_one_line_says(ENGLISH.base, &["Only the first line", "says who the sender is", "\"|\""]);
}

/// The daemon sends the text of the prompt files. All agents get the base and the tool rules. Only root gets root's
/// part, and all other agents get the part for roles.
/// Tests criteria 6.1, 6.2 and 6.3 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn these_prompts_are_what_is_sent() {
    let performed = Play::default()
        .part("root", vec![role("worker"), spawn("worker")])
        .ending("worker", vec![], |_| Answer::say("done"))
        .perform();
    let (root, worker) = (performed.last_of("root").system(), performed.last_of("worker").system());
    for system in [&root, &worker] {
        assert!(system.contains(CHINESE.base.trim()) && system.contains(CHINESE.tools.trim()));
    }
    let of_role = CHINESE.role.rsplit_once("{role_prompt}").expect("a place for the role's prompt").1.trim();
    assert!(root.contains(CHINESE.root.trim()) && !root.contains(of_role));
    assert!(worker.contains(of_role) && !worker.contains(CHINESE.root.trim()));

    let server = ScriptedServer::start(|_| Answer::say("done"));
    let polity = home(&server, &json!({"language": "en"}));
    run(&polity, &["go"]).expect_code(0);
    let root = last_asked(&server).system();
    for part in [ENGLISH.base, ENGLISH.tools, ENGLISH.root] {
        assert!(root.contains(part.trim()));
    }
}
