// What events are about. The kinds and their fields are those of `crates/runtime/src/event.rs`.

/** The kinds of events, by what they are about: the filter of the timeline offers these groups. */
export const GROUPS = {
  messages: ["message_accepted", "message_due", "message_bounced", "answer_settled"],
  models: ["model_answered", "model_failed", "service_skipped", "context_compacted"],
  tools: ["tool_called", "artifact_stored", "artifact_unreadable"],
  agents: [
    "agent_created", "agent_ended", "agent_parked", "agent_paused", "agent_resumed", "agent_stopped",
    "role_created", "role_changed", "contact_added", "deadlock_found",
  ],
  turns: ["turn_started", "turn_ended"],
  tasks: ["task_started", "task_idle", "task_forgotten", "limit_reached"],
  configuration: ["config_taken", "config_refused"],
};

const GROUP_OF = new Map(
  Object.entries(GROUPS).flatMap(([group, kinds]) => kinds.map((kind) => [kind, group])),
);

/** The group of an event; a kind that is not known here belongs to none. */
export function groupOf(entry) {
  return GROUP_OF.get(entry.event) ?? null;
}

/** How much of a text the timeline shows, in characters: more of it is not kept. */
const SHOWN = 600;

/** An event as far as it is shown. It may be held for long, so no long text hangs on it. */
export function brief(entry) {
  const next = { ...entry };
  for (const field of ["text", "objective", "reason", "failure"]) {
    if (typeof next[field] === "string" && next[field].length > SHOWN) next[field] = cut(next[field]);
  }
  for (const field of ["problems", "differences"]) {
    if (Array.isArray(next[field])) next[field] = next[field].slice(0, 8).map((one) => (typeof one === "string" ? cut(one) : one));
  }
  return next;
}

/** The beginning of a text, as a text of its own: a slice would keep all of it in memory. */
function cut(text) {
  return text.length <= SHOWN ? text : JSON.parse(JSON.stringify(Array.from(text.slice(0, SHOWN + 1)).slice(0, -1).join("")));
}

/** The kinds of the groups that were chosen. Where none was, all count, also those not known here: an empty list. */
export function kindsOf(groups) {
  return Object.keys(GROUPS).filter((group) => groups.has(group)).flatMap((group) => GROUPS[group]);
}

/** The agent that an event is about: as the server files it. */
export function about(entry) {
  if (entry.event === "role_created") return entry.creator;
  if (entry.event === "contact_added" || entry.event === "artifact_stored") return entry.owner;
  if (entry.event === "message_accepted" || entry.event === "message_bounced") return entry.to;
  return entry.agent ?? null;
}

/**
 * Whether a filter lets an event through: as the server does when it is asked for a page with this filter. An event
 * without a task belongs to the one that its agent was hired for, which `taskOf` says.
 */
export function matches(filter, entry, taskOf) {
  if (filter.task && (entry.task ?? taskOf(about(entry))) !== filter.task) return false;
  if (filter.agent && about(entry) !== filter.agent && entry.from !== filter.agent) return false;
  return filter.kinds.length === 0 || filter.kinds.includes(entry.event);
}
