//! The types of the rows that the test compares. The rows of the reference model and of the database have the same
//! types, so they can be compared directly.

use polity_society::contact::Source;
use polity_society::id::{AgentId, ArtifactId, MessageId, RoleId, TaskId};
use polity_society::message::{Expects, Finality, MessageState, MessageType};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// Declares the tables. For each table, the macro gets the name of the table, the type of a row, the type of its key,
/// the function that returns the key of a row, and the fields of a row, each with the SQL that reads the field. In the
/// SQL, `@` stands for the prefix of the columns.
macro_rules! tables {
    ($($map:ident: $row:ident by $key_type:ty = $key:expr, { $($field:ident: $type:ty = $sql:literal,)* })*) => {
        $(
            #[derive(Clone, Debug, PartialEq, Deserialize)]
            pub(super) struct $row { $(pub(super) $field: $type,)* }

            impl From<$row> for Row {
                fn from(row: $row) -> Self {
                    Self::$row(Box::new(row))
                }
            }
        )*

        /// A row of one of the tables.
        #[derive(Clone, Debug, PartialEq)]
        pub(super) enum Row { $($row(Box<$row>)),* }

        /// The primary key of a row.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Key { $($row($key_type)),* }

        /// The tables, each with the SQL of its fields.
        pub(super) const TABLES: &[(&str, &[&str])] = &[$((stringify!($map), &[$($sql),*])),*];

        /// All rows of all tables.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub(super) struct Rows { $(pub(super) $map: BTreeMap<$key_type, $row>),* }

        impl Row {
            /// Reads a row from a JSON array of its fields; `None` if the table is not compared.
            pub(super) fn read(table: &str, fields: &str) -> Option<Self> {
                match table {
                    $(stringify!($map) => Some(Self::$row(Box::new(serde_json::from_str(fields).unwrap()))),)*
                    _ => None,
                }
            }

            pub(super) fn key(&self) -> Key {
                match self {
                    $(Self::$row(row) => {
                        let key: fn(&$row) -> $key_type = $key;
                        Key::$row(key(row))
                    })*
                }
            }
        }

        impl Rows {
            pub(super) fn get(&self, key: &Key) -> Option<Row> {
                match key {
                    $(Key::$row(key) => self.$map.get(key).cloned().map(Row::from),)*
                }
            }

            pub(super) fn put(&mut self, row: Row) {
                match (row.key(), row) {
                    $((Key::$row(key), Row::$row(row)) => { self.$map.insert(key, *row); })*
                    // Cannot happen: the key of a row always belongs to the same table as the row.
                    _ => {}
                }
            }

            pub(super) fn remove(&mut self, key: &Key) {
                match key {
                    $(Key::$row(key) => { self.$map.remove(key); })*
                }
            }

            pub(super) fn keys(&self) -> Vec<Key> {
                let mut keys = Vec::new();
                $(keys.extend(self.$map.keys().cloned().map(Key::$row));)*
                keys
            }
        }
    };
}

tables! {
    agents: Agent by AgentId = |row| row.id.clone(), {
        id: AgentId = "@id",
        task: Option<TaskId> = "@task",
        parent: Option<AgentId> = "@parent",
        role: Option<RoleId> = "@role",
        name: Option<String> = "@name",
        depth: u64 = "@depth",
        hired_in: Option<i64> = "@hired_in",
        ended_at: Option<i64> = "@ended_at",
    }
    contacts: Contact by (AgentId, AgentId) = |row| (row.owner.clone(), row.agent.clone()), {
        owner: AgentId = "@owner",
        agent: AgentId = "@agent",
        source: Source = "@source",
        introduced_by: Option<AgentId> = "@introduced_by",
        since: i64 = "@since",
    }
    roles: Role by RoleId = |row| row.id.clone(), {
        id: RoleId = "@id",
        task: TaskId = "@task",
        creator: AgentId = "@creator",
        name: String = "@name",
    }
    artifacts: Artifact by ArtifactId = |row| row.id.clone(), {
        id: ArtifactId = "@id",
        task: TaskId = "@task",
        owner: AgentId = "@owner",
    }
    artifact_grants: Grant by (AgentId, ArtifactId) = |row| (row.agent.clone(), row.artifact.clone()), {
        agent: AgentId = "@agent",
        artifact: ArtifactId = "@artifact",
    }
    messages: Message by MessageId = |row| row.id.clone(), {
        id: MessageId = "@id",
        task: TaskId = "@task",
        sender: AgentId = "@sender",
        receiver: AgentId = "@receiver",
        kind: Option<MessageType> = "nullif(@type, 'notice')",
        notice: Option<String> = "iif(@type = 'notice', json_extract(@body, '$.notice'), NULL)",
        attachments: Vec<ArtifactId> = "json(@attachments)",
        words: Option<String> = "json_extract(@body, '$.text')",
        told: NoticeContents = "json_object('notes', json_extract(@body, '$.notes'), 'artifacts', json_extract(@body, '$.artifacts'),
            'requests', json_extract(@body, '$.requests'))",
        in_reply_to: Vec<MessageId> = "json(coalesce(@in_reply_to, '[]'))",
        about: Option<MessageId> = "@about",
        on_behalf_of: Option<MessageId> = "@on_behalf_of",
        expects: Expects = "@expects",
        finality: Finality = "@finality",
        met: Option<Source> = "json_extract(@introduction, '$.source')",
        met_through: Option<AgentId> = "json_extract(@introduction, '$.introducedBy')",
        introduced: Option<AgentId> = "json_extract(@introduced, '$.id')",
        due_at: Option<i64> = "@due_at",
        state: MessageState = "@state",
        answered_by: Option<MessageId> = "@answered_by",
        answered_in: Option<i64> = "@answered_in",
        reminded: u8 = "@reminded",
        sent_in: Option<i64> = "@sent_in",
        turn: Option<i64> = "@turn",
    }
    turns: Turn by i64 = |row| row.id, {
        id: i64 = "@id",
        agent: AgentId = "@agent",
        task: TaskId = "@task",
        began_by: MessageId = "@began_by",
        works_on: Option<MessageId> = "@works_on",
        state: String = "@state",
    }
    notes: Note by i64 = |row| row.seq, {
        seq: i64 = "@seq",
        agent: AgentId = "@agent",
        task: TaskId = "@task",
        request: MessageId = "@request",
        answers: Vec<MessageId> = "json(@answers)",
        text: String = "@text",
    }
    outputs: Output by (AgentId, TaskId, AgentId, MessageId, ArtifactId) = |row| row.parts(), {
        agent: AgentId = "@agent",
        task: TaskId = "@task",
        request: MessageId = "@request",
        asker: AgentId = "@asker",
        artifact: ArtifactId = "@artifact",
    }
}

/// The parts of a system notice that are compared.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct NoticeContents {
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) requests: Vec<Handed>,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) notes: Vec<String>,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(super) artifacts: Vec<Handed>,
}

/// A request or an artifact that a notice names.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Handed {
    pub(super) id: String,
}

fn or_nothing<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl Output {
    fn parts(&self) -> (AgentId, TaskId, AgentId, MessageId, ArtifactId) {
        let Self { agent, task, request, asker, artifact } = self.clone();
        (agent, task, asker, request, artifact)
    }
}

/// Returns the SQL for a JSON array of the fields. `before` is the prefix of the columns.
pub(super) fn fields(sql: &[&str], before: &str) -> String {
    format!("json_array({})", sql.join(", ").replace('@', before))
}

impl Message {
    /// The sender of the system's notices.
    pub(super) const SYSTEM: &str = "system";

    pub(super) fn is_of_system(&self) -> bool {
        self.sender.as_str() == Self::SYSTEM
    }

    /// Whether the request has no answer yet, and its receiver can still answer it.
    pub(super) fn is_awaited(&self) -> bool {
        let may_come = matches!(
            self.state,
            MessageState::Delayed | MessageState::Queued | MessageState::InTurn | MessageState::Done
        );
        self.expects == Expects::Answer && self.answered_by.is_none() && may_come
    }

    /// Whether the message is a supplement: the request that it replies to was answered before, or nobody waits for an
    /// answer to this request any more.
    pub(super) fn is_supplement(&self) -> bool {
        self.in_reply_to.len() == 1 && self.about.as_ref() == self.in_reply_to.first()
    }

    /// Whether the receiver has read the request and can answer it. A request of the person can be answered even if the
    /// turn that read it has failed. A request to the person counts as read, because nobody knows what the person has
    /// read.
    pub(super) fn is_open(&self) -> bool {
        let was_read = match self.state {
            MessageState::InTurn | MessageState::Done => true,
            MessageState::Failed => self.sender.is_user(),
            MessageState::Queued => self.receiver.is_user(),
            _ => false,
        };
        self.expects == Expects::Answer && self.answered_by.is_none() && was_read
    }
}
