// Groups and filters events. Their kinds and fields are defined in `crates/view/src/event.rs`.

/** The kinds of events, in the groups that the filter of the timeline offers. */
export const GROUPS = {
  messages: ["message_accepted", "message_due", "message_bounced", "answer_settled"],
  models: ["model_answered", "model_failed", "service_skipped", "context_compacted"],
  tools: ["tool_started", "tool_progress", "tool_called", "approval_requested", "approval_ended", "artifact_stored", "artifact_unreadable"],
  agents: [
    "agent_created", "agent_ended", "agent_parked", "agent_paused", "agent_resumed", "agent_stopped",
    "role_created", "role_changed", "contact_added", "deadlock_found",
  ],
  turns: ["turn_started", "turn_ended"],
  tasks: ["task_started", "task_forked", "task_idle", "task_forgotten", "limit_reached"],
  configuration: ["config_taken", "config_refused"],
};

const GROUP_OF = new Map(
  Object.entries(GROUPS).flatMap(([group, kinds]) => kinds.map((kind) => [kind, group])),
);

/** Returns the group of an event; `null` for a kind that this page does not know. */
export function groupOf(entry) {
  return GROUP_OF.get(entry.event) ?? null;
}

/** Maximum number of characters of a text that the timeline keeps and shows. */
const SHOWN = 600;

/**
 * Shortens the texts of an event to the part that the timeline shows, because the page may keep the event for a long
 * time.
 */
export function brief(entry) {
  const next = { ...entry };
  for (const field of ["text", "objective", "reason", "failure", "arguments", "head"]) {
    if (typeof next[field] === "string" && next[field].length > SHOWN) next[field] = cut(next[field]);
  }
  for (const field of ["problems", "differences"]) {
    if (Array.isArray(next[field])) next[field] = next[field].slice(0, 8).map((one) => (typeof one === "string" ? cut(one) : one));
  }
  return next;
}

/**
 * Returns the first `SHOWN` characters of a text as a new string. A plain slice would keep the whole text in memory.
 */
function cut(text) {
  return text.length <= SHOWN ? text : JSON.parse(JSON.stringify(Array.from(text.slice(0, SHOWN + 1)).slice(0, -1).join("")));
}

/** Returns the kinds of the selected groups. If no group is selected, the list is empty, which means all kinds. */
export function kindsOf(groups) {
  return Object.keys(GROUPS).filter((group) => groups.has(group)).flatMap((group) => GROUPS[group]);
}

/** Returns the agent that an event is about. The server uses the same rule. */
export function about(entry) {
  if (entry.event === "role_created") return entry.creator;
  if (entry.event === "contact_added" || entry.event === "artifact_stored") return entry.owner;
  if (entry.event === "message_accepted" || entry.event === "message_bounced") return entry.to;
  return entry.agent ?? null;
}

/**
 * Whether an event matches a filter. The server uses the same rule. If the event has no task, the filter compares the
 * task for which the agent of the event was hired. `taskOf(agent)` returns this task.
 */
export function matches(filter, entry, taskOf) {
  if (filter.task && (entry.task ?? taskOf(about(entry))) !== filter.task) return false;
  if (filter.agent && about(entry) !== filter.agent && entry.from !== filter.agent) return false;
  return filter.kinds.length === 0 || filter.kinds.includes(entry.event);
}
