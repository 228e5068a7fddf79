// Banners for what the person must not miss: a lost connection, open questions, and problems in the configuration.

import { h, icon } from "../dom.js";
import { firstLine } from "../format.js";
import { refill } from "../morph.js";
import { button, iconButton, who } from "./shared.js";

const QUESTIONS = 3;

/**
 * Lists the problems of the configuration. For each problem, shows the place in the file and what the daemon did
 * about the problem.
 */
export function problemList(app, problems) {
  const { t } = app;
  return h("ul.problems", {}, problems.map((problem) => h("li", { class: `problem-${problem.severity}` },
    icon(problem.severity === "error" ? "parked" : "question"),
    h("div", {}, h("div", {}, h("strong", {}, t(`severity.${problem.severity}`)), " ", h("code", {}, place(problem))),
      h("div", {}, problem.message), problem.done ? h("div.dim", {}, problem.done) : null))));
}

function place(problem) {
  const position = problem.line ? `:${problem.line}:${problem.column ?? 1}` : "";
  return `${problem.file}${position}${problem.pointer ? ` ${problem.pointer}` : ""}`;
}

export function mountBanners(app) {
  const { store, t } = app;
  let before = [];
  const lost = h("div.banner.lost", { role: "status", hidden: true });
  const questions = h("div.banner.questions", { role: "region", "aria-label": t("questions"), hidden: true });
  const approvals = h("div.banner.approvals-banner", { role: "region", "aria-label": t("page.approvals"), hidden: true });
  const problems = h("div.banner.problems-banner", { role: "region", "aria-label": t("config.problems"), hidden: true });
  const said = h("div.said", { role: "status", "aria-live": "polite" });
  const rehearsal = h("div.banner.rehearsal-banner", { role: "status", hidden: true });
  const element = h("div.banners", {}, lost, rehearsal, problems, approvals, questions, said);

  function drawQuestions(all, ui) {
    const open = all.filter((message) => !ui.put.has(message.id));
    questions.hidden = open.length === 0;
    refill(questions, h("div.banner-title", {}, icon("question"), h("strong", {}, t("questions.waiting", { n: all.length }))),
      h("ul", {}, open.slice(0, QUESTIONS).map((message) => h("li", { "data-key": message.id },
        who(app, message.from), h("span.question-text", {}, firstLine(message.text, 180)),
        button(t("answer"), () => app.compose({ to: message.from, task: message.task }), { class: "primary small" }),
        button(t("show"), () => app.open("message", message.id), { class: "small" }),
        iconButton(t("later"), "close", () => store.look({ put: new Set([...store.ui.put, message.id]) }))))),
      open.length > QUESTIONS ? h("span.dim", {}, t("questions.more", { n: open.length - QUESTIONS })) : null);
  }

  /** Shows how many calls wait for an answer, except on the page that lists these calls. */
  function drawApprovals(open, page) {
    approvals.hidden = open.length === 0 || page === "approvals";
    if (approvals.hidden) return;
    refill(approvals, h("div.banner-title", {}, icon("asking"), h("strong", {}, t("approvals.open", { n: open.length })),
      who(app, open[0].agent), h("code", {}, open[0].tool), h("span.spring"),
      button(t("approvals.look"), () => app.act({ does: "approval" }), { class: "primary small" })));
  }

  /** Warns that only rehearsal models answer, so that nobody takes a rehearsed answer for a real one. */
  function drawRehearsal(config) {
    rehearsal.hidden = config?.isRehearsal !== true;
    if (!rehearsal.hidden) refill(rehearsal, h("strong", {}, t("rehearsal")), " ", h("span", {}, t("rehearsal.more")));
  }

  function drawProblems(config, ui) {
    drawRehearsal(config);
    const all = config?.problems ?? [];
    const key = JSON.stringify(all);
    problems.hidden = all.length === 0 || (ui.foldedProblems === key && !all.some((one) => one.severity === "error"));
    const errors = all.filter((one) => one.severity === "error").length;
    problems.classList.toggle("has-errors", errors > 0);
    const open = ui.foldedProblems !== key;
    refill(problems, h("div.banner-title", {}, icon("parked"),
      h("strong", {}, t("config.problems.count", { n: all.length })),
      h("span.dim", {}, [...new Set(all.map((one) => one.file))].join(", ")), h("span.spring"),
      button(t("config.reload"), () => app.reloadConfiguration(), { class: "small" }, "reload"),
      button(t(open ? "fold" : "unfold"), () => store.look({ foldedProblems: open ? key : null }), { class: "small", "aria-expanded": String(open) })),
    open ? problemList(app, all) : null);
  }

  return {
    element,
    /** Shows a notice for a few seconds. */
    say(text, sort = "fine") {
      const one = h("div", { class: `toast ${sort}` }, text, iconButton(t("close"), "close", () => one.remove()));
      said.append(one);
      while (said.children.length > 4) said.firstChild.remove();
      setTimeout(() => one.remove(), sort === "bad" ? 12_000 : 4_000);
    },
    update(model, ui) {
      const now = [model.connection, model.questions, model.config, ui.put, ui.foldedProblems, model.ready, model.approvals, ui.route.page];
      if (now.every((one, at) => one === before[at])) return;
      lost.hidden = model.connection !== "lost";
      if (!lost.hidden) refill(lost, icon("reload"), h("span", {}, t("connection.lost.more")));
      if (before[1] !== model.questions || before[3] !== ui.put) drawQuestions(model.questions, ui);
      if (before[6] !== model.approvals || before[7] !== ui.route.page) drawApprovals(model.approvals, ui.route.page);
      if (before[2] !== model.config || before[4] !== ui.foldedProblems) drawProblems(model.config, ui);
      before = now;
    },
  };
}
