// Shows the state of a task in a word, and links to the reasons for it.

import { h, icon } from "../dom.js";
import { whyLink } from "./shared.js";

const SHAPES = { open: "thinking", answered: "conversation", awaits_user: "question", unanswered: "ended", no_model: "parked", limited: "stop" };

/** Returns the state of a task in one word: `open`, or its outcome. */
export function standing(task) {
  return task.state === "open" ? "open" : task.outcome ?? "unanswered";
}

/** Shows the state of a task, and who or what stopped it. If the task has no answer, adds a link to the reasons. */
export function outcomeOf(app, task) {
  const { t } = app;
  const state = standing(task);
  const isExplained = task.state === "idle" && task.outcome && task.outcome !== "answered" && !task.forgottenAt;
  return [
    h("span", { class: `outcome outcome-${state}` }, icon(SHAPES[state]), t(state === "open" ? "task.open" : `outcome.${state}`)),
    isExplained ? whyLink(app, task.id) : null,
    task.waitingForUser > 0 ? h("span.badge.ask", {}, t("task.questions", { n: task.waitingForUser })) : null,
    task.stoppedBy ? h("div.dim.small", {}, t("task.stopped", { by: task.stoppedBy === "user" ? t("you") : task.stoppedBy })) : null,
  ];
}
