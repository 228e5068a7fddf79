//! Models and the user write binary data into texts. The daemon turns this data into artifacts. So no text that is
//! stored or sent contains the data.

use std::path::Path;

use polity_tests::{Answer, Call, Conversation, ScriptedServer};
use serde_json::json;

use crate::support::database::Database;
use crate::support::files::{PICTURE, base64, hexadecimal, run_of};
use crate::support::hiring::brief;
use crate::support::{home, run};

/// Returns the picture in many forms in which models write a picture. Each form is a text encoding, and some of them
/// have other text around them.
fn forms() -> Vec<String> {
    let plain = base64(PICTURE);
    let lines = |length: usize, between: &str| {
        let lines = plain.as_bytes().chunks(length).map(|line| String::from_utf8_lossy(line).into_owned());
        lines.collect::<Vec<_>>().join(between)
    };
    let url = format!("data:image/png;base64,{plain}");
    vec![
        plain.clone(),
        format!("This is it: {plain} and nothing else."),
        format!("图片：{plain}。"),
        format!("```\n{}\n```", lines(76, "\n")),
        format!("Look:\n\n> {}\n\nThat was it.", lines(64, "\r\n> ")),
        json!({"type": "image", "data": plain}).to_string(),
        json!({"result": json!({"image": lines(76, "\n")}).to_string()}).to_string(),
        format!("<img src=\"{url}\">"),
        format!("![drawn]({url})"),
        url.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D"),
        plain.replace('+', "-").replace('/', "_").replace('=', ""),
        plain.replace('/', "\\/"),
        format!("picture = (\"{}\")", lines(60, "\"\n  \"")),
        hexadecimal(PICTURE, "", ""),
        format!("bytes: {}", hexadecimal(PICTURE, "", "").to_uppercase()),
        format!("xxd: {}", hexadecimal(PICTURE, "", " ")),
        format!("{{ {} }}", hexadecimal(PICTURE, "0x", ", ")),
        format!("b'{}'", hexadecimal(PICTURE, "\\x", "")),
    ]
}

/// Returns how many batches of calls the agent has made.
fn batches(asked: &Conversation) -> usize {
    asked.messages().iter().filter(|message| message["tool_calls"].is_array()).count()
}

/// The script of root. For each form of the picture, root creates a role and hires an agent. The prompt of the role,
/// the brief of the agent and the first message to the agent all contain this form. Each closing text of root is also
/// one of the forms.
fn boss(asked: &Conversation, forms: &[String]) -> Answer {
    let calls = |make: &dyn Fn(usize, &String) -> Call| {
        Answer::calls(forms.iter().enumerate().map(|(number, form)| make(number, form)).collect())
    };
    match batches(asked) {
        0 => calls(&|number, form| {
            Call::new("create_role", json!({"name": format!("painter{number}"), "rolePrompt": form}))
        }),
        1 => calls(&|number, form| {
            let mut brief = brief("paint");
            brief["inputs"] = json!({"example": form});
            brief["context"] = json!([form]);
            let role = format!("painter{number}");
            let hired = json!({"roleId": role, "taskBrief": brief, "initialMessage": form});
            Call::new("spawn_agent_with_task", hired)
        }),
        _ => Answer::say(forms[asked.messages().len() % forms.len()].clone()),
    }
}

/// The script of a painter: it sends its form of the picture to root, and ends its turn with the same form.
fn painter(asked: &Conversation, forms: &[String]) -> Answer {
    let number: usize = asked.role_name().trim_start_matches("painter").parse().expect("a number");
    let form = &forms[number];
    match batches(asked) {
        0 => {
            let payload = json!({"message_type": "status_report", "text": form, "sketch": [form]});
            Answer::call("send_message", json!({"to": "root", "payload": payload}))
        }
        _ => Answer::say(form.clone()),
    }
}

/// Returns all files below a directory, except the stored bytes of artifacts.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("artifacts") {
            all.extend(files(&path));
        } else if path.is_file() {
            all.push((path.display().to_string(), std::fs::read(&path).expect("a file")));
        }
    }
    all
}

/// No text field ever contains binary data, in base64 or any other form (`docs/contract.md`, section 3).
#[test]
fn bytes_that_models_write_are_in_no_text_that_is_stored_sent_or_printed() {
    let forms = forms();
    let script = forms.clone();
    let server = ScriptedServer::start(move |asked| match asked.agent_id().as_str() {
        "root" => boss(asked, &script),
        _ => painter(asked, &script),
    });
    let polity = home(&server, &json!({}));
    let ended = run(&polity, &[&format!("paint this: {}", forms[0]), "--json"]).expect_code(0);
    server.assert_clean();
    let requests = server.requests();
    assert!(requests.len() > 2 * forms.len(), "there are too few requests for all agents");
    for request in &requests {
        assert_eq!(run_of(request.conversation().body().to_string().as_bytes(), PICTURE), None);
    }
    assert_eq!(run_of(ended.stdout.as_bytes(), PICTURE), None);
    assert_eq!(run_of(ended.stderr.as_bytes(), PICTURE), None);
    for (name, bytes) in files(&polity.data_dir()) {
        assert_eq!(run_of(&bytes, PICTURE), None, "{name}");
    }
    // Nothing is lost: each form that an agent wrote is stored as a picture.
    let mut database = Database::read(&polity.data_dir());
    let size = PICTURE.len();
    let stored = database.texts::<2>("SELECT CAST(size AS TEXT), mime_type FROM artifacts");
    assert!(stored.len() > 7 * forms.len(), "{}", stored.len());
    assert!(stored.iter().all(|stored| *stored == [size.to_string(), "image/png".to_owned()]), "{stored:?}");
}
