//! Finds out, from the records of a conversation, which tools its agent has found by a search. The functions are
//! pure.

use polity_society::id::TurnId;
use polity_store::record::{Content, Record, ToolResult};
use std::collections::{BTreeSet, HashMap};

/// The name of the tool with which an agent searches for tools of MCP servers.
pub const SEARCH_TOOLS: &str = "search_tools";

/// The field in the result of `search_tools` that lists the names of the found tools.
pub const FOUND: &str = "tools";

/// Returns the names of the tools that an agent has found by a search, or has called.
///
/// If there are many MCP tools, a request to the model contains only those MCP tools whose names this function returns.
/// The function reads the names from the records, and the records survive a restart. So an agent does not have to
/// search again after a restart.
pub fn found_tools(records: &[(TurnId, Record)]) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut called: HashMap<&str, &str> = HashMap::new();
    for (_, record) in records {
        match record {
            Record::Replied(replied) => {
                for call in &replied.calls {
                    called.insert(&call.id, &call.name);
                    found.insert(call.name.as_str());
                }
            }
            Record::ToolFinished { call, result } if called.get(call.as_str()) == Some(&SEARCH_TOOLS) => {
                found.extend(names(result));
            }
            Record::Heard { .. }
            | Record::Noticed { .. }
            | Record::ToolStarted { .. }
            | Record::Asked { .. }
            | Record::Judged { .. }
            | Record::ToolFinished { .. }
            | Record::Compacted { .. }
            | Record::Status { .. }
            | Record::Failed { .. }
            | Record::Stopped { .. } => {}
        }
    }
    found
}

/// Returns the names of the tools that the result of a search lists.
fn names(result: &ToolResult) -> impl Iterator<Item = &str> {
    let listed = match result {
        ToolResult::Outside { content: Content::Json(value), .. } => value[FOUND].as_array(),
        ToolResult::Outside { content: Content::Text { .. }, .. }
        | ToolResult::Json(_)
        | ToolResult::Artifact { .. } => None,
    };
    listed.into_iter().flatten().filter_map(|name| name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_llm::{Arguments, ToolCall};
    use polity_society::id::CallId;
    use polity_store::record::Replied;
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    fn replied(id: &str, name: &str) -> Record {
        let arguments = Arguments::Object(Map::new());
        let call = ToolCall { id: id.to_owned(), name: name.to_owned(), arguments, extra: Map::new() };
        Record::Replied(Replied { calls: vec![call], ..Replied::default() })
    }

    fn finished(id: &str, value: Value) -> Record {
        let result =
            ToolResult::Outside { content: Content::Json(value), artifacts: Vec::new(), sources: Vec::new() };
        Record::ToolFinished { call: CallId::new(id), result }
    }

    fn found(records: Vec<Record>) -> Vec<String> {
        let records: Vec<_> = records.into_iter().map(|record| (TurnId::new(1), record)).collect();
        found_tools(&records).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn what_was_found_or_called_is_known() {
        let search = [replied("1", SEARCH_TOOLS), finished("1", json!({FOUND: ["git__log", "git__diff"]}))];
        assert_eq!(found(search.to_vec()), ["git__diff", "git__log", SEARCH_TOOLS]);
        assert_eq!(found(vec![replied("1", "mail__send")]), ["mail__send"]);
        assert_eq!(found(vec![replied("1", SEARCH_TOOLS), finished("1", json!("broken"))]), [SEARCH_TOOLS]);
    }

    proptest! {
        /// An MCP server may return a result that looks like the result of a search. Such a result must not decide
        /// which tools an agent is offered.
        #[test]
        fn only_a_search_finds(tool in "[a-z]{1,4}__[a-z]{1,4}", listed in "[a-z]{5}__[a-z]{5}") {
            let records = vec![replied("1", &tool), finished("1", json!({FOUND: [listed]}))];
            prop_assert_eq!(found(records), [tool]);
        }
    }
}
