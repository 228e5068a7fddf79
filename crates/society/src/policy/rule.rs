//! The rules that the person writes in `tools.policy` of `app.json`.

use super::facts::{Effect, Source};
use super::host::HostPattern;
use super::pattern::Pattern;
use serde::Serialize;
use strum::{IntoStaticStr, VariantArray};

/// What a rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, VariantArray, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Verdict {
    /// The call runs.
    Allow,
    /// Polity asks the person before the call runs.
    Ask,
    /// The call is refused.
    Deny,
}

/// One rule. A rule fits a call if all conditions of the rule fit. A rule without conditions fits every call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The name of the tool must fit this pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Pattern>,
    /// The name of one of the tool's groups must fit this pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Pattern>,
    /// The name of the caller's role must fit this pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Pattern>,
    /// The call must run a command that fits this pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Pattern>,
    /// The call must be a web request to a host that fits this pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostPattern>,
    /// The call must have this effect. In JSON, `true` means that the call may change something, and `false` that it
    /// only reads.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_switch")]
    pub write: Option<Effect>,
    /// The caller must have seen at least one of these sources. If the list is empty, the rule has no such condition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Source>,
    /// What the rule decides.
    pub decide: Verdict,
}

impl Rule {
    /// Makes a rule that fits every call.
    pub fn of_everything(decide: Verdict) -> Self {
        let seen = Vec::new();
        Self { tool: None, group: None, role: None, command: None, host: None, write: None, seen, decide }
    }
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn as_switch<S: serde::Serializer>(write: &Option<Effect>, serializer: S) -> Result<S::Ok, S::Error> {
    (*write == Some(Effect::Changes)).serialize(serializer)
}
