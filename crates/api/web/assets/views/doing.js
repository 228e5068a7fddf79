// Shows what an agent is doing: the state with its details and the elapsed time, and the answer that is arriving.

import { h } from "../dom.js";
import { elapsed } from "../format.js";
import { timer } from "./calls.js";
import { markdown } from "./markdown.js";
import { detailLink, stateMark, who } from "./shared.js";

/** A second in milliseconds. A shorter elapsed time is not shown. */
const A_SECOND = 1000;

/** Describes the details of a state; empty if there are none. `now` is a time in milliseconds. */
export function detailsOf(app, doing, now) {
  const { t } = app;
  switch (doing?.state) {
    case "thinking":
      return [t("doing.at", { service: doing.service }), doing.tokens > 0 ? t("doing.tokens", { n: doing.tokens }) : ""]
        .filter(Boolean).join(", ");
    case "queued":
      return [doing.service, doing.place ? t("doing.place", { n: doing.place }) : "",
        doing.closedUntil > now ? t("doing.closed", { time: elapsed(doing.closedUntil - now) }) : ""].filter(Boolean).join(", ");
    case "running":
      return doing.tools.join(", ");
    case "retrying":
      return t("doing.retrying", {
        service: doing.service, attempt: doing.attempt, of: doing.of, time: elapsed(Math.max(0, doing.until - now)), why: doing.why,
      });
    case "parked":
      return doing.reason;
    default:
      return "";
  }
}

/**
 * Describes when the request to a silent server will be given up, and what follows then; empty if the server is not
 * silent.
 */
export function silenceOf(app, doing, now) {
  const { silence } = doing ?? {};
  if (!silence) return "";
  const then = silence.then === "fallback" && silence.fallback
    ? app.t("doing.then.fallback", { service: silence.fallback })
    : app.t(["give_up", "fallback"].includes(silence.then) ? "doing.then.give_up" : "doing.then.retry");
  return app.t("doing.silent", {
    service: doing.service, time: elapsed(now - silence.since), left: elapsed(Math.max(0, silence.until - now)), then,
  });
}

/** Shows in one line the state of an agent, its details, and how long the agent has been in this state. */
export function doingLine(app, agent) {
  const { doing } = agent;
  const now = Date.now();
  const silence = silenceOf(app, doing, now);
  const since = doing?.since;
  return [
    stateMark(app, agent.state),
    h("span.doing", {}, whom(app, doing) ?? detailsOf(app, doing, now)),
    since !== undefined && agent.state !== "ended" && now - since >= A_SECOND ? timer(since) : null,
    silence ? h("span.bad", {}, silence) : null,
  ];
}

/** Lists the agents for which this agent waits, each with a link to the request. */
function whom(app, doing) {
  if (doing?.state !== "waiting") return null;
  return doing.requests.flatMap((one, at) => [
    at > 0 ? ", " : "", who(app, one.agent), " ", detailLink(app, "message", one.request, { class: "id" }, one.request),
  ]);
}

/** Shows the part of a model's answer that has arrived so far; `null` if nothing has arrived. */
export function arriving(app, moment) {
  const { saying } = moment;
  if (!hasArrived(saying)) return null;
  return h("article.arriving", { "data-key": `arriving ${saying.answer}`, "aria-label": app.t("doing.arriving") },
    arrivedParts(app, saying, h("div.prose", {}, saying.text)));
}

/** Shows an answer of root that is arriving. It looks like the message that it will become. */
export function arrivingMessage(app, { agent, task, saying }) {
  const formatted = markdown(app, saying.text);
  return h("article.arriving-message", { "data-key": `arriving ${task} ${saying.answer}`, "aria-label": app.t("doing.arriving") },
    h("header", {}, who(app, agent), h("span.tag.quiet", {}, app.t("message.arriving"))),
    arrivedParts(app, saying, formatted ? h("div.markdown", {}, formatted) : h("div.prose", {}, saying.text)));
}

/** Whether something of an answer has arrived. */
export function hasArrived(saying) {
  return Boolean(saying) && (saying.text !== "" || saying.reasoning !== "" || saying.calls.length > 0);
}

/** Shows the parts of an answer: the reasoning folded, the text, and the names of the called tools. */
function arrivedParts(app, saying, text) {
  return [
    saying.reasoning ? h("details", { "data-key": "reasoning" },
      h("summary", {}, app.t("doing.reasoning", { n: saying.reasoning.length })), h("div.prose.dim", {}, saying.reasoning)) : null,
    saying.text ? text : null,
    saying.calls.map((call) => h("p.with-icon", {}, "→ ", h("code", {}, call))),
  ];
}
