// Reads again what events have made stale: a while after the first of them, so that a burst is one reading, and never
// twice at a time.

import { openQuestions } from "./questions.js";

const DELAY_MS = { agents: 400, tasks: 700, services: 1500, config: 100, questions: 300 };

/** Readings of each part of the model: what to ask, and what the model is told. */
function readings(api) {
  return {
    agents: async () => ({ type: "agents", ...(await api.agents()) }),
    tasks: async () => ({ type: "tasks", tasks: (await api.tasks()).tasks }),
    services: async () => ({ type: "services", services: await api.services() }),
    config: async () => ({ type: "config", config: await api.config() }),
    questions: async () => ({ type: "questions", questions: await openQuestions(api) }),
  };
}

/** Keeps the model of a store fresh. Gives a function that reads a part now. */
export function keepFresh(store, api) {
  const read = readings(api);
  const known = { agents: 0, tasks: 0, services: 0, config: 0, questions: 0 };
  const busy = new Set();

  async function refresh(part, stale) {
    busy.add(part);
    const before = performance.now();
    const { begins } = store.model;
    try {
      const action = await read[part]();
      // What was asked for before a new beginning says nothing now.
      if (begins === store.model.begins) store.dispatch(action);
      known[part] = stale;
    } catch {
      // The next try follows below; whether the daemon is there at all is told by the stream.
    }
    // A large society is read less often: what takes long is not done all the time.
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

/** Reads everything for the first time; gives the event up to which it is known. */
export async function readAll(store, api) {
  const read = readings(api);
  // The agents first: what happens while the rest is read arrives again with the events.
  const agents = await read.agents();
  const rest = await Promise.all([read.tasks(), read.services(), read.config(), read.questions()]);
  for (const action of [agents, ...rest]) store.dispatch(action);
  store.dispatch({ type: "ready", seq: agents.asOf });
  return agents.asOf;
}
