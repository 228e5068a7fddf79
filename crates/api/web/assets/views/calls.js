// Shows calls of tools: the tool, the duration, the newest report, and the result. Also shows running commands: what they
// use, and the end of their output.

import { outputOf } from "../calls.js";
import { h, icon } from "../dom.js";
import { elapsed, size } from "../format.js";
import { code, whyLink } from "./shared.js";

const SHAPES = { running: "thinking", ended: "idle", dropped: "ended" };

/** Shows how much time has passed since the time `since`. `keepTime` updates the text every second. */
export function timer(since) {
  return h("span.elapsed", { "data-since": since }, elapsed(Date.now() - since));
}

/** Updates the text of all running timers on the page once a second, until the signal aborts. */
export function keepTime(signal) {
  const tick = setInterval(() => {
    for (const one of document.querySelectorAll(".elapsed")) one.textContent = elapsed(Date.now() - Number(one.dataset.since));
  }, 1000);
  signal.addEventListener("abort", () => clearInterval(tick));
}

/** Shows for how long a call has been running, or how long it took. */
export function duration(app, call) {
  if (call.state === "running") return timer(call.begunAt);
  return call.durationMs === undefined ? null : h("span.tag", {}, app.t("seconds", { n: (call.durationMs / 1000).toFixed(1) }));
}

/** Describes what a running command uses. */
export function usesOf(t, command) {
  return [
    t("command.processes", { n: command.processes }),
    t("command.memory", { size: size(command.memoryBytes) }),
    command.diskBytes > 0 ? t("command.disk", { size: size(command.diskBytes) }) : "",
    command.outputBytes > 0 ? t("command.printed", { size: size(command.outputBytes) }) : "",
  ].filter(Boolean).join(", ");
}

function uses(app, command) {
  return h("div.dim.command-uses", {}, usesOf(app.t, command));
}

/**
 * Shows a call: its arguments, and what `outputOf` returns, for example its newest report. `command` is the running
 * command that the call waits for, if there is one.
 */
export function callCard(app, call, command) {
  const { t } = app;
  const said = outputOf(call, command);
  return h("article", { class: `call-card call-${call.state}${call.error ? " bad" : ""}`, "data-key": `call ${call.key}` },
    h("header", {}, icon(call.error ? "parked" : SHAPES[call.state]), h("code", {}, call.tool),
      h("span.dim", {}, t(`call.${call.state}`)), call.error ? [h("code", {}, call.error), whyLink(app, call.failed)] : null,
      h("span.spring"), duration(app, call)),
    call.arguments ? h("div.call-arguments", { title: call.arguments }, h("code", {}, call.arguments)) : null,
    command ? uses(app, command) : null,
    said ? code(said) : null);
}

/** Shows a running command in the background with its id, what it uses, and the end of its output. */
export function commandCard(app, command) {
  const { t } = app;
  return h("article.call-card.call-running.command-card", { "data-key": `command ${command.id}` },
    h("header", {}, icon(SHAPES.running), h("span", {}, t("command.background")), h("code", {}, command.id),
      h("span.spring"), timer(command.since)),
    h("div.call-arguments", { title: command.command }, h("code", {}, command.command)),
    uses(app, command),
    command.output ? code(command.output) : null);
}
