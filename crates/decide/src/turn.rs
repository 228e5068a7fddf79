//! A turn 回合: what an agent does with one message. The turn is a state machine that never does IO.
//!
//! [`Turn::next`] returns the next step. The driver (the code of the runtime that runs turns) takes the step, writes
//! what happened as a record, and passes the record to [`Turn::apply`]. After a crash, [`Turn::replay`] rebuilds the
//! same turn from the records.

use crate::result::Misfit;
use polity_llm::ToolCall;
use polity_society::approval::Judgement;
use polity_society::id::{ArtifactId, CallId, MessageId, TurnId};
use polity_society::message::Expects;
use polity_society::notice::{NoAnswer, Notice};
use polity_store::record::{Record, Replied, Taken, ToolResult};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// What the driver does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Ask the model.
    CallModel(Tools),
    /// Run this call, which was not started before.
    RunTool(ToolCall),
    /// Record that a call was interrupted. The call was started, but the process ended before the call had a result.
    RecordInterruption(ToolCall),
    /// Answer this call with a refusal, without running it.
    RefuseTool(ToolCall, WhyRefused),
    /// End the driver, and continue the turn when the person has answered whether this call may be made.
    Await(ToolCall),
    /// Show the model this notice within the turn.
    Notice(Notice),
    /// End the turn, with this closing text.
    Finish(Option<String>),
    /// End the turn as failed, for this reason.
    Fail(String),
    /// Do nothing: the turn has ended.
    Ended,
}

/// Why a call is answered without being run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyRefused {
    /// The turn has reached its limit of rounds.
    TooManyRounds,
    /// The person refused the call.
    Denied {
        /// The reason that the person gave.
        reason: Option<String>,
    },
    /// The person did not answer in time.
    Expired,
}

/// Whether the model may call tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tools {
    /// The model may call tools.
    Offered,
    /// The model must not call tools. The turn has used up its rounds of tool calls, so the model is asked to sum up
    /// its work.
    Withheld,
}

/// The state of a turn.
#[derive(Clone, Debug, PartialEq)]
enum Phase {
    /// The model is asked next.
    Asking,
    /// The model's calls run, one after another. The first of the remaining calls is next.
    Running,
    /// The model has given its closing text.
    Closing(Option<String>),
    /// The model wrote only thoughts, or a call that cannot be run. Neither counts as an answer.
    NotAnswered(NoAnswer),
    /// The model gave an empty answer too often.
    Silent,
    /// The model made the same call with the same result too often.
    Repeating,
    /// The model too often wrote calls that cannot be read.
    Unreadable,
    Ended,
}

/// A model may write a call as text, and the text may be unreadable. The first unreadable call is refused, and the
/// refusal tells the model what is wrong. After this many unreadable calls, the turn fails.
const BROKEN_CALLS: u32 = 2;

/// If a turn owes an answer and its model has done nothing yet, the turn fails after this many empty answers.
const EMPTY_ANSWERS: u32 = 2;

/// A turn in progress.
#[derive(Clone, Debug)]
pub struct Turn {
    beginning: Expects,
    phase: Phase,
    calls: VecDeque<ToolCall>,
    /// The results of calls that are refused without being run. The key is the id of the call.
    refused: Map<String, Value>,
    /// The wrong tool names that the model used. The key is the id of the call. The recorded calls have the right
    /// names.
    called_as: BTreeMap<String, String>,
    /// The text that the model wrote beside its latest calls.
    last_text: Option<String>,
    /// A notice such as a reminder may make the turn continue after the model's closing text. This is that closing
    /// text.
    before_reminder: Option<String>,
    /// The calls that were started and have no result. The key is the id of the call. The value is the evidence of the
    /// call (see [`Self::evidence`]).
    started: BTreeMap<String, Value>,
    /// The questions to the person about calls. The key is the id of the call.
    questions: BTreeMap<String, Question>,
    /// Whether a tool that acts outside the society has run in this turn.
    acted_outside: bool,
    rounds: u64,
    empty_answers: u32,
    broken_calls: u32,
    repetition: Repetition,
    heard: u64,
    /// The number of messages that the turn took in since it last asked the model.
    unseen: u64,
    summing_up: SummingUp,
    reminded: Reminded,
    misfit: Misfit,
    /// Whether the model was told that an answer does not fit the schema of its request.
    misfit_told: WasTold,
    /// Whether a notice told the model that its text does not count as an answer.
    no_answer_told: WasTold,
}

/// A question to the person about a call.
#[derive(Clone, Debug, Default)]
struct Question {
    /// Names what the person was shown (see [`Turn::shown`]).
    shown: Value,
    /// `None` until the question ends.
    judgement: Option<Judgement>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SummingUp {
    NotYet,
    Asked,
}

/// Whether a reminder was given in this turn. The reminder tells the agent that it has hired children and has not
/// written to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reminded {
    /// The agent was not reminded yet.
    No,
    /// The agent was reminded once. There is no second reminder.
    Once,
}

/// After this many equal calls in a row with equal results, a notice tells the model that it repeats itself. After
/// `REPEATED_TOO_OFTEN` equal calls, the turn fails.
const REPEATED: u32 = 3;
const REPEATED_TOO_OFTEN: u32 = 5;

/// The last call of a turn, and how often in a row it had the same result.
#[derive(Clone, Debug, Default, PartialEq)]
struct Repetition {
    tool: String,
    /// A hash of the call and its result.
    digest: u64,
    times: u32,
    told: WasTold,
}

/// Whether a notice has told the model about a problem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WasTold {
    #[default]
    No,
    Yes,
}

/// Removes the ids of messages and artifacts from a tool result. If an agent sends the same message twice, or stores
/// the same content twice, the two results differ only in their ids. Without the ids, they are equal.
fn without_ids(result: &str) -> String {
    let is_of_word =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, ':' | '-' | '_');
    let is_id =
        |word: &str| MessageId::new(word).sequence().is_some() || ArtifactId::from_reference(word).is_some();
    let mut rest = result;
    let mut kept = String::with_capacity(result.len());
    while let Some(begins) = rest.find(is_of_word) {
        let (before, word) = rest.split_at(begins);
        let ends = word.find(|character| !is_of_word(character)).unwrap_or(word.len());
        let (word, after) = word.split_at(ends);
        kept.push_str(before);
        kept.push_str(if is_id(word) { "#" } else { word });
        rest = after;
    }
    kept.push_str(rest);
    kept
}

impl Repetition {
    fn after(&self, call: &ToolCall, result: &ToolResult) -> Self {
        let mut hasher = DefaultHasher::new();
        call.name.hash(&mut hasher);
        // Cannot fail: arguments and results contain only objects with text keys.
        serde_json::to_string(&call.arguments).unwrap_or_default().hash(&mut hasher);
        without_ids(&serde_json::to_string(result).unwrap_or_default()).hash(&mut hasher);
        let digest = hasher.finish();
        if self.times > 0 && self.digest == digest {
            return Self { times: self.times + 1, ..self.clone() };
        }
        Self { tool: call.name.clone(), digest, times: 1, told: WasTold::No }
    }

    fn is_to_be_told(&self) -> bool {
        self.times >= REPEATED && self.told == WasTold::No
    }
}

impl Turn {
    /// Begins a turn. `beginning` tells whether the turn owes an answer. It does if the message that begins the turn is
    /// a request.
    pub fn new(beginning: Expects) -> Self {
        Self {
            beginning,
            phase: Phase::Asking,
            calls: VecDeque::new(),
            refused: Map::new(),
            called_as: BTreeMap::new(),
            last_text: None,
            before_reminder: None,
            started: BTreeMap::new(),
            questions: BTreeMap::new(),
            acted_outside: false,
            rounds: 0,
            empty_answers: 0,
            broken_calls: 0,
            repetition: Repetition::default(),
            heard: 0,
            unseen: 0,
            summing_up: SummingUp::NotYet,
            reminded: Reminded::No,
            misfit: Misfit::Refused,
            misfit_told: WasTold::No,
            no_answer_told: WasTold::No,
        }
    }

    /// Rebuilds a turn from its records.
    pub fn replay<'r>(beginning: Expects, records: impl IntoIterator<Item = &'r Record>) -> Self {
        let mut turn = Self::new(beginning);
        for record in records {
            turn.apply(record);
        }
        turn
    }

    /// Returns how many messages the turn has taken in.
    pub fn heard(&self) -> u64 {
        self.heard
    }

    /// Returns how many messages the turn has taken in after the model's last answer.
    pub fn unseen(&self) -> u64 {
        self.unseen
    }

    /// Returns whether the agent was reminded of agents that it has hired and has not written to. When the rounds are
    /// used up, the model is asked to sum up its work. From then on, the result is `Once`, so that no reminder follows.
    pub fn reminded(&self) -> Reminded {
        // A model that is asked to sum up cannot write to anybody any more.
        if self.summing_up == SummingUp::Asked { Reminded::Once } else { self.reminded }
    }

    /// Returns whether the next call offers tools to the model. `max_rounds` is the same as for [`Turn::next`].
    pub fn tools(&self, max_rounds: u64) -> Tools {
        let is_over = self.summing_up == SummingUp::Asked || self.rounds >= max_rounds;
        if is_over { Tools::Withheld } else { Tools::Offered }
    }

    /// Returns what to do next. `max_rounds` is the maximum number of answers with tool calls in one turn.
    pub fn next(&self, max_rounds: u64) -> Step {
        match &self.phase {
            Phase::Ended => Step::Ended,
            Phase::NotAnswered(was) if self.no_answer_told == WasTold::No => {
                Step::Notice(Notice::NotAnAnswer { was: *was })
            }
            Phase::NotAnswered(NoAnswer::Thoughts) => {
                Step::Fail("the model wrote nothing but thoughts, twice".to_owned())
            }
            Phase::NotAnswered(NoAnswer::FailedCall) => {
                Step::Fail("the model wrote a failed tool call in place of an answer, twice".to_owned())
            }
            Phase::Silent => Step::Fail("the model gave an empty answer twice".to_owned()),
            Phase::Unreadable => {
                Step::Fail("the model wrote a tool call as text that cannot be read, twice".to_owned())
            }
            Phase::Repeating => {
                let Repetition { tool, times, .. } = &self.repetition;
                Step::Fail(format!(
                    "repeating: {tool} was called {times} times in a row with the same result"
                ))
            }
            Phase::Closing(text) => Step::Finish(text.clone()),
            Phase::Running => self.next_call(),
            Phase::Asking => match self.summing_up {
                SummingUp::Asked => Step::CallModel(Tools::Withheld),
                SummingUp::NotYet if self.rounds >= max_rounds => {
                    Step::Notice(Notice::SumUp { limit: max_rounds })
                }
                SummingUp::NotYet if self.repetition.is_to_be_told() => {
                    let Repetition { tool, times, .. } = self.repetition.clone();
                    Step::Notice(Notice::Repetition { tool, times: u64::from(times) })
                }
                SummingUp::NotYet => Step::CallModel(Tools::Offered),
            },
        }
    }

    fn next_call(&self) -> Step {
        let Some(call) = self.calls.front() else {
            return Step::CallModel(Tools::Offered);
        };
        let has_started = self.has_started(call);
        if self.summing_up == SummingUp::Asked && !has_started {
            return Step::RefuseTool(call.clone(), WhyRefused::TooManyRounds);
        }
        match self.questions.get(&call.id).map(|question| &question.judgement) {
            Some(None) => Step::Await(call.clone()),
            Some(Some(Judgement::Denied { reason })) => {
                Step::RefuseTool(call.clone(), WhyRefused::Denied { reason: reason.clone() })
            }
            Some(Some(Judgement::Expired)) => Step::RefuseTool(call.clone(), WhyRefused::Expired),
            Some(Some(Judgement::Allowed)) | None if has_started => Step::RecordInterruption(call.clone()),
            Some(Some(Judgement::Allowed)) | None => Step::RunTool(call.clone()),
        }
    }

    /// Returns whether the person has allowed a call.
    pub fn is_allowed(&self, call: &ToolCall) -> bool {
        self.shown(call).is_some()
    }

    /// If the person has allowed a call, returns what names the state that the person was shown, such as the hash of
    /// files. The value is `Null` if the call has no such state.
    pub fn shown(&self, call: &ToolCall) -> Option<&Value> {
        let question = self.questions.get(&call.id)?;
        (question.judgement == Some(Judgement::Allowed)).then_some(&question.shown)
    }

    /// Returns the calls that have no result yet, in the order in which they run.
    pub fn pending(&self) -> impl Iterator<Item = &ToolCall> {
        self.calls.iter()
    }

    pub fn has_started(&self, call: &ToolCall) -> bool {
        self.evidence(call).is_some()
    }

    /// Returns whether a tool that acts outside the society has run in this turn.
    pub fn acted_outside(&self) -> bool {
        self.acted_outside
    }

    /// Returns the evidence of a call: data that the tool prepared before the call, such as the hash of a file. If the
    /// process dies during the call, the tool later uses the data to find out whether the call has happened. Returns
    /// `None` if the call was not started, or has a result already.
    pub fn evidence(&self, call: &ToolCall) -> Option<&Value> {
        self.started.get(&call.id)
    }

    /// Returns the wrong tool name that the model used in a call; `None` if the name was right.
    pub fn called_as(&self, call: &ToolCall) -> Option<&str> {
        self.called_as.get(&call.id).map(String::as_str)
    }

    /// Some calls are refused as soon as the model makes them. Returns the refusal of such a call; `None` for all other
    /// calls. The call stays refused on every replay, even if its recorded arguments look valid.
    pub fn refused(&self, call: &ToolCall) -> Option<&Value> {
        self.refused.get(&call.id)
    }

    /// Updates the state of the turn. `record` tells what happened.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::Heard { .. } => {
                self.heard += 1;
                self.unseen += 1;
            }
            Record::Noticed { notice } => self.take_notice(notice),
            Record::Replied(replied) => self.take_reply(replied),
            Record::ToolStarted { call, evidence } => {
                self.started.insert(call.to_string(), evidence.clone());
                self.acted_outside = true;
            }
            Record::Asked { call, approval: _, shown } => {
                let question = Question { shown: shown.clone(), judgement: None };
                self.questions.insert(call.to_string(), question);
            }
            Record::Judged { call, judgement } => {
                self.questions.entry(call.to_string()).or_default().judgement = Some(judgement.clone());
            }
            Record::ToolFinished { call, result } => self.take_result(call, result),
            Record::Compacted { .. } | Record::Status { .. } => {}
            Record::Failed { .. } | Record::Stopped { .. } => self.phase = Phase::Ended,
        }
    }

    fn take_notice(&mut self, notice: &Notice) {
        match notice {
            Notice::SumUp { .. } => self.summing_up = SummingUp::Asked,
            Notice::Repetition { .. } => self.repetition.told = WasTold::Yes,
            Notice::UnwrittenChildren { .. } => {
                self.reminded = Reminded::Once;
                self.ask_again();
            }
            Notice::NotAnAnswer { .. } => {
                self.no_answer_told = WasTold::Yes;
                self.phase = Phase::Asking;
            }
            Notice::ResultDoesNotFit { .. } => {
                self.misfit_told = WasTold::Yes;
                self.ask_again();
            }
            _ => {}
        }
    }

    /// Asks the model again after a notice, and keeps the text that the model wrote before the notice. If the model
    /// writes nothing more, the kept text is the closing text.
    fn ask_again(&mut self) {
        let said = std::mem::replace(&mut self.phase, Phase::Asking);
        if let Phase::Closing(text) = said {
            self.before_reminder = text;
        }
    }

    fn take_reply(&mut self, replied: &Replied) {
        self.unseen = 0;
        if self.misfit_told == WasTold::Yes {
            // Before this reply, the model was told that its earlier answer does not fit the schema of the request. If
            // its new answer does not fit either, the new answer is sent together with the reasons.
            self.misfit = Misfit::Marked;
        }
        if replied.taken == Taken::BrokenCall {
            self.broken_calls += 1;
        }
        if !replied.calls.is_empty() {
            self.rounds += 1;
            self.calls = replied.calls.iter().cloned().collect();
            self.refused.clone_from(&replied.refused);
            self.called_as.clone_from(&replied.called_as);
            self.last_text.clone_from(&replied.text);
            self.phase = Phase::Running;
            return;
        }
        if replied.taken == Taken::FailedCall {
            self.phase = Phase::NotAnswered(NoAnswer::FailedCall);
            return;
        }
        if replied.text.is_some() {
            self.phase = Phase::Closing(replied.text.clone());
            return;
        }
        if replied.taken == Taken::Thoughts {
            self.phase = self.after_thoughts();
            return;
        }
        self.empty_answers += 1;
        let has_acted = self.rounds > 0;
        let has_spoken = self.before_reminder.is_some();
        self.phase = if has_acted || has_spoken || self.beginning == Expects::Nothing {
            Phase::Closing(self.before_reminder.take())
        } else if self.empty_answers >= EMPTY_ANSWERS {
            Phase::Silent
        } else {
            Phase::Asking
        };
    }

    /// Returns the phase after a reply of the model that contains only thoughts. Such a reply ends the turn in three
    /// cases:
    /// - The turn owes no answer.
    /// - The model has given its answer already, before a notice made the turn continue.
    /// - The model was told that thoughts are no answer, and has called tools. It may have sent the answer as a message.
    fn after_thoughts(&mut self) -> Phase {
        let has_acted = self.rounds > 0 && self.no_answer_told == WasTold::Yes;
        if has_acted || self.before_reminder.is_some() || self.beginning == Expects::Nothing {
            return Phase::Closing(self.before_reminder.take());
        }
        Phase::NotAnswered(NoAnswer::Thoughts)
    }

    fn take_result(&mut self, call: &CallId, result: &ToolResult) {
        if result.refuses_with(MISFIT_CODE) {
            self.misfit_told = WasTold::Yes;
        } else if self.misfit_told == WasTold::Yes && result.has_sent() {
            // The model was told that its answer does not fit the schema. Then it sent a message. The message counts as
            // its new answer, so the earlier closing text is dropped.
            self.before_reminder = None;
        }
        if let Some(made) = self.calls.iter().find(|waiting| waiting.id == call.as_str()) {
            self.repetition = self.repetition.after(made, result);
        }
        self.calls.retain(|waiting| waiting.id != call.as_str());
        self.started.remove(call.as_str());
        self.questions.remove(call.as_str());
        if self.calls.is_empty() {
            self.phase = match self.summing_up {
                // The model was asked to sum up without tools, but it called tools. The turn ends now, with the text
                // that the model wrote beside these calls.
                SummingUp::Asked => Phase::Closing(self.last_text.take()),
                SummingUp::NotYet if self.broken_calls >= BROKEN_CALLS => Phase::Unreadable,
                SummingUp::NotYet if self.repetition.times >= REPEATED_TOO_OFTEN => Phase::Repeating,
                SummingUp::NotYet => Phase::Asking,
            };
        }
    }
}

/// Makes the ids of an answer's calls unique in their conversation. Keeps the model's own ids where possible.
pub fn with_unique_ids(
    mut calls: Vec<ToolCall>,
    taken: &HashSet<&str>,
    turn: TurnId,
    round: u64,
) -> Vec<ToolCall> {
    let mut used: Vec<String> = Vec::with_capacity(calls.len());
    for (index, call) in calls.iter_mut().enumerate() {
        let free =
            |id: &str| !id.trim().is_empty() && !taken.contains(id) && !used.iter().any(|used| used == id);
        // The model may have used a generated id itself, so try numbers until the id is free.
        let mut number = index;
        while !free(&call.id) {
            call.id = format!("call_{turn}_{round}_{number}");
            number += 1;
        }
        used.push(call.id.clone());
    }
    calls
}

/// The code of the refusal that an agent gets if its answer does not fit the schema of the request.
const MISFIT_CODE: &str = "result_does_not_fit";

impl Turn {
    /// Returns what happens to an answer that does not fit the schema of its request. Only the first such answer in a
    /// turn is refused.
    pub fn misfit(&self) -> Misfit {
        self.misfit
    }

    /// Returns how many answers with tool calls the turn has had.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }
}

/// Returns the record of a call's result.
pub fn finished(call: &ToolCall, result: ToolResult) -> Record {
    Record::ToolFinished { call: CallId::new(call.id.clone()), result }
}

#[cfg(test)]
mod tests;
