// Rereads the parts of the model that events have made stale. It waits a moment after the first event, so that a burst
// of events causes one read, and never runs two reads of a part at the same time.

import { openQuestions } from "./questions.js";

const DELAY_MS = { agents: 400, tasks: 700, services: 1500, config: 100, questions: 300, approvals: 100 };

/** Returns a read function for each part of the model. Each function resolves to an action for the store. */
function readings(api) {
  return {
    agents: async () => ({ type: "agents", ...(await api.agents()) }),
    tasks: async () => ({ type: "tasks", tasks: (await api.tasks()).tasks }),
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

/** Keeps the model of a store fresh. Returns a function that reads a part at once. */
export function keepFresh(store, api) {
  const read = readings(api);
  const known = { agents: 0, tasks: 0, services: 0, config: 0, questions: 0, approvals: 0 };
  const busy = new Set();

  async function refresh(part, stale) {
    busy.add(part);
    const before = performance.now();
    const { begins } = store.model;
    try {
      const action = await read[part]();
      // If a reset happened during the read, the result is outdated.
      if (begins === store.model.begins) store.dispatch(action);
      known[part] = stale;
    } catch {
      // The code below retries. The event stream reports whether the daemon is reachable at all.
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

/** Reads everything for the first time. Returns the number of the last event that the data includes. */
export async function readAll(store, api) {
  const read = readings(api);
  // The agents are read first, and the page follows the events after their `asOf`. So changes during the other reads
  // arrive again as events.
  const agents = await read.agents();
  const rest = await Promise.all([read.tasks(), read.services(), read.config(), read.questions(), read.approvals(), read.calls()]);
  for (const action of [agents, ...rest]) store.dispatch(action);
  store.dispatch({ type: "ready", seq: agents.asOf });
  return agents.asOf;
}
