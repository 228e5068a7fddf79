//! The groups of tools. An agent gets rights to groups, not to single tools.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// The maximum length of the name of an MCP server. Models see a tool of a server under the name `<server>__<tool>`,
/// which may have at most 64 characters. So at least 30 characters are left for the name of the tool itself.
const SERVER_CHARS: usize = 32;

/// The prefix of a group whose tools come from an MCP server.
const SERVER_PREFIX: &str = "mcp:";

/// In the settings, this name stands for the groups of all MCP servers.
const EVERY_SERVER: &str = "mcp:*";

/// The name of an MCP server in the settings: letters, digits, `-` and single `_`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(String);

impl ServerName {
    /// Returns the name if it is valid.
    pub fn new(name: &str) -> Option<Self> {
        let is_plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
        let fits = (1..=SERVER_CHARS).contains(&name.len());
        // In the name of a tool, two underscores separate the server's name from the rest.
        let is_clear = !name.contains("__") && !name.ends_with('_');
        (fits && is_clear && name.chars().all(is_plain)).then(|| Self(name.to_owned()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for ServerName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ServerName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::new(&name)
            .ok_or_else(|| de::Error::invalid_value(de::Unexpected::Str(&name), &"the name of an MCP server"))
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A group of tools. A role gives its agents the right to use some groups.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolGroup {
    /// Making roles, hiring and ending agents.
    Organization,
    /// Writing to other parties and listing the agent's own contacts.
    /// Every agent has this group, whether or not its role names it.
    Messages,
    /// Storing and reading artifacts.
    Artifacts,
    /// Compressing the agent's own history.
    Context,
    /// Reading and changing the files of the workspace.
    Files,
    /// Running commands in the workspace.
    Command,
    /// Reading web pages and sending web requests.
    Web,
    /// Notes that stay after the end of a task. Only a later version has these tools.
    Memory,
    /// Tasks that begin at a set time. Only a later version has these tools.
    Schedule,
    /// The tools of an MCP server.
    Server(ServerName),
}

/// The error for a name that does not belong to any tool group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a tool group")]
pub struct UnknownGroup;

impl ToolGroup {
    /// The groups that exist without any MCP server.
    pub const BUILT_IN: &'static [Self] = &[
        Self::Organization,
        Self::Messages,
        Self::Artifacts,
        Self::Context,
        Self::Files,
        Self::Command,
        Self::Web,
        Self::Memory,
        Self::Schedule,
    ];

    /// Returns the built-in groups that a role can have or lack.
    /// These are the groups with tools, except the group that every agent has.
    pub fn deniable() -> impl Iterator<Item = Self> + Clone {
        Self::BUILT_IN.iter().filter(|group| !group.is_for_everybody() && !group.is_later()).cloned()
    }

    /// Returns whether every agent has this group.
    pub fn is_for_everybody(&self) -> bool {
        *self == Self::Messages
    }

    /// Returns whether this group is reserved for a later version. Such a group has no tools yet. In the configuration,
    /// its name has no effect and causes a warning.
    pub fn is_later(&self) -> bool {
        matches!(self, Self::Memory | Self::Schedule)
    }

    /// Returns the name in JSON.
    pub fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Organization => "organization",
            Self::Messages => "messages",
            Self::Artifacts => "artifacts",
            Self::Context => "context",
            Self::Files => "files",
            Self::Command => "command",
            Self::Web => "web",
            Self::Memory => "memory",
            Self::Schedule => "schedule",
            Self::Server(server) => return Cow::Owned(format!("{SERVER_PREFIX}{server}")),
        })
    }
}

impl fmt::Display for ToolGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl FromStr for ToolGroup {
    type Err = UnknownGroup;

    fn from_str(name: &str) -> Result<Self, UnknownGroup> {
        if let Some(server) = name.strip_prefix(SERVER_PREFIX) {
            return ServerName::new(server).map(Self::Server).ok_or(UnknownGroup);
        }
        Self::BUILT_IN.iter().find(|group| group.name() == name).cloned().ok_or(UnknownGroup)
    }
}

impl Serialize for ToolGroup {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

impl<'de> Deserialize<'de> for ToolGroup {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(|UnknownGroup| de::Error::unknown_variant(&name, &["a tool group"]))
    }
}

impl JsonSchema for ToolGroup {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ToolGroup".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A group of tools: `organization`, `messages`, `artifacts`, `context`, `files`, `command`, `web`, or `mcp:` and the name of a server.",
        })
    }
}

/// The further groups that the person has put each MCP server into. Several servers may share such a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerGroups(BTreeMap<ServerName, BTreeSet<ServerName>>);

impl ServerGroups {
    /// Makes the table from the MCP servers, each with the names of its further groups.
    pub fn new(servers: impl IntoIterator<Item = (ServerName, BTreeSet<ServerName>)>) -> Self {
        Self(servers.into_iter().collect())
    }

    /// Returns all names that give the right to a server's tools: the server's own name, then the names of its
    /// further groups.
    pub fn names<'a>(&'a self, server: &'a ServerName) -> impl Iterator<Item = &'a ServerName> {
        std::iter::once(server).chain(self.0.get(server).into_iter().flatten())
    }

    /// Returns all groups that the tools of `group` are in: the group itself and, for the group of an MCP server, the
    /// further groups of this server.
    pub fn of(&self, group: &ToolGroup) -> Vec<ToolGroup> {
        match group {
            ToolGroup::Server(server) => self.names(server).cloned().map(ToolGroup::Server).collect(),
            other => vec![other.clone()],
        }
    }

    /// Returns the groups of all servers, each once.
    pub fn all(&self) -> BTreeSet<ToolGroup> {
        self.0.keys().flat_map(|server| self.names(server)).cloned().map(ToolGroup::Server).collect()
    }
}

/// A part of root's rights in the settings: one group, or the groups of all MCP servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// One group.
    Group(ToolGroup),
    /// The groups of all MCP servers, including servers that are added later.
    EveryServer,
}

impl Grant {
    /// Returns the grants that together give all groups.
    pub fn everything() -> Vec<Self> {
        ToolGroup::deniable().map(Self::Group).chain([Self::EveryServer]).collect()
    }

    /// Returns whether this grant gives a group.
    pub fn gives(&self, group: &ToolGroup) -> bool {
        match self {
            Self::Group(given) => given == group,
            Self::EveryServer => matches!(group, ToolGroup::Server(_)),
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(group) => group.fmt(f),
            Self::EveryServer => f.write_str(EVERY_SERVER),
        }
    }
}

impl FromStr for Grant {
    type Err = UnknownGroup;

    fn from_str(name: &str) -> Result<Self, UnknownGroup> {
        if name == EVERY_SERVER { Ok(Self::EveryServer) } else { name.parse().map(Self::Group) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_groups_are_those_of_the_documentation() {
        let names: Vec<_> = ToolGroup::BUILT_IN.iter().map(ToolGroup::name).collect();
        let expect = [
            "organization",
            "messages",
            "artifacts",
            "context",
            "files",
            "command",
            "web",
            "memory",
            "schedule",
        ];
        assert_eq!(names, expect);
    }

    #[test]
    fn a_group_has_the_same_name_everywhere() {
        let server = ToolGroup::Server(ServerName::new("git").unwrap());
        for group in ToolGroup::BUILT_IN.iter().chain([&server]) {
            assert_eq!(json!(group), json!(group.name()));
            assert_eq!(group.name().parse(), Ok(group.clone()));
            assert_eq!(serde_json::from_value::<ToolGroup>(json!(group.name())).unwrap(), *group);
            assert_eq!(Grant::Group(group.clone()).to_string().parse(), Ok(Grant::Group(group.clone())));
        }
        for other in ["", "Files", "mcp", "mcp:", "mcp:*", "mcp:a b", "mcp:a__b", "mcp:a_"] {
            assert_eq!(other.parse::<ToolGroup>(), Err(UnknownGroup), "{other}");
        }
        assert!(serde_json::from_value::<ToolGroup>(json!("x")).is_err());
    }

    #[test]
    fn every_server_gives_all_servers_and_nothing_else() {
        let server = ToolGroup::Server(ServerName::new("git").unwrap());
        assert_eq!("mcp:*".parse(), Ok(Grant::EveryServer));
        assert!(Grant::EveryServer.gives(&server) && !Grant::EveryServer.gives(&ToolGroup::Files));
        let gives = |group: &ToolGroup| Grant::everything().iter().any(|grant| grant.gives(group));
        assert!(ToolGroup::deniable().chain([server]).all(|group| gives(&group)));
    }
}
