//! Contacts 联系人: whom an agent may write to, and why (seed agent-communication, requirements 2, 3, 5 and 7).

use crate::agent::Party;
use crate::id::AgentId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an entry came into a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The system brought the two together: the person wrote to the agent, or both were there from the start.
    System,
    /// It hired the owner.
    Parent,
    /// The owner hired it.
    Child,
    /// The owner's brief names it.
    Preset,
    /// Somebody who knew both introduced it.
    Introduction,
    /// It wrote to the owner first.
    FirstMessage,
}

impl Source {
    /// Every source.
    pub const ALL: [Self; 6] =
        [Self::System, Self::Parent, Self::Child, Self::Preset, Self::Introduction, Self::FirstMessage];

    /// The name in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Parent => "parent",
            Self::Child => "child",
            Self::Preset => "preset",
            Self::Introduction => "introduction",
            Self::FirstMessage => "first_message",
        }
    }

    /// The source of that name; an unknown name is `System`, the one that says nothing about anybody.
    pub fn from_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|source| source.as_str() == name).unwrap_or(Self::System)
    }
}

/// An entry of a registry, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// Whose registry it stands in.
    pub owner: AgentId,
    /// Whom the owner may write to.
    pub agent: AgentId,
    /// How it came there.
    pub source: Source,
    /// Who brought the two together, for presets and introductions.
    pub introduced_by: Option<AgentId>,
}

/// An entry of a registry, with what its owner may see of the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownParty {
    /// The other.
    pub party: Party,
    /// How it came there.
    pub source: Source,
    /// Who brought the two together.
    pub introduced_by: Option<AgentId>,
    /// Since when, in milliseconds since 1970.
    pub since: i64,
}

/// Finds the contact that a model means: by id, else by the name of its role where that is unique.
pub fn find<'a>(contacts: &'a [KnownParty], meant: &str) -> Option<&'a KnownParty> {
    let meant = meant.trim();
    let by_id = contacts.iter().find(|contact| contact.party.id.as_str() == meant);
    by_id.or_else(|| {
        let mut by_role = contacts.iter().filter(|contact| contact.party.role_name == meant);
        by_role.next().filter(|_| by_role.next().is_none())
    })
}

/// The contacts with those first that look most like what was meant.
pub fn nearest_first<'a>(contacts: &'a [KnownParty], meant: &str) -> Vec<&'a KnownParty> {
    let likeness = |contact: &KnownParty| {
        let by_id = strsim::jaro_winkler(contact.party.id.as_str(), meant);
        by_id.max(strsim::jaro_winkler(&contact.party.role_name, meant))
    };
    let mut sorted: Vec<&KnownParty> = contacts.iter().collect();
    sorted.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    sorted
}
