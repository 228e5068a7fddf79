//! Tests what happens if the configuration or a list of tools changes while agents work.

use super::world::*;
use crate::Standing;
use polity_hands::table::Toolbox;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn names(world: &World) -> Vec<String> {
    world.servers.tools().iter().map(|tool| tool.name().to_owned()).collect()
}

/// A server that answers each call with the number of servers that were started before this server.
fn counting() -> Arc<Played> {
    played(|mut side| async move {
        while let Some(call) = side.next_call(Generation::Previous, &json!([tool("count")])).await {
            let earlier = side.earlier.to_string();
            side.answer(&call, text(&earlier)).await;
        }
    })
}

#[tokio::test]
async fn only_servers_that_changed_are_replaced() {
    let launcher = counting();
    let world = World::playing(Arc::clone(&launcher));
    let same = || config(process("played", &[]));
    world.tool("s__count").await;
    world.servers.set(BTreeMap::from([(name("s"), same()), (name("t"), same())]));
    world.tool("t__count").await;
    assert_eq!(launcher.starts.load(Ordering::SeqCst), 2);
    let running = world.tool("s__count").await;
    let other = config(process("played", &["--other"]));
    world.servers.set(BTreeMap::from([(name("s"), same()), (name("t"), other)]));
    world.tool("t__count").await;
    assert_eq!(launcher.starts.load(Ordering::SeqCst), 3);
    // A tool that was found before the change still works, because its server was not changed.
    let output = running.run(invocation(json!({}))).await.unwrap();
    assert_eq!(output.content, world.call("s__count", json!({})).await.unwrap().content);
    world.servers.set(BTreeMap::new());
    assert!(world.servers.tools().is_empty() && world.servers.state().is_empty());
    world.servers.shut_down().await;
    assert!(reason(running.run(invocation(json!({}))).await).contains("was removed"));
}

#[tokio::test]
async fn after_a_shutdown_nothing_runs_and_nothing_starts() {
    let alive = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&alive);
    let launcher = played(move |mut side| {
        let count = Arc::clone(&count);
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            while side.next_call(Generation::Previous, &json!([tool("x")])).await.is_some() {}
            count.fetch_sub(1, Ordering::SeqCst);
        }
    });
    let world = World::playing(Arc::clone(&launcher));
    world.tool("s__x").await;
    assert_eq!(alive.load(Ordering::SeqCst), 1);
    world.servers.shut_down().await;
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    world.servers.set(BTreeMap::from([(name("s"), config(process("played", &[])))]));
    assert!(world.servers.state().is_empty());
    assert_eq!(launcher.starts.load(Ordering::SeqCst), 1);
}

/// A server whose tool `grow` adds a further tool. The server reports the change as its protocol generation requires.
fn growing(generation: Generation) -> Arc<Played> {
    played(move |mut side| async move {
        let mut tools = vec![tool("grow")];
        let mut subscription = Value::Null;
        while let Some(message) = side.next().await {
            match message["method"].as_str() {
                Some("tools/list") => side.answer(&message, list(&json!(tools))).await,
                Some("tools/call") => {
                    tools.push(tool(&format!("t{}", tools.len())));
                    side.answer(&message, text("grown")).await;
                    let meta = match generation {
                        Generation::Current => {
                            json!({"io.modelcontextprotocol/subscriptionId": subscription})
                        }
                        Generation::Previous => json!({}),
                    };
                    let changed = "notifications/tools/list_changed";
                    side.send(json!({"jsonrpc": "2.0", "method": changed, "params": {"_meta": meta}})).await;
                }
                Some("subscriptions/listen") => {
                    subscription = message["id"].clone();
                    let acknowledged = json!({
                        "jsonrpc": "2.0",
                        "method": "notifications/subscriptions/acknowledged",
                        "params": {
                            "_meta": {"io.modelcontextprotocol/subscriptionId": subscription},
                            "notifications": message["params"]["notifications"],
                        },
                    });
                    side.send(acknowledged).await;
                }
                _ => {
                    if let Some(answer) = greeting(&message, generation) {
                        side.send(answer).await;
                    }
                }
            }
        }
    })
}

#[tokio::test]
async fn a_changed_list_of_tools_is_read_again() {
    for generation in [Generation::Current, Generation::Previous] {
        let world = World::playing(growing(generation));
        for at in 1..4 {
            world.call("s__grow", json!({})).await.unwrap();
            world.tool(&format!("s__t{at}")).await;
        }
        assert_eq!(names(&world), ["s__grow", "s__t1", "s__t2", "s__t3"], "{generation:?}");
        let connected = Standing::Connected { tools: 4, left_out: 0 };
        assert_eq!(world.until(|standing| *standing == connected).await, connected);
    }
}

#[tokio::test]
async fn pages_of_tools_are_followed_within_bounds() {
    let world = World::playing(played(|mut side| async move {
        while let Some(message) = side.next().await {
            if message["method"] == "tools/list" {
                let page: usize =
                    message["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
                let tools: Vec<_> = (0..20).map(|at| tool(&format!("t{}", page * 20 + at))).collect();
                let next = (page + 1).to_string();
                side.answer(&message, json!({"tools": tools, "nextCursor": next})).await;
            } else if let Some(answer) = greeting(&message, Generation::Previous) {
                side.send(answer).await;
            }
        }
    }));
    let standing = world.until(|standing| *standing != Standing::Starting).await;
    assert_eq!(standing, Standing::Connected { tools: 50, left_out: 10 });
}

/// Polity stops reading a list even if each page refers to the same next page.
#[tokio::test]
async fn pages_in_a_circle_are_read_once() {
    let world = World::playing(played(|mut side| async move {
        while let Some(message) = side.next().await {
            if message["method"] == "tools/list" {
                side.answer(&message, json!({"tools": [tool("one")], "nextCursor": "again"})).await;
            } else if let Some(answer) = greeting(&message, Generation::Previous) {
                side.send(answer).await;
            }
        }
    }));
    let standing = world.until(|standing| *standing != Standing::Starting).await;
    assert_eq!(standing, Standing::Connected { tools: 1, left_out: 1 });
    assert_eq!(names(&world), ["s__one"]);
}
