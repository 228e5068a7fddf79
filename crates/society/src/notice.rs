//! Notices: what the system itself says to agents and to the person.
//! The store keeps a notice as facts. Polity makes a text from these facts when somebody reads the notice.

use crate::command::CommandEnd;
use crate::defuse::in_one_line;
use crate::glyph::is_line_break;
use crate::id::{AgentId, ArtifactId, CommandId, MessageId, ServiceId};
use crate::text::{TextKey, Texts};
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// A notice of the system 【系统消息】. The system may send a notice to any party. A notice asks for nothing and is never
/// answered.
///
/// A notice may quote an agent, or give a reason that contains words of an agent. Then whoever hears the notice has seen
/// the sources of this agent. The statement `HEARD` of the store lists these notices by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Notice {
    /// A message could not be delivered because its receiver has ended.
    Bounced {
        /// The receiver that has ended.
        to: AgentId,
        /// The message that was not delivered.
        message: MessageId,
    },
    /// The receiver of a request failed while it worked on the request.
    ReceiverFailed {
        /// The receiver that failed.
        agent: AgentId,
        /// The request that the receiver worked on.
        message: MessageId,
        /// The reason for the failure, in words.
        reason: String,
    },
    /// An agent's model call failed, because polity could not reach the model, or because the model refused. The call
    /// will not be retried.
    AgentFailed {
        /// The agent whose call failed.
        agent: AgentId,
        /// The name of the agent's role.
        role: String,
        /// The model service that was called.
        service: ServiceId,
        /// Why the call failed, in words.
        reason: String,
    },
    /// An agent was parked: its turns failed again and again, and it does nothing until somebody resumes it.
    Parked {
        /// The agent that was parked.
        agent: AgentId,
        /// The name of the agent's role.
        role: String,
        /// The reason why the agent's last turn failed, in words.
        reason: String,
    },
    /// The person stopped the receiver of a request.
    Stopped {
        /// The receiver that was stopped.
        agent: AgentId,
        /// The request, which will not be answered.
        message: MessageId,
    },
    /// Reminds root that the task is idle and the person has received no final message.
    Nudge,
    /// Tells root to go on. No model could be used for root's last turn, and the person has asked polity to try again.
    TryAgain,
    /// Reminds the reader that it owes a party an answer, or that it stored artifacts for a party and never named them.
    /// The notice begins a turn, and the closing text of this turn goes to the asker.
    Reminder {
        /// The party that waits for the answer or the artifacts.
        asker: AgentId,
        /// The open requests; empty if all are answered and only artifacts are left.
        requests: Vec<Quoted>,
        /// The first words of each text that the reader wrote and that the asker has not received.
        notes: Vec<String>,
        /// The artifacts that the reader stored for the asker and never named.
        artifacts: Vec<Stored>,
    },
    /// An agent gave no answer although it was reminded. The notice contains the agent's texts and artifacts for the
    /// request.
    Unanswered {
        /// The agent that gave no answer.
        agent: AgentId,
        /// The requests that stay unanswered.
        requests: Vec<Quoted>,
        /// The texts that the agent wrote while it worked on the requests.
        notes: Vec<String>,
        /// The artifacts that the agent stored while it worked on the requests; the reader of the notice may open them.
        artifacts: Vec<Stored>,
    },
    /// An agent has answered a request, or has failed. But it has not delivered all texts and artifacts that it made
    /// for the reader.
    Leftover {
        /// The agent that made the texts or artifacts.
        agent: AgentId,
        /// The texts that the agent wrote and did not deliver.
        notes: Vec<String>,
        /// The artifacts that the agent stored and did not deliver; the reader of the notice may open them.
        artifacts: Vec<Stored>,
    },
    /// Some agents wait for each other's answers in a circle, so that none of them can go on.
    Deadlock {
        /// The agents in the circle.
        agents: Vec<AgentId>,
        /// The open requests between these agents.
        requests: Vec<MessageId>,
    },
    /// Two agents kept answering each other without other work, so no more messages are delivered between them.
    PairLimit {
        /// The other agent of the pair.
        agent: AgentId,
        /// The value of `maxPairExchanges`.
        limit: u64,
    },
    /// The turn ends, but the agent has hired children to which it has not written yet.
    UnwrittenChildren {
        /// The children that have no message yet.
        agents: Vec<AgentId>,
    },
    /// The turn reached its limit of tool rounds, and the agent must sum up now.
    SumUp {
        /// The value of `maxToolRounds`.
        limit: u64,
    },
    /// The model makes the same call again and again, with the same result.
    Repetition {
        /// The name of the tool.
        tool: String,
        /// Number of equal calls in a row.
        times: u64,
    },
    /// The reader's answer was not sent, because it does not fit the JSON Schema that the request contains.
    ResultDoesNotFit {
        /// What is wrong with the answer.
        errors: Vec<String>,
    },
    /// The reader's last text does not count as an answer, so it was not sent.
    NotAnAnswer {
        /// Why the text does not count as an answer.
        was: NoAnswer,
    },
    /// The reader's previous turn failed or was stopped.
    TurnFailed {
        /// The reason why the turn ended early, in words.
        reason: String,
    },
    /// A limit stopped the task.
    LimitReached {
        /// The name of the limit in `app.json`.
        limit: String,
        /// The value of the limit.
        value: String,
        /// The consumption of each branch, sorted by tokens, the highest first.
        branches: Vec<Branch>,
    },
    /// A command that the reader runs in the background has ended.
    CommandEnded {
        /// The id of the command.
        id: CommandId,
        /// The first characters of the text of the command.
        command: String,
        /// How the command ended.
        end: CommandEnd,
        /// The last lines that the command printed.
        lines: String,
    },
    /// An agent was ended.
    Terminated {
        /// The agent that was ended.
        agent: AgentId,
        /// The party that ended the agent and wrote the reason; `None` in notices of earlier versions of polity.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<AgentId>,
        /// The reason for ending the agent.
        reason: String,
    },
}

/// The reason why a text of a model does not count as an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoAnswer {
    /// The model wrote only thoughts.
    Thoughts,
    /// The model wrote a tool call as text, in a form that cannot be run.
    FailedCall,
}

/// A request in the form in which a notice quotes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quoted {
    /// The id of the request.
    pub id: MessageId,
    /// The first words of the request, in one line.
    pub words: String,
}

impl Quoted {
    fn text(&self, texts: &Texts) -> String {
        texts.fill(TextKey::MessageQuoted, &[("id", self.id.as_str()), ("words", &in_one_line(&self.words))])
    }

    fn all(requests: &[Self], texts: &Texts) -> String {
        requests.iter().map(|request| request.text(texts)).collect::<Vec<_>>().join(", ")
    }
}

/// An artifact in the form in which a notice names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The id, which the notice shows as a reference.
    pub id: ArtifactId,
    /// The file name or label of the artifact; `None` if it has neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Stored {
    fn all(artifacts: &[Self]) -> String {
        let each = artifacts.iter().map(|artifact| match &artifact.name {
            Some(name) => format!("{} ({})", artifact.id.reference(), in_one_line(name)),
            None => artifact.id.reference(),
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

/// The consumption of one branch of the society. A branch is root itself, or an agent that root hired, together with
/// all descendants of this agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    /// The agent at the top of the branch.
    pub agent: AgentId,
    /// Number of model calls.
    pub calls: u64,
    /// Number of tokens, input and output together.
    pub tokens: u64,
    /// The cost, in the currency of the services' prices; absent if none of the services has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Number>,
}

impl Branch {
    fn text(&self, texts: &Texts) -> String {
        let numbers = [self.calls.to_string(), self.tokens.to_string()];
        let mut values = vec![("id", self.agent.as_str()), ("calls", &*numbers[0]), ("tokens", &*numbers[1])];
        let Some(cost) = self.cost.as_ref().map(Number::to_string) else {
            return texts.fill(TextKey::NoticeLimitBranch, &values);
        };
        values.push(("cost", &cost));
        texts.fill(TextKey::NoticeLimitBranchCost, &values)
    }
}

/// Returns the lines that list the texts that an agent wrote (`notes`) and the artifacts that it stored.
fn made(notes: &[String], artifacts: &[Stored], texts: &Texts) -> Vec<String> {
    let written = notes.iter().map(|note| texts.fill(TextKey::NoticeMadeText, &[("text", note)]));
    let mut lines: Vec<String> = written.collect();
    if !artifacts.is_empty() {
        lines.push(texts.fill(TextKey::NoticeMadeArtifacts, &[("refs", &Stored::all(artifacts))]));
    }
    lines
}

impl Notice {
    /// Returns the text of the notice, without the header line.
    ///
    /// Each quotation is joined into one line, so that no quoted line can look like a line of the system.
    /// Only the notes of `Unanswered` and `Leftover` keep their line breaks.
    pub fn text(&self, texts: &Texts) -> String {
        match self {
            Self::Bounced { to, message } => {
                texts.fill(TextKey::NoticeBounced, &[("id", to.as_str()), ("message", message.as_str())])
            }
            Self::ReceiverFailed { agent, message, reason } => texts.fill(
                TextKey::NoticeReceiverFailed,
                &[("id", agent.as_str()), ("message", message.as_str()), ("reason", &in_one_line(reason))],
            ),
            Self::AgentFailed { agent, role, service, reason } => texts.fill(
                TextKey::NoticeAgentFailed,
                &[
                    ("id", agent.as_str()),
                    ("role", role),
                    ("service", service.as_str()),
                    ("reason", &in_one_line(reason)),
                ],
            ),
            Self::Parked { agent, role, reason } => texts.fill(
                TextKey::NoticeParked,
                &[("id", agent.as_str()), ("role", role), ("reason", &in_one_line(reason))],
            ),
            Self::Stopped { agent, message } => {
                texts.fill(TextKey::NoticeStopped, &[("id", agent.as_str()), ("message", message.as_str())])
            }
            Self::Reminder { asker, requests, notes, artifacts } => {
                let id = asker.as_str();
                let (requests, stored) = (Quoted::all(requests, texts), Stored::all(artifacts));
                let mut lines = Vec::new();
                if !requests.is_empty() {
                    lines.push(texts.fill(TextKey::NoticeReminder, &[("id", id), ("requests", &requests)]));
                }
                lines.extend(notes.iter().map(|note| {
                    texts.fill(TextKey::NoticeReminderNote, &[("id", id), ("text", &in_one_line(note))])
                }));
                if !stored.is_empty() {
                    lines
                        .push(texts.fill(TextKey::NoticeReminderArtifacts, &[("id", id), ("refs", &stored)]));
                }
                lines.join("\n")
            }
            Self::Unanswered { agent, requests, notes, artifacts } => {
                let requests = Quoted::all(requests, texts);
                let values = [("id", agent.as_str()), ("requests", &*requests)];
                let mut lines = vec![texts.fill(TextKey::NoticeUnanswered, &values)];
                lines.extend(made(notes, artifacts, texts));
                lines.join("\n")
            }
            Self::Leftover { agent, notes, artifacts } => {
                let id = agent.as_str();
                let mut lines = vec![texts.fill(TextKey::NoticeLeftover, &[("id", id)])];
                lines.extend(made(notes, artifacts, texts));
                lines.join("\n")
            }
            Self::Deadlock { agents, .. } => {
                let ids: Vec<&str> = agents.iter().map(AgentId::as_str).collect();
                texts.fill(TextKey::NoticeDeadlock, &[("ids", &ids.join(", "))])
            }
            Self::PairLimit { agent, limit } => {
                texts.fill(TextKey::NoticePairLimit, &[("id", agent.as_str()), ("limit", &limit.to_string())])
            }
            Self::Nudge => texts.get(TextKey::NoticeNudge).to_owned(),
            Self::TryAgain => texts.get(TextKey::NoticeTryAgain).to_owned(),
            Self::UnwrittenChildren { agents } => {
                let ids: Vec<&str> = agents.iter().map(AgentId::as_str).collect();
                texts.fill(TextKey::NoticeUnwrittenChildren, &[("ids", &ids.join(", "))])
            }
            Self::Repetition { tool, times } => {
                texts.fill(TextKey::NoticeRepetition, &[("tool", tool), ("times", &times.to_string())])
            }
            Self::ResultDoesNotFit { errors } => {
                texts.fill(TextKey::NoticeResultDoesNotFit, &[("errors", &in_one_line(&errors.join("; ")))])
            }
            Self::NotAnAnswer { was: NoAnswer::Thoughts } => {
                texts.get(TextKey::NoticeOnlyThoughts).to_owned()
            }
            Self::NotAnAnswer { was: NoAnswer::FailedCall } => {
                texts.get(TextKey::NoticeFailedCall).to_owned()
            }
            Self::SumUp { limit } => texts.fill(TextKey::NoticeSumUp, &[("limit", &limit.to_string())]),
            Self::TurnFailed { reason } => {
                texts.fill(TextKey::NoticeTurnFailed, &[("reason", &in_one_line(reason))])
            }
            Self::LimitReached { limit, value, branches } => {
                let branches: Vec<String> = branches.iter().map(|branch| branch.text(texts)).collect();
                let mut lines = vec![texts.fill(TextKey::NoticeLimit, &[("limit", limit), ("value", value)])];
                lines.extend(branches);
                lines.join("\n")
            }
            Self::CommandEnded { id, command, end, lines } => {
                let (command, end) = (in_one_line(command), in_one_line(&end.text(texts)));
                let values = [("id", id.as_str()), ("command", &*command), ("end", &*end)];
                let mut text = texts.fill(TextKey::NoticeCommandEnded, &values);
                if !lines.trim().is_empty() {
                    text.push('\n');
                    text.push_str(texts.get(TextKey::NoticeCommandLines));
                    // A quoted line begins with a mark, so that no reader mistakes it for a line of the system.
                    let quoted = lines.split(is_line_break).map(|line| format!("\n> {line}"));
                    text.extend(quoted);
                }
                text
            }
            Self::Terminated { agent, by: _, reason } => texts
                .fill(TextKey::NoticeTerminated, &[("id", agent.as_str()), ("reason", &in_one_line(reason))]),
        }
    }
}
