//! Requests as they were sent to models. Polity can show each request later. It then shows the exact bytes, except that
//! references take the place of media.

use std::sync::atomic::{AtomicUsize, Ordering};

use polity_tests::{Answer, Call, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::files::{PICTURE, base64, pdf, write};
use crate::support::{app, events, home_with, json_lines, references, run};

/// Returns a request as `polity agent --sent` shows it.
#[track_caller]
fn sent(polity: &Polity, agent: &str, number: &Value) -> Value {
    let shown = polity.run(&["agent", agent, "--sent", &number.to_string(), "--json", "--data", "data"]);
    let shown = shown.expect_code(0);
    serde_json::from_str(&shown.stdout).expect("JSON")
}

#[test]
fn each_request_is_shown_later_as_the_server_got_it() {
    let (picture, document) = (PICTURE, pdf());
    let count = AtomicUsize::new(0);
    let server = ScriptedServer::start(move |asked| match count.fetch_add(1, Ordering::Relaxed) {
        0 => Answer::error(500, json!({"error": {"message": "not yet"}})),
        1 => Answer::call("list_contacts", json!({})),
        2 => {
            let references = references(&asked.last_user_text());
            let look = |at: usize| Call::new("get_artifact", json!({"ref": references[at]}));
            Answer::calls(vec![look(0), look(1)]).and_say("\"quoted\" \\ 看 }]{[")
        }
        _ => Answer::say("seen"),
    });
    let polity = home_with(&server, &["text", "vision", "file"]);
    let (picture_path, document_path) =
        (write(&polity, "picture.png", picture), write(&polity, "report.pdf", &document));
    let attached = ["look", "--attach", &picture_path, "--attach", &document_path, "--json"];
    let lines = json_lines(&run(&polity, &attached).expect_code(0).stdout);
    let answered = events(&lines, "model_answered");
    let failed = events(&lines, "model_failed");
    let numbers: Vec<&Value> = failed.iter().chain(&answered).map(|event| &event["sent"]).collect();
    assert_eq!(numbers.len(), server.requests().len());

    // Change the prompts, the limits and the services. After this, polity cannot build the request again from the
    // history. So polity must have kept the request itself.
    polity.write_config("app.json", &app(&json!({"language": "en"})).to_string());
    polity.write_config("llmservices.json", &json!({"services": []}).to_string());
    let first = server.requests()[0].conversation();
    let references = references(&first.last_user_text());
    let by_reference = |raw: &str| {
        [(picture, &references[0]), (&document[..], &references[1])].iter().fold(
            raw.to_owned(),
            |raw, (bytes, reference)| {
                let shown = format!("<{reference}, {} bytes>", bytes.len());
                raw.replace(&base64(bytes), &shown)
            },
        )
    };
    for (captured, number) in server.requests().iter().zip(&numbers) {
        let shown = sent(&polity, "root", number);
        let raw = std::str::from_utf8(&captured.raw).expect("text");
        assert_eq!(shown["body"].as_str().expect("a body"), by_reference(raw));
        assert_eq!(shown["service"], "one");
        assert_eq!(shown["shown"][0]["routing"], "image_url");
    }
    assert_eq!(sent(&polity, "root", numbers[0])["outcome"], "failed");
    assert_eq!(sent(&polity, "root", numbers[1])["outcome"], "answered");

    // In the conversation, each answer of the model has the number of its request.
    let said = polity.run(&["agent", "root", "--conversation", "--json", "--data", "data"]).expect_code(0);
    let said: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let replied = said["entries"].as_array().expect("entries").iter();
    let replied: Vec<&Value> =
        replied.filter(|entry| entry["record"]["record"] == "replied").map(|entry| &entry["sent"]).collect();
    assert_eq!(replied, numbers[1..]);
    let nothing = polity.run(&["agent", "root", "--sent", "999", "--data", "data"]).expect_code(2);
    assert!(nothing.stderr.contains("there is no such request"), "{}", nothing.stderr);
}
