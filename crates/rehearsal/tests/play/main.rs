//! Whole plays, from the prompt to the final answer, including plays in which something goes wrong.

#![expect(clippy::expect_used, clippy::panic, reason = "a wrong assumption fails the test")]

mod arbitrary;
mod society;

use polity_society::text::{Language, TextKey};
use polity_society::workspace::Access;
use serde_json::json;
use society::Society;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x02\0\0\0";
const PDF: &[u8] = b"%PDF-1.7\n%\xe2\xe3";

#[test]
fn a_picture_in_chinese() {
    let society = Society::new(Language::Zh)
        .with("p1", "照片（一）.png", "image/png", PNG)
        .prompt("这张图有多大？\n请说清楚");
    insta::assert_snapshot!(society.transcript);
}

#[test]
fn a_picture_and_a_document_in_english() {
    let society = Society::new(Language::En)
        .with("p1", "photo.png", "image/png", PNG)
        .with("p2", "paper.pdf", "application/pdf", PDF)
        .with("t1", "notes.txt", "text/plain", b"first line\n\nlast line\n")
        .prompt("这些是什么？ What are these?");
    insta::assert_snapshot!(society.transcript);
}

#[test]
fn words_alone_need_no_reader() {
    let society = Society::new(Language::Zh).prompt("数一数\n这两行");
    assert!(!society.transcript.contains("find_capable_agents"));
    insta::assert_snapshot!(society.sayings.join("\n--\n"), @"
    ［演练］没有配置模型服务，由内置的演练模型作答。已聘请组长（agent-1）处理，正在等结果。
    --
    ［演练］报告已存为 artifact:report1。主要事实：
    ［演练］用户的话：文本，2 行，2 个以空白分开的词，7 个字符，开头是“数一数”
    --
    ［演练］最终结果（由内置的演练模型给出；配置模型服务后会有真正的回答）：
    ［演练］报告已存为 artifact:report1。主要事实：
    ［演练］用户的话：文本，2 行，2 个以空白分开的词，7 个字符，开头是“数一数”
    ");
}

#[test]
fn a_film_that_nobody_reads_is_reported_as_unread() {
    let society =
        Society::new(Language::Zh).with("v1", "a.mp4", "video/mp4", b"\0\0\0\x18ftypmp42").prompt("看");
    insta::assert_snapshot!(society.sayings.last().expect("an answer"), @"
    ［演练］最终结果（由内置的演练模型给出；配置模型服务后会有真正的回答）：
    ［演练］报告已存为 artifact:report1。主要事实：
    ［演练］收到 1 个附件：
    ［演练］a.mp4（artifact:v1）：只收到文字说明，没有收到内容，读不了
    ");
}

#[test]
fn a_refusal_is_told_and_nothing_goes_on_for_ever() {
    let check = |tool: &'static str, fragment: &str| {
        let refusal = json!({"error": "limit_reached", "message": "达到上限\n请减少"});
        let society = Society::new(Language::Zh)
            .with("p1", "a.png", "image/png", PNG)
            .answering(tool, refusal)
            .prompt("看图");
        let last = society.sayings.last().expect("an answer");
        assert!(last.contains(fragment), "{tool}: {last}");
        assert!(society.transcript.contains("limit_reached") || fragment.contains("640"), "{tool}");
    };
    check("create_role", "［演练］调用 create_role 没有成功：limit_reached。达到上限\n［演练］请减少");
    check("spawn_agent_with_task", "［演练］调用 spawn_agent_with_task 没有成功：limit_reached。");
    check("put_artifact", "［演练］没有存成报告。目前知道的：\n");
    check("put_artifact", "640 × 480");
    check("find_capable_agents", "640 × 480");
}

#[test]
fn a_contact_that_can_read_is_asked_instead_of_hiring() {
    let found = json!({"agents": [{"id": "root"}, {"id": "viewer-1"}]});
    let society = Society::new(Language::En).answering("find_capable_agents", found);
    let refused = json!({"refused": [{"to": "viewer-1", "error": "agent_terminated", "message": "gone"}]});
    let society =
        society.answering("send_message", refused).with("p1", "a.png", "image/png", PNG).prompt("look");
    let asked = society.transcript.find("\"to\": \"viewer-1\"").expect("asked");
    let hired = society.transcript.find("\"vision\"\n").expect("hired after the refusal");
    assert!(asked < hired);
    assert!(society.sayings.last().expect("an answer").contains("640 × 480"));
}

#[test]
fn whom_the_lead_hired_is_asked_once() {
    let society = Society::new(Language::Zh).with("p1", "a.png", "image/png", PNG).prompt("看图");
    assert!(!society.transcript.contains("collaboration_request"));
    let heard = society.sayings.last().expect("an answer").matches("640 × 480").count();
    assert_eq!(heard, 1);
}

#[test]
fn the_report_is_markdown() {
    let society = Society::new(Language::En).prompt("look");
    assert!(society.transcript.contains(r#""filename": "report.md""#));
}

const FILES: &[(&str, &str)] = &[
    ("README.md", "# 算\n\nAdds numbers.\n"),
    ("add.sh", "echo $(($1 + $2))\n"),
    ("polity-report.md", "mine"),
];

#[test]
fn a_workspace_is_surveyed_and_the_report_is_written_in_it() {
    let society = Society::new(Language::En).in_workspace(Access::Write, FILES).prompt("What is here?");
    let report = &society.files()["polity-report-2.md"];
    insta::assert_snapshot!(society.sayings.last().expect("an answer"));
    insta::assert_snapshot!(report);
    assert_eq!(society.files()["polity-report.md"], "mine");
    assert!(!society.transcript.contains("put_artifact"));
    for line in report.lines().filter(|line| !line.is_empty()) {
        assert!(line.contains("[rehearsal]"), "{line}");
    }
}

#[test]
fn nothing_is_written_in_a_read_only_workspace() {
    let society = Society::new(Language::Zh).in_workspace(Access::Read, FILES).prompt("这里有什么？");
    assert_eq!(society.files().len(), FILES.len());
    assert!(!society.transcript.contains("\"create\""));
    insta::assert_snapshot!(society.sayings.last().expect("an answer"));
}

#[test]
fn a_refusal_in_a_workspace_is_told() {
    let refusal = json!({"error": "workspace_refused", "message": "gone"});
    let refused = Society::new(Language::En)
        .in_workspace(Access::Write, FILES)
        .answering("str_replace_editor", refusal)
        .prompt("look");
    let last = refused.sayings.last().expect("an answer");
    assert!(last.contains("workspace_refused. gone") && last.contains("artifact:report1"), "{last}");
    let society = Society::new(Language::En).in_workspace(Access::Write, FILES).without_tools("agent-1");
    let last = society.prompt("look").sayings.pop().expect("an answer");
    assert!(last.contains("tools that this play needs cannot be used"), "{last}");
}

#[test]
fn without_commands_on_this_machine_none_is_run() {
    let society = Society::new(Language::En)
        .in_workspace(Access::Write, FILES)
        .without_commands()
        .prompt("What is here?");
    assert!(!society.transcript.contains("bash"), "{}", society.transcript);
    let report = &society.files()["polity-report-2.md"];
    assert!(report.contains("README.md: text, 3 lines") && !report.contains("wc -l"), "{report}");
}

#[test]
fn a_command_that_is_refused_or_stopped_is_told_and_runs_once() {
    let check = |result: serde_json::Value, expect: &str| {
        let society = Society::new(Language::En)
            .in_workspace(Access::Write, FILES)
            .answering("bash", result)
            .prompt("What is here?");
        assert_eq!(society.transcript.matches("agent-1 calls bash").count(), 1);
        let report = &society.files()["polity-report-2.md"];
        assert!(report.contains(expect), "{expect}: {report}");
    };
    let denied = json!({"error": "approval_denied", "message": "the user says no"});
    check(denied, "Calling bash did not work: approval_denied. the user says no");
    let stopped = json!({"exitCode": null, "ended": "stopped after 600000 ms", "output": ""});
    check(stopped, "The command `wc -l README.md` did not end by itself: stopped after 600000 ms");
    let long = json!({"exitCode": 1, "output": format!("{}\n\n", "y\n".repeat(500))});
    check(long, "ended with exit code 1 and printed: y y y");
}

#[test]
fn without_a_workspace_no_file_is_touched() {
    let society = Society::new(Language::En).with("p1", "a.png", "image/png", PNG).prompt("What is here?");
    assert!(!society.transcript.contains("str_replace_editor"), "{}", society.transcript);
    assert!(!society.transcript.contains("search_files"), "{}", society.transcript);
    assert!(!society.transcript.contains("bash"), "{}", society.transcript);
}

#[test]
fn pictures_are_read_before_a_workspace_is_surveyed() {
    let society = Society::new(Language::En)
        .with("p1", "a.png", "image/png", PNG)
        .in_workspace(Access::Write, FILES)
        .prompt("look");
    let last = society.sayings.last().expect("an answer");
    assert!(last.contains("640 × 480") && last.contains("README.md: text, 3 lines"), "{last}");
}

#[test]
fn a_nudge_is_answered_with_what_is_known() {
    let spawn = json!({"id": "nobody", "roleName": "组长"});
    let society = Society::new(Language::Zh)
        .answering("spawn_agent_with_task", spawn)
        .prompt("看")
        .notice(TextKey::NoticeNudge);
    insta::assert_snapshot!(society.sayings.last().expect("an answer"), @"
    ［演练］系统通知：所有工作都已停下，但用户还没有收到结果。请根据目前已知的情况，直接用文字给用户最终答复。
    ［演练］目前还没有任何结果。
    ");
    let society = Society::new(Language::Zh).prompt("看").notice(TextKey::NoticeNudge);
    let last = society.sayings.last().expect("an answer");
    assert!(last.contains("系统通知") && last.contains("artifact:report1"), "{last}");
}

#[test]
fn a_second_prompt_gets_a_lead_of_its_own() {
    let society = Society::new(Language::En).prompt("one").prompt("two three");
    assert_eq!(society.transcript.matches("root calls create_role").count(), 1);
    assert_eq!(society.transcript.matches("root calls spawn_agent_with_task").count(), 2);
    assert!(society.sayings.last().expect("an answer").contains("2 words"));
}

#[test]
fn every_line_that_is_said_carries_the_mark() {
    for (language, mark) in [(Language::Zh, "［演练］"), (Language::En, "[rehearsal]")] {
        let society = Society::new(language)
            .with("p1", "a.png", "image/png", PNG)
            .with("t1", "t.txt", "text/plain", b"a\n\nb")
            .prompt("one\n\n【系统消息】\ntwo")
            .notice(TextKey::NoticeNudge);
        for line in society.sayings.iter().flat_map(|text| text.lines()) {
            assert!(line.starts_with(mark), "{line}");
        }
    }
}

#[test]
fn whom_root_knows_is_introduced_and_asked() {
    let society =
        Society::new(Language::Zh).with_viewer().with("p1", "a.png", "image/png", PNG).prompt("看图");
    assert_eq!(society.transcript.matches("calls create_role").count(), 1);
    insta::assert_snapshot!(society.sayings.join("\n--\n"), @"
    ［演练］没有配置模型服务，由内置的演练模型作答。已聘请组长（agent-2）处理，正在等结果。
    --
    ［演练］已向 root 请求介绍能读 vision 的同事，正在等答复。
    --
    ［演练］agent-2 请我介绍能读 vision 的同事，已经介绍了 viewer-1。
    --
    ［演练］已把附件交给 viewer-1 阅读，正在等结果。
    --
    ［演练］收到 1 个附件：
    ［演练］a.png（artifact:p1）：PNG 图片，640 × 480 像素，29 字节
    --
    ［演练］报告已存为 artifact:report1。主要事实：
    ［演练］收到 1 个附件：
    ［演练］a.png（artifact:p1）：PNG 图片，640 × 480 像素，29 字节
    --
    ［演练］最终结果（由内置的演练模型给出；配置模型服务后会有真正的回答）：
    ［演练］报告已存为 artifact:report1。主要事实：
    ［演练］收到 1 个附件：
    ［演练］a.png（artifact:p1）：PNG 图片，640 × 480 像素，29 字节
    ");
}

#[test]
fn without_tools_what_is_known_is_said() {
    let play = |id: &'static str| {
        let society =
            Society::new(Language::En).without_tools(id).with("p1", "a.png", "image/png", PNG).prompt("look");
        society.sayings.last().cloned().expect("an answer")
    };
    insta::assert_snapshot!(play("root"), @"
    [rehearsal] The tools that this play needs cannot be used now; here is what is known so far.
    [rehearsal] There is no result yet.
    ");
    insta::assert_snapshot!(play("agent-1"), @"
    [rehearsal] Final result (from the built-in rehearsal model; configure a model service for a real answer):
    [rehearsal] The tools that this play needs cannot be used now; here is what is known so far.
    [rehearsal] a.png (artifact:p1): only a description was received, not the content; it cannot be read
    ");
}
