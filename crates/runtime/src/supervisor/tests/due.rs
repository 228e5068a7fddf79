//! Tests how often the supervisor wakes while messages are delayed, whatever the clock does.

use super::*;
use std::pin::pin;
use std::task::Poll;

/// The time at which the first test begins, in milliseconds since 1970.
const BEGIN: i64 = 1_700_000_000_000;
const TEN_YEARS: i64 = 10 * 365 * 24 * 60 * 60 * 1000;
const HALF_AN_HOUR: i64 = 30 * 60 * 1000;

/// Runs SQL directly.
async fn execute(world: &World, statement: &'static str) {
    world
        .write(move |tx| {
            Box::pin(async move {
                polity_sql::raw_sql(statement).execute(&mut tx.connection).await?;
                Ok(())
            })
        })
        .await;
}

/// Returns how many messages are in each state.
async fn states(world: &World) -> Vec<String> {
    world.query("SELECT state || ' ' || count(*) FROM messages GROUP BY state ORDER BY state").await
}

/// The clock is correct, then ten years ahead, then ten years behind, and then correct again, each for half an hour.
/// One message is due in twenty years. A thousand messages are due within forty minutes, a thousand others have the
/// same delays and were accepted while the clock was ten years ahead.
#[tokio::test]
async fn a_thousand_due_messages_and_a_clock_that_jumps_wake_the_supervisor_a_few_times() {
    // Once for every time at which messages are due, once for the jump, and otherwise after the longest sleep.
    const MOST: i64 = 40 + 1 + HALF_AN_HOUR / 30_000;
    let world = World::new().await;
    execute(
        &world,
        "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 2000),
            delayed (i, created_at, delay) AS (
                SELECT i, 1700000000000 + iif(i < 1000, 0, 315360000000), 7000 + i % 40 * 60000 FROM n WHERE i < 2000
                UNION ALL SELECT i, 1700000000000, 2 * 315360000000 FROM n WHERE i = 2000)
        INSERT INTO messages (id, task, sender, sender_role, receiver, type, body, attachments, expects, finality,
            due_at, state, created_at)
        SELECT printf('m%09d', i + 1), 't-1', 'root', 'root', 'root', 'general', '{}', '[]', 'nothing', 'final',
            created_at + delay, 'delayed', created_at FROM delayed",
    )
    .await;
    assert_eq!(states(&world).await, ["delayed 2001"]);
    let mut passed = 0;
    for jump in [0, TEN_YEARS, -TEN_YEARS, 0] {
        let (mut wakes, end) = (0, passed + HALF_AN_HOUR);
        while passed < end {
            let now = Timestamp::from_millis(BEGIN + passed + jump);
            world
                .write(move |tx| {
                    Box::pin(async move {
                        tx.now = now;
                        deliver(tx).await
                    })
                })
                .await;
            let due = next_due(&mut world.store.reader().await.unwrap()).await.unwrap();
            passed += i64::try_from(time_to_sleep(due.unwrap(), now).as_millis()).unwrap();
            wakes += 1;
            assert!(wakes <= MOST, "{wakes} wakes in half an hour, after a jump of {jump} ms");
        }
    }
    assert_eq!(states(&world).await, ["delayed 1", "queued 2000"]);
}

/// Four questions have expired. The JSON of the first cannot be read, nor the call of the second, and the turn of the
/// third does not exist. The last is sound.
#[tokio::test]
async fn a_damaged_question_ends_once_and_keeps_no_message_back() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    assert_eq!(world.begin_turn("root").await.number(), 1);
    execute(
        &world,
        "INSERT INTO turns (id, agent, task, began_by, state, created_at) VALUES (2, 'root', 't-1', 'm', 'done', 1),
            (4, 'root', 't-1', 'm', 'done', 1);
        INSERT INTO approvals (task, agent, turn, call, tool, role, arguments, remembered, why, scope, way, state,
            asked_at, expires_at)
        VALUES ('t-1', 'root', 1, 'a', 'pay', '', '{', '{', '', 'call', '{', 'open', 1, 2),
            ('t-1', 'root', 2, CAST(x'ff' AS TEXT), 'pay', '', '{}', '[]', '', 'call', '[]', 'open', 1, 2),
            ('t-1', 'root', 3, 'c', 'pay', '', '{}', '[]', '', 'call', '[]', 'open', 1, 2),
            ('t-1', 'root', 4, 'd', 'pay', '', '{}', '[]', '', 'call', '[]', 'open', 1, 2);
        INSERT INTO messages (id, task, sender, sender_role, receiver, type, body, attachments, expects, finality,
            due_at, state, created_at)
        VALUES ('m000000002', 't-1', 'root', 'root', 'root', 'general', '{}', '[]', 'nothing', 'final',
            2, 'delayed', 1)",
    )
    .await;
    for _ in 0..2 {
        world.write(|tx| Box::pin(deliver(tx))).await;
        assert_eq!(states(&world).await, ["in_turn 1", "queued 1"]);
        let ended = world.query("SELECT state FROM approvals ORDER BY seq").await;
        assert_eq!(ended, ["expired", "dropped", "dropped", "expired"]);
        let told = "SELECT body ->> 'approval' FROM events WHERE kind = 'approval_ended' ORDER BY seq";
        assert_eq!(world.query(told).await, ["q1", "q4"]);
        let judged = "SELECT turn || (body ->> 'call') FROM records WHERE body LIKE '%judged%' ORDER BY seq";
        assert_eq!(world.query(judged).await, ["1a", "4d"]);
    }
    assert_eq!(next_due(&mut world.store.reader().await.unwrap()).await.unwrap(), None);
}

/// The clock was ten years ahead when the first question was asked, and correct when the second was asked. Each may be
/// answered for half an hour.
#[tokio::test]
async fn the_time_of_a_question_begins_anew_where_the_clock_was_set_back() {
    let world = World::new().await;
    execute(
        &world,
        "INSERT INTO approvals (task, agent, turn, call, tool, role, arguments, remembered, why, scope, way, state,
            asked_at, expires_at)
        SELECT 't-1', 'root', value, 'a', 'pay', '', '{}', '[]', '', 'call', '[]', 'open', at, at + 1800000
        FROM (SELECT 1 AS value, 1700000000000 + 315360000000 AS at UNION ALL SELECT 2, 1699999990000)",
    )
    .await;
    world
        .write(|tx| {
            Box::pin(async move {
                tx.now = Timestamp::from_millis(BEGIN);
                deliver(tx).await
            })
        })
        .await;
    let expire = world.query("SELECT CAST(expires_at AS TEXT) FROM approvals ORDER BY seq").await;
    assert_eq!(expire, [BEGIN + HALF_AN_HOUR, BEGIN - 10_000 + HALF_AN_HOUR].map(|at| at.to_string()));
}

#[tokio::test]
async fn a_turn_ends_although_its_question_is_damaged() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    let turn = world.begin_turn("root").await;
    execute(
        &world,
        "INSERT INTO approvals (task, agent, turn, call, tool, role, arguments, remembered, why, scope, way, state,
            asked_at, expires_at)
        VALUES ('t-1', 'root', 1, CAST(x'ff' AS TEXT), 'pay', '', '{', '{', '', 'call', '{', 'open', 1, 2)",
    )
    .await;
    world.write(move |tx| Box::pin(turns::end(tx, turn, turns::Ended::Stopped))).await;
    assert_eq!(world.query("SELECT state FROM turns").await, ["stopped"]);
    assert_eq!(world.query("SELECT state FROM approvals").await, ["dropped"]);
}

/// While the machine was asleep, a thousand messages became due. One message is due in a thousand years. One was
/// accepted while the clock was wrong, so its delay of a day begins again.
#[tokio::test]
async fn a_supervisor_that_only_waits_wakes_twice_a_minute() {
    const POLLS: u32 = 200;
    let mut world = World::new().await;
    execute(
        &world,
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000),
            delayed (i, created_at, due_at) AS (SELECT i, 0, i FROM n
                UNION ALL VALUES (1001, 0, 33000000000000), (1002, 33000000000000, 33000086400000))
        INSERT INTO messages (id, task, sender, sender_role, receiver, type, body, attachments, expects, finality,
            due_at, state, created_at)
        SELECT printf('m%09d', i), 't-1', 'root', 'root', 'user', 'general', '{}', '[]', 'nothing', 'final',
            due_at, 'delayed', created_at FROM delayed",
    )
    .await;
    let handles = world.handles(ScriptedModel::always(Say::Text("done")), Hands::none());
    let (broken, _) = watch::channel(None);
    let (_, unused) = mpsc::unbounded_channel();
    let bells = std::mem::replace(&mut world.signals.bells, unused);
    let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
    let mut running = pin!(Supervisor::new(handles, bells, stop, broken, ended).run());
    // From now on, the clock of tokio stands still while somebody works, and else goes on to the end of the next sleep.
    // Only the supervisor sleeps. It is polled when its sleep ends and when its write is answered, so at most twice for
    // each sleep, and a few times in the beginning. The test allows twice as many polls.
    tokio::time::pause();
    let begun = Instant::now();
    let mut polls = 0;
    std::future::poll_fn(|context| {
        polls += 1;
        assert!(running.as_mut().poll(context).is_pending());
        if polls < POLLS { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    let slept = begun.elapsed();
    assert!(slept >= LONGEST_SLEEP * (POLLS / 4), "the supervisor was polled {polls} times within {slept:?}");
    assert_eq!(states(&world).await, ["delayed 2", "queued 1000"]);
    let told = world.query("SELECT CAST(count(*) AS TEXT) FROM events WHERE kind = 'message_due'").await;
    assert_eq!(told, ["1000"]);
}

#[tokio::test(start_paused = true)]
async fn a_sleep_ends_when_something_is_due_and_never_later_than_in_half_a_minute() {
    let check = async |due: Timestamp, expect: Duration| {
        let begun = Instant::now();
        sleep_until(Some(due)).await;
        let slept = begun.elapsed();
        // The clock of tokio counts whole milliseconds.
        assert!((expect..expect + Duration::from_millis(2)).contains(&slept), "{due:?}: {slept:?}");
    };
    check(Timestamp::MIN, Duration::ZERO).await;
    check(polity_store::now(), Duration::ZERO).await;
    check(Timestamp::MAX, LONGEST_SLEEP).await;
    let now = Timestamp::from_millis(BEGIN);
    for millis in [1, 29_999, 30_000] {
        let left = Duration::from_millis(millis);
        assert_eq!(time_to_sleep(now.saturating_add(left), now), left);
    }
    assert_eq!(time_to_sleep(now, now), Duration::ZERO);
}
