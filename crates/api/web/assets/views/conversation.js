// The page with the messages between the person and the society, in full and with pictures.

import { h, fill } from "../dom.js";
import { momentsOf } from "../live.js";
import { arrange, morph, refill } from "../morph.js";
import { kept } from "../reading.js";
import { caughtUp, furtherBack, newestOf, nothingSaid } from "../talk.js";
import { arrivingMessage, hasArrived } from "./doing.js";
import { button, detailLink, filterChip, nothing, preview, time, titleOf, trouble, who } from "./shared.js";
import { typeName } from "./sentence.js";
import { written } from "./written.js";

const PAGE = 40;

export function mountConversation(app) {
  const { store, t, api } = app;
  let held = nothingSaid();
  // The task whose messages are shown. `undefined` means that nothing was read yet; `null` means all tasks.
  let task;
  let generation = 0;
  let anew = true;
  let reading = false;
  let returns = 0;
  let begins = 0;
  const unshown = new Set();
  let moments = null;
  /** The moments of root that have an answer which the page shows as arriving. */
  let arriving = [];

  const start = h("div.conversation-start");
  const list = h("div.messages", { role: "log", "aria-label": t("page.conversation") });
  // This element is not part of the list: otherwise a screen reader would read the whole text again with each piece
  // that arrives.
  const coming = h("div.arriving-messages");
  const scroll = h("div.scroll", { tabindex: "0" }, start, list, coming);
  // Pictures load later than the text, and the message box can grow. If the end of the list was visible before such a
  // change (`stuck`), it stays visible.
  let stuck = true;
  let top = 0;
  scroll.addEventListener("scroll", () => {
    if (scroll.clientHeight === 0) return;
    // The event comes later than the scrolling. If a picture was loaded in between, the list is longer, and its end is
    // out of sight. So only scrolling up means that the person has left the end.
    const isUp = scroll.scrollTop < top;
    top = scroll.scrollTop;
    if (isAtEnd()) stuck = true;
    else if (isUp) stuck = false;
    if (stuck) toNow.hidden = !held.behind;
  });
  const growth = new ResizeObserver(() => { if (stuck) toEnd(); });
  growth.observe(list);
  growth.observe(coming);
  growth.observe(scroll);
  const chosen = h("div.pane-head", { hidden: true });
  const toNow = button(t("conversation.new"), () => {
    if (held.behind) load();
    else toEnd();
    toNow.hidden = true;
  }, { class: "to-newest", hidden: true }, "down");
  const element = h("section.page.page-conversation", { "aria-label": t("page.conversation") }, chosen,
    h("div.scroll-holder", {}, scroll, toNow));

  /** Rereads the newest page after a new message, because events do not contain attachments. */
  const catchUp = kept(async () => {
    const mine = generation;
    try {
      const page = await pageOf();
      await learnUnshown();
      if (mine !== generation) return;
      const atEnd = anew || stuck;
      const last = held.messages.at(-1)?.id;
      held = anew ? newestOf(page) : caughtUp(held, page, atEnd);
      anew = false;
      draw();
      if (atEnd) toEnd();
      else if (held.behind || held.messages.at(-1)?.id !== last) toNow.hidden = false;
    } catch (error) {
      if (mine === generation && anew) fill(start, trouble(app, error, catchUp));
      throw error;
    }
  }, { delay: 80, signal: app.signal });

  /** Discards the held messages and reads the newest page. */
  function load() {
    generation += 1;
    anew = true;
    catchUp();
  }

  async function pageOf(before) {
    const page = await api.messages({ with: "user", task, order: "newest", limit: PAGE, before });
    return { messages: page.messages.reverse(), next: page.next };
  }

  async function learnUnshown() {
    const page = await api.messages({ to: "user", unshown: true, limit: 1000 });
    unshown.clear();
    for (const message of page.messages) unshown.add(message.id);
  }

  async function earlier() {
    if (!held.next || reading) return;
    reading = true;
    const mine = generation;
    try {
      const page = await pageOf(held.next);
      if (mine !== generation) return;
      stuck = false;
      const height = scroll.scrollHeight - scroll.scrollTop;
      held = furtherBack(held, page);
      draw();
      scroll.scrollTop = scroll.scrollHeight - height;
    } catch (error) {
      app.say(app.explain(error), "bad");
    } finally {
      reading = false;
    }
  }

  const isAtEnd = () => scroll.scrollTop + scroll.clientHeight > scroll.scrollHeight - 60;
  const toEnd = () => {
    stuck = true;
    scroll.scrollTop = scroll.scrollHeight;
    top = scroll.scrollTop;
  };

  function draw() {
    refill(start, held.next
      ? button(t("conversation.earlier"), earlier, { class: "earlier" }, "up")
      : held.messages.length > 0 ? h("p.dim.small", {}, t("conversation.start")) : welcome());
    const drawn = new Map([...list.children].map((child) => [child.dataset.version, child]));
    const known = new Map([...list.children].map((child) => [child.dataset.id, child]));
    let before = null;
    const wanted = [];
    for (const message of held.messages) {
      const apart = message.task !== before && !task;
      if (apart) {
        const version = `task-${message.id} ${titleOf(app, message.task)}`;
        wanted.push(drawn.get(version) ?? versioned(version, separator(message.task)));
      }
      before = message.task;
      const version = `${message.id} ${message.state} ${message.answeredBy ?? ""}`;
      wanted.push(drawn.get(version) ?? versioned(version, renewed(known.get(message.id), bubble(message))));
    }
    // Keep existing elements, so that screen readers do not announce them again and media continue to play.
    arrange(list, wanted);
    drawArriving([]);
    markShown();
  }

  /** Shows the answers of root that are arriving, and below them the answers in `ended`, which have ended. */
  function drawArriving(ended) {
    const now = momentsOf(store.model.moments, "root").filter((one) => (!task || one.task === task) && hasArrived(one.saying));
    arriving = [...now, ...ended];
    coming.hidden = held.behind;
    refill(coming, arriving.map((one) => arrivingMessage(app, one)));
  }

  /**
   * Shows all that has arrived of root's answers by now. An answer that has ended stays until the next read, which
   * contains its message.
   */
  function followAnswers() {
    const before = arriving;
    drawArriving([]);
    const ended = before.filter((one) => !arriving.some((other) => other.task === one.task && other.saying.answer === one.saying.answer));
    if (ended.length === 0) return;
    drawArriving(ended);
    catchUp();
  }

  /** Gives the element of a message, if there is one, its new content. */
  function renewed(element, bubble) {
    return element ? morph(element, bubble) : bubble;
  }

  function versioned(version, child) {
    child.dataset.version = version;
    return child;
  }

  function welcome() {
    return nothing(t("conversation.empty"), h("p.dim", {}, t("conversation.empty.more")));
  }

  function separator(id) {
    return h("div.separator", {}, h("span", {}, t("task")), h("button.link", {
      type: "button", title: t("filter.this.task"), onclick: () => app.chooseTask(id),
    }, titleOf(app, id)));
  }

  function bubble(message) {
    const mine = message.from === "user";
    const asks = message.to === "user" && message.expects === "answer";
    const open = asks && !message.answeredBy;
    const notice = message.type === "notice" || message.from === "system";
    const classes = [mine ? "mine" : "", open ? "asks" : "", notice ? "notice" : "", message.finality === "interim" && !mine ? "interim" : ""];
    return h("article.message", { class: classes.filter(Boolean).join(" "), "data-id": message.id },
      h("header", {}, who(app, message.from),
        mine && message.to !== "root" ? [h("span.arrow", {}, "→"), who(app, message.to)] : null,
        message.type === "general" || notice ? null : h("span.tag", {}, typeName(app, message.type)),
        message.finality === "interim" && !mine && !asks ? h("span.tag.quiet", {}, t("message.interim")) : null,
        open ? h("span.badge.ask", {}, t("asks")) : null,
        h("span.spring"),
        detailLink(app, "message", message.id, { class: "quiet-link" }, time(app, message.createdAt))),
      written(app, message.id, message.text),
      message.attachments.length > 0
        ? h("div.attachments", {}, message.attachments.map((artifact) => preview(app, artifact))) : null,
      open ? button(t("answer"), () => app.compose({ to: message.from, task: message.task }), { class: "primary small" }) : null);
  }

  /** Tells the daemon that the person has seen the held messages, if this page is visible. */
  function markShown() {
    if (document.hidden || store.ui.route.page !== "conversation") return;
    for (const message of held.messages) {
      if (!unshown.delete(message.id)) continue;
      api.shown(message.id).catch(() => unshown.add(message.id));
    }
  }

  document.addEventListener("visibilitychange", markShown, { signal: app.signal });

  return {
    element,
    focus: () => scroll.focus(),
    update(model, ui, entries) {
      if (!model.ready) return;
      if (task !== ui.task || begins !== model.begins) {
        ({ task } = ui);
        ({ returns, begins } = model);
        chosen.hidden = !task;
        refill(chosen, task ? filterChip(app, titleOf(app, task), () => app.chooseTask(null)) : null);
        drawArriving([]);
        load();
        return;
      }
      if (moments !== model.moments) {
        ({ moments } = model);
        followAnswers();
      }
      const concerns = entries.some((entry) =>
        (entry.event === "message_accepted" && (entry.to === "user" || entry.from === "user" || entry.inReplyTo))
        || entry.event === "message_due" || entry.event === "answer_settled" || entry.event === "task_forgotten" || entry.event === "agent_stopped");
      if (concerns || returns !== model.returns) catchUp();
      ({ returns } = model);
      markShown();
    },
  };
}
