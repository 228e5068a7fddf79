// Describes in words what is stuck, the remedies, and what agents did last. Pure functions.
// The parameter `who` turns the id of a party into its name or a link.

import { tasksOf } from "./live.js";

/** Describes what is stuck, as a list of texts and links. */
export function stuckParts(t, item, who) {
  switch (item.stuck) {
    case "question":
      return t.parts("now.stuck.question", { agent: who(item.agent) });
    case "approval":
      return t.parts("now.stuck.approval", { agent: who(item.agent), tool: item.tool });
    case "request":
      return t.parts(`now.stuck.request.${item.cause}${item.from === "user" ? ".you" : ""}`, { from: who(item.from), to: who(item.to) });
    case "parked":
      return item.askedBy?.length > 0
        ? t.parts("now.stuck.parked.asked", { agent: who(item.agent), whom: listed(item.askedBy.map(who)) }).flat()
        : t.parts("now.stuck.parked", { agent: who(item.agent) });
    case "paused":
      return t.parts(item.agent === "root" ? "now.stuck.paused.root" : "now.stuck.paused", { agent: who(item.agent) });
    case "service":
      return [...t.parts(`now.stuck.service.${item.trouble}`, { service: item.service }),
        ...(item.agents.length > 0 ? t.parts("now.stuck.service.agents", { whom: listed(item.agents.map(who)) }).flat() : [])];
    default:
      return t.parts("now.stuck.answered", { whom: listed([...new Set(item.requests.map((one) => one.agent))].map(who)) }).flat();
  }
}

/**
 * Returns the data of an agent from the last read, but with the newest state of the agent. The event stream may have
 * reported this state after the read. The details from the read stay only if they belong to the newest state. So an
 * agent that is idle by now is no longer shown as thinking. If the newest state belongs to another task than the read
 * data, the read data stays, so that a card never mixes two tasks; the next read brings the other task.
 */
export function asOfNow(read, known) {
  if (!known || tasksOf(known.doing).some((task) => task !== read.activeIn)) return read;
  return { ...read, state: known.state, doing: known.doing ?? (known.state === read.state ? read.doing : undefined) };
}

/** Whether an agent does nothing for a reason that the daemon can explain. */
export function isHalted(agent) {
  return ["paused", "parked", "retrying"].includes(agent?.state);
}

/**
 * Returns the id of the message, agent or task that the page asks the daemon about, to explain why an item is stuck.
 * Returns `null` if the daemon could explain nothing. The map `agents` contains the known agents by id.
 */
export function whyStuck(item, agents) {
  switch (item.stuck) {
    case "question":
    case "request":
      return item.message;
    case "parked":
    case "paused":
      return item.agent;
    case "service": {
      // An agent whose last attempt failed knows the failure of the service, and an agent that has sent a request knows
      // for how long the server is silent. Other agents only wait for their place.
      const knows = ({ state, doing }) => state === "retrying" || (doing?.service === item.service && Boolean(doing.silence));
      return item.agents.find((id) => agents.has(id) && knows(agents.get(id))) ?? null;
    }
    case "answered":
      return item.task;
    default:
      // The daemon knows nothing about a call that the person must decide that the item does not say.
      return null;
  }
}

/**
 * Returns the agent that explains why an agent at work does not go on: the agent itself, or a halted agent for which it
 * waits. Returns `null` if nothing has to be explained.
 */
export function whyAtWork(agent, agents) {
  if (isHalted(agent)) return agent.id;
  if (agent.doing?.state !== "waiting") return null;
  return agent.doing.requests.find((one) => isHalted(agents.get(one.agent)))?.agent ?? agent.id;
}

/** Returns the text of a stuck question or request, or the reason of a failure. */
export function quoteOf(item) {
  return item.text || item.reason || "";
}

/**
 * Describes what an agent did last, for example that it heard a message or called tools, as a list of texts and links.
 */
export function lastParts(t, last, who) {
  const said = last.text ? t("now.last.text", { text: last.text }) : "";
  switch (last.did) {
    case "heard":
      return [...t.parts("now.last.heard", { from: who(last.from ?? "system") }), said];
    case "called":
      return [t("now.last.called", { tools: (last.tools ?? []).join(", ") }), said];
    case "failed":
      return [t("now.last.failed"), said];
    default:
      return [t("now.last.said"), said];
  }
}

/** Maximum number of characters to show of an answer that is arriving. */
const ARRIVED = 80;

/**
 * Returns the newest part of an answer that is arriving, on one line. If the answer calls tools, this is the name of
 * the last tool. Otherwise, it is the end of the text, or the end of the reasoning if there is no text yet. Returns an
 * empty text if nothing has arrived.
 */
export function arrivingLine(saying) {
  if (!saying) return "";
  if (saying.calls.length > 0) return `→ ${saying.calls.at(-1)}`;
  const text = (saying.text.trim() || saying.reasoning).trimEnd();
  const line = text.slice(text.lastIndexOf("\n") + 1);
  const characters = [...line.slice(-2 * ARRIVED)];
  return characters.length > ARRIVED ? `…${characters.slice(-ARRIVED).join("")}` : characters.join("");
}

/**
 * Returns the actions that carry out a remedy, each with the text of its button. If the person must choose, there is
 * one action for each choice.
 */
export function actionsOf(t, remedy, item, nameOf) {
  switch (remedy.remedy) {
    case "write":
      return [{ does: "write", label: item.stuck === "question" ? t("answer") : t("now.write", { to: nameOf(remedy.to) }), to: remedy.to, task: remedy.task }];
    case "decide":
      return [{ does: "decide", label: t("approvals.look"), approval: remedy.approval }];
    case "resume":
      return [{ does: "resume", label: t("now.resume", { agent: nameOf(remedy.agent) }), agent: remedy.agent, scope: remedy.scope }];
    case "service":
      return remedy.services.map((service) => ({
        does: "service", label: t("now.service", { service, role: remedy.name }), role: remedy.role, service, resume: remedy.resume,
      }));
    case "run_again":
      return remedy.services.map((service) => ({
        does: "runAgain", label: t("now.run_again", { service }), task: remedy.task, turn: remedy.turn, service,
      }));
    case "try_again":
      return [{ does: "tryAgain", label: t("now.try_again", { service: remedy.service }), service: remedy.service }];
    case "check_service":
      return [{ does: "checkService", label: t("now.check_service", { service: remedy.service }) }];
    case "stop_agent":
      return [{ does: "stopAgent", label: t("now.stop", { name: nameOf(remedy.agent) }), agent: remedy.agent }];
    case "stop_task":
      return [{ does: "stopTask", label: t("task.stop"), task: remedy.task }];
    default:
      return [];
  }
}

/** Puts commas between the members of a list. */
function listed(members) {
  return members.flatMap((one, at) => (at === 0 ? [one] : [", ", one]));
}
