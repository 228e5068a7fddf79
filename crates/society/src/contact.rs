//! Contacts 联系人: whom an agent may write to, and why (seed "agent-communication", requirements 2, 3, 5 and 7).

use crate::agent::Party;
use crate::id::AgentId;
use crate::refusal::{ContactLine, Refusal};
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// How a contact came into its owner's contact registry.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    VariantArray,
    IntoStaticStr,
    EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Source {
    /// The system added the contact. It does so if the person writes to an agent or introduces an agent. It also does
    /// so for two parties that exist from the start.
    System,
    /// The contact hired the owner.
    Parent,
    /// The owner hired the contact.
    Child,
    /// The owner's brief names the contact.
    Preset,
    /// A party that knew both the owner and the contact introduced the contact to the owner.
    Introduction,
    /// The contact wrote to the owner first.
    FirstMessage,
}

impl Source {
    /// All sources.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the source with this name.
    /// An unknown name gives `System`, because `System` does not claim that any party hired or introduced another.
    pub fn from_name(name: &str) -> Self {
        name.parse().unwrap_or(Self::System)
    }
}

/// An entry of a contact registry, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// The party whose registry contains the entry.
    pub owner: AgentId,
    /// The party that the owner may write to.
    pub agent: AgentId,
    /// How the entry came into the registry.
    pub source: Source,
    /// For a preset or an introduction: the party that gave the owner this contact; else `None`.
    pub introduced_by: Option<AgentId>,
}

/// An entry of a contact registry, with the facts about the contact that the owner may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownParty {
    /// The contact that the owner may write to.
    pub party: Party,
    /// How the entry came into the registry.
    pub source: Source,
    /// For a preset or an introduction: the party that gave the owner this contact; else `None`.
    pub introduced_by: Option<AgentId>,
    /// When the entry was made.
    pub since: Timestamp,
}

impl From<&KnownParty> for ContactLine {
    fn from(contact: &KnownParty) -> Self {
        Self { id: contact.party.id.to_string(), role: contact.party.role_name.clone() }
    }
}

/// Finds the contact that a model named: the contact with the id `meant`, else the contact with the role `meant`.
/// Refuses the name if several contacts have a role with this name.
pub fn find<'a>(contacts: &'a [KnownParty], meant: &str) -> Result<Option<&'a KnownParty>, Refusal> {
    let meant = meant.trim();
    if let Some(by_id) = contacts.iter().find(|contact| contact.party.id.as_str() == meant) {
        return Ok(Some(by_id));
    }
    let by_role: Vec<&KnownParty> =
        contacts.iter().filter(|contact| contact.party.role_name == meant).collect();
    match by_role.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        several => Err(Refusal::AmbiguousName {
            meant: meant.to_owned(),
            candidates: several.iter().map(|contact| ContactLine::from(*contact)).collect(),
        }),
    }
}

/// Sorts the contacts by the likeness of their id or role name to `meant`. The most similar contact comes first.
pub fn nearest_first<'a>(contacts: &'a [KnownParty], meant: &str) -> Vec<&'a KnownParty> {
    let likeness = |contact: &KnownParty| {
        let by_id = strsim::jaro_winkler(contact.party.id.as_str(), meant);
        by_id.max(strsim::jaro_winkler(&contact.party.role_name, meant))
    };
    let mut sorted: Vec<&KnownParty> = contacts.iter().collect();
    sorted.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Standing;
    use crate::content::Capabilities;

    fn known(id: &str, role_name: &str) -> KnownParty {
        let party = Party {
            id: AgentId::new(id),
            task: None,
            role_name: role_name.to_owned(),
            interface_spec: None,
            objective: None,
            standing: Standing::Active,
            depth: 1,
            capabilities: Capabilities::default(),
        };
        KnownParty { party, source: Source::Child, introduced_by: None, since: Timestamp::default() }
    }

    fn contacts() -> Vec<KnownParty> {
        vec![
            known("root", "root"),
            known("reader-1", "reader"),
            known("singer-1", "singer"),
            known("singer-2", "singer"),
            known("oddly-1", "reader-1"),
        ]
    }

    #[test]
    fn a_contact_is_found_by_id_or_by_a_role_that_only_one_has() {
        let contacts = contacts();
        let check = |meant: &str, expect: Option<&str>| {
            let found = find(&contacts, meant).unwrap().map(|contact| contact.party.id.as_str());
            assert_eq!(found, expect, "{meant}");
        };
        check("singer-2", Some("singer-2"));
        check(" singer-1 ", Some("singer-1"));
        check("reader", Some("reader-1"));
        check(" reader\n", Some("reader-1"));
        // `reader-1` is the id of one contact and the role name of another. The id takes precedence.
        check("reader-1", Some("reader-1"));
        check("painter", None);
        check("read", None);
        check("", None);
    }

    #[test]
    fn a_name_that_several_have_is_refused_with_all_of_them() {
        let candidates =
            ["singer-1", "singer-2"].map(|id| ContactLine { id: id.to_owned(), role: "singer".to_owned() });
        let refusal = Refusal::AmbiguousName { meant: "singer".to_owned(), candidates: candidates.to_vec() };
        assert_eq!(find(&contacts(), " singer "), Err(refusal));
    }

    #[test]
    fn those_who_look_most_like_what_was_meant_come_first() {
        let all: Vec<KnownParty> = [contacts(), vec![known("zeta-9", "poet"), known("a-1", "b")]].concat();
        let first = |meant: &str| nearest_first(&all, meant)[0].party.id.to_string();
        // `zeta-8` resembles the id `zeta-9`, and `poets` resembles the role name of the same contact.
        assert_eq!(first("zeta-8"), "zeta-9");
        assert_eq!(first("poets"), "zeta-9");
        assert_eq!(first("readr"), "reader-1");
        assert_eq!(first("roto"), "root");
        assert_eq!(first("singer-3"), "singer-1");
        assert_eq!(first("oddly-2"), "oddly-1");
        assert_eq!(nearest_first(&all, "x").len(), all.len());
    }

    #[test]
    fn a_source_is_known_by_its_name() {
        for &source in Source::ALL {
            assert_eq!(Source::from_name(source.as_str()), source);
        }
        assert_eq!(Source::from_name("elsewhere"), Source::System);
    }
}
