// Shows calls of tools: the tool, the duration, the newest report, and the result.

import { h, icon } from "../dom.js";
import { elapsed } from "../format.js";
import { code } from "./shared.js";

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

/** Shows a call with its arguments, and its newest report or the first lines of its result. */
export function callCard(app, call) {
  const { t } = app;
  const said = call.state === "running" ? call.progress : call.head;
  return h("article", { class: `call-card call-${call.state}${call.error ? " bad" : ""}`, "data-key": `call ${call.key}` },
    h("header", {}, icon(call.error ? "parked" : SHAPES[call.state]), h("code", {}, call.tool),
      h("span.dim", {}, t(`call.${call.state}`)), call.error ? h("code", {}, call.error) : null,
      h("span.spring"), duration(app, call)),
    call.arguments ? h("div.call-arguments", { title: call.arguments }, h("code", {}, call.arguments)) : null,
    said ? code(said) : null);
}
