use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn retry() -> Retry {
    Retry::default()
}

fn failure(kind: FailureKind, retry_after: Option<u64>) -> CallError {
    CallError {
        kind,
        message: String::new(),
        status: None,
        retry_after: retry_after.map(Duration::from_secs),
    }
}

fn after(attempts: u32) -> Tried {
    let mut tried = Tried::nothing();
    tried.turn_to(ServiceId::new("first"));
    (0..attempts).for_each(|_| tried.count());
    tried
}

const ALONE: Situation = Situation { sent: Sent::Text, fallback: Fallback::None, room: Room::Exhausted };
const WITH_FALLBACK: Situation = Situation { fallback: Fallback::Untried, ..ALONE };

#[track_caller]
fn check(kind: FailureKind, tried: &Tried, situation: Situation, expect: Next) {
    assert_eq!(next(&failure(kind, None), tried, situation, &retry(), 1.0), expect);
}

fn again(millis: u64) -> Next {
    Next::Again { after: Duration::from_millis(millis) }
}

#[test]
fn what_follows_a_failure() {
    check(FailureKind::Passing, &after(1), ALONE, again(500));
    check(FailureKind::Passing, &after(3), ALONE, again(2_000));
    check(FailureKind::Passing, &after(5), ALONE, again(8_000));
    check(FailureKind::Passing, &after(6), ALONE, Next::GiveUp);
    check(FailureKind::Refused, &after(1), ALONE, Next::GiveUp);
    check(FailureKind::Unauthorized, &after(1), WITH_FALLBACK, Next::Fallback);
    let media = Situation { sent: Sent::Media, ..ALONE };
    check(FailureKind::MediaRefused, &after(1), media, Next::DescribeMedia);
    let described = Tried { media: MediaUse::Described, ..after(1) };
    check(FailureKind::MediaRefused, &described, media, Next::GiveUp);
    check(FailureKind::MediaRefused, &after(1), ALONE, Next::GiveUp);
    let said = |kind, status: u16, message: &str| CallError {
        message: message.to_owned(),
        status: Some(status),
        ..failure(kind, None)
    };
    let check_said = |failure: &CallError, tried: &Tried, situation, expect| {
        assert_eq!(next(failure, tried, situation, &retry(), 1.0), expect, "{failure:?}");
    };
    for status in [400, 413, 415, 422] {
        let refused = said(FailureKind::Refused, status, "content must be a string");
        check_said(&refused, &after(1), media, Next::DescribeMedia);
        check_said(
            &refused,
            &after(1),
            Situation { fallback: Fallback::Untried, ..media },
            Next::DescribeMedia,
        );
        check_said(&refused, &described, media, Next::GiveUp);
        check_said(&refused, &after(1), ALONE, Next::GiveUp);
        check_said(&refused, &after(6), media, Next::GiveUp);
    }
    check_said(&said(FailureKind::Refused, 404, "no such model"), &after(1), media, Next::GiveUp);
    let blamed = said(FailureKind::Refused, 404, "Images cannot be sent to this model");
    check_said(&blamed, &after(1), media, Next::DescribeMedia);
    let failed = said(FailureKind::Passing, 500, "This model can't handle multi-modal input");
    check_said(&failed, &after(1), media, Next::DescribeMedia);
    check_said(&failed, &after(1), ALONE, again(500));
    check_said(&said(FailureKind::Passing, 503, "loading model"), &after(1), media, again(500));
    let long = said(FailureKind::ContextOverflow, 400, "too long");
    check_said(&long, &after(1), Situation { room: Room::Untouched, ..media }, Next::Compact);
    check_said(&long, &after(1), media, Next::DescribeMedia);
    let room = |room| Situation { room, ..WITH_FALLBACK };
    check(FailureKind::ContextOverflow, &after(1), room(Room::Untouched), Next::Compact);
    check(FailureKind::ContextOverflow, &after(1), room(Room::Made), Next::Compact);
    check(FailureKind::ContextOverflow, &after(1), room(Room::Exhausted), Next::Fallback);
    check(FailureKind::ContextOverflow, &after(6), room(Room::Untouched), Next::GiveUp);
}

#[test]
fn the_person_may_ask_for_any_number_of_attempts() {
    let mut tried = after(5);
    for asked in 1..20 {
        tried.ask_for();
        tried.ask_for();
        tried.count();
        check(FailureKind::Passing, &tried, ALONE, again(8_000));
        assert_eq!((tried.attempts(), tried.most_attempts(&retry())), (5 + asked, 6 + asked));
    }
    tried.count();
    check(FailureKind::Passing, &tried, ALONE, Next::GiveUp);
    // The person asked for an attempt at the first service. So the first attempt at the fallback counts.
    let mut tried = after(1);
    tried.ask_for();
    tried.turn_to(ServiceId::new("second"));
    tried.count();
    assert_eq!(tried.most_attempts(&retry()), 6);
}

#[test]
fn media_are_blamed_only_by_the_configuration_that_was_refused_and_not_for_a_long_history() {
    let picture = || vec![ArtifactId::new("a")];
    let check = |kind, revision, expect: Vec<ArtifactId>| {
        let mut tried = after(1);
        tried.describe_media(&failure(kind, None), picture(), 1);
        assert_eq!(tried.media, MediaUse::Described);
        assert_eq!(tried.convicted(revision), expect);
        assert_eq!(tried.convicted(revision), [], "once");
    };
    check(FailureKind::Refused, 1, picture());
    check(FailureKind::MediaRefused, 1, picture());
    check(FailureKind::Refused, 2, Vec::new());
    check(FailureKind::ContextOverflow, 1, Vec::new());
    let mut tried = after(1);
    tried.describe_media(&failure(FailureKind::Refused, None), picture(), 1);
    tried.turn_to(ServiceId::new("second"));
    assert_eq!(tried.convicted(1), [], "another service has refused it");
}

#[test]
fn a_call_that_the_server_cannot_read_is_asked_for_twice_more_in_other_words() {
    let mut tried = after(1);
    check(FailureKind::CallNotParsed, &tried, ALONE, Next::Reword);
    tried.reword();
    tried.count();
    check(FailureKind::CallNotParsed, &tried, ALONE, Next::Reword);
    tried.reword();
    tried.count();
    check(FailureKind::CallNotParsed, &tried, ALONE, Next::GiveUp);
    check(FailureKind::CallNotParsed, &tried, WITH_FALLBACK, Next::Fallback);
    tried.turn_to(ServiceId::new("second"));
    assert_eq!(tried.reworded(), 0, "the count begins again with another model");
}

#[test]
fn a_service_has_half_of_what_is_left_while_there_is_another() {
    check(FailureKind::Passing, &after(2), WITH_FALLBACK, again(1_000));
    check(FailureKind::Passing, &after(3), WITH_FALLBACK, Next::Fallback);
    let mut second = after(3);
    second.turn_to(ServiceId::new("second"));
    second.count();
    check(FailureKind::Passing, &second, WITH_FALLBACK, again(500));
    second.count();
    check(FailureKind::Passing, &second, WITH_FALLBACK, Next::Fallback);
    check(FailureKind::Passing, &second, ALONE, again(1_000));
    second.count();
    check(FailureKind::Passing, &second, ALONE, Next::GiveUp);
}

#[test]
fn a_pause_that_is_asked_for_is_obeyed_as_far_as_it_is_sensible() {
    let check = |asked, situation, expect| {
        let limited = failure(FailureKind::RateLimited, Some(asked));
        assert_eq!(next(&limited, &after(1), situation, &retry(), 0.3), expect);
    };
    check(90, ALONE, again(90_000));
    check(900, ALONE, again(900_000));
    check(901, ALONE, Next::GiveUp);
    check(30, WITH_FALLBACK, again(30_000));
    check(31, WITH_FALLBACK, Next::Fallback);
    assert_eq!(shared_pause(Duration::from_secs(901)), Duration::from_secs(901));
    assert_eq!(shared_pause(Duration::MAX), ASKED_AGAIN_AFTER);
}

#[test]
fn another_service_has_a_window_and_eyes_of_its_own() {
    let mut tried = after(1);
    tried.media = MediaUse::Described;
    tried.make_room();
    assert_eq!(tried.room, Room::Made);
    tried.make_room();
    assert_eq!(tried.room, Room::Exhausted);
    tried.turn_to(ServiceId::new("second"));
    assert_eq!((tried.room, tried.media, tried.attempts()), (Room::Untouched, MediaUse::Shown, 1));
    let summary = tried.for_summary();
    assert_eq!((summary.service(), summary.attempts()), (Some(&ServiceId::new("second")), 0));
    assert!(!summary.is_untried(&ServiceId::new("first")));
}

/// The circumstances and the failure of one attempt of a generated call.
#[derive(Clone, Debug)]
struct Happens {
    failure: CallError,
    sent: Sent,
    /// Whether older history can still be summed up.
    room: Room,
    /// Whether the circuit of the service is open before the attempt. An open circuit holds requests to the service
    /// back for a while, because many requests have failed.
    open: bool,
}

fn happens() -> impl Strategy<Value = Happens> {
    let asked =
        prop::option::weighted(0.3, prop::sample::select(vec![0, 1, 29, 31, 899, 901, 3_600, 1 << 40]));
    let rooms = prop::sample::select(vec![Room::Untouched, Room::Exhausted]);
    let statuses = prop::sample::select(vec![None, Some(200), Some(400), Some(404), Some(413), Some(500)]);
    let kinds = (prop::sample::select(FailureKind::ALL), statuses);
    (kinds, asked, any::<bool>(), rooms, prop::bool::weighted(0.2)).prop_map(
        |((kind, status), asked, media, room, open)| Happens {
            failure: CallError { status, ..failure(kind, asked) },
            sent: if media { Sent::Media } else { Sent::Text },
            room,
            open,
        },
    )
}

/// One attempt of a call: which service of the chain it asked, and how it failed.
#[derive(Debug)]
struct Asked {
    service: usize,
    kind: FailureKind,
    asked_for: Option<Duration>,
    followed_by: Next,
}

/// Plays a call with a chain of services. Each service is the fallback of the service before it. All attempts of the
/// call fail.
fn play(services: usize, retry: &Retry, happenings: &[Happens], jitter: f64) -> (Vec<Asked>, Tried) {
    let id = |number: usize| ServiceId::new(format!("s{number}"));
    let mut tried = Tried::nothing();
    let mut service = 0;
    tried.turn_to(id(0));
    let mut asked = Vec::new();
    for happens in happenings.iter().cycle().take(1_000) {
        let is_last = service + 1 == services;
        let fallback = if is_last { Fallback::None } else { Fallback::Untried };
        if happens.open && patience(fallback, retry).while_open == WhileOpen::Leave {
            service += 1;
            assert!(tried.is_untried(&id(service)));
            tried.turn_to(id(service));
            continue;
        }
        tried.count();
        let room = if happens.room == Room::Exhausted { Room::Exhausted } else { tried.room };
        let situation = Situation { sent: happens.sent, fallback, room };
        let next = next(&happens.failure, &tried, situation, retry, jitter);
        asked.push(Asked {
            service,
            kind: happens.failure.kind,
            asked_for: happens.failure.retry_after,
            followed_by: next,
        });
        match next {
            Next::Again { .. } => {}
            Next::DescribeMedia => tried.media = MediaUse::Described,
            Next::Compact => tried.make_room(),
            Next::Reword => tried.reword(),
            Next::Fallback => {
                service += 1;
                assert!(tried.is_untried(&id(service)));
                tried.turn_to(id(service));
            }
            Next::GiveUp => return (asked, tried),
        }
    }
    panic!("the call never ends");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// The number of attempts includes attempts at fallbacks, attempts with described media,
    /// and attempts after a summary.
    #[test]
    fn a_call_makes_no_more_attempts_than_it_may(
        services in 1..5_usize,
        max_attempts in 1..12_u32,
        happenings in prop::collection::vec(happens(), 1..40),
        jitter in 0.0..1.0,
    ) {
        let retry = Retry { max_attempts, ..retry() };
        let (asked, tried) = play(services, &retry, &happenings, jitter);
        prop_assert!(asked.len() <= max_attempts as usize);
        prop_assert_eq!(asked.len(), tried.attempts() as usize);
        // A call may give up for two reasons only: it has no attempt left, or its service is the last one of the chain.
        let last = ServiceId::new(format!("s{}", services - 1));
        prop_assert!(asked.len() == max_attempts as usize || tried.service() == Some(&last));
    }

    #[test]
    fn a_fallback_is_reached_if_the_first_service_keeps_failing(
        services in 2..5_usize,
        max_attempts in 2..12_u32,
        happenings in prop::collection::vec(happens(), 1..40),
        jitter in 0.0..1.0,
    ) {
        let retry = Retry { max_attempts, ..retry() };
        let (asked, _) = play(services, &retry, &happenings, jitter);
        prop_assert!(asked.iter().any(|asked| asked.service > 0));
        let first = asked.iter().filter(|asked| asked.service == 0).count();
        prop_assert!(first <= (max_attempts as usize).div_ceil(2));
    }

    #[test]
    fn a_service_that_was_given_up_is_not_asked_again(
        services in 1..5_usize,
        happenings in prop::collection::vec(happens(), 1..40),
        jitter in 0.0..1.0,
    ) {
        let (asked, _) = play(services, &retry(), &happenings, jitter);
        let mut over = BTreeSet::new();
        for pair in asked.windows(2) {
            if pair[0].service != pair[1].service {
                over.insert(pair[0].service);
            }
            prop_assert!(!over.contains(&pair[1].service));
        }
    }

    /// A refused request is sent to the same service again only with a change: its media are described, or its history
    /// is summed up. HTTP 408, 409 and 429 do not count as refusals.
    #[test]
    fn what_is_refused_is_not_sent_again_to_the_same_service(
        services in 1..5_usize,
        happenings in prop::collection::vec(happens(), 1..40),
        jitter in 0.0..1.0,
    ) {
        let (asked, _) = play(services, &retry(), &happenings, jitter);
        for pair in asked.windows(2) {
            let again = pair[0].service == pair[1].service;
            match pair[0].kind {
                FailureKind::Misconfigured => prop_assert!(!again),
                FailureKind::Refused | FailureKind::Unauthorized | FailureKind::MediaRefused => prop_assert!(!again || pair[0].followed_by == Next::DescribeMedia),
                FailureKind::ContextOverflow => {
                    prop_assert!(!again || matches!(pair[0].followed_by, Next::Compact | Next::DescribeMedia));
                }
                _ => {}
            }
        }
        // With each service, a call describes media at most once, and asks for a summary of its history at most twice.
        for service in 0..services {
            let made = |what: Next| asked.iter().filter(|asked| asked.service == service && asked.followed_by == what).count();
            prop_assert!(made(Next::DescribeMedia) <= 1 && made(Next::Compact) <= 2);
        }
    }

    #[test]
    fn a_pause_is_never_shorter_than_the_server_asks_for_and_bounded_otherwise(
        services in 1..5_usize,
        happenings in prop::collection::vec(happens(), 1..40),
        jitter in 0.0..1.0,
    ) {
        let (asked, _) = play(services, &retry(), &happenings, jitter);
        for Asked { service, asked_for, followed_by, .. } in &asked {
            let Next::Again { after } = followed_by else { continue };
            prop_assert!(asked_for.is_none_or(|asked| *after >= asked));
            let longest = if service + 1 == services { LONGEST_PAUSE } else { retry().max_delay };
            prop_assert!(*after <= asked_for.map_or(retry().max_delay, |_| longest));
        }
    }
}
