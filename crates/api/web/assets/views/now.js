// The home page: the agents that work or wait, and everything that cannot continue without the person.

import { h, icon } from "../dom.js";
import { momentsOf } from "../live.js";
import { actionsOf, arrivingLine, asOfNow, lastParts, quoteOf, stuckParts, whyAtWork, whyStuck } from "../now.js";
import { kept } from "../reading.js";
import { refill } from "../morph.js";
import { timer } from "./calls.js";
import { forkTurn } from "./dialogs.js";
import { doingLine } from "./doing.js";
import { button, nothing, spent, time, who, whyLink } from "./shared.js";

/**
 * Pause between an event and the read that it causes, in milliseconds. Further events during the pause cause no further
 * read.
 */
const REREAD_MS = 500;
/**
 * Pause between reads, in milliseconds. Regular reads are needed because some data, such as the place in a queue,
 * changes without an event.
 */
const BETWEEN_READS_MS = 2_500;

const SHAPES = { question: "question", approval: "approvals", request: "waiting", parked: "parked", paused: "paused", service: "services", answered: "tasks" };

export function mountNow(app) {
  const { store, t, api } = app;
  let view = null;
  let seen = [];
  let busy = null;
  let wantsFocus = false;
  let drawn = null;
  const cards = h("div.now-cards");
  const stuck = h("div.now-stuck");
  const scroll = h("div.scroll", { tabindex: "0" }, cards, stuck);
  const element = h("section.page.page-now", { "aria-label": t("page.now") }, scroll);

  const isShown = () => store.ui.route.page === "now" && store.model.ready;
  const read = kept(async () => {
    if (!isShown()) return;
    view = await api.now();
    draw();
  }, { delay: REREAD_MS, signal: app.signal });

  const tick = setInterval(() => {
    if (isShown() && store.model.connection === "live" && !document.hidden && view?.workingTotal > 0) read();
  }, BETWEEN_READS_MS);
  app.signal.addEventListener("abort", () => clearInterval(tick));

  /** Carries out an action on a stuck item. Until the action ends, the buttons of this item do nothing. */
  async function act(item, action) {
    if (busy === item.key) return;
    busy = item.key;
    draw();
    try {
      await carryOut(action);
    } catch (error) {
      app.say(app.explain(error), "bad");
    }
    busy = null;
    draw();
    read();
  }

  async function carryOut(action) {
    switch (action.does) {
      case "write":
        return app.compose({ to: action.to, task: action.task });
      case "decide":
        return app.act({ does: "approval" });
      case "resume":
        await api.steer(action.agent, "resume", action.scope);
        return app.say(t("resume.done", { n: 1 }));
      case "service":
        await api.patchRole(action.role, { serviceId: action.service });
        if (action.resume) await api.steer(action.resume, "resume", "agent");
        return app.say(t("now.service.done", { service: action.service }));
      case "runAgain":
        return forkTurn(app, { task: action.task, turn: action.turn }, null, action.service);
      case "tryAgain":
        await api.tryService(action.service);
        return app.say(t("now.try_again.done", { service: action.service }));
      case "checkService":
        return app.go("services");
      case "stopAgent":
        return app.steer(action.agent, "stop");
      default:
        return app.stopTask(store.model.tasks.get(action.task) ?? { id: action.task });
    }
  }

  function card(found) {
    const one = asOfNow(found, store.model.agents.get(found.id));
    const why = whyAtWork(one, store.model.agents);
    const arrives = arrivingLine(momentsOf(store.model.moments, one.id).find((moment) => moment.saying && moment.task === one.activeIn)?.saying);
    return h("article.now-card", { "data-key": one.id, class: `is-${one.state}` },
      h("header", {}, who(app, one.id), h("span.spring"), one.usage.calls > 0 ? h("span.dim", {}, spent(app, one.usage)) : null),
      one.objective ? h("p.now-objective", { title: one.objective }, one.objective) : null,
      h("p.now-doing", {}, doingLine(app, one), why ? whyLink(app, why) : null),
      one.last ? h("p.now-last", { title: one.last.text ?? "" }, time(app, one.last.at), " ", lastParts(t, one.last, (id) => app.nameOf(id))) : null,
      arrives ? h("p.now-arriving", { title: t("doing.arriving") }, arrives) : null);
  }

  function thing(item) {
    const actions = item.remedies.flatMap((remedy) => actionsOf(t, remedy, item, (id) => app.nameOf(id)));
    const quote = quoteOf(item);
    const why = whyStuck(item, store.model.agents);
    return h("li.stuck-item", { "data-key": item.key, class: `stuck-${item.stuck}` },
      h("div.stuck-head", {}, icon(SHAPES[item.stuck] ?? "parked"), h("span.stuck-what", {}, stuckParts(t, item, (id) => who(app, id))),
        why ? whyLink(app, why) : null, h("span.spring"), timer(item.since)),
      quote ? h("p.stuck-quote", { title: quote }, quote) : null,
      item.title ? h("p.dim.small.stuck-task", {}, t("now.in.task", { title: item.title })) : null,
      h("div.actions", {}, actions.map((action, at) => button(action.label, () => act(item, action), {
        class: ["small", at === 0 ? "primary" : "", action.does.startsWith("stop") ? "danger" : ""].join(" "),
        "data-does": action.does, disabled: busy === item.key,
      }))));
  }

  /**
   * Focuses the first button that carries out a remedy. Waits until the page is shown, because hidden buttons cannot
   * get the focus.
   */
  function takeFocus() {
    if (!wantsFocus || element.hidden || !view) return;
    wantsFocus = false;
    (element.querySelector(".stuck-item button") ?? scroll).focus();
  }

  function draw() {
    if (!view) return;
    drawn = store.model.agents;
    const rest = (total, shown) => (total > shown ? h("p.dim.small", {}, t("now.more", { n: total - shown })) : null);
    const waiting = view.workingTotal - view.atWorkTotal;
    refill(cards, h("h2", {}, t("now.working", { n: view.atWorkTotal }), waiting > 0 ? t("now.waiting", { n: waiting }) : null),
      view.working.length === 0 ? nothing(t("now.nobody")) : h("div.now-grid", { "data-key": "grid" }, view.working.map(card)),
      rest(view.workingTotal, view.working.length));
    stuck.hidden = view.stuckTotal === 0;
    refill(stuck, h("h2", {}, icon("parked"), t("now.stuck", { n: view.stuckTotal })),
      h("ul", { "data-key": "list" }, view.stuck.map(thing)), rest(view.stuckTotal, view.stuck.length));
    takeFocus();
  }

  return {
    element,
    focus() {
      wantsFocus = true;
      takeFocus();
    },
    update(model, ui) {
      // The frame makes the page visible only after this update, so take the focus after the update.
      if (wantsFocus) queueMicrotask(takeFocus);
      const now = [ui.route.page === "now", model.ready, model.seq, model.returns, model.services];
      if (now.some((one, at) => one !== seen[at])) {
        seen = now;
        if (isShown()) read();
      } else if (ui.route.page === "now" && drawn !== model.agents) {
        draw();
      }
    },
  };
}
