//! The reasons why a part of a text was not read as a call.

use super::lenient::Fault;

/// The reason why a part of the text was not read as a call.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// The model did not mean this part as a call.
    Text,
    /// This part may be a call that cannot be read. The condition says what the rest of the text must look like to
    /// confirm this.
    Broken(Broken, When),
}

/// A call that cannot be read.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    pub(super) tool: Option<String>,
    pub(super) problem: String,
}

/// A condition for the rest of the text. If the rest of the text meets it, the answer counts as a broken call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// No condition.
    Always,
    /// The text must end with a bracket, a tag or a code fence. Prose that only quotes a call rarely ends in this way.
    EndsLikeCall,
    /// Nothing but calls and marks such as `</tool_call>` may follow. The cursor has already moved past the call that
    /// cannot be read.
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
