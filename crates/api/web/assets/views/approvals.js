// The page with the calls that wait for the person's answer, and with the permissions: what the person has allowed
// for more than one call.

import { isDiff } from "../diff.js";
import { h, icon } from "../dom.js";
import { refill } from "../morph.js";
import { diffBlock } from "./diff.js";
import { button, code, facts, nothing, section, time, titleOf, who } from "./shared.js";

/** The answers that allow the call, in the order of the buttons. */
const ALLOWING = ["yes", "task", "always"];

export function mountApprovals(app) {
  const { store, t, api } = app;
  let before = [];
  let wantsFocus = false;
  /** The ids of the questions whose answers are being sent. */
  const sending = new Set();

  const heading = h("h2", { tabindex: "-1" }, t("page.approvals"));
  const list = h("div.approvals");
  const allowed = h("div.permissions");
  const element = h("section.page.page-approvals", { "aria-label": t("page.approvals") },
    h("div.pane-head", {}, heading), h("div.scroll", {}, list, allowed));

  const cardOf = (id) => [...list.children].find((card) => card.dataset.key === id);

  async function answer(approval, choice) {
    if (sending.has(approval.id)) return;
    const reason = choice === "no" ? cardOf(approval.id)?.querySelector("input").value.trim() : "";
    const hadFocus = cardOf(approval.id)?.contains(document.activeElement);
    const place = store.model.approvals.findIndex((one) => one.id === approval.id);
    sending.add(approval.id);
    draw(store.model);
    try {
      await api.answerApproval(approval.id, choice, reason || undefined);
      app.say(t(choice === "no" ? "approval.refused" : "approval.allowed", { tool: approval.tool }));
    } catch (error) {
      app.say(app.explain(error), "bad");
    }
    // Reread the questions, because the person may have answered other questions in another program.
    await app.rereadApprovals().catch(() => {});
    sending.delete(approval.id);
    draw(store.model);
    const cards = list.querySelectorAll(".approval");
    if (hadFocus) (cards[Math.min(place, cards.length - 1)] ?? heading).focus();
  }

  async function remove(permission) {
    try {
      await api.removePermission(permission.id);
    } catch (error) {
      app.say(app.explain(error), "bad");
    }
    await app.rereadApprovals().catch(() => {});
    heading.focus();
  }

  /** Shows all arguments of a call by their names. */
  function argumentsOf(given) {
    const named = given && typeof given === "object" && !Array.isArray(given) ? Object.entries(given) : [["", given]];
    return facts(...named.map(([name, value]) => [h("code", {}, name), code(value)]));
  }

  function preview(text) {
    return isDiff(text) ? diffBlock(app, text) : code(text);
  }

  function card(approval) {
    const busy = sending.has(approval.id);
    const label = `approval-${approval.id}`;
    return h("article.approval", { "data-key": approval.id, tabindex: "-1", "aria-labelledby": label },
      h("header", {}, h("h3", { id: label }, icon("asking"),
        t.parts("approval.wants", { agent: who(app, approval.agent), tool: h("code", {}, approval.tool) })),
      h("span.tag", { title: t("role") }, approval.role), h("span.spring"), time(app, approval.askedAt)),
      facts([t("approval.why"), approval.why],
        [t("approval.way"), approval.way?.length > 0 ? h("ol.way", {}, approval.way.map((step) => h("li", {}, step))) : null],
        [t("task"), titleOf(app, approval.task)],
        [t("approval.expires"), time(app, approval.expiresAt)]),
      approval.preview ? section(t("approval.preview"), preview(approval.preview)) : null,
      section(t("approval.arguments"), argumentsOf(approval.arguments)),
      h("div.actions", {}, ALLOWING.map((choice) => button(t(`approval.${choice}`), () => answer(approval, choice),
        { class: choice === "yes" ? "primary" : "", disabled: busy, title: t(`approval.${choice}.what`) }))),
      h("form.actions.refuse", { onsubmit: (event) => {
        event.preventDefault();
        answer(approval, "no");
      } },
      h("input", { type: "text", maxlength: "2000", placeholder: t("approval.reason"), "aria-label": t("approval.reason"), disabled: busy }),
      h("button.danger", { type: "submit", disabled: busy }, h("span.label", {}, t("approval.no")))));
  }

  function permission(one) {
    return h("tr", { "data-key": one.id }, h("td", {}, h("code", {}, one.tool), " ", one.calls), h("td", {}, one.role),
      h("td", {}, one.task ? titleOf(app, one.task) : t("permission.every")), h("td", {}, time(app, one.createdAt)),
      h("td", {}, button(t("permission.remove"), () => remove(one),
        { class: "small", "aria-label": t("permission.remove.which", { tool: one.tool, role: one.role }) })));
  }

  function draw(model) {
    const open = model.approvals;
    refill(list, open.map(card), open.length === 0 ? nothing(t("approvals.none")) : null);
    refill(allowed, section(t("permissions"), model.permissions.length === 0 ? h("p.dim", {}, t("permissions.none"))
      : h("div.table-holder", {}, h("table", {}, h("thead", {}, h("tr", {},
        ["permission.calls", "role", "task", "contacts.since"].map((key) => h("th", { scope: "col" }, t(key))), h("td"))),
      h("tbody", {}, model.permissions.map(permission))))));
  }

  return {
    element,
    /** Focuses the oldest question, as soon as the page is shown. */
    focus() {
      wantsFocus = true;
      store.look({});
    },
    update(model, ui) {
      const isOpen = ui.route.page === "approvals";
      // No event reports that another program removed a permission, so the page rereads the permissions when it is
      // opened.
      if (isOpen && !before[3] && model.ready) app.rereadApprovals().catch(() => {});
      const now = [model.approvals, model.permissions, model.tasks, isOpen];
      if (isOpen && now.some((one, at) => one !== before[at])) draw(model);
      before = now;
      // The frame makes the page visible only after this update, so set the focus in the next frame.
      if (isOpen && wantsFocus) requestAnimationFrame(() => (list.querySelector(".approval") ?? heading).focus());
      if (isOpen) wantsFocus = false;
    },
  };
}
