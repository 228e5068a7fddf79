// The page with all messages and other events. It holds only a part of the events (see `window.js`).

import { callKey } from "../calls.js";
import { h, fill } from "../dom.js";
import { GROUPS, brief, groupOf, kindsOf, matches } from "../events.js";
import { clock, firstLine } from "../format.js";
import { refill } from "../morph.js";
import { VirtualList } from "../virtual.js";
import { PAGE, empty, live, newer, newest, older, oldest } from "../window.js";
import { timer } from "./calls.js";
import { chipCount, chipsOf, isExplained, isTrouble, sentence, textOf } from "./sentence.js";
import { button, filterChip, iconButton, nothing, time, titleOf, trouble, whyLink } from "./shared.js";

const LINE = 30;
const TEXT_LINE = 20;
const CHIPS = 30;
/**
 * The part of a row's width, in pixels, that the time column and the margins take. The text of the row cannot use it.
 */
const BESIDE = 110;
/** A number greater than every event number. A read of the events before this number returns the newest page. */
const END = Number.MAX_SAFE_INTEGER;

export function mountTimeline(app) {
  const { store, t, api } = app;
  let window = empty();
  let filter = { task: null, agent: null, kinds: [] };
  let reading = false;
  let generation = 0;
  let settled = [];
  let calls = null;
  let width = 600;

  const list = new VirtualList({
    keyOf: (entry) => entry.seq, heightOf, draw,
    onscroll: () => { extend(); stateOfEnd(); },
  });
  list.element.setAttribute("role", "log");
  list.element.setAttribute("aria-live", "off");
  list.element.setAttribute("aria-label", t("page.timeline"));
  list.element.tabIndex = 0;
  new ResizeObserver(() => {
    const now = list.element.clientWidth;
    if (now === 0 || Math.abs(now - width) < 8) return;
    width = now;
    list.replace(window.entries, list.stuck ? "end" : "row");
  }).observe(list.element);

  const groups = h("div.chips", { role: "group", "aria-label": t("filter.kind") });
  const chosen = h("div.chips");
  const toNow = button("", () => load("newest"), { class: "to-newest", hidden: true }, "down");
  const head = h("div.pane-head.timeline-head", {}, h("div.filters", {}, chosen, groups),
    h("span.spring"),
    iconButton(t("timeline.oldest"), "up", () => load("oldest")),
    iconButton(t("timeline.newest"), "down", () => load("newest")));
  const message = h("div.timeline-message");
  const element = h("section.page.page-timeline", { "aria-label": t("page.timeline") }, head,
    h("div.scroll-holder", {}, message, list.element, toNow));

  function heightOf(entry) {
    const text = textOf(entry);
    let height = LINE;
    if (text) height += TEXT_LINE * (fitsOneLine(text, width) ? 1 : 2) + 4;
    if (chipCount(entry) > 0) height += CHIPS;
    return height;
  }

  /** Shows the progress of a running call in the row of the event that started it. */
  function drawLive(entry, row) {
    if (entry.event !== "tool_started") return;
    const call = store.model.calls.get(callKey(entry));
    const isThis = call?.began === entry.seq;
    refill(row.querySelector(".event-live"), isThis && call.state === "running"
      ? [timer(call.begunAt), call.progress ? h("span.dim", {}, firstLine(call.progress, 160)) : null] : []);
  }

  function draw(entry) {
    const row = drawRow(entry);
    drawLive(entry, row);
    return row;
  }

  function drawRow(entry) {
    const text = textOf(entry);
    const chips = entry.event === "artifact_stored" ? [] : chipsOf(app, entry);
    return h("article.row.event", {
      class: `group-${groupOf(entry) ?? "other"}${isTrouble(entry) ? " bad" : ""}${entry.to === "user" ? " to-user" : ""}`,
      "data-seq": entry.seq,
    },
    h("div.event-line", {}, time(app, entry.at, clock(entry.at)), h("span.event-what", {}, sentence(app, entry)),
      isExplained(entry) ? whyLink(app, entry.seq) : null,
      h("span.seq", {}, entry.seq)),
    text ? h("div.event-text", {
      class: entry.event === "message_accepted" ? "openable" : "",
      onclick: entry.event === "message_accepted" ? () => app.open("message", entry.message) : null,
    }, text) : null,
    chips.length > 0 ? h("div.chips.event-chips", {}, chips.slice(0, 12),
      chips.length > 12 ? h("span.tag", {}, `+${chips.length - 12}`) : null) : null);
  }

  const asked = () => ({ task: filter.task, agent: filter.agent, kind: filter.kinds.join(",") });

  async function read(bound) {
    const { events } = await api.events({ ...asked(), ...bound, limit: PAGE });
    app.learn(events);
    return events.map(brief);
  }

  async function load(from) {
    generation += 1;
    const mine = generation;
    window = empty();
    show("top");
    fill(message);
    try {
      const bound = from === "oldest" ? { after: 0 } : { before: END };
      const events = await read(bound);
      if (mine !== generation) return;
      window = from === "oldest" ? oldest(window, events) : newest(window, events);
      show(from === "oldest" ? "top" : "end");
      if (from === "oldest") list.element.scrollTop = 0;
      if (window.entries.length === 0) fill(message, nothing(t(filtered() ? "timeline.none" : "timeline.empty")));
    } catch (error) {
      if (mine === generation) fill(message, trouble(app, error, () => load(from)));
    }
  }

  const filtered = () => Boolean(filter.task || filter.agent || filter.kinds.length > 0);

  /** Reads another page when the person scrolls near an end of the window. */
  async function extend() {
    if (reading || window.loading || window.entries.length === 0) return;
    const { scrollTop, clientHeight } = list.element;
    const up = scrollTop < 800 && !window.head;
    const down = !up && !window.tail && scrollTop + clientHeight > list.starts[window.entries.length] - 800;
    if (!up && !down) return;
    reading = true;
    let more = false;
    const mine = generation;
    const { heard } = window;
    try {
      const bound = up ? { before: window.entries[0].seq } : { after: window.entries.at(-1).seq };
      const events = await read(bound);
      if (mine !== generation) return;
      window = up ? older(window, events) : newer(window, events, heard);
      show("row");
      // Read another page if the window does not reach the newest event yet, for example because live events arrived
      // during the read.
      more = down && !window.tail;
    } catch {
      // The page is read again when the person scrolls further. The banner shows whether the daemon is reachable.
    } finally {
      reading = false;
      if (more) extend();
    }
  }

  function show(hold) {
    list.replace(window.entries, hold);
    stateOfEnd();
    Object.assign(list.element.dataset, {
      held: window.entries.length, first: window.entries[0]?.seq ?? "", last: window.entries.at(-1)?.seq ?? "",
    });
  }

  function stateOfEnd() {
    if (list.element.clientHeight === 0) return;
    const away = !window.tail || !list.atEnd();
    list.stuck = !away;
    toNow.hidden = !away || window.loading || window.entries.length === 0;
    const label = window.missed > 0 ? t("timeline.missed", { n: window.missed }) : t("timeline.newest");
    const shown = toNow.querySelector(".label");
    if (!shown) toNow.append(h("span.label", {}, label));
    else if (shown.textContent !== label) shown.textContent = label;
  }

  function drawFilters(ui) {
    refill(groups, Object.keys(GROUPS).map((group) => h("button", {
      type: "button", class: `chip group-${group}`, "aria-pressed": String(ui.groups.has(group)),
      onclick: () => {
        const next = new Set(store.ui.groups);
        if (next.has(group)) next.delete(group);
        else next.add(group);
        store.look({ groups: next });
        app.prefer({ groups: [...next] });
      },
    }, t(`group.${group}`))));
    refill(chosen, ui.task ? filterChip(app, titleOf(app, ui.task), () => app.chooseTask(null)) : null,
      ui.agent ? filterChip(app, t("filter.agent", { agent: app.nameOf(ui.agent) }), () => store.look({ agent: null })) : null);
  }

  return {
    element,
    focus: () => list.element.focus(),
    update(model, ui, entries) {
      if (!model.ready) return;
      if (calls !== model.calls) {
        ({ calls } = model);
        for (const { row, element: drawn } of list.shown.values()) drawLive(row, drawn);
      }
      const wanted = [ui.task, ui.agent, ui.groups, model.begins];
      if (wanted.some((one, at) => one !== settled[at]) || settled.length === 0) {
        settled = wanted;
        filter = { task: ui.task, agent: ui.agent, kinds: kindsOf(ui.groups) };
        drawFilters(ui);
        load("newest");
        return;
      }
      const fresh = entries.filter((entry) => matches(filter, entry, (id) => model.agents.get(id)?.task));
      if (fresh.length === 0) return;
      const atEnd = window.tail && list.atEnd();
      const before = window;
      window = live(window, fresh, atEnd ? "end" : "middle");
      if (window.entries === before.entries) return stateOfEnd();
      fill(message);
      show(atEnd ? "end" : "top");
    },
  };
}

/**
 * Estimates whether a text fits on one line. To measure the text, the browser would have to lay out invisible rows, so
 * this function only estimates.
 */
function fitsOneLine(text, width) {
  if (text.length > 200 || text.includes("\n")) return false;
  let needs = 0;
  for (const character of text) needs += character.codePointAt(0) > 0x2e7f ? 13.2 : 7.2;
  return needs < width - BESIDE;
}
