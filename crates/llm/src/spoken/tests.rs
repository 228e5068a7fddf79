mod broken;
mod calls;
mod remains;
mod robust;
mod texts;
mod thoughts;

use super::{Offered, Spoken, read};
use serde_json::{Value, json};

pub(crate) const OFFERED: [Offered<'static>; 8] = [
    Offered { name: "send_message", parameters: &["to", "payload", "wait"] },
    Offered { name: "list_agents", parameters: &[] },
    Offered { name: "web_search", parameters: &["query"] },
    Offered { name: "write_file", parameters: &["path", "content"] },
    Offered { name: "spawn", parameters: &["name", "role", "model"] },
    Offered { name: "run", parameters: &["command", "args"] },
    Offered { name: "finish", parameters: &["status", "summary"] },
    Offered { name: "section", parameters: &["title"] },
];

/// A label (the model family or the kind of text), the text, and the expected calls as `[["name", {…}], …]`.
pub(crate) type Case = (&'static str, &'static str, &'static str);

pub(crate) fn check(family: &str, text: &str, expected: &str) {
    let expected: Value = serde_json::from_str(expected).expect(family);
    match read(text, &OFFERED) {
        Spoken::Calls(calls) => {
            let read: Value = calls.iter().map(|call| json!([call.name, call.arguments])).collect();
            assert_eq!(read, expected, "{family}: {text}");
        }
        other => panic!("{family}: {other:?} for {text}"),
    }
}
