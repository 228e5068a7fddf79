// Rereads the parts of the model that events have made stale. The read begins a short time after the first event, so
// that many events cause only one read. Two reads of the same part never overlap.

import { openQuestions } from "./questions.js";
import { changedSince } from "./state.js";

const DELAY_MS = { agents: 400, tasks: 700, services: 1500, config: 100, questions: 300, approvals: 100 };

/** Returns a read function for each part of the model. Each function resolves to an action for the store. */
function readings(api) {
  return {
    agents: async () => ({ type: "agents", ...(await api.agents()) }),
    tasks: async () => ({ type: "tasks", tasks: await newestAndOpen(api) }),
    services: async () => ({ type: "services", services: await api.services() }),
    config: async () => ({ type: "config", config: await api.config() }),
    questions: async () => ({ type: "questions", questions: await openQuestions(api) }),
    calls: async () => ({ type: "calls", entries: await api.calls() }),
    approvals: async () => {
      const [approvals, permissions] = await Promise.all([api.openApprovals(), api.permissions()]);
      return { type: "approvals", approvals, permissions };
    },
  };
}

/** Reads the newest tasks and all open tasks, newest first. The tree needs all open tasks to tell which agents are finished. */
export async function newestAndOpen(api) {
  const { tasks, next } = await api.tasks();
  for (let after = next; after;) {
    const page = await api.tasks(after, "open");
    tasks.push(...page.tasks);
    after = page.next;
  }
  return tasks;
}

/** Rereads the stale parts of a store's model. Returns a function that rereads one part at once. */
export function keepFresh(store, api) {
  const read = readings(api);
  const known = { agents: 0, tasks: 0, services: 0, config: 0, questions: 0, approvals: 0 };
  const busy = new Set();
  // `unnamed` of the model when the agents were last read.
  let last = null;

  /** Rereads the agents. Of a large society, it rereads only those that may have changed. */
  async function agents() {
    const { unnamed } = store.model;
    const ids = changedSince(last, store.model);
    const read = { type: "agents", some: ids !== undefined, ...(await api.agents(ids)) };
    last = { unnamed };
    return read;
  }

  async function refresh(part, stale) {
    busy.add(part);
    const before = performance.now();
    const { begins } = store.model;
    try {
      const action = await (part === "agents" ? agents() : read[part]());
      // If the event stream was reset during the read, all parts are read again, so the result of this read is
      // outdated.
      if (begins === store.model.begins) store.dispatch(action);
      known[part] = stale;
    } catch {
      // The code below retries. The person learns from the event stream whether the daemon is reachable.
    }
    // The pause grows with the duration of the read, so that reads of a large society do not keep the daemon busy.
    const rest = Math.min(10_000, DELAY_MS[part] + 4 * (performance.now() - before));
    setTimeout(() => {
      busy.delete(part);
      look(store.model);
    }, rest);
  }

  function look(model) {
    if (!model.ready || model.connection !== "live") return;
    for (const part of Object.keys(known)) {
      if (model.stale[part] > known[part] && !busy.has(part)) {
        busy.add(part);
        setTimeout(() => refresh(part, store.model.stale[part]), DELAY_MS[part]);
      }
    }
  }

  store.subscribe(look);
  return async (part) => store.dispatch(await read[part]());
}

/**
 * Reads all parts of the model for the first time. Returns the number of the last event that the agents' data
 * includes.
 */
export async function readAll(store, api) {
  const read = readings(api);
  // Read the agents first. The page then follows the events after the `asOf` of the agents. So it misses no change that
  // happens during the other reads, because each change arrives as an event.
  const agents = await read.agents();
  const rest = await Promise.all([read.tasks(), read.services(), read.config(), read.questions(), read.approvals(), read.calls()]);
  for (const action of [agents, ...rest]) store.dispatch(action);
  store.dispatch({ type: "ready", seq: agents.asOf });
  return agents.asOf;
}
