//! Tests a turn in a simulated world. The model gives random answers. The driver writes the same records as the real
//! driver. The process ends again and again.

use super::*;
use polity_llm::Arguments;
use polity_society::id::{AgentId, ApprovalId, MessageId, TurnId};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

const MAX_ROUNDS: u64 = 3;
const TURN: i64 = 7;

/// A random answer of the model: perhaps a text, and any number of calls.
#[derive(Clone, Debug)]
struct Answer {
    text: Option<String>,
    calls: Vec<ToolCall>,
    taken: Taken,
}

/// The tools of the simulated world. As in the real driver, the name of a tool tells whether it acts outside the
/// society.
const SOCIETY: &str = "put";
const UNKNOWN: &str = "no_such_tool";
const REPEATABLE: &str = "fetch";
const ONCE: &str = "pay";
/// A tool that needs the person's permission. The id of a call determines what the person answers.
const ASKED: &str = "hire";

/// Returns how the question about a call ends.
fn judgement(call: &ToolCall) -> Judgement {
    match call.id.bytes().map(u32::from).sum::<u32>() % 3 {
        0 => Judgement::Allowed,
        1 => Judgement::Denied { reason: Some("no".to_owned()) },
        _ => Judgement::Expired,
    }
}

/// The rules may change after a call was started. If the call was interrupted, a second run may then need a permission
/// that the first run did not need. Returns whether the person must allow the second run of this call.
fn needs_a_new_yes(call: &ToolCall) -> bool {
    call.name == REPEATABLE && call.id.len().is_multiple_of(2)
}

fn is_outside(call: &ToolCall) -> bool {
    call.name == REPEATABLE || call.name == ONCE
}

fn call() -> impl Strategy<Value = ToolCall> {
    let ids = ["", " ", "a", "b", "c", "call_7_0_0", "call_7_0_1", "call_7_1_0", "call_7_1_1"];
    let ids = proptest::sample::select(ids.to_vec());
    let names = proptest::sample::select(vec![SOCIETY, UNKNOWN, REPEATABLE, ONCE, ASKED]);
    let arguments =
        prop_oneof![Just(Arguments::Object(Map::new())), Just(Arguments::Malformed("{\"to\":".to_owned()))];
    (ids, names, arguments).prop_map(|(id, name, arguments)| ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
        extra: Map::new(),
    })
}

fn answer() -> impl Strategy<Value = Answer> {
    let text = prop_oneof![2 => Just(None), 1 => Just(Some("said".to_owned()))];
    let calls = prop_oneof![1 => Just(Vec::new()), 3 => proptest::collection::vec(call(), 1..5)];
    let usual = (text, calls).prop_map(|(text, calls)| Answer { text, calls, taken: Taken::Text });
    let no_answer =
        |text: Option<&str>, taken| Just(Answer { text: text.map(str::to_owned), calls: Vec::new(), taken });
    prop_oneof![
        6 => usual,
        1 => no_answer(Some(FAILED), Taken::FailedCall),
        1 => no_answer(None, Taken::Thoughts),
    ]
}

/// A wrongly written tool call in the text of an answer.
const FAILED: &str = "<tool_call>{";

fn beginnings() -> impl Strategy<Value = Expects> {
    prop_oneof![Just(Expects::Answer), Just(Expects::Nothing)]
}

/// The simulated process has ended.
struct Cut;

/// What a transaction writes: records, and the effects of society tools.
#[derive(Default)]
struct Transaction {
    records: Vec<Record>,
    done: Vec<String>,
    ended: Option<Option<String>>,
}

/// Everything that survives the end of the process: the records on disk and the world outside. Also contains the
/// answers, cuts and messages that the test has not used yet.
struct World {
    beginning: Expects,
    /// The ids of calls in earlier turns of the conversation.
    taken: HashSet<String>,
    records: Vec<Record>,
    /// The society calls that took effect.
    done: Vec<String>,
    /// The closing text, once the turn has ended.
    ended: Option<Option<String>>,
    /// How often the outside world ran the call with each key.
    outside: BTreeMap<String, u32>,
    answers: std::vec::IntoIter<Answer>,
    /// One number for each life of the process. The number says how often the process can call [`World::point`] before
    /// it ends.
    cuts: std::vec::IntoIter<u8>,
    until_cut: Option<u8>,
    mail: u8,
    unwritten: bool,
}

impl World {
    /// A place at which the process may end.
    fn point(&mut self) -> Result<(), Cut> {
        match self.until_cut {
            Some(0) => {
                self.until_cut = self.cuts.next();
                Err(Cut)
            }
            Some(left) => {
                self.until_cut = Some(left - 1);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn commit(&mut self, transaction: Transaction) -> Result<(), Cut> {
        self.point()?;
        self.records.extend(transaction.records);
        self.done.extend(transaction.done);
        if transaction.ended.is_some() {
            self.ended = transaction.ended;
        }
        self.point()
    }

    fn ask(&mut self, turn: &Turn) -> Record {
        let answer = self.answers.next().unwrap_or_else(|| Answer {
            text: Some("the end".to_owned()),
            calls: Vec::new(),
            taken: Taken::Text,
        });
        let earlier: Vec<String> = self.taken.iter().cloned().chain(self.all_call_ids()).collect();
        let taken = earlier.iter().map(String::as_str).collect();
        Record::Replied(Replied {
            text: answer.text,
            taken: answer.taken,
            calls: with_unique_ids(answer.calls, &taken, TurnId::new(TURN), turn.rounds()),
            ..Replied::default()
        })
    }

    fn all_call_ids(&self) -> Vec<String> {
        let replies = self.records.iter().filter_map(|record| match record {
            Record::Replied(replied) => Some(&replied.calls),
            _ => None,
        });
        replies.flatten().map(|call| call.id.clone()).collect()
    }

    fn run_outside(&mut self, call: &ToolCall) -> Result<Record, Cut> {
        *self.outside.entry(format!("{TURN}-{}", call.id)).or_default() += 1;
        self.point()?;
        Ok(finished(call, ToolResult::Json(json!("ran"))))
    }

    /// One life of the process: from the existing records to the end of the turn, or to the next cut.
    fn live(&mut self) -> Result<(), Cut> {
        let mut turn = Turn::replay(self.beginning, &self.records);
        let mut happened = None;
        while self.ended.is_none() {
            let mut transaction = Transaction::default();
            let step = self.follow(&mut turn, happened.take(), &mut transaction);
            self.commit(transaction)?;
            assert_eq!(
                format!("{turn:?}"),
                format!("{:?}", Turn::replay(self.beginning, &self.records)),
                "the records replay to another turn than the one that wrote them"
            );
            happened = match step {
                Step::CallModel(_) => {
                    self.take_in(&mut turn)?;
                    let answer = self.ask(&turn);
                    self.point()?;
                    Some(answer)
                }
                Step::RunTool(call) => {
                    let started =
                        Record::ToolStarted { call: CallId::new(call.id.clone()), evidence: Value::Null };
                    self.commit(Transaction { records: vec![started.clone()], ..Transaction::default() })?;
                    turn.apply(&started);
                    Some(self.run_outside(&call)?)
                }
                Step::RecordInterruption(call) => Some(self.run_outside(&call)?),
                // The process may end any number of times before the person answers.
                Step::Await(call) => {
                    self.point()?;
                    let call_id = CallId::new(call.id.clone());
                    let judged = Record::Judged { call: call_id, judgement: judgement(&call) };
                    self.commit(Transaction { records: vec![judged.clone()], ..Transaction::default() })?;
                    turn.apply(&judged);
                    None
                }
                _ => None,
            };
        }
        Ok(())
    }

    fn take_in(&mut self, turn: &mut Turn) -> Result<(), Cut> {
        if self.mail == 0 {
            return Ok(());
        }
        let heard = Record::Heard { message: MessageId::from_sequence(i64::from(self.mail)) };
        self.commit(Transaction { records: vec![heard.clone()], ..Transaction::default() })?;
        self.mail -= 1;
        turn.apply(&heard);
        Ok(())
    }

    /// Takes all steps that need neither the model nor the outside world, and adds their records and effects to one
    /// transaction. Returns the next step.
    fn follow(&mut self, turn: &mut Turn, happened: Option<Record>, into: &mut Transaction) -> Step {
        let mut write = |turn: &mut Turn, record: Record| {
            turn.apply(&record);
            into.records.push(record);
        };
        if let Some(record) = happened {
            write(turn, record);
        }
        loop {
            let step = turn.next(MAX_ROUNDS);
            match &step {
                Step::RunTool(call) if call.name == ASKED && !turn.is_allowed(call) => {
                    let (approval, shown) = (ApprovalId::from_number(1), Value::Null);
                    write(turn, Record::Asked { call: CallId::new(call.id.clone()), approval, shown });
                }
                Step::RecordInterruption(call) if needs_a_new_yes(call) && !turn.is_allowed(call) => {
                    let (approval, shown) = (ApprovalId::from_number(2), Value::Null);
                    write(turn, Record::Asked { call: CallId::new(call.id.clone()), approval, shown });
                }
                Step::RunTool(call) if !is_outside(call) => {
                    into.done.push(call.id.clone());
                    write(turn, finished(call, ToolResult::Json(json!("done"))));
                }
                Step::RecordInterruption(call) if call.name != REPEATABLE => {
                    write(turn, finished(call, ToolResult::Json(json!("outcome_unknown"))));
                }
                Step::RefuseTool(call, why) => {
                    let result = match why {
                        WhyRefused::TooManyRounds => "limit_reached",
                        WhyRefused::Denied { .. } => "denied",
                        WhyRefused::Expired => "expired",
                    };
                    write(turn, finished(call, ToolResult::Json(json!(result))));
                }
                Step::Notice(notice) => write(turn, Record::Noticed { notice: notice.clone() }),
                Step::Finish(_) if self.unwritten && turn.reminded() == Reminded::No => {
                    let agents = vec![AgentId::new("reader-7k2f")];
                    let notice = Notice::UnwrittenChildren { agents };
                    write(turn, Record::Noticed { notice });
                }
                Step::Finish(text) => {
                    into.ended = Some(text.clone());
                    return step;
                }
                Step::Fail(reason) => {
                    write(turn, Record::Failed { reason: reason.clone() });
                    into.ended = Some(None);
                    return step;
                }
                _ => return step,
            }
        }
    }
}

/// Runs a turn to its end, with a new life of the process after each cut.
fn lived(beginning: Expects, answers: Vec<Answer>, cuts: Vec<u8>, mail: u8, unwritten: bool) -> World {
    let mut cuts = cuts.into_iter();
    let until_cut = cuts.next();
    let mut world = World {
        beginning,
        taken: HashSet::from(["a".to_owned(), "call_7_1_1".to_owned()]),
        records: vec![Record::Heard { message: MessageId::from_sequence(100) }],
        done: Vec::new(),
        ended: None,
        outside: BTreeMap::new(),
        answers: answers.into_iter(),
        cuts,
        until_cut,
        mail,
        unwritten,
    };
    while let Err(Cut) = world.live() {}
    world
}

fn result<'r>(records: &'r [Record], id: &str) -> Option<&'r Value> {
    records.iter().find_map(|record| match record {
        Record::ToolFinished { call, result: ToolResult::Json(value) } if call.as_str() == id => Some(value),
        _ => None,
    })
}

fn calls(world: &World) -> Vec<&ToolCall> {
    let replies = world.records.iter().filter_map(|record| match record {
        Record::Replied(replied) => Some(&replied.calls),
        _ => None,
    });
    replies.flatten().collect()
}

fn answers() -> impl Strategy<Value = Vec<Answer>> {
    proptest::collection::vec(answer(), 0..8)
}

fn cuts() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(0u8..12, 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// A text such as a failed tool call does not count as an answer, and never becomes the closing text. The model is
    /// told this at most once. A second failed call fails the turn. Where the process ended in between makes no
    /// difference.
    #[test]
    fn what_is_no_answer_is_sent_back_once(beginning in beginnings(), answers in answers(), cuts in cuts(), mail in 0u8..3, unwritten: bool) {
        let world = lived(beginning, answers, cuts, mail, unwritten);
        prop_assert!(world.ended != Some(Some(FAILED.to_owned())));
        let told = world.records.iter().filter(|record| matches!(record, Record::Noticed { notice: Notice::NotAnAnswer { .. } }));
        prop_assert!(told.count() <= 1);
        let mut failed_calls = 0;
        for (index, record) in world.records.iter().enumerate() {
            let Record::Replied(Replied { taken: Taken::FailedCall, .. }) = record else { continue };
            failed_calls += 1;
            match world.records.get(index + 1) {
                Some(Record::Noticed { notice: Notice::NotAnAnswer { was } }) => prop_assert_eq!(*was, NoAnswer::FailedCall),
                Some(Record::Failed { .. }) => {}
                other => prop_assert!(false, "{other:?} follows a failed call"),
            }
        }
        if failed_calls > 1 {
            let is_failed = matches!(world.records.last(), Some(Record::Failed { .. }));
            prop_assert!(is_failed);
        }
    }

    /// Every call has exactly one result. The result comes before the next answer, message or notice. No two calls have
    /// the same id.
    #[test]
    fn histories_are_well_formed(beginning in beginnings(), answers in answers(), cuts in cuts(), mail in 0u8..3, unwritten: bool) {
        let world = lived(beginning, answers, cuts, mail, unwritten);
        let mut seen: HashSet<String> = world.taken.clone();
        let mut pending: Vec<String> = Vec::new();
        for record in &world.records {
            match record {
                Record::Replied(replied) => {
                    prop_assert!(pending.is_empty(), "{pending:?} are not answered");
                    for call in &replied.calls {
                        prop_assert!(!call.id.trim().is_empty());
                        prop_assert!(seen.insert(call.id.clone()), "{} stands for two calls", call.id);
                        pending.push(call.id.clone());
                    }
                }
                Record::Asked { call, .. } | Record::Judged { call, .. } | Record::ToolStarted { call, .. } => prop_assert_eq!(pending.first().map(String::as_str), Some(call.as_str())),
                Record::ToolFinished { call, .. } => {
                    prop_assert_eq!(pending.first().map(String::as_str), Some(call.as_str()));
                    pending.remove(0);
                }
                Record::Heard { .. } | Record::Noticed { .. } => prop_assert!(pending.is_empty()),
                Record::Compacted { .. } | Record::Status { .. } | Record::Failed { .. } | Record::Stopped { .. } => {}
            }
        }
        prop_assert!(pending.is_empty());
    }

    /// A society tool takes effect exactly once, and its result reports the effect.
    /// Every effect has its result, and every result has its effect.
    #[test]
    fn effects_inside_the_society_happen_exactly_once(beginning in beginnings(), answers in answers(), cuts in cuts()) {
        let world = lived(beginning, answers, cuts, 0, false);
        let reported: Vec<String> = calls(&world)
            .into_iter()
            .filter(|call| result(&world.records, &call.id) == Some(&json!("done")))
            .map(|call| call.id.clone())
            .collect();
        prop_assert_eq!(&world.done, &reported);
        for call in calls(&world).into_iter().filter(|call| !is_outside(call)) {
            let said = result(&world.records, &call.id);
            let expected = match (call.name == ASKED, judgement(call)) {
                (false, _) | (true, Judgement::Allowed) => "done",
                (true, Judgement::Denied { .. }) => "denied",
                (true, Judgement::Expired) => "expired",
            };
            prop_assert!(said == Some(&json!(expected)) || said == Some(&json!("limit_reached")), "{said:?}");
        }
    }

    /// The person is asked once about a call that needs permission, and the call takes effect only if the person
    /// allows it.
    #[test]
    fn a_call_that_the_person_must_allow_runs_only_after_that(beginning in beginnings(), answers in answers(), cuts in cuts()) {
        let world = lived(beginning, answers, cuts, 0, false);
        for call in calls(&world).into_iter().filter(|call| call.name == ASKED) {
            let about = |record: &&Record| match record {
                Record::Asked { call: of, .. } | Record::Judged { call: of, .. } => of.as_str() == call.id,
                _ => false,
            };
            let records = world.records.iter().filter(about).count();
            let was_done = world.done.contains(&call.id);
            prop_assert!(records == 2 || (records == 0 && !was_done), "{records} records");
            prop_assert!(!was_done || judgement(call) == Judgement::Allowed);
        }
    }

    /// A call to a tool that acts outside the society runs at most once. Only a tool that may be repeated can run again
    /// after an interruption. For every other tool, the result then reports the interruption. If the person must allow
    /// the second run, the call runs again only if the person allows it.
    #[test]
    fn effects_outside_happen_at_most_once_or_are_repeatable(beginning in beginnings(), answers in answers(), cuts in cuts()) {
        let world = lived(beginning, answers, cuts, 0, false);
        for call in calls(&world).into_iter().filter(|call| is_outside(call)) {
            let runs = world.outside.get(&format!("{TURN}-{}", call.id)).copied().unwrap_or_default();
            let said = result(&world.records, &call.id).and_then(Value::as_str).unwrap_or_default();
            match said {
                "ran" => {
                    prop_assert!(runs == 1 || (runs > 1 && call.name == REPEATABLE), "{} ran {runs} times", call.name);
                    prop_assert!(runs == 1 || !needs_a_new_yes(call) || judgement(call) == Judgement::Allowed);
                }
                "denied" | "expired" => {
                    prop_assert!(runs <= 1 && needs_a_new_yes(call), "{} ran {runs} times", call.name);
                    prop_assert_ne!(judgement(call), Judgement::Allowed);
                }
                "outcome_unknown" => prop_assert!(runs <= 1 && call.name == ONCE, "{} ran {runs} times", call.name),
                "limit_reached" => prop_assert_eq!(runs, 0),
                other => prop_assert!(false, "{} was answered {other:?}", call.id),
            }
        }
    }

    /// The turn ends even if the model never stops calling tools. When the turn reaches its limit of rounds, the model
    /// is asked once to sum up without tools.
    #[test]
    fn turns_end_within_their_rounds(beginning in beginnings(), answers in answers(), cuts in cuts(), unwritten: bool) {
        let world = lived(beginning, answers, cuts, 0, unwritten);
        prop_assert!(world.ended.is_some());
        let is_sum_up = |record: &Record| matches!(record, Record::Noticed { notice: Notice::SumUp { .. } });
        let with_calls = |records: &[Record]| {
            records.iter().filter(|record| matches!(record, Record::Replied(replied) if !replied.calls.is_empty())).count()
        };
        prop_assert!(world.records.iter().filter(|record| is_sum_up(record)).count() <= 1);
        let told = world.records.iter().position(is_sum_up).unwrap_or(world.records.len());
        let (before, after) = world.records.split_at(told);
        prop_assert!(with_calls(before) as u64 <= MAX_ROUNDS);
        if !after.is_empty() {
            prop_assert_eq!(with_calls(before) as u64, MAX_ROUNDS);
        }
        for length in told + 1..=world.records.len() {
            let step = Turn::replay(world.beginning, &world.records[..length]).next(MAX_ROUNDS);
            prop_assert!(!matches!(step, Step::CallModel(Tools::Offered) | Step::RunTool(_)), "{step:?} after the limit");
        }
        for record in after {
            if let Record::ToolFinished { result, .. } = record {
                prop_assert_eq!(result, &ToolResult::Json(json!("limit_reached")));
            }
        }
    }

    /// If the turn owes an answer and the model has called no tool yet, the model is asked once more after an empty
    /// answer. Otherwise, the empty answer ends the turn.
    #[test]
    fn silence_is_an_answer_only_where_nothing_is_owed(beginning in beginnings(), answers in answers(), cuts in cuts()) {
        let world = lived(beginning, answers, cuts, 0, false);
        let mut acted = false;
        let mut empty = 0;
        for (index, record) in world.records.iter().enumerate() {
            let Record::Replied(replied) = record else { continue };
            acted |= !replied.calls.is_empty();
            if !replied.is_empty() || replied.taken == Taken::Thoughts {
                continue;
            }
            empty += 1;
            let next = Turn::replay(beginning, &world.records[..=index]).next(MAX_ROUNDS);
            let owed = !acted && beginning == Expects::Answer;
            match (owed, empty) {
                (true, 1) => prop_assert_eq!(next, Step::CallModel(Tools::Offered)),
                (true, _) => prop_assert!(matches!(next, Step::Fail(_)), "{next:?}"),
                (false, _) => prop_assert_eq!(next, Step::Finish(None)),
            }
        }
        prop_assert!(empty <= 2);
    }
}

#[test]
fn the_text_said_with_the_last_calls_stands_in_for_a_summary() {
    let call = ToolCall {
        id: "a".to_owned(),
        name: SOCIETY.to_owned(),
        arguments: Arguments::Object(Map::new()),
        extra: Map::new(),
    };
    let stubborn =
        Replied { text: Some("half a summary".to_owned()), calls: vec![call.clone()], ..Replied::default() };
    let mut turn = Turn::new(Expects::Answer);
    turn.apply(&Record::Noticed { notice: Notice::SumUp { limit: 0 } });
    turn.apply(&Record::Replied(stubborn));
    assert_eq!(turn.next(0), Step::RefuseTool(call.clone(), WhyRefused::TooManyRounds));
    turn.apply(&finished(&call, ToolResult::Json(Value::Null)));
    assert_eq!(turn.next(0), Step::Finish(Some("half a summary".to_owned())));
}

#[test]
fn ids_of_calls_stay_where_they_can() {
    let check = |given: &[&str], expect: &[&str]| {
        let calls = given.iter().map(|id| ToolCall {
            id: (*id).to_owned(),
            name: SOCIETY.to_owned(),
            arguments: Arguments::Object(Map::new()),
            extra: Map::new(),
        });
        let made = with_unique_ids(calls.collect(), &HashSet::from(["old"]), TurnId::new(7), 2);
        let ids: Vec<&str> = made.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, expect);
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    };
    check(&["x", "y"], &["x", "y"]);
    check(&["x", "x"], &["x", "call_7_2_1"]);
    check(&["", " ", "old"], &["call_7_2_0", "call_7_2_1", "call_7_2_2"]);
}

#[test]
fn a_text_before_a_reminder_is_the_last_word_if_nothing_more_is_said() {
    let said = Replied { text: Some("done".to_owned()), ..Replied::default() };
    let called = Replied {
        calls: vec![ToolCall {
            id: "a".to_owned(),
            name: SOCIETY.to_owned(),
            arguments: Arguments::Object(Map::new()),
            extra: Map::new(),
        }],
        ..Replied::default()
    };
    let result = ToolResult::Json(json!({}));
    let records = [
        Record::Replied(called),
        Record::ToolFinished { call: CallId::new("a"), result },
        Record::Replied(said),
        Record::Noticed { notice: Notice::UnwrittenChildren { agents: vec![AgentId::new("reader-7k2f")] } },
        Record::Replied(Replied::default()),
    ];
    let turn = Turn::replay(Expects::Answer, &records);
    assert_eq!(turn.next(MAX_ROUNDS), Step::Finish(Some("done".to_owned())));
}

fn replied(text: Option<&str>, taken: Taken) -> Record {
    Record::Replied(Replied { text: text.map(str::to_owned), taken, ..Replied::default() })
}

fn told(was: NoAnswer) -> Record {
    Record::Noticed { notice: Notice::NotAnAnswer { was } }
}

#[test]
fn thoughts_alone_are_sent_back_once_and_then_fail() {
    let thoughts = || replied(None, Taken::Thoughts);
    let mut records = vec![thoughts()];
    let next = |records: &[Record], beginning| Turn::replay(beginning, records).next(MAX_ROUNDS);
    let notice = Notice::NotAnAnswer { was: NoAnswer::Thoughts };
    assert_eq!(next(&records, Expects::Answer), Step::Notice(notice));
    assert_eq!(next(&records, Expects::Nothing), Step::Finish(None), "nothing is owed");
    records.push(told(NoAnswer::Thoughts));
    assert_eq!(next(&records, Expects::Answer), Step::CallModel(Tools::Offered));
    records.push(thoughts());
    let Step::Fail(reason) = next(&records, Expects::Answer) else { panic!("a failure") };
    insta::assert_snapshot!(reason, @"the model wrote nothing but thoughts, twice");
}

#[test]
fn an_answer_after_the_hint_is_the_answer() {
    let records = [
        replied(Some(FAILED), Taken::FailedCall),
        told(NoAnswer::FailedCall),
        replied(Some("42"), Taken::Text),
    ];
    let turn = Turn::replay(Expects::Answer, &records);
    assert_eq!(turn.next(MAX_ROUNDS), Step::Finish(Some("42".to_owned())));
}
