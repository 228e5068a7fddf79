//! The reasons why a part of a text was not read as a call.

use super::lenient::Fault;

/// The reason why a part of the text was not read as a call.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// The model did not mean this part as a call.
    Text,
    /// The model meant this part as a call, if the rest of the text confirms it.
    Broken(Broken, When),
}

/// A call that cannot be read.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    pub(super) tool: Option<String>,
    pub(super) problem: String,
}

/// The condition for the rest of the text. If it is met, the answer is reported as a broken call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// No condition.
    Always,
    /// The text ends with a bracket, a tag or a code fence. Prose that only quotes a call rarely ends in this way.
    EndsLikeCall,
    /// Only calls and marks such as `</tool_call>` follow. The cursor is already past the call that cannot be read.
    NothingElseFollows,
}

impl Stop {
    pub(super) fn broken(tool: Option<&str>, problem: impl Into<String>, when: When) -> Self {
        Self::Broken(Broken { tool: tool.map(str::to_owned), problem: problem.into() }, when)
    }

    /// Reports that the values of a call cannot be read.
    pub(super) fn fault(tool: Option<&str>, fault: &Fault) -> Self {
        let when = if fault.is_cut() { When::Always } else { When::EndsLikeCall };
        Self::broken(tool, fault.problem(), when)
    }
}
