use super::*;
use crate::exchanges::State;
use crate::tasks;
use crate::testing::Scratch;
use polity_society::id::AgentId;

fn new(key: &str, request: &str, task: Option<&str>) -> NewExchange {
    NewExchange {
        key: key.to_owned(),
        request: request.to_owned(),
        agent: AgentId::root(),
        receiver: AgentId::root(),
        task: task.map(TaskId::new),
        awaits: None,
    }
}

async fn with_tasks() -> (Scratch, Exchanges) {
    let scratch = Scratch::new().await;
    let exchanges = Exchanges::new(scratch.store.clone());
    let insert = scratch.store.write(|tx| {
        Box::pin(async move {
            tasks::insert(tx, &TaskId::new("t-a"), None).await?;
            tasks::insert(tx, &TaskId::new("t-b"), None).await
        })
    });
    insert.await.unwrap();
    (scratch, exchanges)
}

/// Stores an exchange whose request became a message and got an answer.
async fn exchange(exchanges: &Exchanges, key: &str, request: &str, task: &str, number: i64, reply: &str) {
    exchanges.begin(new(key, request, None)).await.unwrap();
    let message = MessageId::from_sequence(number);
    exchanges.sent(key.to_owned(), TaskId::new(task), message).await.unwrap();
    let given = GivenAnswer { answer: MessageId::from_sequence(number + 1), reply: reply.to_owned() };
    exchanges.answered(key.to_owned(), given).await.unwrap();
}

#[tokio::test]
async fn a_key_stands_for_the_first_request_that_had_it() {
    let (_scratch, exchanges) = with_tasks().await;
    let first = exchanges.begin(new("k", "r", None)).await.unwrap();
    assert_eq!((first.task.clone(), first.message.clone(), first.state), (None, None, State::Open));
    assert_eq!(exchanges.begin(new("k", "other", Some("t-a"))).await.unwrap(), first);
    let message = MessageId::from_sequence(1);
    exchanges.sent("k".to_owned(), TaskId::new("t-a"), message.clone()).await.unwrap();
    // A second call for the same key, for example from another process, changes nothing.
    exchanges.sent("k".to_owned(), TaskId::new("t-b"), MessageId::from_sequence(9)).await.unwrap();
    let sent = exchanges.by_key("k").await.unwrap().unwrap();
    assert_eq!(sent.task, Some(TaskId::new("t-a")));
    assert_eq!((sent.message.as_ref(), sent.awaits.as_ref()), (Some(&message), Some(&message)));
}

#[tokio::test]
async fn the_first_answer_stays_and_a_failure_may_still_become_one() {
    let (_scratch, exchanges) = with_tasks().await;
    exchanges.begin(new("k", "r", Some("t-a"))).await.unwrap();
    exchanges.failed("k".to_owned()).await.unwrap();
    assert_eq!(exchanges.by_key("k").await.unwrap().unwrap().state, State::Failed);
    let given = |number, reply: &str| GivenAnswer {
        answer: MessageId::from_sequence(number),
        reply: reply.to_owned(),
    };
    exchanges.answered("k".to_owned(), given(2, "one")).await.unwrap();
    exchanges.answered("k".to_owned(), given(3, "two")).await.unwrap();
    exchanges.failed("k".to_owned()).await.unwrap();
    let found = exchanges.ending("one").await.unwrap().unwrap();
    assert_eq!((found.state, found.answer), (State::Answered, Some(MessageId::from_sequence(2))));
    assert_eq!(exchanges.ending("two").await.unwrap(), None);
}

#[tokio::test]
async fn a_conversation_goes_on_from_its_end_alone() {
    let (_scratch, exchanges) = with_tasks().await;
    exchange(&exchanges, "1", "hello", "t-a", 1, "hello-hi").await;
    exchange(&exchanges, "2", "hello", "t-b", 3, "hello-hi").await;
    let (newest, number) = exchanges.like("hello").await.unwrap().unwrap();
    assert_eq!((newest.key.as_str(), number), ("2", 2));
    let task = async || exchanges.ending("hello-hi").await.unwrap().and_then(|found| found.task);
    assert_eq!(task().await, Some(TaskId::new("t-b")), "the newest of two equal conversations");
    exchange(&exchanges, "3", "more", "t-b", 5, "more-yes").await;
    assert_eq!(task().await, Some(TaskId::new("t-a")), "the other conversation was not continued");
    exchanges.begin(new("4", "more", Some("t-a"))).await.unwrap();
    assert_eq!(task().await, None, "both were continued");
    exchanges.failed("4".to_owned()).await.unwrap();
    assert_eq!(task().await, Some(TaskId::new("t-a")), "a failed exchange continues nothing");
}

#[tokio::test]
async fn what_is_open_survives_and_is_found_by_what_was_asked() {
    let (scratch, exchanges) = with_tasks().await;
    exchanges.begin(new("1", "r", None)).await.unwrap();
    let other = Exchanges::new(scratch.store.clone());
    let (found, number) = other.like("r").await.unwrap().unwrap();
    assert_eq!((found.key.as_str(), number), ("1", 1));
    assert_eq!(other.like("another").await.unwrap(), None);
}

#[tokio::test]
async fn the_number_of_a_request_is_not_used_again_when_an_older_one_was_forgotten() {
    let (scratch, exchanges) = with_tasks().await;
    exchange(&exchanges, "1", "r", "t-a", 1, "one").await;
    exchange(&exchanges, "2", "r", "t-b", 3, "two").await;
    let forget = scratch.store.write(|tx| {
        Box::pin(async move {
            polity_sql::query("DELETE FROM exchanges WHERE task = 't-a'").execute(&mut tx.connection).await?;
            Ok(())
        })
    });
    forget.await.unwrap();
    assert_eq!(exchanges.like("r").await.unwrap().unwrap().1, 2);
}
