// Keeps what agents are doing at this moment. The event stream reports this in glimpses. Glimpses are not stored and
// may be lost. So the API tells which agents have work, and glimpses only add details to these agents. Pure functions.

/**
 * The states of an agent that has work and waits neither for another agent nor for the person. The first state is the
 * most important one.
 */
export const AT_WORK = ["thinking", "running", "retrying", "queued", "ready"];

/** Maximum number of characters to keep of an answer that is arriving. */
const KEPT = 20_000;

/** Applies glimpses to the moments, and returns the new moments. A moment is what an agent is doing in one task. */
export function afterGlimpses(moments, glimpses) {
  const next = new Map(moments);
  for (const { agent, task, doing, said } of glimpses) {
    const key = `${agent} ${task}`;
    if (!doing) {
      next.delete(key);
      continue;
    }
    const before = doing.state === "thinking" ? next.get(key)?.saying : undefined;
    next.set(key, { agent, task, doing, saying: said ? heard(before, said) : before });
  }
  return next;
}

function heard(before, said) {
  const known = before?.answer === said.answer ? before : { answer: said.answer, text: "", reasoning: "", calls: [] };
  return {
    answer: said.answer,
    text: joined(known.text, said.text, said.textSkipped),
    reasoning: joined(known.reasoning, said.reasoning, said.reasoningSkipped),
    calls: said.calls ?? known.calls,
  };
}

function joined(before, piece = "", skipped = false) {
  const text = before + (skipped ? "…" : "") + piece;
  return text.length > KEPT ? `…${text.slice(text.length - KEPT / 2)}` : text;
}

/** Returns the moments of an agent: what it is doing in each of its tasks. The most important moment comes first. */
export function momentsOf(moments, id) {
  const own = [...moments.values()].filter((moment) => moment.agent === id);
  return own.sort((a, b) => AT_WORK.indexOf(a.doing.state) - AT_WORK.indexOf(b.doing.state));
}

/** Returns the tasks that an agent works in, asks in, is parked in or waits in. */
export function tasksOf(doing) {
  if (doing?.state === "waiting") return doing.requests.map((request) => request.task);
  return doing?.task === undefined ? [] : [doing.task];
}

/**
 * Gives an agent the state of its most important moment. (A moment is what an agent is doing in one task.) Returns an
 * agent that cannot go on unchanged.
 */
export function atThisMoment(agent, moments) {
  const moment = momentsOf(moments, agent.id).find(({ task }) => goesOn(agent, task));
  return moment ? { ...agent, state: moment.doing.state, doing: moment.doing } : agent;
}

/** Whether an agent can go on in a task. What holds an agent up in one task does not hold it up in its other tasks. */
function goesOn({ state, doing }, task) {
  if (AT_WORK.includes(state)) return true;
  return ["asking", "parked"].includes(state) && doing?.task !== undefined && doing.task !== task;
}

/** Returns the parties that an agent waits for, except the person if the state of the agent already says so. */
export function alsoWaitsFor({ state, waitsFor }) {
  return state === "asking" ? waitsFor.filter((id) => id !== "user") : waitsFor;
}
