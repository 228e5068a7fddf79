// Some tools act outside the society. This file computes the calls of these tools from the events about calls, in pure
// functions. The page reads the commands that the calls have started from the daemon, because the events do not contain
// the usage of commands.

/** The kinds of events that begin, change or end a call. */
export const CALL_KINDS = ["tool_started", "tool_progress", "tool_called", "turn_ended", "agent_stopped"];

/** Maximum number of calls to remember. The oldest ended calls are forgotten first. */
const KEPT = 300;

/** Returns the key of a call. Models choose the ids of calls, so two agents may use the same id. */
export function callKey(entry) {
  return `${entry.agent} ${entry.call}`;
}

/**
 * Applies events to the map `calls`, and returns the new map. A map of calls has the keys of the calls, and keeps the
 * order in which the calls began. Callers may pass an event again: it changes nothing the second time. If no call
 * changes, returns the map `calls` itself.
 */
export function afterEvents(calls, entries) {
  let next = calls;
  const own = () => {
    if (next === calls) next = new Map(calls);
    return next;
  };
  for (const entry of entries) {
    if (CALL_KINDS.includes(entry.event)) apply(next, own, entry);
  }
  return next === calls ? calls : bounded(next);
}

function apply(calls, own, entry) {
  if (!entry.tool) {
    // The turn of the agent has ended, so its running calls will have no result. They count as dropped.
    for (const [key, call] of calls) {
      const isOver = call.state === "running" && call.agent === entry.agent && call.task === entry.task;
      if (isOver && call.seq < entry.seq) own().set(key, { ...call, state: "dropped", seq: entry.seq });
    }
    return;
  }
  const key = callKey(entry);
  const known = calls.get(key);
  if (known && known.seq >= entry.seq) return;
  const { agent, task, call, tool, seq } = entry;
  switch (entry.event) {
    case "tool_started":
      own().delete(key);
      own().set(key, { key, agent, task, call, tool, seq, began: seq, begunAt: entry.at, arguments: entry.arguments, state: "running" });
      return;
    case "tool_progress":
      // If the page has not read the start of this call, it ignores the progress: the call may have ended already.
      if (known?.state === "running") own().set(key, { ...known, seq, progress: entry.text });
      return;
    default:
      if (known) own().set(key, { ...known, seq, state: "ended", durationMs: entry.durationMs, head: entry.head, ...failureOf(entry) });
  }
}

/** Returns the error of a call, and the number of the event that tells why. */
function failureOf({ error, seq }) {
  return error ? { error, failed: seq } : {};
}

function bounded(calls) {
  for (const [key, call] of calls) {
    if (calls.size <= KEPT) break;
    if (call.state !== "running") calls.delete(key);
  }
  return calls;
}

/** Returns the calls of an agent, the latest first. */
export function callsOf(calls, agent) {
  return [...calls.values()].filter((call) => call.agent === agent).sort((a, b) => b.began - a.began);
}

/** The tool that runs commands. */
const BASH = "bash";

/** Returns whether any of these calls runs a command. */
export function runsCommand(calls) {
  return calls.some((call) => call.tool === BASH && call.state === "running");
}

/**
 * Returns the command that a running call waits for, if the command is in `commands`. The call has no reference to its
 * command. But an agent runs at most one command in the foreground of a task, so agent and task identify the command.
 */
export function commandOf(commands, call) {
  if (!runsCommand([call])) return undefined;
  return commands.find((command) => !command.id && command.agent === call.agent && command.task === call.task);
}

/**
 * Returns the text that the page shows for a call. While the call runs, this is the last output of its command, or its
 * newest report if there is no output. After the call, it is the beginning of the result.
 */
export function outputOf(call, command) {
  if (call.state !== "running") return call.head;
  return command?.output || call.progress;
}
