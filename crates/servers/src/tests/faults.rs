//! Tests that a fault of a server makes its own call fail and disturbs nothing else.

use super::world::*;
use crate::call::Failure;
use crate::connect::connect;
use crate::server::Server;
use crate::stderr::LastLine;
use crate::{Bounds, Config, Standing};
use futures::future::{BoxFuture, FutureExt};
use polity_hands::call::{Arguments, Progress};
use polity_hands::table::Toolbox;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

/// A server with the tools `bad` and `good`. The server runs `fault` for each call of `bad`. It answers each call of
/// `good` with the number of servers that were started before this server.
async fn with_fault(
    mut side: Side,
    fault: impl for<'a> Fn(&'a mut Side, &'a Value) -> BoxFuture<'a, ()> + Send + Sync,
) {
    let tools = json!([tool("bad"), tool("good")]);
    while let Some(call) = side.next_call(Generation::Previous, &tools).await {
        if call["params"]["name"] == "bad" {
            fault(&mut side, &call).await;
        } else {
            let earlier = side.earlier.to_string();
            side.answer(&call, text(&earlier)).await;
        }
    }
}

/// Calls the tool `good`. Returns the number of servers that were started before the server that answers.
async fn good(world: &World) -> String {
    match world.call("s__good", json!({})).await.unwrap().content {
        polity_hands::call::Content::Text { text, .. } => text,
        other => panic!("{other:?}"),
    }
}

fn short(timeout: Duration) -> Config {
    Config { timeout, ..config(process("played", &[])) }
}

#[tokio::test]
async fn a_server_that_dies_is_started_again() {
    let world = World::playing(played(|side| {
        with_fault(side, |side, _| {
            async {
                let (gone, _) = tokio::io::duplex(1);
                side.output = gone;
            }
            .boxed()
        })
    }));
    assert!(world.fails("s__bad").await.contains("the connection ended before the answer"));
    assert_eq!(good(&world).await, "1");
    assert!(world.fails("s__bad").await.contains("the connection ended"));
    assert_eq!(good(&world).await, "2");
}

/// Otherwise, a call right after a call that failed in this way would use the connection that has just ended.
#[tokio::test]
async fn a_connection_is_known_to_have_ended_when_its_calls_fail() {
    let launcher = played(|side| {
        with_fault(side, |side, _| {
            async {
                let (gone, _) = tokio::io::duplex(1);
                side.output = gone;
            }
            .boxed()
        })
    });
    let config = config(process("played", &[]));
    let server = Server { name: name("s"), config, bounds: bounds(), launcher };
    let opened = connect(&server, &LastLine::default()).await.unwrap();
    let connection = &opened.connection;
    assert!(connection.is_open());
    let cancel = CancellationToken::new();
    let patience = Duration::from_secs(600);
    let called = connection.call("bad", Arguments::default(), Progress::none(), &cancel, patience).await;
    assert_eq!(called.unwrap_err(), Failure::Closed);
    assert!(!connection.is_open());
}

#[tokio::test]
async fn a_call_without_an_answer_times_out_alone() {
    for nonsense in ["", "\n\n", "no json\n", "{\"jsonrpc\": \"2.0\"}\n", "[]\n", "\u{0}\u{1}\n", "{\"a\":\n"]
    {
        let script =
            played(move |side| with_fault(side, move |side, _| side.send_raw(nonsense.as_bytes()).boxed()));
        let world = World::new(script, bounds(), short(Duration::from_millis(200)));
        assert!(world.fails("s__bad").await.contains("no answer within 200 ms"), "{nonsense:?}");
        assert_eq!(good(&world).await, "0", "{nonsense:?}");
    }
}

#[tokio::test]
async fn an_answer_with_a_wrong_id_is_ignored() {
    let script = played(|side| {
        with_fault(side, |side, call| {
            async {
                let id = call["id"].as_u64().unwrap();
                for wrong in [json!(id + 1), json!("x"), json!(null), json!(id + 1_000_000)] {
                    side.send(json!({"jsonrpc": "2.0", "id": wrong, "result": text("wrong")})).await;
                }
            }
            .boxed()
        })
    });
    let world = World::new(script, bounds(), short(Duration::from_millis(200)));
    assert!(world.fails("s__bad").await.contains("no answer"));
    assert_eq!(good(&world).await, "0");
}

#[tokio::test]
async fn an_answer_that_is_no_result_of_a_tool_is_a_failure() {
    for (result, why) in [
        (json!({"tools": []}), "not a result of a tool"),
        (json!({"content": [{"type": "hologram"}]}), "not a result of a tool"),
        (json!({}), "not a result of a tool"),
    ] {
        let shown = result.to_string();
        let script = played(move |side| {
            let result = result.clone();
            with_fault(side, move |side, call| side.answer(call, result.clone()).boxed())
        });
        let world = World::playing(script);
        let reason = world.fails("s__bad").await;
        assert!(reason.contains(why), "{shown}: {reason}");
        assert_eq!(good(&world).await, "0");
    }
}

#[tokio::test]
async fn an_error_of_the_server_is_told() {
    let world = World::playing(played(|side| {
        with_fault(side, |side, call| {
            async {
                let error = json!({"code": -32602, "message": "x must be\n positive"});
                side.send(json!({"jsonrpc": "2.0", "id": call["id"], "error": error})).await;
            }
            .boxed()
        })
    }));
    assert_eq!(world.fails("s__bad").await, "x must be positive");
    assert_eq!(good(&world).await, "0");
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_dropped_and_told() {
    let world = World::playing(played(|side| {
        with_fault(side, |side, call| side.answer(call, text(&"a".repeat(10 << 20))).boxed())
    }));
    assert!(world.fails("s__bad").await.contains("longer than 65536 bytes"));
    assert_eq!(good(&world).await, "0");
}

/// The server sends without end. It must be slowed down to the permitted rate, and must not be ended.
#[tokio::test]
async fn a_server_that_floods_is_slowed_down() {
    let floods = [
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n",
        "nonsense\n",
        "\n",
        "an endless line ",
    ];
    for flood in floods {
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        let script = played(move |mut side| {
            let count = Arc::clone(&count);
            async move {
                side.next_call(Generation::Previous, &json!([tool("bad")])).await;
                // The write fails when the client closes the pipe.
                while side.output.write_all(flood.repeat(50).as_bytes()).await.is_ok() {
                    count.fetch_add(50, Ordering::SeqCst);
                }
            }
        });
        let launcher = Arc::clone(&script);
        let (burst, every) = (100, Duration::from_secs(60));
        let strict =
            Bounds { messages: burst, message_every: every, stop: Duration::from_millis(100), ..bounds() };
        let begun = Instant::now();
        let world = World::new(script, strict, short(Duration::from_millis(300)));
        let reason = world.fails("s__bad").await;
        assert!(reason.contains("no answer") || reason.contains("longer than"), "{flood:?}: {reason}");
        let sent = sent.load(Ordering::SeqCst);
        let earned = burst as usize + begun.elapsed().as_secs() as usize / 60 + 1;
        // The client has not yet counted the bytes that are still in the buffers between server and client.
        let in_buffers = 4 * 8_192 / flood.len();
        let most = if flood.ends_with('\n') { earned } else { earned * (64 << 10) / flood.len() };
        assert!(sent <= most + in_buffers, "{flood:?} was sent {sent} times");
        assert_eq!(launcher.starts.load(Ordering::SeqCst), 1, "{flood:?}");
        world.servers.shut_down().await;
    }
}

/// Polity must not keep an unlimited number of answers for a server that never reads them.
#[tokio::test]
async fn a_server_that_does_not_read_is_started_again() {
    let script = played(|side| {
        with_fault(side, |side, _| {
            async {
                if side.earlier == 0 {
                    std::future::pending::<()>().await;
                }
            }
            .boxed()
        })
    });
    let launcher = Arc::clone(&script);
    let impatient = Bounds { unread: Duration::from_millis(50), ..bounds() };
    let world = World::new(script, impatient, short(Duration::from_millis(200)));
    // During this call, the server stops reading.
    assert!(world.fails("s__bad").await.contains("no answer"));
    // The pipe holds 4,096 bytes. So neither this call nor the message that cancels it can be written completely.
    let large = json!({"x": "a".repeat(100_000)});
    // The call may end at its time limit or together with the connection, so the test does not check the reason.
    reason(world.call("s__bad", large).await);
    world.until(|_| launcher.starts.load(Ordering::SeqCst) == 2).await;
    world.until(|standing| matches!(standing, Standing::Connected { .. })).await;
    assert_eq!(good(&world).await, "1");
}

#[tokio::test]
async fn a_server_that_never_greets_fails() {
    let scripts = [
        played(|mut side| async move { while side.next().await.is_some() {} }),
        played(|_side| std::future::pending()),
    ];
    for script in scripts {
        let bounds = Bounds {
            start: Duration::from_millis(100),
            stop: Duration::from_millis(100),
            longest_pause: Duration::from_secs(300),
            first_pause: Duration::from_secs(300),
            ..bounds()
        };
        let world = World::new(script, bounds, config(process("played", &[])));
        let standing = world.until(|standing| *standing != Standing::Starting).await;
        assert_eq!(standing, Standing::Failed { why: "not ready within 100 ms".to_owned() });
        assert!(world.servers.tools().is_empty());
    }
}

#[tokio::test]
async fn a_server_that_ends_at_once_fails_with_what_it_wrote() {
    let script = played(|mut side| async move {
        let _ = side.stderr.write_all(b"usage: server FILE\nno FILE given\n").await;
        side.next().await;
    });
    let bounds = Bounds { first_pause: Duration::from_secs(300), ..bounds() };
    let world = World::new(script, bounds, config(process("played", &[])));
    let standing = world.until(|standing| *standing != Standing::Starting).await;
    let Standing::Failed { why } = standing else { panic!("{standing:?}") };
    assert!(why.contains("no FILE given"), "{why}");
}

/// Makes a server that ends at its first call, but leaves its standard error open. Also returns the receiver from which
/// the test gets this standard error.
fn leaves_stderr_open() -> (Arc<Played>, UnboundedReceiver<DuplexStream>) {
    let (leave, left) = unbounded_channel();
    let script = played(move |mut side| {
        let leave = leave.clone();
        async move {
            side.next_call(Generation::Previous, &json!([tool("bad")])).await;
            let _ = leave.send(side.stderr);
        }
    });
    (script, left)
}

/// Standard error has a pipe of its own. So polity may see the end of the server before it gets the last line.
#[tokio::test]
async fn the_reason_for_a_restart_has_a_last_line_that_comes_late() {
    let (script, mut left) = leaves_stderr_open();
    let bounds = Bounds {
        last_line: PATIENCE,
        first_pause: Duration::from_secs(300),
        longest_pause: Duration::from_secs(300),
        ..bounds()
    };
    let world = World::new(script, bounds, config(process("played", &[])));
    assert!(world.fails("s__bad").await.contains("the connection ended"));
    let mut stderr = left.recv().await.unwrap();
    // In this time, polity could report the end too early.
    tokio::time::sleep(Duration::from_millis(100)).await;
    stderr.write_all(b"out of memory\n").await.unwrap();
    drop(stderr);
    let standing = world.until(|standing| matches!(standing, Standing::Restarting { .. })).await;
    let Standing::Restarting { why } = standing else { panic!("{standing:?}") };
    assert!(why.ends_with("; it last wrote: out of memory"), "{why}");
}

/// A process that outlives the server may keep standard error open.
#[tokio::test]
async fn standard_error_that_stays_open_does_not_delay_the_restart_for_ever() {
    let (script, mut left) = leaves_stderr_open();
    let launcher = Arc::clone(&script);
    let impatient = Bounds { last_line: Duration::from_millis(20), ..bounds() };
    let world = World::new(script, impatient, config(process("played", &[])));
    world.fails("s__bad").await;
    let _stderr = left.recv().await.unwrap();
    world.until(|_| launcher.starts.load(Ordering::SeqCst) == 2).await;
}

/// A server of the previous generation may end when it receives an unknown message. Polity then connects to the
/// server again.
#[tokio::test]
async fn a_server_that_ends_at_the_current_greeting_is_connected() {
    let world = World::playing(played(|mut side| async move {
        let first = side.next().await.unwrap();
        if first["method"] != "initialize" {
            return;
        }
        side.send(greeting(&first, Generation::Previous).unwrap()).await;
        while let Some(call) = side.next_call(Generation::Previous, &json!([tool("good")])).await {
            side.answer(&call, text("hello")).await;
        }
    }));
    assert_eq!(good(&world).await, "hello");
}

#[tokio::test]
async fn the_number_of_tools_is_bounded() {
    let names = |range: std::ops::Range<usize>| range.map(|at| tool(&format!("t{at}"))).collect::<Vec<_>>();
    let tools = json!(names(0..100_000));
    let script = played(move |mut side| {
        let tools = tools.clone();
        async move { while side.next_call(Generation::Previous, &tools).await.is_some() {} }
    });
    let large = Bounds { message_bytes: 64 << 20, ..bounds() };
    let world = World::new(script, large, config(process("played", &[])));
    let standing = world.until(|standing| *standing != Standing::Starting).await;
    assert_eq!(standing, Standing::Connected { tools: 50, left_out: 99_950 });
    assert_eq!(world.servers.tools().len(), 50);
}

#[tokio::test]
async fn a_list_of_tools_that_is_too_long_is_not_read() {
    let tools = json!((0..100_000).map(|at| tool(&format!("t{at}"))).collect::<Vec<_>>());
    let script = played(move |mut side| {
        let tools = tools.clone();
        async move { while side.next_call(Generation::Previous, &tools).await.is_some() {} }
    });
    let bounds =
        Bounds { start: Duration::from_millis(500), first_pause: Duration::from_secs(300), ..bounds() };
    let world = World::new(script, bounds, config(process("played", &[])));
    let standing = world.until(|standing| *standing != Standing::Starting).await;
    assert!(matches!(standing, Standing::Failed { .. }), "{standing:?}");
}
