//! Decides when a task is over (contract sections 7 and 11).

use polity_store::tasks::Standing;
use polity_view::Outcome;

/// What to do about a task in which no driver (the code that runs the turns of one conversation) is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Do nothing: there is work, or the task is idle already.
    Leave,
    /// Remind root that the person has received no final message.
    Nudge,
    /// Declare the task idle.
    Idle(Outcome),
}

/// Whether a command of a task runs in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// No command runs.
    Quiet,
    /// A command runs, and its end will wake its agent.
    Running,
}

/// Decides what to do about a task in this state.
///
/// When a command in the background ends or exceeds its time limit, this wakes an agent. So the task stays open as long
/// as such a command runs. But if the task cannot go on, for example because it has reached a limit, the command does
/// not keep the task open.
pub fn verdict(standing: &Standing, background: Background) -> Verdict {
    if !standing.open || standing.turning || standing.mail {
        return Verdict::Leave;
    }
    let may_go_on = !standing.root_failed && !standing.limited && !standing.stopped;
    if background == Background::Running && may_go_on {
        return Verdict::Leave;
    }
    let may_nudge = may_go_on && !standing.nudged && !standing.asks_user;
    if (standing.unanswered || standing.expectant) && may_nudge {
        return Verdict::Nudge;
    }
    Verdict::Idle(standing.outcome())
}

/// Returns whether the transaction that ends root's turn also declares the task idle. [`verdict`] is for tasks in which no
/// driver is active, and the transaction does not know the drivers. So the result is true only if the rows show that no
/// other agent works and that there is no deadlock. All other tasks are left to the supervisor.
pub fn ends_with_turn(standing: &Standing, background: Background) -> bool {
    // Beside an open question to the person, a driver may be running other calls of the same turn.
    let is_quiet = background == Background::Quiet && !standing.asks_user && !standing.waiting;
    is_quiet && verdict(standing, background) == Verdict::Idle(Outcome::Answered)
}

/// Returns whether root can try again: nothing is left to do in the task, because no model could be used.
pub fn can_try_again(standing: &Standing) -> bool {
    let rests = !standing.turning && !standing.mail;
    let may_go_on = !standing.limited && !standing.stopped;
    rests && may_go_on && standing.outcome() == Outcome::NoModel
}

/// An interim message of root promises the person more. Returns whether such a message now counts as the final message.
/// It does if root has received a nudge (a reminder to send a final message) and has sent the person nothing more
/// since.
pub fn interim_is_final(standing: &Standing) -> bool {
    standing.nudged
        && standing.expectant
        && !standing.asks_user
        && !standing.root_failed
        && !standing.limited
        && !standing.stopped
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
        expectant: false,
        asks_user: false,
        waiting: false,
        root_failed: false,
        unreached: false,
    };

    #[test]
    fn what_root_does_not_add_to_after_a_reminder_is_its_last_word() {
        let nudged = Standing { nudged: true, expectant: true, unanswered: true, ..DONE };
        assert!(interim_is_final(&nudged));
        let standings = [
            Standing { nudged: false, ..nudged },
            Standing { expectant: false, ..nudged },
            Standing { asks_user: true, ..nudged },
            Standing { root_failed: true, ..nudged },
            Standing { limited: true, ..nudged },
            Standing { stopped: true, ..nudged },
        ];
        for standing in standings {
            assert!(!interim_is_final(&standing), "{standing:?}");
        }
    }

    #[test]
    fn a_command_keeps_a_task_open_that_can_go_on() {
        let check = |standing: Standing, expect: Verdict| {
            assert_eq!(verdict(&standing, Background::Running), expect, "{standing:?}");
        };
        let silent = Standing { unanswered: true, ..DONE };
        let expectant = Standing { expectant: true, ..DONE };
        let asking = Standing { asks_user: true, ..silent };
        for standing in [DONE, silent, expectant, asking, Standing { nudged: true, ..silent }] {
            check(standing, Verdict::Leave);
        }
        check(Standing { stopped: true, ..silent }, Verdict::Idle(Outcome::Unanswered));
        check(Standing { limited: true, ..silent }, Verdict::Idle(Outcome::Limited));
        check(Standing { root_failed: true, ..silent }, Verdict::Idle(Outcome::Unanswered));
    }

    #[test]
    fn a_task_ends_with_the_turn_of_root_only_if_nothing_else_can_go_on() {
        assert!(ends_with_turn(&DONE, Background::Quiet));
        assert!(ends_with_turn(&Standing { nudged: true, expectant: true, ..DONE }, Background::Quiet));
        assert!(!ends_with_turn(&DONE, Background::Running));
        for standing in [
            Standing { open: false, ..DONE },
            Standing { turning: true, ..DONE },
            Standing { mail: true, ..DONE },
            Standing { waiting: true, ..DONE },
            Standing { asks_user: true, ..DONE },
            Standing { unanswered: true, ..DONE },
            Standing { expectant: true, ..DONE },
            Standing { limited: true, ..DONE },
            Standing { stopped: true, ..DONE },
        ] {
            assert!(!ends_with_turn(&standing, Background::Quiet), "{standing:?}");
        }
    }

    #[test]
    fn root_tries_again_only_if_no_model_could_be_used_and_nothing_stops_it() {
        let dead = Standing { open: false, unanswered: true, root_failed: true, unreached: true, ..DONE };
        assert!(can_try_again(&dead));
        // The supervisor has not declared the task idle yet.
        assert!(can_try_again(&Standing { open: true, ..dead }));
        for standing in [
            DONE,
            Standing { unreached: false, ..dead },
            Standing { unanswered: false, ..dead },
            Standing { turning: true, ..dead },
            Standing { mail: true, ..dead },
            Standing { limited: true, ..dead },
            Standing { stopped: true, ..dead },
        ] {
            assert!(!can_try_again(&standing), "{standing:?}");
        }
    }

    #[test]
    fn verdicts() {
        let check = |standing: Standing, expect: Verdict| {
            assert_eq!(verdict(&standing, Background::Quiet), expect, "{standing:?}");
        };
        check(DONE, Verdict::Idle(Outcome::Answered));
        check(Standing { open: false, ..DONE }, Verdict::Leave);
        check(Standing { turning: true, ..DONE }, Verdict::Leave);
        check(Standing { mail: true, ..DONE }, Verdict::Leave);
        let silent = Standing { unanswered: true, ..DONE };
        check(silent, Verdict::Nudge);
        let expectant = Standing { expectant: true, ..DONE };
        check(expectant, Verdict::Nudge);
        check(Standing { nudged: true, ..expectant }, Verdict::Idle(Outcome::Answered));
        check(Standing { nudged: true, ..silent }, Verdict::Idle(Outcome::Unanswered));
        check(Standing { stopped: true, ..DONE }, Verdict::Idle(Outcome::Unanswered));
        check(Standing { stopped: true, ..silent }, Verdict::Idle(Outcome::Unanswered));
        check(Standing { root_failed: true, ..silent }, Verdict::Idle(Outcome::Unanswered));
        check(Standing { asks_user: true, ..silent }, Verdict::Idle(Outcome::AwaitsUser));
        check(Standing { limited: true, asks_user: true, ..silent }, Verdict::Idle(Outcome::Limited));
        let dead = Standing { root_failed: true, unreached: true, ..silent };
        check(dead, Verdict::Idle(Outcome::NoModel));
        check(Standing { limited: true, asks_user: true, ..dead }, Verdict::Idle(Outcome::NoModel));
    }
}
