//! The content that `get_artifact` adds to a request, and its place in the request.

use polity_tests::{Answer, Call, Conversation, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::files::{
    PICTURE, assert_not_in_database, base64, from_data_url, holds_base64_of, pdf, write,
};
use crate::support::{app, home_with, last_asked, references, run, service, text_of};

/// The script of root: it opens the two artifacts of its message in the middle of a batch of calls.
fn look(asked: &Conversation) -> Answer {
    if asked.has_called("get_artifact") {
        return Answer::say("seen");
    }
    let references = references(&asked.last_user_text());
    Answer::calls(vec![
        Call::new("list_contacts", json!({})),
        Call::new("get_artifact", json!({"ref": references[0]})),
        Call::new("get_artifact", json!({"ref": references[1]})),
        Call::new("list_contacts", json!({})),
    ])
}

/// Runs the script [`look`] on a picture and a document. Returns the server, the last request, and the references of
/// both artifacts.
#[track_caller]
fn looked_at(input: &[&str], picture: &[u8], document: &[u8]) -> (ScriptedServer, Conversation, Vec<String>) {
    looked_at_by(input, &[], picture, document)
}

/// The input capabilities of a service that takes pictures and documents as well as text.
const ALL: &[&str] = &["text", "vision", "file"];

/// Does the same as [`looked_at`], but adds further services to the configuration. `others` has an item for each of
/// these services: its input capabilities.
#[track_caller]
fn looked_at_by(
    input: &[&str],
    others: &[&[&str]],
    picture: &[u8],
    document: &[u8],
) -> (ScriptedServer, Conversation, Vec<String>) {
    let server = ScriptedServer::start(look);
    let mut services = vec![service("one", &server, input)];
    services
        .extend(others.iter().enumerate().map(|(at, other)| service(&format!("other-{at}"), &server, other)));
    let polity = Polity::new(&json!({"services": services}), &app(&json!({})));
    let picture_path = write(&polity, "picture.png", picture);
    let document_path = write(&polity, "report.pdf", document);
    let attached = ["look", "--attach", &picture_path, "--attach", &document_path];
    run(&polity, &attached).expect_code(0);
    assert_not_in_database(&polity, picture);
    assert_not_in_database(&polity, document);
    let asked = last_asked(&server);
    let first = references(&text_of(&asked.messages()[1]));
    (server, asked, first)
}

fn roles(asked: &Conversation) -> Vec<&str> {
    asked.messages().iter().filter_map(|message| message["role"].as_str()).collect()
}

fn part_types(message: &Value) -> Vec<&str> {
    let parts = message["content"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["type"].as_str()).collect()
}

#[test]
fn media_come_in_one_user_message_after_all_results() {
    let pdf = pdf();
    let (_server, asked, references) = looked_at(&["text", "vision", "file"], PICTURE, &pdf);
    assert_eq!(roles(&asked), ["system", "user", "assistant", "tool", "tool", "tool", "tool", "user"]);
    let media = asked.messages().last().expect("a message");
    assert_eq!(part_types(media), ["text", "image_url", "text", "file"]);
    let results = asked.results_of("get_artifact");
    let label = |at: usize, name: &str| {
        let call = &results[at].call_id;
        format!("工件内容 {name}（{}，来自工具调用 {call}）:", references[at])
    };
    let parts = &media["content"];
    assert_eq!(parts[0]["text"], label(0, "picture.png"));
    assert_eq!(parts[2]["text"], label(1, "report.pdf"));
    let url = parts[1]["image_url"]["url"].as_str().expect("a URL");
    assert_eq!(from_data_url(url, "image/png"), PICTURE);
    let data = parts[3]["file"]["file_data"].as_str().expect("a URL");
    assert_eq!(from_data_url(data, "application/pdf"), pdf);
}

#[test]
fn the_result_itself_tells_of_the_medium_in_json_without_its_bytes() {
    let (_server, asked, references) = looked_at(&["text", "vision", "file"], PICTURE, &pdf());
    let [picture, document] = &asked.results_of("get_artifact")[..] else { panic!("expected two results") };
    assert_eq!(
        (&picture.value["status"], &picture.value["contentType"], &picture.value["routing"]),
        (&json!("success"), &json!("image"), &json!("image_url"))
    );
    assert_eq!(
        (&document.value["contentType"], &document.value["routing"]),
        (&json!("binary"), &json!("file"))
    );
    for (result, reference) in [picture, document].into_iter().zip(&references) {
        assert!(result.value["content"].is_null(), "{}", result.text);
        let id = result.value["metadata"]["id"].as_str().expect("an id");
        assert!(reference.ends_with(id), "{id}");
        assert!(!holds_base64_of(result.text.as_bytes(), PICTURE));
    }
}

#[test]
fn a_model_that_sees_nothing_is_told_what_it_cannot_read() {
    let pdf = pdf();
    let (server, asked, references) = looked_at_by(&["text"], &[ALL], PICTURE, &pdf);
    for request in server.requests() {
        assert!(!holds_base64_of(&request.raw, PICTURE) && !holds_base64_of(&request.raw, &pdf));
    }
    assert_eq!(roles(&asked), ["system", "user", "assistant", "tool", "tool", "tool", "tool"]);
    let results = asked.results_of("get_artifact");
    for (result, (name, (kind, reference))) in results.iter().zip(
        ["picture.png", "report.pdf"].into_iter().zip(["PNG 图片", "PDF 文档"].into_iter().zip(&references)),
    ) {
        assert_eq!(result.value["routing"], "text", "{}", result.text);
        let content = result.value["content"].as_str().expect("text");
        let lines: Vec<&str> = content.lines().collect();
        assert_eq!(lines[0], format!("[无法读取] {name} ({reference})"));
        assert_eq!(lines[1], format!("类型: {kind}"));
        assert!(lines[2].starts_with("大小: "), "{content}");
        assert_eq!(lines[3], "当前模型不支持读取此类文件。建议创建具备相应能力的智能体协助处理。");
    }
}

#[test]
fn where_no_service_could_read_it_nobody_is_told_to_create_an_agent_for_it() {
    let pdf = pdf();
    let (_server, asked, _) = looked_at(&["text"], PICTURE, &pdf);
    let block = text_of(&asked.messages()[1]);
    assert!(block.contains("没有其他模型服务能处理此图片：需要视觉理解能力（vision）"), "{block}");
    assert!(block.contains("没有其他模型服务能处理此文档：需要文件阅读能力（file）"), "{block}");
    for result in asked.results_of("get_artifact") {
        let content = result.value["content"].as_str().expect("text");
        assert!(
            content.starts_with("[无法读取] ") && content.contains("没有其他模型服务能处理"),
            "{content}"
        );
    }
    let said = asked.messages()[1..].iter().map(text_of).collect::<String>();
    for advice in ["create_role", "introduction_request", "建议创建"] {
        assert!(!said.contains(advice), "{advice} in {said}");
    }
}

/// Two services take files, but only one of them takes files of this type. The daemon must suggest this one.
#[test]
fn a_service_that_takes_this_type_is_named() {
    let server = ScriptedServer::start(|_| Answer::say("seen"));
    let mut narrow = service("narrow", &server, &["text", "file"]);
    narrow["fileTypes"] = json!(["text/*"]);
    let mut wide = service("wide", &server, &["text", "file"]);
    wide["fileTypes"] = json!(["application/pdf"]);
    let polity = Polity::new(&json!({"services": [narrow, wide]}), &app(&json!({})));
    let path = write(&polity, "report.pdf", &pdf());
    run(&polity, &["look", "--attach", &path]).expect_code(0);
    let text = last_asked(&server).last_user_text();
    assert!(text.contains("（create_role 时写明 serviceId: \"wide\"）"), "{text}");
}

#[test]
fn requirements_that_no_service_meets_are_said_with_what_there_is() {
    let server = ScriptedServer::start(|asked| {
        if asked.has_called("create_role") {
            return Answer::say("made");
        }
        let role = |name: &str, required: Value| {
            Call::new(
                "create_role",
                json!({"name": name, "rolePrompt": "…", "requiredCapabilities": required}),
            )
        };
        Answer::calls(vec![role("eyes", json!(["vision", "text"])), role("words", json!(["text"]))])
    });
    run(&home_with(&server, &["text"]), &["look"]).expect_code(0);
    let asked = last_asked(&server);
    let [eyes, words] = &asked.results_of("create_role")[..] else { panic!("expected two roles") };
    assert_eq!(eyes.value["unmet"], json!(["vision"]), "{}", eyes.text);
    assert_eq!(eyes.value["available"], json!(["text", "tool_calling"]));
    assert!(eyes.value["message"].as_str().is_some_and(|text| text.contains("vision")), "{}", eyes.text);
    assert!(eyes.value["id"].is_string(), "the role was not created");
    for field in ["unmet", "available", "message"] {
        assert!(words.value[field].is_null(), "{}", words.text);
    }
}

#[test]
fn an_artifact_that_is_not_there_is_told_as_such() {
    let server = ScriptedServer::start(|asked| match asked.has_called("get_artifact") {
        true => Answer::say("none"),
        false => Answer::call("get_artifact", json!({"ref": "artifact:nothing"})),
    });
    run(&home_with(&server, &["text"]), &["look"]).expect_code(0);
    let result = last_asked(&server).results_of("get_artifact").remove(0);
    assert_eq!(
        result.value,
        json!({"error": "artifact_not_found", "ref": "artifact:nothing", "message": "工件不存在或已被删除"})
    );
}

#[test]
fn bytes_that_a_model_passes_are_stored_and_a_reference_stands_for_them() {
    let server = ScriptedServer::start(|asked| {
        let Some(stored) = asked.results_of("put_artifact").pop() else {
            let arguments = json!({"type": "image", "content": base64(PICTURE), "encoding": "base64"});
            return Answer::call("put_artifact", arguments);
        };
        match asked.has_called("get_artifact") {
            true => Answer::say("stored"),
            false => Answer::call("get_artifact", json!({"ref": stored.value["ref"]})),
        }
    });
    let polity = home_with(&server, &["text", "vision"]);
    run(&polity, &["store it"]).expect_code(0);
    assert_not_in_database(&polity, PICTURE);
    let asked = last_asked(&server);
    assert_eq!(from_data_url(asked.image_urls()[0], "image/png"), PICTURE);
    let [stored] = &asked.results_of("put_artifact")[..] else { panic!("expected one artifact") };
    assert_eq!(stored.arguments["content"], stored.value["ref"]);
    assert_eq!(stored.arguments["encoding"], Value::Null);
}
