//! What the chat says when the user leaves, and a daemon goes on with the work.

use polity_view::{TaskState, TaskView};

/// Says in which of these tasks the daemon goes on, and which wait for the user. Returns nothing if all are finished.
pub(super) fn goes_on(tasks: &[TaskView]) -> Option<String> {
    let (open, idle): (Vec<&TaskView>, Vec<&TaskView>) =
        tasks.iter().partition(|task| task.state == TaskState::Open);
    let asking: Vec<&TaskView> = idle.into_iter().filter(|task| task.waiting_for_user > 0).collect();
    let mut lines = Vec::new();
    match &open[..] {
        [] => {}
        [task] => lines.push(format!(
            "polity: root works on {0}; the daemon goes on: polity chat --task {0} shows the answer",
            task.id
        )),
        several => lines.push(format!(
            "polity: root works on {}; the daemon goes on: polity chat --task ID shows the answers",
            listed(several)
        )),
    }
    match &asking[..] {
        [] => {}
        [task] => {
            lines.push(format!("polity: {0} waits for your answer: polity chat --task {0}", task.id));
        }
        several => {
            lines.push(format!("polity: {} wait for your answers: polity chat --task ID", listed(several)));
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn listed(tasks: &[&TaskView]) -> String {
    tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::examples::tasks;

    #[test]
    fn unfinished_tasks_are_named_with_the_command_that_shows_their_answers() {
        // The first two tasks are finished, the third waits for the user, and the last is open.
        let all = tasks();
        let check = |tasks: &[TaskView], expect: Option<&str>| {
            assert_eq!(goes_on(tasks).as_deref(), expect);
        };
        check(&all[..2], None);
        let asks = "polity: task-cccc waits for your answer: polity chat --task task-cccc";
        check(&all[..3], Some(asks));
        let works = "polity: root works on task-4x2k; the daemon goes on: polity chat --task task-4x2k shows the answer";
        check(&all, Some(&format!("{works}\n{asks}")));
        let two = [all[3].clone(), all[3].clone()];
        let works = "polity: root works on task-4x2k, task-4x2k; the daemon goes on: polity chat --task ID shows the answers";
        check(&two, Some(works));
    }
}
