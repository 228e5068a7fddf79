// What the person and the society have said to each other, whole and with its pictures.

import { h, fill } from "../dom.js";
import { button, detailLink, filterChip, nothing, preview, time, titleOf, trouble, who } from "./shared.js";
import { typeName } from "./sentence.js";

const PAGE = 40;
/** How many messages are held; what is older is read again when it is asked for. */
const BOUND = 200;
const LONG = 6000;

export function mountConversation(app) {
  const { store, t, api } = app;
  let messages = [];
  let next = null;
  // Not read yet: `null` would be all tasks.
  let task;
  let generation = 0;
  let reading = false;
  let again = false;
  let scheduled = 0;
  const unshown = new Set();

  const start = h("div.conversation-start");
  const list = h("div.messages", { role: "log", "aria-label": t("page.conversation") });
  const scroll = h("div.scroll", { tabindex: "0" }, start, list);
  // Pictures come later than the text around them, and the box below grows: whoever was at the end stays there.
  let stuck = true;
  scroll.addEventListener("scroll", () => { if (scroll.clientHeight > 0) stuck = isAtEnd(); });
  const growth = new ResizeObserver(() => { if (stuck) toEnd(); });
  growth.observe(list);
  growth.observe(scroll);
  const chosen = h("div.pane-head", { hidden: true });
  const element = h("section.page.page-conversation", { "aria-label": t("page.conversation") }, chosen, scroll);

  async function load() {
    generation += 1;
    const mine = generation;
    fill(start);
    try {
      const page = await api.messages({ with: "user", task, order: "newest", limit: PAGE });
      if (mine !== generation) return;
      messages = page.messages.reverse();
      next = page.next;
      await learnUnshown();
      if (mine !== generation) return;
      draw();
      toEnd();
    } catch (error) {
      if (mine === generation) fill(start, trouble(app, error, load));
    }
  }

  async function learnUnshown() {
    const page = await api.messages({ to: "user", unshown: true, limit: 1000 });
    unshown.clear();
    for (const message of page.messages) unshown.add(message.id);
  }

  async function earlier() {
    if (!next || reading) return;
    reading = true;
    const mine = generation;
    try {
      const page = await api.messages({ with: "user", task, order: "newest", limit: PAGE, before: next });
      if (mine !== generation) return;
      stuck = false;
      const height = scroll.scrollHeight - scroll.scrollTop;
      messages = [...page.messages.reverse(), ...messages].slice(0, BOUND);
      next = page.next;
      draw();
      scroll.scrollTop = scroll.scrollHeight - height;
    } catch (error) {
      app.say(app.explain(error), "bad");
    } finally {
      reading = false;
    }
  }

  /** Something was said to the person or by the person: the newest are read again, because events hold no files. */
  async function catchUp() {
    if (reading) {
      again = true;
      return;
    }
    reading = true;
    const mine = generation;
    try {
      const page = await api.messages({ with: "user", task, order: "newest", limit: PAGE });
      await learnUnshown();
      if (mine !== generation) return;
      const atEnd = stuck;
      const fresh = new Map(page.messages.reverse().map((message) => [message.id, message]));
      const joined = messages.some((message) => fresh.has(message.id)) || messages.length === 0;
      const kept = joined ? messages.filter((message) => !fresh.has(message.id)) : [];
      if (!joined || messages.length === 0) next = page.next;
      messages = [...kept, ...fresh.values()];
      if (messages.length > BOUND) {
        messages = messages.slice(-BOUND);
        next = messages[0].id;
      }
      draw();
      if (atEnd) toEnd();
    } catch {
      // The stream tells whether the daemon is there; the next message brings another try.
    } finally {
      reading = false;
      if (again) {
        again = false;
        catchUp();
      }
    }
  }

  const isAtEnd = () => scroll.scrollTop + scroll.clientHeight > scroll.scrollHeight - 60;
  const toEnd = () => {
    stuck = true;
    scroll.scrollTop = scroll.scrollHeight;
  };

  function draw() {
    fill(start, next
      ? button(t("conversation.earlier"), earlier, { class: "earlier" }, "up")
      : messages.length > 0 ? h("p.dim.small", {}, t("conversation.start")) : welcome());
    const drawn = new Map([...list.children].map((child) => [child.dataset.version, child]));
    let before = null;
    const wanted = [];
    for (const message of messages) {
      const apart = message.task !== before && !task;
      if (apart) {
        const version = `task-${message.id}`;
        wanted.push(drawn.get(version) ?? versioned(version, separator(message.task)));
      }
      before = message.task;
      const version = `${message.id} ${message.state} ${message.answeredBy ?? ""}`;
      wanted.push(drawn.get(version) ?? versioned(version, bubble(message)));
    }
    list.replaceChildren(...wanted);
    markShown();
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
      longText(message.text),
      message.attachments.length > 0
        ? h("div.attachments", {}, message.attachments.map((artifact) => preview(app, artifact))) : null,
      open ? button(t("answer"), () => app.compose({ to: message.from, task: message.task }), { class: "primary small" }) : null);
  }

  function longText(text) {
    if (text.length <= LONG) return h("div.prose", {}, text);
    const body = h("div.prose", {}, `${text.slice(0, LONG)}…`);
    const more = button(t("show.whole", { n: text.length }), () => {
      body.textContent = text;
      more.remove();
    }, { class: "link" });
    return [body, more];
  }

  /** The person has seen what is on a page that is being looked at. */
  function markShown() {
    if (document.hidden || store.ui.route.page !== "conversation") return;
    for (const message of messages) {
      if (!unshown.delete(message.id)) continue;
      api.shown(message.id).catch(() => unshown.add(message.id));
    }
  }

  document.addEventListener("visibilitychange", markShown);

  return {
    element,
    focus: () => scroll.focus(),
    update(model, ui, entries) {
      if (!model.ready) return;
      if (task !== ui.task) {
        task = ui.task;
        chosen.hidden = !task;
        fill(chosen, task ? filterChip(app, titleOf(app, task), () => app.chooseTask(null)) : null);
        load();
        return;
      }
      const concerns = entries.some((entry) =>
        (entry.event === "message_accepted" && (entry.to === "user" || entry.from === "user" || entry.inReplyTo))
        || entry.event === "message_due" || entry.event === "task_forgotten" || entry.event === "agent_stopped");
      if (concerns && !scheduled) {
        scheduled = setTimeout(() => {
          scheduled = 0;
          catchUp();
        }, 80);
      }
      markShown();
    },
  };
}
