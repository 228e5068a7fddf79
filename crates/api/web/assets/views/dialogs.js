// Dialogs on top of the page: confirmations and help.

import { append, h } from "../dom.js";
import { SHORTCUTS } from "../keys.js";
import { button, iconButton } from "./shared.js";

/** Opens a dialog. Resolves to the person's choice, or to an empty string if the person cancels. */
function ask(element) {
  document.body.append(element);
  return new Promise((resolve) => {
    element.addEventListener("close", () => {
      element.remove();
      resolve(element.returnValue);
    });
    element.showModal();
  });
}

/**
 * Asks before an agent is paused, resumed or stopped, and asks for the scope: the agent alone, or its descendants
 * too. Resolves to the scope, or to an empty string if the person cancels.
 */
export async function askScope(app, id, verb, below) {
  const { t } = app;
  const choice = (value, checked) => h("label.choice", {}, h("input", { type: "radio", name: "scope", value, checked }), h("span", {}, t(`scope.${value}`, { n: below })));
  const dialog = h("dialog", { "aria-labelledby": "ask-title" });
  const chosen = () => dialog.querySelector("input[name=scope]:checked")?.value ?? "subtree";
  append(dialog, [
    h("h2", { id: "ask-title" }, t(`${verb}.question`, { name: app.nameOf(id) })),
    h("p.dim", {}, t(`${verb}.what`)),
    below > 0 ? h("div.choices", {}, choice("subtree", true), choice("agent", false)) : null,
    h("div.actions", {},
      button(t(verb), () => dialog.close(chosen()), { class: verb === "stop" ? "danger primary" : "primary", autofocus: true }),
      button(t("cancel"), () => dialog.close(""))),
  ]);
  return ask(dialog);
}

/**
 * Asks with which service to run a turn again. At first, the service `preferred` is chosen. If the turn began with a
 * message of the person, also asks for the new text of the message. Resolves to the answer, or to `null` if the person
 * cancels.
 */
async function askFork(app, services, text, preferred) {
  const { t } = app;
  const service = h("select", { "aria-label": t("service") }, h("option", { value: "" }, t("fork.same")),
    services.map((one) => h("option", { value: one.id }, one.id)));
  service.value = services.some((one) => one.id === preferred) ? preferred : "";
  const written = text === null ? null : h("textarea", { "aria-label": t("fork.text"), rows: "6" });
  if (written) written.value = text;
  const dialog = h("dialog.fork", { "aria-labelledby": "ask-title" });
  append(dialog, [
    h("h2", { id: "ask-title" }, t("fork")), h("p.dim", {}, t("fork.what")),
    h("label", {}, t("service"), service), written,
    h("div.actions", {}, button(t("fork.do"), () => dialog.close("fork"), { class: "primary", autofocus: true }),
      button(t("cancel"), () => dialog.close(""))),
  ]);
  if (await ask(dialog) !== "fork") return null;
  return { service: service.value || undefined, text: written && written.value !== text ? written.value : undefined };
}

/**
 * Begins a new task with a copy of everything before a turn, and runs the turn again as the person chooses. `text` is
 * the message of the person with which the turn began, or `null`.
 */
export async function forkTurn(app, { task, turn }, text, preferred = null) {
  try {
    const answer = await askFork(app, await app.api.services(), text, preferred);
    if (!answer) return;
    const forked = await app.api.fork(task, { turn, ...answer }, crypto.randomUUID());
    app.say(app.t("fork.done"));
    app.chooseTask(forked.task);
  } catch (error) {
    app.say(app.explain(error), "bad");
  }
}

/** Asks before a task is stopped. Resolves to whether to stop the task. */
export async function askStopTask(app, title) {
  const { t } = app;
  const dialog = h("dialog", { "aria-labelledby": "ask-title" });
  append(dialog, [
    h("h2", { id: "ask-title" }, t("stop.question", { name: title })),
    h("p.dim", {}, t("stop.task")),
    h("div.actions", {},
      button(t("stop"), () => dialog.close("stop"), { class: "danger primary", autofocus: true }),
      button(t("cancel"), () => dialog.close(""))),
  ]);
  return (await ask(dialog)) === "stop";
}

/** Shows the list of keyboard shortcuts. */
export function showHelp(app) {
  const { t } = app;
  if (document.querySelector("dialog.help")) return;
  const dialog = h("dialog.help", { "aria-labelledby": "help-title" },
    h("header.dialog-head", {}, h("h2", { id: "help-title" }, t("shortcuts")), h("span.spring"), iconButton(t("close"), "close", () => dialog.close())),
    h("dl.shortcuts", {}, SHORTCUTS.map(({ keys, does }) => [h("dt", {}, keys.map((key) => h("kbd", {}, key))), h("dd", {}, t(`key.${does}`))])),
    h("label.choice", {}, h("input", {
      type: "checkbox", name: "letters", checked: app.preferences.letters,
      onchange: (event) => app.useLetters(event.target.checked),
    }), h("span", {}, t("shortcuts.letters"))));
  ask(dialog);
}
