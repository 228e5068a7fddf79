//! Tests with many and with slow uploads, on a paused clock.

use super::*;
use axum::response::IntoResponse;
use proptest::prelude::*;
use std::convert::Infallible;

#[test]
fn what_only_trickles() {
    let check = |bytes: u64, seconds: u64, expect: bool| {
        assert_eq!(is_trickle(bytes, Duration::from_secs(seconds)), expect, "{bytes} {seconds}");
    };
    check(0, 0, false);
    check(1, 30, false);
    check(1, 31, true);
    check(LEAST_RATE - 1, 31, true);
    check(LEAST_RATE, 31, false);
    check(LEAST_RATE * 600, 630, false);
    check(LEAST_RATE * 600 - 1, 630, true);
    check(u64::MAX, u64::MAX / 1_000_000, false);
}

proptest! {
    #[test]
    fn more_bytes_are_never_slower_and_more_time_never_faster(
        bytes in 0_u64..1 << 40, more in 0_u64..1 << 40, millis in 0_u64..1 << 40, longer in 0_u64..1 << 40,
    ) {
        let trickles = |bytes, millis| is_trickle(bytes, Duration::from_millis(millis));
        prop_assert!(trickles(bytes, millis) || !trickles(bytes + more, millis));
        prop_assert!(!trickles(bytes, millis) || trickles(bytes, millis + longer));
    }
}

/// Returns a request whose body arrives in pieces, each after a pause.
fn coming(piece: usize, every: Duration) -> Request {
    let pieces = futures::stream::repeat(Bytes::from(vec![b'x'; piece])).then(move |piece| async move {
        tokio::time::sleep(every).await;
        Ok::<_, Infallible>(piece)
    });
    Request::new(Body::from_stream(pieces))
}

fn status(problem: Problem) -> u16 {
    problem.into_response().status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn a_body_that_trickles_does_not_keep_its_place() {
    let begun = Instant::now();
    let slow = whole(coming(10, Duration::from_secs(20)), u64::MAX).await;
    assert_eq!(slow.map_err(status), Err(408));
    assert!(begun.elapsed() < UNHURRIED * 2, "{:?}", begun.elapsed());
    let mut form_of = coming(10, Duration::from_secs(20));
    let kind = "multipart/form-data; boundary=x".parse().unwrap();
    form_of.headers_mut().insert(axum::http::header::CONTENT_TYPE, kind);
    assert_eq!(form(form_of, u64::MAX, "file").await.map(drop).map_err(status), Err(408));
    // A body that arrives fast enough is refused only when it exceeds the size limit.
    let fast = whole(coming(LEAST_RATE as usize, Duration::from_secs(1)), LEAST_RATE * 100).await;
    assert_eq!(fast.map_err(status), Err(413));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_place_for_ever() {
    let uploads = Semaphore::new(1);
    let taken = place(&uploads).await.unwrap();
    let refused = place(&uploads).await.unwrap_err().into_response();
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key(axum::http::header::RETRY_AFTER));
    drop(taken);
    drop(place(&uploads).await.unwrap());
}
