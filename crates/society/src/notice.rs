//! What the system itself says to agents and to the person. Stored as facts, worded when somebody reads it.

use crate::id::{AgentId, ArtifactId, MessageId, ServiceId};
use crate::present::in_one_line;
use crate::text::{TextKey, Texts};
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// A notice of the system 【系统消息】. It needs no contact, asks for nothing and is never answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Notice {
    /// A message could not be delivered: its receiver has ended.
    Bounced {
        /// The receiver.
        to: AgentId,
        /// The message.
        message: MessageId,
    },
    /// The receiver of a request failed while it worked on it.
    ReceiverFailed {
        /// The receiver.
        agent: AgentId,
        /// The request.
        message: MessageId,
        /// What failed.
        reason: String,
    },
    /// An agent's model could not be reached, or refused, for good.
    AgentFailed {
        /// The agent.
        agent: AgentId,
        /// Its role.
        role: String,
        /// The service that was asked.
        service: ServiceId,
        /// What failed.
        reason: String,
    },
    /// An agent failed again and again, and does nothing until somebody resumes it.
    Parked {
        /// The agent.
        agent: AgentId,
        /// Its role.
        role: String,
        /// What failed.
        reason: String,
    },
    /// The person stopped the receiver of a request.
    Stopped {
        /// The receiver.
        agent: AgentId,
        /// The request.
        message: MessageId,
    },
    /// The task is idle and the person has heard nothing final.
    Nudge,
    /// Its reader owes somebody an answer, or has stored something for them without naming it. What the reader says now
    /// goes to them.
    Reminder {
        /// Who waits for it.
        asker: AgentId,
        /// The requests that are open; none where all were answered and only artifacts are left.
        requests: Vec<Quoted>,
        /// The first words of each text that the reader wrote and that the asker has not received.
        notes: Vec<String>,
        /// The artifacts that the reader stored for the asker and never named.
        artifacts: Vec<Stored>,
    },
    /// An agent gave no answer although it was reminded. What it made meanwhile is here.
    Unanswered {
        /// The agent.
        agent: AgentId,
        /// The requests.
        requests: Vec<Quoted>,
        /// What it wrote while it worked on them.
        notes: Vec<String>,
        /// What it stored meanwhile; the reader may open it.
        artifacts: Vec<Stored>,
    },
    /// An agent has answered, or failed, and made more for the reader than it delivered.
    Leftover {
        /// The agent.
        agent: AgentId,
        /// What it wrote.
        notes: Vec<String>,
        /// The artifacts; the reader may open them.
        artifacts: Vec<Stored>,
    },
    /// Some agents wait for each other's answers, so that none of them can go on.
    Deadlock {
        /// Those agents.
        agents: Vec<AgentId>,
        /// The requests that they wait for.
        requests: Vec<MessageId>,
    },
    /// Two agents write to each other and nothing else happens: no more is delivered between them.
    PairLimit {
        /// The other one.
        agent: AgentId,
        /// The limit.
        limit: u64,
    },
    /// The turn ends with children that were hired and never written to.
    UnwrittenChildren {
        /// Those children.
        agents: Vec<AgentId>,
    },
    /// The turn reached its limit of tool rounds: it is to sum up.
    SumUp {
        /// The limit.
        limit: u64,
    },
    /// The model makes the same call again and again, with the same result.
    Repetition {
        /// The tool.
        tool: String,
        /// How often in a row.
        times: u64,
    },
    /// What the reader would have answered does not fit the schema that was asked for.
    ResultDoesNotFit {
        /// What is wrong with it.
        errors: Vec<String>,
    },
    /// The turn before this one failed.
    TurnFailed {
        /// What failed.
        reason: String,
    },
    /// A limit stopped the task.
    LimitReached {
        /// The limit's name in `app.json`.
        limit: String,
        /// Its value.
        value: String,
        /// Who spent how much, the most first.
        branches: Vec<Branch>,
    },
    /// An agent was ended.
    Terminated {
        /// The agent.
        agent: AgentId,
        /// Why.
        reason: String,
    },
}

/// A request with its first words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quoted {
    /// The request.
    pub id: MessageId,
    /// Its first words, in one line.
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

/// An artifact as a notice names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The artifact.
    pub id: ArtifactId,
    /// Its file name or label, if it has one.
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

/// What a branch of the society has spent: an agent that root hired, with all below it; or root itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    /// The agent at its top.
    pub agent: AgentId,
    /// Model calls.
    pub calls: u64,
    /// Tokens in and out.
    pub tokens: u64,
    /// Money, in the currency of the services' prices; nothing where none of the services has one.
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

/// What an agent wrote and stored.
fn made(notes: &[String], artifacts: &[Stored], texts: &Texts) -> Vec<String> {
    let written = notes.iter().map(|note| texts.fill(TextKey::NoticeMadeText, &[("text", note)]));
    let mut lines: Vec<String> = written.collect();
    if !artifacts.is_empty() {
        lines.push(texts.fill(TextKey::NoticeMadeArtifacts, &[("refs", &Stored::all(artifacts))]));
    }
    lines
}

impl Notice {
    /// The notice in words, without the header line. What somebody else said in it stays one line: the rest of a notice is
    /// the system's own.
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
            Self::Terminated { agent, reason } => texts
                .fill(TextKey::NoticeTerminated, &[("id", agent.as_str()), ("reason", &in_one_line(reason))]),
        }
    }
}
