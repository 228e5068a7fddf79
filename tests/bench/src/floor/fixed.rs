//! The part that all requests have in common, taken from a request that polity sent.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A text that replaces the conversation in a request. Then the request is cut in two at this text.
const MARK: &str = "@conversation@";

/// The parts of a request before and after the conversation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Fixed {
    pub(crate) before: String,
    pub(crate) after: String,
}

impl Fixed {
    /// Takes the fixed part of a request. It is everything except the conversation, which consists of all messages
    /// after the system message.
    pub(crate) fn of(request: &[u8]) -> Result<Self> {
        let mut request: Value =
            serde_json::from_slice(request).context("the captured request is not JSON")?;
        let system = request["messages"][0].take();
        request["messages"] = json!([system, MARK]);
        let text = request.to_string();
        let (before, after) =
            text.split_once(&format!("\"{MARK}\"")).context("the captured request has no messages")?;
        Ok(Self { before: before.to_owned(), after: after.to_owned() })
    }

    /// Returns the fixed part of a request of an agent other than root. `self` is the fixed part of root's requests.
    pub(crate) fn of_agent(&self) -> Self {
        Self { before: self.before.replace("\\nagentId=root", "\\nagentId=hand"), after: self.after.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_part_is_all_but_the_conversation() {
        let request = br#"{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}],"stream":true}"#;
        let fixed = Fixed::of(request).unwrap();
        assert_eq!(fixed.before, r#"{"model":"m","messages":[{"role":"system","content":"s"},"#);
        assert_eq!(fixed.after, r#"],"stream":true}"#);
    }
}
