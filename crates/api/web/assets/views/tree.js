// The tree of all agents, updated live.

import { h, icon } from "../dom.js";
import { alsoWaitsFor } from "../live.js";
import { refill } from "../morph.js";
import { short } from "../format.js";
import { STATES, counts } from "../state.js";
import { foldable, rowsOf, step } from "../tree.js";
import { VirtualList } from "../virtual.js";
import { timer } from "./calls.js";
import { detailsOf, silenceOf } from "./doing.js";

const ROW = 34;

export function mountTree(app) {
  const { store, t } = app;
  let rows = [];
  let before = [];

  const list = new VirtualList({
    keyOf: (row) => row.agent.id,
    heightOf: () => ROW,
    draw,
    same: (a, b) => a.agent === b.agent && a.open === b.open && a.children === b.children && a.faint === b.faint
      && a.level === b.level && a.place === b.place && a.siblings === b.siblings && a.hidden === b.hidden,
  });
  list.element.setAttribute("role", "tree");
  list.element.setAttribute("aria-label", t("tree"));
  list.element.tabIndex = 0;
  list.element.addEventListener("keydown", onkey);
  list.element.addEventListener("focus", () => mark());

  const search = h("input", {
    type: "search", placeholder: t("tree.find"), "aria-label": t("tree.find"), class: "find",
    oninput: (event) => look({ text: event.target.value.trim() }),
    onkeydown: (event) => {
      if (event.key === "ArrowDown" || event.key === "Enter") {
        event.preventDefault();
        list.element.focus();
      }
    },
  });
  const tasks = h("select", {
    "aria-label": t("filter.task"), class: "task-choice", onchange: (event) => app.chooseTask(event.target.value || null),
  });
  const legend = h("div.legend", { role: "group", "aria-label": t("tree.states") });
  const empty = h("p.nothing.small", { hidden: true }, t("tree.none"));
  const fold = h("button.link", { type: "button", "aria-expanded": "false", onclick: () => {
    const finished = !store.ui.tree.finished;
    look({ finished });
    app.prefer({ showFinished: finished });
  } });
  const foldRow = h("div.tree-fold", { hidden: true }, fold);
  const element = h("aside.society", { "aria-label": t("page.society") },
    h("div.pane-head", {}, tasks, search, legend), empty, list.element, foldRow);

  function look(change) {
    store.look({ tree: { ...store.ui.tree, ...change } });
  }

  function draw(row, at) {
    const { agent } = row;
    const asks = agent.waitsFor.includes("user") && agent.state !== "ended";
    const name = agent.name ?? agent.role;
    const item = h("div.row.tree-row", {
      role: "treeitem", id: `tree-${agent.id}`, "aria-level": row.level, "aria-posinset": row.place,
      "aria-setsize": row.siblings, "aria-expanded": row.children > 0 ? String(row.open) : null,
      "aria-label": [name, agent.id, t(`state.${agent.state}`), asks ? t("asks") : ""].filter(Boolean).join(", "),
      class: [row.faint ? "faint" : "", `is-${agent.state}`, asks ? "asks" : ""].filter(Boolean).join(" "),
      onclick: () => {
        look({ at: agent.id });
        app.open("agent", agent.id);
      },
      title: [detailsOf(app, agent.doing, Date.now()), silenceOf(app, agent.doing, Date.now()), waitsText(agent)]
        .filter(Boolean).join("; "),
    },
    h("span", {
      class: row.children > 0 ? `twist${row.open ? " open" : ""}` : "twist none",
      onclick: (event) => {
        if (row.children === 0) return;
        event.stopPropagation();
        toggle(agent.id, row.open);
      },
    }, row.children > 0 ? icon("open") : null),
    h("span", { class: `state-shape state-${agent.state}`, title: t(`state.${agent.state}`) }, icon(agent.state)),
    h("span.tree-name", {}, h("span.name", {}, name), name === agent.id ? null : h("span.id", {}, agent.id)),
    row.hidden > 0 ? h("span.tag", { title: t("tree.hidden", { n: row.hidden }) }, `+${row.hidden}`) : null,
    asks ? h("span.badge.ask", { title: t("asks") }, icon("question")) : null,
    agent.waiting > 0 ? h("span.badge", { title: t("unread", { n: agent.waiting }) }, icon("queued"), short(agent.waiting)) : null,
    h("span.tree-model", { title: agent.service ?? "" }, lasts(agent) ?? agent.model ?? agent.service ?? ""));
    item.style.setProperty("--level", Math.min(row.level, 10) - 1);
    item.dataset.at = at;
    return item;
  }

  /** Shows how long an agent has been in its state. Returns `null` for an agent that is idle or has ended. */
  function lasts(agent) {
    const since = agent.doing?.since;
    return since === undefined || ["idle", "ended"].includes(agent.state) ? null : timer(since);
  }

  function waitsText(agent) {
    const whom = alsoWaitsFor(agent);
    return whom.length > 0 ? t("waits.for", { who: whom.map((id) => app.nameOf(id)).join(", ") }) : "";
  }

  function toggle(id, open) {
    const closed = new Set(store.ui.tree.closed);
    if (open) closed.add(id);
    else closed.delete(id);
    look({ closed });
  }

  function selected() {
    const at = rows.findIndex((row) => row.agent.id === store.ui.tree.at);
    return at < 0 ? 0 : at;
  }

  function onkey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || rows.length === 0) return;
    const row = rows[selected()];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      app.open("agent", row.agent.id, { focus: true });
      return;
    }
    const lead = step(rows, selected(), event.key);
    if (!lead) return;
    event.preventDefault();
    if (lead.open) toggle(lead.open, false);
    else if (lead.close) toggle(lead.close, true);
    else {
      look({ at: rows[lead.at].agent.id });
      list.reveal(lead.at);
    }
  }

  /** Marks two rows: the row where the arrow keys start, and the row whose agent is open in the detail column. */
  function mark() {
    const at = rows.length > 0 ? rows[selected()].agent.id : null;
    const open = store.ui.route.detail?.kind === "agent" ? store.ui.route.detail.id : null;
    for (const item of list.space.children) {
      const id = item.id.slice("tree-".length);
      item.classList.toggle("at", id === at);
      item.setAttribute("aria-selected", String(id === open));
    }
    if (at && document.getElementById(`tree-${at}`)) list.element.setAttribute("aria-activedescendant", `tree-${at}`);
    else list.element.removeAttribute("aria-activedescendant");
  }

  function drawLegend(model, view) {
    const all = counts(model, store.ui.task);
    refill(legend, STATES.map((state) => h("button", {
      type: "button", class: `legend-state state-${state}`, "aria-pressed": String(view.states.has(state)),
      title: t(`state.${state}.what`),
      onclick: () => {
        const states = new Set(store.ui.tree.states);
        if (states.has(state)) states.delete(state);
        else states.add(state);
        look({ states });
        app.prefer({ states: [...states] });
      },
    }, icon(state), h("span", {}, t(`state.${state}`)), h("span.count", {}, short(all[state])))));
  }

  function drawTasks(model, ui) {
    refill(tasks, h("option", { value: "" }, t("tasks.all")), [...model.tasks.values()].slice(0, 200).map((task) =>
      h("option", { value: task.id }, task.title || task.id)));
    const chosen = ui.task ?? "";
    if (tasks.value !== chosen) tasks.value = chosen;
  }

  /** Shows how many finished agents are folded, or would be. */
  function drawFold(model, view) {
    const n = foldable(model.agents, view).length;
    foldRow.hidden = n === 0;
    fold.textContent = t("tree.finished", { n });
    fold.setAttribute("aria-expanded", String(view.finished));
  }

  return {
    element,
    focus: () => list.element.focus(),
    current: () => rows[selected()]?.agent.id ?? null,
    update(model, ui) {
      // The questions and calls that the person must decide tell in which task root is asking.
      const now = [model.agents, ui.tree, ui.task, model.questions, model.approvals, model.tasks];
      if (now.some((one, at) => one !== before[at])) {
        const counted = before[1]?.states !== ui.tree.states || now.some((one, at) => at !== 1 && one !== before[at]);
        if (counted) drawLegend(model, ui.tree);
        const view = { ...ui.tree, task: ui.task, tasks: model.tasks };
        rows = rowsOf(model.agents, view);
        drawFold(model, view);
        empty.hidden = rows.length > 0 || !model.ready;
        list.replace(rows, "row");
      }
      if (before[5] !== model.tasks || before[2] !== ui.task) drawTasks(model, ui);
      before = now;
      mark();
    },
  };
}
