//! What a stop means for the outcome of a task. The outcome must not depend on whether the person stops an agent before
//! or after another agent answers.

use polity_society::id::TaskId;
use polity_store::tasks::{self, Standing};
use polity_store::work::{self, ToldSince};
use polity_store::{Error, Tx, events};
use polity_view::Event;

/// Which agents a stop includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// One or several agents, but not root.
    Workers,
    Root,
    /// Root and all other agents.
    Everybody,
}

/// Which open requests of the person a stop has taken back in a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Withdrawn {
    Nothing,
    /// Requests to other agents, but none to root.
    FromWorkers,
    /// Requests to root, and perhaps requests to other agents.
    FromRoot,
}

/// A task in which a stop has changed something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touched {
    /// The state of the task before the stop.
    before: Standing,
    withdrawn: Withdrawn,
}

impl Touched {
    /// Reads the state of a task. The stop changes this state, so it must be read before anything is stopped.
    pub(super) async fn read(tx: &mut Tx, task: &TaskId) -> Result<Option<Self>, Error> {
        let before = tasks::standing(&mut tx.connection, task).await?;
        Ok(before.map(|before| Self { before, withdrawn: Withdrawn::Nothing }))
    }

    /// Notes that requests of the person were taken back.
    pub(super) fn note(&mut self, withdrawn: Withdrawn) {
        self.withdrawn = self.withdrawn.max(withdrawn);
    }

    /// Marks the task as stopped by the person if the stop has taken away the answer that the person expected. Then
    /// root gets no nudge about the missing answer, and the task does not count as answered. If the task was idle and
    /// its outcome has changed, this writes the event that tells the new outcome. For an open task, this event is
    /// written when the task becomes idle.
    pub(super) async fn settle(self, tx: &mut Tx, task: &TaskId, scope: Scope) -> Result<(), Error> {
        let Some(after) = tasks::standing(&mut tx.connection, task).await? else { return Ok(()) };
        let told = work::told_since(&mut tx.connection, task).await?;
        if takes_answer(scope, self, &after, told) {
            tasks::stop(tx, task, tasks::STOPPED_BY_USER).await?;
        }
        if self.before.open {
            return Ok(());
        }
        let Some(after) = tasks::standing(&mut tx.connection, task).await? else { return Ok(()) };
        let outcome = after.outcome();
        if !after.open && outcome != self.before.outcome() {
            events::append(tx, &Event::TaskIdle { task: task.clone(), outcome }).await?;
        }
        Ok(())
    }
}

/// Decides whether a stop takes away the answer that the person expected from a task. `after` is the state of the task
/// after the stop. `told` says whether the person has got a final message since the newest request that was taken back.
fn takes_answer(scope: Scope, touched: Touched, after: &Standing, told: ToldSince) -> bool {
    let Touched { before, withdrawn } = touched;
    // While root waits for an answer to its own question, the person still expects an answer from root.
    if !before.unanswered && !before.expectant && !before.asks_user {
        return false;
    }
    // Only root can give the answer that root owed.
    let is_roots = scope != Scope::Workers && (before.expectant || withdrawn == Withdrawn::FromRoot);
    // When everybody is stopped, nobody is left who could answer.
    if is_roots || scope == Scope::Everybody && after.unanswered {
        return true;
    }
    // If another request of the person is open, or root has announced more, the outcome depends on that. A final
    // message that the person got after the request was sent counts, as it would count if it came after the stop.
    withdrawn != Withdrawn::Nothing && !after.unanswered && !after.expectant && told == ToldSince::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Standing = Standing {
        open: false,
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
    const OWED: Standing = Standing { unanswered: true, ..DONE };
    const EXPECTANT: Standing = Standing { expectant: true, ..DONE };

    const ASKS: Standing = Standing { asks_user: true, ..DONE };

    #[track_caller]
    fn check(
        scope: Scope,
        (before, withdrawn): (Standing, Withdrawn),
        after: Standing,
        [silent, told]: [bool; 2],
    ) {
        let touched = Touched { before, withdrawn };
        assert_eq!(takes_answer(scope, touched, &after, ToldSince::Nothing), silent, "nothing was told");
        assert_eq!(takes_answer(scope, touched, &after, ToldSince::Something), told, "something was told");
    }

    #[test]
    fn what_a_stop_takes_away() {
        use Scope::{Everybody, Root, Workers};
        use Withdrawn::{FromRoot, FromWorkers, Nothing};
        for scope in [Workers, Root, Everybody] {
            check(scope, (DONE, Nothing), DONE, [false, false]);
            check(scope, (OWED, FromWorkers), DONE, [true, false]);
        }
        // Root or another worker can still answer.
        check(Workers, (OWED, FromWorkers), OWED, [false, false]);
        check(Workers, (EXPECTANT, FromWorkers), EXPECTANT, [false, false]);
        check(Workers, (OWED, Nothing), OWED, [false, false]);
        // A worker can still answer what the person asked it, after root was stopped. What root owed is lost.
        check(Root, (OWED, Nothing), OWED, [false, false]);
        check(Root, (OWED, FromRoot), OWED, [true, true]);
        check(Root, (EXPECTANT, Nothing), EXPECTANT, [true, true]);
        // Root has only asked the person something, and the question is dropped with the stop.
        check(Root, (ASKS, FromRoot), DONE, [true, true]);
        check(Root, (ASKS, Nothing), DONE, [false, false]);
        // A request whose turn has failed is not taken back, but nobody is left who could answer it.
        check(Everybody, (OWED, Nothing), OWED, [true, true]);
        check(Everybody, (OWED, FromRoot), DONE, [true, true]);
    }
}
