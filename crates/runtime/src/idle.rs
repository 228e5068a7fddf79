//! When a task is over (contract sections 7 and 11).

use crate::event::Outcome;
use crate::store::tasks::Standing;

/// What to do about a task in which nobody is working.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: there is work, or it was idle already.
    Leave,
    /// Remind root that the person has heard nothing.
    Nudge,
    /// Declare it idle.
    Idle(Outcome),
}

/// Decides from how the task stands.
pub(crate) fn verdict(standing: &Standing) -> Verdict {
    if !standing.open || standing.turning || standing.mail {
        return Verdict::Leave;
    }
    let may_nudge = !standing.nudged
        && !standing.root_failed
        && !standing.limited
        && !standing.stopped
        && !standing.asks_user;
    if standing.unanswered && may_nudge {
        return Verdict::Nudge;
    }
    Verdict::Idle(outcome(standing))
}

/// How a task stands that has nothing left to do: the first that holds.
pub(crate) fn outcome(standing: &Standing) -> Outcome {
    if !standing.model_answered && standing.unanswered && standing.root_failed {
        Outcome::NoModel
    } else if standing.limited {
        Outcome::Limited
    } else if standing.asks_user {
        Outcome::AwaitsUser
    } else if standing.unanswered || standing.stopped {
        Outcome::Unanswered
    } else {
        Outcome::Answered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Standing = Standing {
        open: true,
        nudged: false,
        limited: false,
        stopped: false,
        turning: false,
        mail: false,
        unanswered: false,
        asks_user: false,
        root_failed: false,
        model_answered: true,
    };

    #[test]
    fn verdicts() {
        let check =
            |standing: Standing, expect: Verdict| assert_eq!(verdict(&standing), expect, "{standing:?}");
        check(DONE, Verdict::Idle(Outcome::Answered));
        check(Standing { open: false, ..DONE }, Verdict::Leave);
        check(Standing { turning: true, ..DONE }, Verdict::Leave);
        check(Standing { mail: true, ..DONE }, Verdict::Leave);
        let silent = Standing { unanswered: true, ..DONE };
        check(silent, Verdict::Nudge);
        check(Standing { nudged: true, ..silent }, Verdict::Idle(Outcome::Unanswered));
        check(Standing { stopped: true, ..DONE }, Verdict::Idle(Outcome::Unanswered));
        check(Standing { stopped: true, ..silent }, Verdict::Idle(Outcome::Unanswered));
        check(Standing { root_failed: true, ..silent }, Verdict::Idle(Outcome::Unanswered));
        check(Standing { asks_user: true, ..silent }, Verdict::Idle(Outcome::AwaitsUser));
        check(Standing { limited: true, asks_user: true, ..silent }, Verdict::Idle(Outcome::Limited));
        let dead = Standing { root_failed: true, model_answered: false, ..silent };
        check(dead, Verdict::Idle(Outcome::NoModel));
    }
}
