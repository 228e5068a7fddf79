// Describes events in sentences with links.

import { h } from "../dom.js";
import { firstLine } from "../format.js";
import { routingChip, artifactIdChip, artifactChip, spent, titleOf, who, detailLink } from "./shared.js";

/**
 * Returns the text to show below the first line of an event. Most kinds of events have none; the result is then
 * empty.
 */
export function textOf(entry) {
  switch (entry.event) {
    case "message_accepted":
      return entry.text;
    case "agent_created":
      return entry.objective;
    case "tool_started":
      return entry.arguments;
    case "tool_called":
      return entry.head ?? "";
    case "model_failed":
    case "agent_parked":
    case "artifact_unreadable":
      return entry.reason;
    case "config_refused":
      return entry.problems.join("\n");
    case "config_taken":
      return [...entry.differences, ...(entry.problems ?? [])].join("\n");
    default:
      return "";
  }
}

/**
 * Returns small links to the artifacts of an event. If the event is an answer of a model, each link also tells how the
 * model got the artifact, for example as text or as a picture.
 */
export function chipsOf(app, entry) {
  switch (entry.event) {
    case "message_accepted":
      return (entry.attachments ?? []).map((id) => artifactIdChip(app, id));
    case "model_answered":
      return (entry.content ?? []).map((shown) => routingChip(app, shown, entry.sent));
    case "artifact_stored":
      return [artifactChip(app, artifactOf(entry))];
    default:
      return [];
  }
}

/** Counts the links that `chipsOf` would create for an event. */
export function chipCount(entry) {
  return entry.attachments?.length ?? (entry.event === "model_answered" ? entry.content?.length ?? 0 : 0);
}

/** Whether an event reports a failure. */
export function isTrouble(entry) {
  return ["model_failed", "agent_parked", "deadlock_found", "message_bounced", "limit_reached", "config_refused",
    "artifact_unreadable"].includes(entry.event) || Boolean(entry.failure) || Boolean(entry.error);
}

/** Whether the daemon can explain why an event happened. */
export function isExplained(entry) {
  return ["model_failed", "service_skipped", "agent_parked", "agent_paused", "limit_reached", "message_bounced"].includes(entry.event)
    || (entry.event === "turn_ended" && Boolean(entry.failure)) || (entry.event === "tool_called" && Boolean(entry.error))
    || (entry.event === "task_idle" && entry.outcome !== "answered");
}

/** Builds the description of a stored artifact from its event. */
export function artifactOf(entry) {
  return {
    id: entry.artifact, kind: entry.kind, filename: entry.filename, size: entry.size, mimeType: entry.mimeType,
    task: entry.task, owner: entry.owner, createdAt: entry.at,
  };
}

/** Returns the first line of an event as text and links. */
export function sentence(app, entry) {
  const { t } = app;
  const key = `event.${entry.event}`;
  const strong = (text) => h("strong", {}, text);
  if (!t.has(key)) return [h("code", {}, entry.event)];
  switch (entry.event) {
    case "message_accepted":
      return [who(app, entry.from), h("span.arrow", { "aria-label": t("to") }, "→"), who(app, entry.to),
        entry.type === "general" ? null : h("span.tag", {}, typeName(app, entry.type)),
        entry.inReplyTo ? h("span.tag.quiet", {}, t("message.answer")) : null,
        entry.finality === "interim" && entry.to === "user" ? h("span.tag.quiet", {}, t("message.interim")) : null];
    case "task_forked":
      return t.parts(key, { task: strong(titleOf(app, entry.task)), from: strong(titleOf(app, entry.from)), turn: `#${entry.turn}` });
    case "task_idle":
      return t.parts(key, { task: strong(titleOf(app, entry.task)), outcome: t(`outcome.${entry.outcome}`) });
    case "agent_created":
      return t.parts(key, { agent: who(app, entry.agent), parent: who(app, entry.parent) });
    case "role_created":
      return t.parts(key, { creator: who(app, entry.creator), name: strong(entry.name), service: entry.service });
    case "contact_added":
      return entry.introducedBy
        ? t.parts(`${key}.introduced`, { owner: who(app, entry.owner), agent: who(app, entry.agent), by: who(app, entry.introducedBy) })
        : t.parts(key, { owner: who(app, entry.owner), agent: who(app, entry.agent), source: t(`source.${entry.source}`) });
    case "deadlock_found":
      return t.parts(key, { agents: entry.agents.flatMap((id, at) => [at > 0 ? ", " : "", who(app, id)]) });
    case "message_bounced":
      return t.parts(key, { to: who(app, entry.to), message: detailLink(app, "message", entry.message, {}, entry.message) });
    case "answer_settled":
      return t.parts(key, { agent: who(app, entry.agent), message: detailLink(app, "message", entry.message, {}, entry.message) });
    case "artifact_stored":
      return t.parts(key, { owner: who(app, entry.owner), artifact: artifactChip(app, artifactOf(entry)) });
    case "artifact_unreadable":
      return t.parts(key, { artifact: artifactIdChip(app, entry.artifact) });
    case "turn_ended":
      return entry.failure
        ? t.parts(`${key}.failed`, { agent: who(app, entry.agent), failure: firstLine(entry.failure, 200) })
        : t.parts(key, { agent: who(app, entry.agent) });
    case "model_answered":
      return [...t.parts(key, { agent: who(app, entry.agent), model: strong(entry.model) }),
        h("span.dim", {}, spent(app, entry.usage)),
        entry.attempts > 1 ? h("span.tag", {}, t("attempts", { n: entry.attempts })) : null];
    case "model_failed":
      return t.parts(key, {
        agent: who(app, entry.agent), service: strong(entry.service), kind: t(`failure.${entry.kind}`),
        next: t(`next.${entry.next}`),
      });
    case "service_skipped":
      return t.parts(key, { agent: who(app, entry.agent), service: strong(entry.service), fallback: strong(entry.fallback) });
    case "tool_called":
      return entry.error
        ? t.parts(`${key}.refused`, { agent: who(app, entry.agent), tool: h("code", {}, entry.tool), error: h("code", {}, entry.error) })
        : [...t.parts(key, { agent: who(app, entry.agent), tool: h("code", {}, entry.tool) }),
          entry.durationMs === undefined ? null : h("span.tag", {}, t("seconds", { n: (entry.durationMs / 1000).toFixed(1) }))];
    case "tool_started":
      return [...t.parts(key, { agent: who(app, entry.agent), tool: h("code", {}, entry.tool) }), h("span.event-live")];
    case "approval_requested":
      return [...t.parts(key, { agent: who(app, entry.agent), tool: h("code", {}, entry.tool) }),
        h("span.dim", {}, firstLine(entry.arguments, 120))];
    case "approval_ended":
      return [...t.parts(`${key}.${entry.state}`, { agent: who(app, entry.agent), tool: h("code", {}, entry.tool) }),
        entry.reason ? h("span.dim", {}, firstLine(entry.reason, 120)) : null];
    case "tool_progress":
      return [...t.parts(key, { agent: who(app, entry.agent), tool: h("code", {}, entry.tool) }),
        h("span.dim", {}, firstLine(entry.text, 120))];
    case "limit_reached":
      return t.parts(key, { agent: who(app, entry.agent), limit: h("code", {}, entry.limit), value: String(entry.value) });
    case "agent_ended":
      return t.parts(key, { agent: who(app, entry.agent), reason: firstLine(entry.reason, 120) });
    case "config_taken":
    case "config_refused":
      return t.parts(key, { revision: entry.revision });
    case "role_changed":
      return t.parts(key, { role: app.store.model.roles.get(entry.role)?.name ?? entry.name ?? entry.role });
    default:
      return t.parts(key, {
        task: entry.task ? strong(titleOf(app, entry.task)) : "", agent: entry.agent ? who(app, entry.agent) : "",
      });
  }
}

/** Returns the name of a message type in the page's language, or the type itself if there is no text for it. */
export function typeName(app, type) {
  return app.t.has(`type.${type}`) ? app.t(`type.${type}`) : type;
}

