// The agents as rows of a tree. Pure functions.

/**
 * Whether an agent has nothing left to do: it has ended, or it is idle and so is its task. `tasks` contains all open tasks.
 * Root is never finished.
 */
export function isFinished(agent, tasks) {
  if (agent.id === "root") return false;
  return agent.state === "ended" || (agent.state === "idle" && Boolean(agent.task) && tasks.get(agent.task)?.state !== "open");
}

/**
 * Maps the id of each agent to its children, in the order of hiring, with finished children last. The key `""` stands for
 * agents without a known parent.
 */
export function childrenOf(agents, tasks) {
  const children = new Map();
  for (const agent of agents.values()) {
    if (agent.id === "user") continue;
    const parent = agent.parent && agent.parent !== "user" && agents.has(agent.parent) ? agent.parent : "";
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(agent);
  }
  const last = (agent) => Number(isFinished(agent, tasks));
  for (const list of children.values()) list.sort((a, b) => last(a) - last(b) || order(a) - order(b) || (a.id < b.id ? -1 : 1));
  return children;
}

function order(agent) {
  return agent.id === "root" ? -1 : agent.createdAt;
}

/** Whether an agent passes the filters of the tree: its states, its task and its text. */
function matches(agent, view) {
  return view.states.has(agent.state)
    && (!view.task || !agent.task || agent.task === view.task)
    && (view.text === "" || says(agent, view.text));
}

/**
 * Returns the finished agents that the tree folds unless the person wants to see them. It folds none of them if the
 * person searches for a text, or has chosen a finished task.
 */
export function foldable(agents, view) {
  if (view.text !== "" || (view.task && view.tasks.get(view.task)?.state !== "open")) return [];
  return [...agents.values()].filter((agent) => agent.id !== "user" && isFinished(agent, view.tasks) && matches(agent, view));
}

/**
 * Returns the rows to show. `view` contains all open `tasks`, the ids of `closed` agents, the `states` to show, a `text`
 * to search for, whether to show finished agents (`finished`), and optionally a `task`. If an agent does not match but
 * one of its descendants does, the agent stays in the tree, marked `faint`.
 */
export function rowsOf(agents, view) {
  const children = childrenOf(agents, view.tasks);
  const folded = new Set(view.finished ? [] : foldable(agents, view));
  const wanted = (agent) => matches(agent, view) && !folded.has(agent);
  const whole = view.text === "";
  const visit = (agent, level) => {
    const below = [];
    for (const child of children.get(agent.id) ?? []) below.push(...visit(child, level + 1));
    const own = wanted(agent);
    if (!own && below.length === 0) return [];
    const open = !whole || !view.closed.has(agent.id);
    const direct = below.filter((row) => row.level === level + 1);
    const row = { agent, level, faint: !own, open, children: direct.length, hidden: open ? 0 : below.length };
    return open ? [row, ...below] : [row];
  };
  const top = (children.get("") ?? []).flatMap((agent) => visit(agent, 1));
  return numbered(top);
}

function says(agent, text) {
  const needle = text.toLowerCase();
  return [agent.id, agent.role, agent.name, agent.service, agent.model]
    .some((field) => field?.toLowerCase().includes(needle));
}

/** Adds to each row its place among its siblings and the index of its parent, for screen readers and arrow keys. */
function numbered(rows) {
  const path = [];
  const sizes = new Map();
  for (const [at, row] of rows.entries()) {
    path.length = row.level - 1;
    row.parent = path.length > 0 ? path[path.length - 1] : -1;
    path.push(at);
    sizes.set(row.parent, (sizes.get(row.parent) ?? 0) + 1);
    row.place = sizes.get(row.parent);
  }
  for (const row of rows) row.siblings = sizes.get(row.parent);
  return rows;
}

/** Returns the effect of a key in the tree: the row to move to (`at`), or the agent to `open` or `close`. */
export function step(rows, at, key) {
  const row = rows[at];
  if (!row) return rows.length > 0 ? { at: 0 } : null;
  switch (key) {
    case "ArrowDown":
      return at + 1 < rows.length ? { at: at + 1 } : null;
    case "ArrowUp":
      return at > 0 ? { at: at - 1 } : null;
    case "Home":
      return { at: 0 };
    case "End":
      return { at: rows.length - 1 };
    case "PageDown":
      return { at: Math.min(rows.length - 1, at + 10) };
    case "PageUp":
      return { at: Math.max(0, at - 10) };
    case "ArrowRight":
      if (row.children === 0) return null;
      return row.open ? { at: at + 1 } : { open: row.agent.id };
    case "ArrowLeft":
      if (row.children > 0 && row.open) return { close: row.agent.id };
      return row.parent >= 0 ? { at: row.parent } : null;
    default:
      return null;
  }
}
