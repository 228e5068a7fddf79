// The page with all tasks and the state of each task.

import { h } from "../dom.js";
import { short } from "../format.js";
import { refill } from "../morph.js";
import { outcomeOf, standing } from "./outcome.js";
import { button, iconButton, nothing, spent, time } from "./shared.js";

export function mountTasks(app) {
  const { store, t, api } = app;
  let state = app.preferences.taskState;
  let text = "";
  let before = null;
  let more = [];
  let next = null;
  const search = h("input.find", {
    type: "search", placeholder: t("tasks.find"), "aria-label": t("tasks.find"),
    oninput: () => {
      text = search.value.trim().toLowerCase();
      draw(store.model, store.ui);
    },
  });
  const states = h("select", {
    "aria-label": t("task.state"), onchange: () => {
      state = states.value;
      app.prefer({ taskState: state });
      draw(store.model, store.ui);
    },
  }, h("option", { value: "" }, t("task.any")), ["open", "answered", "awaits_user", "unanswered", "no_model", "limited"].map((one) =>
    h("option", { value: one }, t(one === "open" ? "task.open" : `outcome.${one}`))));
  states.value = state;
  const rows = h("tbody");
  const overRows = h("tbody.over", { hidden: true });
  const fold = h("button.link", { type: "button", "aria-expanded": "false", onclick: () => {
    app.prefer({ showOver: !app.preferences.showOver });
    draw(store.model, store.ui);
  } });
  const foldRow = h("tbody.fold", { hidden: true }, h("tr", {}, h("td", { colspan: "6" }, fold)));
  const foot = h("div.foot");
  const table = h("table.tasks", {}, h("thead", {}, h("tr", {},
    ["task.state", "task", "task.agents", "usage", "task.begun"].map((key) => h("th", { scope: "col" }, t(key))), h("td"))), rows, foldRow, overRows);
  const element = h("section.page.page-tasks", { "aria-label": t("page.tasks") },
    h("div.pane-head", {}, h("h2", {}, t("page.tasks")), states, search),
    h("div.scroll", { tabindex: "0" }, h("div.table-holder", {}, table), foot));

  async function readMore(after) {
    try {
      const page = await api.tasks(after);
      more = [...more, ...page.tasks];
      next = page.next ?? null;
      draw(store.model, store.ui);
    } catch (error) {
      app.say(app.explain(error), "bad");
    }
  }

  function draw(model, ui) {
    const all = new Map([...more.map((task) => [task.id, task]), ...model.tasks]);
    const sorted = [...all.values()].sort((a, b) => b.createdAt - a.createdAt);
    const chosen = sorted.filter((task) => (state === "" || standing(task) === state)
      && (text === "" || `${task.title} ${task.id}`.toLowerCase().includes(text)));
    // Active tasks come first. Finished tasks are folded, unless the person has chosen a state or entered a search
    // text.
    const chosenFew = chosen.slice(0, 500);
    const folds = state === "" && text === "" && chosenFew.some(isActive);
    const active = folds ? chosenFew.filter(isActive) : chosenFew;
    const over = folds ? chosenFew.filter((task) => !isActive(task)) : [];
    foldRow.hidden = over.length === 0;
    overRows.hidden = !app.preferences.showOver;
    fold.textContent = t("tasks.over", { n: over.length });
    fold.setAttribute("aria-expanded", String(app.preferences.showOver));
    refill(rows, active.map((task) => row(task, ui)));
    refill(overRows, over.map((task) => row(task, ui)));
    const last = more.length > 0 ? next : model.tasks.size >= 200 ? "first" : null;
    refill(foot, chosen.length === 0 ? nothing(t("tasks.none")) : null,
      last ? button(t("more"), () => readMore(last === "first" ? undefined : last)) : null);
  }

  /** Whether a task is open or has questions that wait for the person. */
  function isActive(task) {
    return task.state === "open" || task.waitingForUser > 0;
  }

  function row(task, ui) {
    return h("tr", {
      "data-key": task.id, class: `task-${standing(task)}${task.id === ui.task ? " chosen" : ""}`,
    },
    h("td", {}, outcomeOf(app, task)),
    h("td.task-title", {}, h("button.link", { type: "button", onclick: () => {
      app.chooseTask(task.id);
      app.go("conversation");
    } }, task.title || task.id), h("div.id", {}, task.id),
    task.forkedFrom ? h("div.id.fork-of", {}, t("task.fork_of", { from: task.forkedFrom })) : null),
    h("td.number", {}, short(task.agents)),
    h("td", {}, spent(app, task.usage)),
    h("td", {}, time(app, task.createdAt)),
    h("td", {}, task.state === "open"
      ? iconButton(t("task.stop"), "stop", () => app.stopTask(task), { class: "bare danger" }) : null,
    iconButton(t("task.files.of"), "document", () => app.open("task", task.id, { focus: true }), { class: "bare task-files" })));
  }

  return {
    element,
    focus: () => search.focus(),
    update(model, ui) {
      if (ui.route.page !== "tasks" || (before?.[0] === model.tasks && before[1] === ui.task)) return;
      before = [model.tasks, ui.task];
      draw(model, ui);
    },
  };
}
