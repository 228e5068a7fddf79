use super::super::examples::{approvals, messages, tasks};
use super::printer::tests::{Kept, onto};
use super::*;
use crate::output::terminal::harmless;
use axum::body::Body;
use axum::http::{HeaderMap, Uri};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::stream;
use polity_client::Loss;
use polity_society::message::MessageState;
use polity_view::{ApprovalPage, MessagePage, Outcome, Posted, TaskState};
use serde_json::json;
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;

#[test]
fn who_leaves_during_an_operation_is_warned_too() {
    let check = |unfinished, dropped, expect: Option<&str>| {
        assert_eq!(warning(unfinished, dropped).as_deref(), expect);
    };
    check(None, None, None);
    check(
        Some("1 task is unfinished"),
        None,
        Some(
            "polity: 1 task is unfinished\npolity: nothing is lost: the next `polity` or `polity serve` goes on with \
             this\npolity: /quit once more leaves now",
        ),
    );
    // The daemon does not tell what is unfinished, but the line itself is.
    check(
        None,
        Some(Dropped::Line("/attach\nfilm.mp4")),
        Some(
            "polity: interrupted, so perhaps this has not happened: /attach film.mp4\npolity: /quit once more leaves \
             now",
        ),
    );
    check(
        None,
        Some(Dropped::Message("hello")),
        Some(
            "polity: perhaps not sent: hello\npolity: if you stay, the chat sends it again, and root gets it \
             once\npolity: /quit once more leaves now",
        ),
    );
    let both = warning(Some("1 task is unfinished"), Some(Dropped::Line("hello"))).unwrap();
    assert!(both.contains("hello\npolity: 1 task is unfinished\n"), "{both}");
}

#[test]
fn a_history() {
    // The text for a pipe contains control characters. `harmless` makes them visible in the snapshot.
    insta::assert_snapshot!(harmless(&history_in_words(&messages(), Page::Pipe)), @r#"
> 看看这张图片
+ artifact:mmpqmm6wc2
… one moment
[阅读者 reader-7k2f]
red <U+001B>[31m<U+0007> and
more
A model failed.
"#);
}

#[test]
fn a_message_of_another_task_says_how_to_continue_the_task() {
    let tasks = tasks();
    let [_, hostile, _, open] = &tasks[..] else { panic!("not four tasks") };
    assert_eq!(heading(open, Page::Pipe), "[task: 看看这张图片; /task task-4x2k continues it]");
    assert_eq!(
        heading(hostile, Page::Terminal { columns: 40 }),
        "[task: red <U+001B>[31m<U+0007> and\nmore; /task task-bbbb continues it]"
    );
}

#[tokio::test]
async fn a_forgotten_task_hides_no_task_in_which_the_daemon_goes_on() {
    let open = tasks().pop().unwrap();
    let (id, path) = (open.id.clone(), format!("/api/tasks/{}", open.id));
    let Scene { mut chat, .. } = Scene::new(Router::new().route(&path, get(async move || Json(open))));
    chat.followed = BTreeSet::from([TaskId::new("forgotten"), id.clone()]);
    let told = chat.work_of_the_daemon().await;
    assert!(told.as_ref().is_some_and(|told| told.contains(id.as_str())), "{told:?}");
}

#[tokio::test]
async fn who_leaves_does_not_wait_for_a_daemon_that_is_lost() {
    let (ask, mut asked) = mpsc::unbounded_channel();
    let task = async move || {
        ask.send(()).unwrap();
        Json(tasks()[3].clone())
    };
    let Scene { mut chat, mut around, .. } = Scene::new(Router::new().route("/api/tasks/{id}", get(task)));
    chat.choose(TaskId::new("t-1"));
    around.is_lost = true;
    assert!(matches!(chat.stays(&mut around, None).await, Ok(Stays::No)));
    assert!(asked.try_recv().is_err(), "a daemon that is lost is asked");
    around.is_lost = false;
    assert!(matches!(chat.stays(&mut around, None).await, Ok(Stays::No)));
    assert!(asked.try_recv().is_ok());
}

#[tokio::test(start_paused = true)]
async fn who_leaves_waits_for_a_silent_daemon_for_two_seconds_at_most() {
    let silent = Router::new().route("/api/tasks/{id}", get(std::future::pending::<()>));
    let Scene { mut chat, mut around, .. } = Scene::new(silent);
    chat.choose(TaskId::new("t-1"));
    let begun = tokio::time::Instant::now();
    let ended = tokio::time::timeout(Duration::from_secs(60), chat.stays(&mut around, None)).await;
    assert!(matches!(ended, Ok(Ok(Stays::No))), "{ended:?}");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

/// A chat whose lines a test types.
struct Scene {
    chat: Chat,
    around: Around,
    keyboard: mpsc::Sender<Typed>,
    terminal: Kept,
}

impl Scene {
    /// The routes lack only the event stream, which brings no events.
    fn new(routes: Router) -> Self {
        let events = async || Body::from_stream(stream::pending::<std::io::Result<&str>>());
        let client = Client::in_process(routes.route("/api/events", get(events))).unwrap();
        let terminal = Kept::default();
        let printer = Arc::new(Mutex::new(onto(terminal.clone())));
        let (keyboard, typed) = mpsc::channel(1);
        let around = Around {
            lines: Lines::sent(typed),
            follow: client.follow(0, EventFilter::default()),
            is_lost: false,
            printer: Arc::clone(&printer),
            held: VecDeque::new(),
            look: Look::WhenSomethingHappens,
            unanswered: BTreeSet::new(),
            live: Live::default(),
            leaves_since: None,
        };
        let chat = Chat::new(client.waiting(), None, None, printer, Leaving::AtOnce);
        Self { chat, around, keyboard, terminal }
    }
}

#[tokio::test]
async fn the_user_can_leave_while_the_chat_begins() {
    let silent = Router::new().route("/api/messages", get(std::future::pending::<()>));
    let Scene { mut chat, mut around, keyboard, .. } = Scene::new(silent);
    assert!(keyboard.try_send(Typed::Line("/quit".to_owned())).is_ok());
    let past = Past { last: Vec::new(), newest: Some(TaskId::new("t-1")), others: Vec::new() };
    let ended = tokio::time::timeout(Duration::from_secs(60), chat.begin(&mut around, past)).await;
    assert!(matches!(ended, Ok(Ok(0))), "{ended:?}");
}

/// For example, in the chat of a society in this process.
#[tokio::test]
async fn the_chat_blames_no_daemon_for_events_that_cannot_be_read() {
    let Scene { chat, mut around, terminal, .. } = Scene::new(Router::new());
    assert_eq!(around.notice(Some(Followed::Lost(Loss::Unreadable))).unwrap(), Stays::Yes);
    // The printer has printed everything when it is dropped.
    drop((chat, around));
    let told = terminal.text();
    assert!(told.starts_with("polity: the events cannot be read") && !told.contains("daemon"), "{told}");
}

/// The daemon does not answer the first request that marks the message as shown.
#[tokio::test]
async fn a_message_is_printed_once_even_if_the_user_interrupts_its_marking() {
    let page = MessagePage { messages: vec![messages()[1].clone()], next: None };
    let (ask, mut asked) = mpsc::unbounded_channel();
    let answers = Arc::new(AtomicBool::new(false));
    let mark = async move || {
        ask.send(()).unwrap();
        if !answers.swap(true, Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        Json(json!({}))
    };
    let routes = Router::new()
        .route("/api/messages", get(async move || Json(page)))
        .route("/api/messages/{id}/shown", post(mark))
        .route("/api/approvals", get(async || Json(json!({"approvals": []}))));
    let Scene { mut chat, terminal, .. } = Scene::new(routes);
    tokio::select! {
        _ = chat.show_unshown_in(TaskId::new("t-1"), Heading::None) => panic!("the message cannot be marked"),
        _ = asked.recv() => {}
    }
    let again = chat.show_unshown_in(TaskId::new("t-1"), Heading::None);
    let again = tokio::time::timeout(Duration::from_secs(60), again).await;
    assert!(matches!(again, Ok(Ok(()))), "{again:?}");
    assert!(chat.handed.is_empty());
    // The printer has printed everything when it is dropped.
    drop(chat);
    assert_eq!(terminal.text().matches("one moment").count(), 1, "{}", terminal.text());
}

/// The answer arrives after `/new`, so the user has chosen no task.
#[tokio::test]
async fn a_chat_shows_the_answers_of_the_task_before_a_new_one() {
    let page = MessagePage { messages: vec![messages()[1].clone()], next: None };
    let routes = Router::new()
        .route("/api/tasks/{id}", get(async || Json(tasks()[3].clone())))
        .route("/api/messages", get(async move || Json(page)))
        .route("/api/messages/{id}/shown", post(async || Json(json!({}))))
        .route("/api/approvals", get(async || Json(json!({"approvals": []}))));
    let Scene { mut chat, terminal, .. } = Scene::new(routes);
    chat.choose(TaskId::new("t-1"));
    assert!(chat.take("/new").await.is_ok());
    let shown = tokio::time::timeout(Duration::from_secs(60), chat.show_unshown()).await;
    assert!(matches!(shown, Ok(Ok(()))), "{shown:?}");
    // The printer has printed everything when it is dropped.
    drop(chat);
    let told = terminal.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("/task task-4x2k continues it]") && told.contains("one moment"), "{told}");
}

/// The user has stopped three tasks in another terminal. One of them belongs to another client.
#[tokio::test]
async fn a_chat_names_a_stopped_task_that_is_not_chosen() {
    let stopped = TaskView {
        title: "what?".to_owned(),
        state: TaskState::Idle,
        outcome: Some(Outcome::Unanswered),
        stopped_by: Some("user".to_owned()),
        ..tasks()[3].clone()
    };
    let routes = Router::new()
        .route("/api/tasks/{id}", get(async move || Json(stopped)))
        .route("/api/messages", get(async || Json(MessagePage { messages: Vec::new(), next: None })))
        .route("/api/approvals", get(async || Json(json!({"approvals": []}))));
    let Scene { mut chat, terminal, .. } = Scene::new(routes);
    chat.choose(TaskId::new("t-1"));
    assert!(chat.take("/task t-2").await.is_ok());
    let ended = BTreeSet::from(["t-1", "t-2", "t-3"].map(TaskId::new));
    let shown = tokio::time::timeout(Duration::from_secs(60), chat.show_news(&ended)).await;
    assert!(matches!(shown, Ok(Ok(()))), "{shown:?}");
    // The printer has printed everything when it is dropped.
    drop(chat);
    let told = terminal.text().split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "t-2: what?; you stopped that task, and there is no answer",
        "polity: [task: what?] you stopped the task, and there is no answer",
        "polity: you stopped the task, and there is no answer",
    ] {
        assert_eq!(told.matches(part).count(), 1, "{part} in {told}");
    }
}

/// Only q3 holds root in this task. An agent other than root asks q4, root asks q5 in another task, and the chat has not
/// printed q6 yet.
#[tokio::test]
async fn a_chat_says_once_for_each_question_that_root_gets_messages_later() {
    let question = |number: i64, agent: &str| ApprovalView {
        id: ApprovalId::from_number(number),
        agent: AgentId::new(agent),
        ..approvals()[0].clone()
    };
    let open = move |uri: Uri| {
        let is_other = uri.query().is_some_and(|query| query.contains("task=t-2"));
        let of_task = |task: &str, approval| ApprovalView { task: TaskId::new(task), ..approval };
        let approvals = match is_other {
            true => vec![of_task("t-2", question(5, "root"))],
            false => [question(6, "root"), question(4, "coder"), question(3, "root")]
                .map(|approval| of_task("t-1", approval))
                .to_vec(),
        };
        ready(Json(ApprovalPage { approvals, next: None }))
    };
    let routes = Router::new().route("/api/approvals", get(open)).route(
        "/api/messages",
        post(async || {
            Json(Posted {
                id: MessageId::from_sequence(7),
                task: TaskId::new("t-1"),
                state: MessageState::Queued,
                to: AgentId::root(),
                duplicate: false,
                warnings: Vec::new(),
            })
        }),
    );
    let Scene { mut chat, terminal, .. } = Scene::new(routes);
    chat.choose(TaskId::new("t-2"));
    chat.choose(TaskId::new("t-1"));
    chat.asked = [3, 4, 5].map(ApprovalId::from_number).into();
    for line in ["use a branch", "and test it"] {
        assert!(chat.take(line).await.is_ok());
    }
    // The printer has printed everything when it is dropped.
    drop(chat);
    let told = terminal.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(told.matches("root gets this after your answer").count(), 1, "{told}");
    assert!(told.contains("to answer q3: /approve q3 or /deny q3"), "{told}");
}

/// The daemon does not answer the first request that sends the message.
#[tokio::test]
async fn an_interrupted_message_is_sent_again_with_its_key_if_the_user_stays() {
    let posted = Posted {
        id: MessageId::from_sequence(7),
        task: TaskId::new("t-1"),
        state: MessageState::Queued,
        to: AgentId::root(),
        duplicate: true,
        warnings: Vec::new(),
    };
    let (tell, mut keys) = mpsc::unbounded_channel();
    let answers = Arc::new(AtomicBool::new(false));
    let take = async move |headers: HeaderMap| {
        tell.send(headers["idempotency-key"].clone()).unwrap();
        if !answers.swap(true, Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        Json(posted)
    };
    let (look, mut looked) = mpsc::unbounded_channel();
    let history = async move || {
        look.send(()).unwrap();
        Json(MessagePage { messages: Vec::new(), next: None })
    };
    let routes = Router::new().route("/api/messages", post(take).get(history));
    let Scene { mut chat, mut around, keyboard, terminal } = Scene::new(routes);
    chat.leaving = Leaving::WithWarning;
    let user = async {
        let types = async |line: &str| keyboard.send(Typed::Line(line.to_owned())).await.is_ok();
        assert!(types("hello").await);
        let first = keys.recv().await;
        assert!(types("/quit").await);
        assert_eq!(keys.recv().await, first);
        // The chat handles this line only after it has taken the answer to the message.
        assert!(types("/history").await);
        assert!(looked.recv().await.is_some());
        assert!(types("/quit").await);
    };
    let both = async { tokio::join!(chat.converse(&mut around), user) };
    let ended = tokio::time::timeout(Duration::from_secs(60), both).await;
    assert!(matches!(ended, Ok((Ok(0), ()))), "{ended:?}");
    assert_eq!((&chat.task, &chat.sending), (&Some(TaskId::new("t-1")), &None));
    // The printer has printed everything when it is dropped.
    drop((chat, around));
    let told = terminal.text();
    assert!(told.contains("polity: perhaps not sent: hello\npolity: if you stay"), "{told}");
}
