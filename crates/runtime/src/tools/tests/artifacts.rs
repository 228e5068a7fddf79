use crate::testing::{World, code};
use base64::Engine as _;
use polity_society::id::ArtifactId;
use serde_json::json;

/// Returns a PNG image of one pixel.
fn png() -> Vec<u8> {
    let encoded =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    base64::engine::general_purpose::STANDARD.decode(encoded).unwrap()
}

#[tokio::test]
async fn text_is_stored_byte_for_byte() {
    let world = World::new().await;
    let text = "第一行\r\n\u{FEFF}第二行 data:image/png;base64,AAAA\n";
    let stored = world
        .call("root", "put_artifact", json!({"type": "note", "content": text, "meta": {"filename": "a.md"}}))
        .await;
    assert_eq!(
        (&stored["kind"], &stored["type"], &stored["filename"]),
        (&json!("text"), &json!("note"), &json!("a.md"))
    );
    assert_eq!(bytes(&world, &stored).await, text.as_bytes());
    let structured =
        world.call("root", "put_artifact", json!({"type": "data", "content": {"b": [1], "a": null}})).await;
    assert_eq!(structured["mimeType"], "application/json");
    assert_eq!(bytes(&world, &structured).await, br#"{"b":[1],"a":null}"#);
}

async fn bytes(world: &World, stored: &serde_json::Value) -> Vec<u8> {
    let id = ArtifactId::from_reference(stored["ref"].as_str().unwrap()).unwrap();
    let mut reader = world.store.reader().await.unwrap();
    let row = polity_store::artifacts::get(&mut reader, &id).await.unwrap().unwrap();
    world.blobs.read(&row.blob).await.unwrap().to_vec()
}

#[tokio::test]
async fn base64_is_stored_as_bytes_and_what_they_are_is_found_out() {
    let world = World::new().await;
    let encoded = base64::engine::general_purpose::STANDARD.encode(png());
    let broken = format!("{}\n {}", &encoded[..20], &encoded[20..]);
    let stored = world
        .call("root", "put_artifact", json!({"type": "picture", "content": broken, "encoding": "base64"}))
        .await;
    assert_eq!((&stored["kind"], &stored["mimeType"]), (&json!("image"), &json!("image/png")));
    assert_eq!(bytes(&world, &stored).await, png());
    let dump = format!("{:?}", world.dump().await);
    assert!(!dump.contains(&encoded[..64]), "the database does not contain the bytes");
    for content in [json!("not base64!"), json!({"a": 1})] {
        let refused = world
            .call("root", "put_artifact", json!({"type": "x", "content": content, "encoding": "base64"}))
            .await;
        assert_eq!(
            (code(&refused), &refused["details"][0]["field"]),
            ("invalid_arguments", &json!("content"))
        );
    }
}

#[tokio::test]
async fn an_id_is_new_each_time_and_equal_bytes_are_kept_once() {
    let world = World::new().await;
    let put = json!({"type": "note", "content": "同样"});
    let (one, two) = (
        world.call("root", "put_artifact", put.clone()).await,
        world.call("root", "put_artifact", put).await,
    );
    assert_ne!(one["ref"], two["ref"]);
    assert_eq!(world.query("SELECT DISTINCT blob FROM artifacts").await.len(), 1);
}

#[tokio::test]
async fn what_is_stored_already_is_not_stored_again() {
    let world = World::new().await;
    let reader = world.hire("root", "读者", json!({})).await;
    let stored = world.call("root", "put_artifact", json!({"type": "note", "content": "一"})).await;
    let again = world.call("root", "put_artifact", json!({"type": "note", "content": stored["ref"]})).await;
    assert_eq!(again["ref"], stored["ref"]);
    let strange =
        world.call(&reader, "put_artifact", json!({"type": "note", "content": stored["ref"]})).await;
    assert_eq!(code(&strange), "artifact_not_found");
    assert_eq!(world.query("SELECT id FROM artifacts").await.len(), 1);
}

#[tokio::test]
async fn an_artifact_opens_for_its_owner_and_those_above() {
    let world = World::new().await;
    let lead = world.hire("root", "组长", json!({})).await;
    let reader = world.hire(&lead, "读者", json!({})).await;
    let below = world.hire(&reader, "助手", json!({})).await;
    let stranger = world.hire("root", "旁人", json!({})).await;
    let stored = world.call(&reader, "put_artifact", json!({"type": "note", "content": "结果"})).await;
    let open = json!({"ref": stored["ref"]});
    for agent in ["root", &lead, &reader] {
        assert_eq!(world.call(agent, "get_artifact", open.clone()).await, json!({"opened": stored["ref"]}));
        let listed = world.call(agent, "list_artifacts", json!({})).await;
        assert_eq!(listed["artifacts"][0]["ref"], stored["ref"]);
    }
    for agent in [below.as_str(), &stranger, "user"] {
        let refused = world.call(agent, "get_artifact", open.clone()).await;
        assert_eq!(code(&refused), "artifact_not_found", "{agent}");
        assert_eq!(world.call(agent, "list_artifacts", json!({})).await, json!({"artifacts": []}));
    }
}

#[tokio::test]
async fn what_is_missing_is_said_as_the_contract_has_it() {
    let world = World::new().await;
    for reference in ["artifact:abc123", "artifact:../../etc/passwd", ""] {
        let refused = world.call("root", "get_artifact", json!({"ref": reference})).await;
        assert_eq!(
            refused,
            json!({"error": "artifact_not_found", "ref": reference, "message": "工件不存在或已被删除"})
        );
    }
}

#[tokio::test]
async fn what_is_too_large_is_refused() {
    let world = World::with(&json!({"maxArtifactBytes": 4})).await;
    let check = async |put: serde_json::Value, expect: &str| {
        assert_eq!(code(&world.call("root", "put_artifact", put).await), expect);
    };
    check(json!({"type": "note", "content": "1234"}), "ok").await;
    check(json!({"type": "note", "content": "12345"}), "limit_reached").await;
    check(json!({"type": "note", "content": "AAAAAAA=", "encoding": "base64"}), "limit_reached").await;
    check(json!({"type": "note", "content": "AAAAAA==", "encoding": "base64"}), "ok").await;
}

#[tokio::test]
async fn the_artifacts_of_a_task_are_bounded_together() {
    let world = World::with(&json!({"maxArtifactBytesPerTask": 10})).await;
    let put = async |content: &str| {
        world.call("root", "put_artifact", json!({"type": "note", "content": content})).await
    };
    assert_eq!(code(&put("123456").await), "ok");
    // Equal bytes are stored only once, but each artifact with these bytes counts towards the limit.
    let refused = put("123456").await;
    assert_eq!((code(&refused), &refused["limit"]), ("limit_reached", &json!("maxArtifactBytesPerTask")));
    assert_eq!(code(&put("1234").await), "ok");
    assert_eq!(world.query("SELECT COUNT(*) || '' FROM artifacts").await, ["2"]);
}
