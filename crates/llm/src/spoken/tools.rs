//! The offered tools, and how the names that models write are matched with them.

use super::Offered;
use serde_json::{Map, Value};

/// Prefixes that models write before a name, as if the tool were in a module.
const PREFIXES: [&str; 4] = ["functions.", "default_api.", "tools.", "tool."];

/// The longest text that counts as a tool's name, in bytes. APIs allow 64.
const LONGEST: usize = 128;

/// Role headers that chat templates put before an answer. Some servers do not remove them from the answer.
const ROLES: [&str; 4] = [
    "<|im_start|>assistant",
    "<|start_header_id|>assistant<|end_header_id|>",
    "<|begin_of_text|>",
    "<|assistant|>",
];

/// The tools of the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tools<'a> {
    offered: &'a [Offered<'a>],
}

/// The tools, and whether a mark such as `<tool_call>` shows that the text is a call. After such a mark, any plausible
/// name counts as the name of a tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    pub(super) tools: Tools<'a>,
    pub(super) is_tagged: bool,
}

impl<'a> Tools<'a> {
    pub(super) fn new(offered: &'a [Offered<'a>]) -> Self {
        Self { offered }
    }

    /// Finds the offered tool with this name. The name may begin with one of the `PREFIXES`.
    pub(super) fn find(&self, name: &str) -> Option<&'a Offered<'a>> {
        let exact = |name: &str| self.offered.iter().find(|tool| tool.name == name);
        exact(name).or_else(|| PREFIXES.iter().find_map(|prefix| exact(name.strip_prefix(prefix)?)))
    }

    /// Returns the only tool that has all these parameters. Returns `None` if there are no parameters, or if no tool or
    /// more than one tool has them all.
    pub(super) fn only_one_with(&self, fields: &Map<String, Value>) -> Option<&'a Offered<'a>> {
        let has_all = |tool: &&Offered<'_>| fields.keys().all(|key| has_parameter(tool, key));
        let mut tools = self.offered.iter().filter(has_all);
        tools.next().filter(|_| tools.next().is_none() && !fields.is_empty())
    }
}

impl Context<'_> {
    /// Returns the name of the tool to call. If the name is that of an offered tool, this is its exact name. If not,
    /// but the text is marked as a call, any plausible name is accepted. Otherwise the result is `None`.
    pub(super) fn accept(&self, name: &str) -> Option<String> {
        if let Some(tool) = self.tools.find(name) {
            return Some(tool.name.to_owned());
        }
        let bare = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
        let is_name = |character: char| character.is_alphanumeric() || "_-.:/".contains(character);
        let is_plausible = (1..=LONGEST).contains(&bare.len()) && bare.chars().all(is_name);
        (self.is_tagged && is_plausible).then(|| bare.to_owned())
    }
}

pub(super) fn has_parameter(tool: &Offered<'_>, name: &str) -> bool {
    tool.parameters.contains(&name)
}

/// Removes the role header that a chat template put before a text.
pub(super) fn without_role(text: &str) -> &str {
    let mut text = text;
    while let Some(rest) = ROLES.iter().find_map(|role| text.strip_prefix(role)) {
        text = rest.trim_start();
    }
    text
}
