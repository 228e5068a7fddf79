//! What the chat says about a line of the user while an agent asks whether it may make a call.

use crate::output::one_line;
use polity_society::id::ApprovalId;
use polity_view::ApprovalView;

/// Maximum length of a quoted line, in characters.
const LINE_CHARS: usize = 60;

/// Returns what the chat says instead of sending a line that is an answer in `polity run`; nothing if no question is
/// open. Here, such a line allows no call, because the user may have meant an agent or another question.
pub(super) fn instead_of_sending(line: &str, open: &[ApprovalView]) -> Option<String> {
    let how = match open {
        [] => return None,
        [one] => answering(&one.id),
        several => {
            let ids: Vec<&str> = several.iter().map(|approval| approval.id.as_str()).collect();
            format!("to answer {}: /approve ID or /deny ID", ids.join(" or "))
        }
    };
    Some(format!("polity: not sent: {}; {how}; other text goes to root", one_line(line, LINE_CHARS)))
}

/// Returns what the chat says about a message to root, if root asks a question in the same task.
pub(super) fn gets_it_later(asked: &ApprovalId) -> String {
    format!("polity: root gets this after your answer; {}", answering(asked))
}

fn answering(id: &ApprovalId) -> String {
    format!("to answer {id}: /approve {id} or /deny {id}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::examples::approvals;

    #[test]
    fn a_line_that_is_not_sent_comes_with_the_commands_that_answer() {
        let all = approvals();
        let check = |line: &str, open: &[ApprovalView], expect: Option<&str>| {
            assert_eq!(instead_of_sending(line, open).as_deref(), expect, "{line:?}");
        };
        let one = "polity: not sent: y; to answer q3: /approve q3 or /deny q3; other text goes to root";
        check("y", &all[..1], Some(one));
        let two =
            "polity: not sent: no way; to answer q3 or q4: /approve ID or /deny ID; other text goes to root";
        check("no way", &all[..2], Some(two));
        check("y", &[], None);
    }
}
