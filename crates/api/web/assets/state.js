// The page's model of the society: the data that the page has read from the server, updated with later events. A pure
// function computes the next model from the current one and an action.
//
// Each agent has `asOf`, the number of the last event that its data includes. An event with this number or a lower one
// changes nothing in the agent. A read whose `asOf` is lower changes nothing either, so it does not undo the changes of
// later events. `named` says that an event has changed the agent since it was read. Events do not contain all data that
// changes, such as the cost of a call, or which agents wait for other agents. For such data, an event increments the
// counter of a part in `stale`, and `refresh.js` rereads this part. `returns` counts how often the connection was
// restored. The page may have missed events while it had no connection, so it rereads everything.

import { afterEvents } from "./calls.js";
import { AT_WORK, afterGlimpses, atThisMoment, momentsOf, tasksOf } from "./live.js";

/** The states of an agent, in the order in which the page lists them. */
export const STATES = ["asking", ...AT_WORK, "waiting", "parked", "paused", "idle", "ended"];

/** Maximum number of characters in the title of a task, until the server tells the title. */
const TITLE = 120;

/** Maximum number of roles whose names the page remembers. It needs them to name newly hired agents. */
const ROLES = 2000;

const NOTHING_SPENT = { calls: 0, promptTokens: 0, completionTokens: 0 };

/** Returns an empty model. */
export function initial() {
  return {
    agents: new Map(),
    tasks: new Map(),
    services: [],
    config: null,
    questions: [],
    approvals: [],
    permissions: [],
    calls: new Map(),
    moments: new Map(),
    // Whether glimpses have come over this connection. From then on, `moments` tells what agents are doing.
    glimpsed: false,
    roles: new Map(),
    seq: 0,
    connection: "connecting",
    ready: false,
    stale: { agents: 0, tasks: 0, services: 0, config: 0, questions: 0, approvals: 0 },
    // How often the data of agents has changed without events that name these agents.
    unnamed: 0,
    returns: 0,
    begins: 0,
  };
}

/** Returns the model after an action. */
export function reduce(model, action) {
  switch (action.type) {
    case "connection":
      return connected(model, action.state);
    case "reset":
      return begunAnew(model);
    case "ready":
      return { ...model, ready: true, seq: Math.max(model.seq, action.seq) };
    case "agents":
      return { ...model, agents: agentsRead(model, action) };
    case "glimpses":
      return glimpsed(model, action.glimpses);
    case "tasks":
      return { ...model, tasks: new Map(action.tasks.map((task) => [task.id, task])) };
    case "services":
      return { ...model, services: action.services };
    case "config":
      return { ...model, config: action.config };
    case "questions":
      return { ...model, questions: action.questions };
    case "approvals":
      return { ...model, approvals: action.approvals, permissions: action.permissions };
    case "calls":
      return { ...model, calls: afterEvents(model.calls, action.entries) };
    case "events":
      return happened(model, action.entries);
    default:
      throw new Error(`no such action: ${action.type}`);
  }
}

function connected(model, connection) {
  if (model.connection === connection) return model;
  // While the connection is lost, the page cannot learn when an agent finishes what it is doing. So it discards all
  // `moments`, which contain what agents are doing.
  if (connection !== "live") model = { ...model, moments: new Map(), glimpsed: false };
  if (connection !== "live" || model.connection !== "lost" || !model.ready) return { ...model, connection };
  const stale = Object.fromEntries(Object.entries(model.stale).map(([part, times]) => [part, times + 1]));
  return { ...model, connection, stale, unnamed: model.unnamed + 1, returns: model.returns + 1 };
}

/** Discards all data after a reset, because events are missing between the last known event and the next events. */
function begunAnew(model) {
  const { connection, stale, unnamed, returns, begins } = model;
  return { ...initial(), connection, stale, unnamed: unnamed + 1, returns: returns + 1, begins: begins + 1 };
}

/** A read of the agents reads all of them if there are at most so many. */
const FEW = 1000;

/**
 * Returns the ids of the agents that have to be read again, or `undefined` for all agents. `last` has `unnamed` of the
 * model at the last read. Most agents of a large society rest: they change only by events that name them, or if `unnamed`
 * changes. `asOf` does not tell these events, because each read raises it. Root and the person take part in all tasks, so
 * they are always read again.
 */
export function changedSince(last, { agents, unnamed }) {
  if (agents.size <= FEW || unnamed !== last?.unnamed) return undefined;
  const changed = ({ id, state, named }) =>
    id === "root" || id === "user" || (state !== "idle" && state !== "ended") || named;
  return [...agents.values()].filter(changed).map((agent) => agent.id);
}

/**
 * Merges the agents from a read into the known agents. If the page already has newer data of an agent, the newer data
 * stays. `some` says that only some of the agents were read.
 */
function agentsRead({ agents: known, moments, glimpsed }, { agents: read, some = false }) {
  const agents = new Map(some ? known : []);
  for (const agent of read) {
    const before = known.get(agent.id);
    agents.set(agent.id, before && before.asOf > agent.asOf ? before : atThisMoment(agent, moments));
  }
  if (some) return glimpsed ? withoutPast(agents, moments) : agents;
  const until = read.reduce((least, agent) => Math.min(least, agent.asOf), Infinity);
  for (const agent of known.values()) {
    if (!agents.has(agent.id) && agent.asOf > until) agents.set(agent.id, agent);
  }
  return glimpsed ? withoutPast(agents, moments) : agents;
}

/**
 * Takes states back that are over. A read may say that an agent thinks, and arrive after the glimpse that this agent has
 * stopped thinking. Otherwise, more agents would seem to think than requests are at the servers.
 */
function withoutPast(agents, moments) {
  const busy = new Set([...moments.values()].map((moment) => moment.agent));
  for (const [id, agent] of agents) {
    if (!busy.has(id) && ["thinking", "running", "retrying"].includes(agent.state)) agents.set(id, { ...agent, ...works(agent) });
  }
  return agents;
}

/** Applies glimpses, which tell what agents are doing at this moment. */
function glimpsed(model, glimpses) {
  const moments = afterGlimpses(model.moments, glimpses);
  const agents = new Map(model.agents);
  for (const id of new Set(glimpses.map((glimpse) => glimpse.agent))) {
    const agent = agents.get(id);
    if (!agent) continue;
    // If `moments` no longer contains the agent, the agent still has work until an event reports the end of its turn.
    const worked = AT_WORK.includes(agent.state) ? works(agent) : {};
    agents.set(id, atThisMoment({ ...agent, ...worked }, moments));
  }
  return { ...model, moments, agents: withoutPast(agents, moments), glimpsed: true };
}

/**
 * Returns the fields of an agent in the state `ready`. An agent with work is in this state as long as no glimpse has
 * told the page what the agent is doing.
 */
function works(agent) {
  return { state: "ready", doing: agent.doing?.state === "ready" ? agent.doing : undefined };
}

function happened(model, entries) {
  const next = { ...model, calls: afterEvents(model.calls, entries) };
  const change = changes(model, next);
  for (const entry of entries) {
    if (entry.seq <= next.seq) continue;
    apply(next, change, entry);
    next.seq = entry.seq;
  }
  return next;
}

/**
 * Returns functions that change parts of the next model. Each part is copied once, before its first change, so the
 * current model stays as it is.
 */
function changes(model, next) {
  const own = (part) => {
    if (next[part] === model[part]) next[part] = part === "stale" ? { ...model.stale } : new Map(model[part]);
    return next[part];
  };
  return {
    set: (part, id, value) => own(part).set(id, value),
    forget: (part, id) => own(part).delete(id),
    stale: (part) => { own("stale")[part] += 1; },
  };
}

function apply(next, change, entry) {
  const stale = (...parts) => parts.forEach(change.stale);
  /** Changes an agent, unless its data already includes this event. */
  const touch = (id, changed) => {
    const agent = next.agents.get(id);
    // The page does not know the agents that a fork has copied.
    if (!agent) next.unnamed += 1;
    if (!agent || agent.asOf >= entry.seq) return;
    change.set("agents", id, atThisMoment({ ...agent, ...changed(agent), asOf: entry.seq, named: true }, next.moments));
  };
  const touchTask = (id, changed) => {
    const task = next.tasks.get(id);
    const differs = task && Object.entries(changed).some(([name, value]) => task[name] !== value);
    if (differs) change.set("tasks", id, { ...task, ...changed });
  };
  switch (entry.event) {
    case "task_started":
      if (!next.tasks.has(entry.task)) change.set("tasks", entry.task, newTask(entry));
      return stale("tasks");
    case "task_forked":
      next.unnamed += 1;
      return touchTask(entry.task, { forkedFrom: entry.from });
    case "task_idle":
      touchTask(entry.task, { state: "idle", outcome: entry.outcome });
      return stale("tasks", "agents", "questions");
    case "task_forgotten":
      next.unnamed += 1;
      return stale("tasks", "agents", "questions");
    case "role_created":
      change.set("roles", entry.role, { name: entry.name, service: entry.service });
      if (next.roles.size > ROLES) change.forget("roles", next.roles.keys().next().value);
      return;
    case "agent_created":
      if (!next.agents.has(entry.agent)) change.set("agents", entry.agent, newAgent(next, entry));
      return stale("agents", "tasks");
    case "agent_ended":
      touch(entry.agent, () => ({ state: "ended", doing: since("ended", entry), endedAt: entry.at, waitsFor: [] }));
      return stale("agents", "tasks", "questions");
    case "agent_paused":
      touch(entry.agent, (agent) => (agent.state === "ended" ? {} : { state: "paused", doing: since("paused", entry) }));
      return stale("agents");
    case "agent_parked":
      touch(entry.agent, (agent) => (halted(agent) ? {} : { state: "parked", doing: undefined }));
      return stale("agents", "tasks");
    case "agent_resumed":
      touch(entry.agent, (agent) => (agent.state === "ended" ? {} : resting(agent)));
      return stale("agents", "tasks", "questions");
    case "agent_stopped":
      touch(entry.agent, (agent) => {
        if (agent.state === "ended") return {};
        const left = stopped(agent);
        // A stop does not end a pause.
        return agent.state === "paused" ? left : { ...left, ...resting({ ...agent, ...left }) };
      });
      return stale("agents", "tasks", "questions");
    case "message_accepted":
      if (entry.to === "user" || entry.from === "user") stale("questions", "tasks");
      if (entry.to !== "user") touchTask(entry.task, { state: "open", outcome: undefined, ...titled(next, entry) });
      touch(entry.to, (agent) => ({
        waiting: agent.waiting + (entry.to === "user" ? 0 : 1),
        waitsFor: stillWaitsFor(agent, entry, next.questions),
        ...(RESTS.includes(agent.state) && !asksAboutCall(agent) && entry.to !== "user" ? works(agent) : {}),
      }));
      return stale("agents");
    case "turn_started":
      touch(entry.agent, (agent) => ({
        waiting: Math.max(0, agent.waiting - 1),
        ...(halted(agent) || AT_WORK.includes(agent.state) ? {} : works(agent)),
      }));
      return stale("agents");
    case "approval_requested":
      touch(entry.agent, (agent) => (halted(agent) ? {}
        : { state: "asking", doing: { ...since("asking", entry), task: entry.task, about: { approval: entry.approval } } }));
      return stale("agents", "tasks", "approvals");
    case "approval_ended":
      touch(entry.agent, (agent) => (asksAboutCall(agent) ? works(agent) : {}));
      next.approvals = next.approvals.filter((one) => one.id !== entry.approval);
      return stale("agents", "tasks", "approvals");
    case "turn_ended":
      touch(entry.agent, (agent) => {
        if (!AT_WORK.includes(agent.state) && !asksAboutCall(agent)) return {};
        // The turn of another task goes on.
        return isElsewhere(next.moments, entry) ? works(agent) : resting(agent);
      });
      return stale("agents");
    case "model_answered":
      touch(entry.agent, (agent) => ({ usage: spent(agent.usage, entry.usage) }));
      return stale("tasks", "services");
    case "model_failed":
    case "service_skipped":
      return stale("services");
    case "role_changed":
      next.unnamed += 1;
      return stale("agents");
    case "config_taken":
    case "config_refused":
      next.unnamed += 1;
      return stale("config", "services", "agents");
    default:
      return undefined;
  }
}

function halted(agent) {
  return agent.state === "ended" || agent.state === "paused" || agent.state === "parked";
}

/** The states in which an agent begins to work as soon as a message arrives. */
const RESTS = ["idle", "waiting", "asking"];

/** Whether the agent waits until the person allows or refuses a call. The turn of such an agent has not ended. */
function asksAboutCall(agent) {
  return agent.state === "asking" && agent.doing?.about?.question === undefined;
}

/**
 * Returns for whom an agent still waits after it has got a message. An answer of the person ends the wait for the person,
 * unless the agent has asked another question. Otherwise the agent would seem to ask again when its next turn ends.
 */
function stillWaitsFor(agent, { from, inReplyTo = [] }, questions) {
  const asksMore = questions.some((one) => one.from === agent.id && !inReplyTo.includes(one.id));
  return from !== "user" || inReplyTo.length === 0 || asksMore ? agent.waitsFor : agent.waitsFor.filter((id) => id !== "user");
}

/** Whether the agent of an event is doing something in another task than that of the event. */
function isElsewhere(moments, entry) {
  return entry.task !== undefined && momentsOf(moments, entry.agent).some(({ task }) => task !== entry.task);
}

/**
 * What a stopped agent still waits for. A stop takes its messages away, and its questions to the person. But root works in
 * several tasks, and this may be the stop of one of them. So what root waits for stays until the agents are read again.
 */
function stopped(agent) {
  if (agent.id === "root") return {};
  return { waiting: 0, waitsFor: agent.waitsFor.filter((one) => one !== "user") };
}

function since(state, entry) {
  return { state, since: entry.at };
}

/** Estimates the state of an agent whose turn has ended. The next read replaces this estimate with the exact state. */
function resting(agent) {
  if (agent.waiting > 0) return works(agent);
  if (agent.waitsFor.includes("user")) return { state: "asking", doing: { state: "asking", about: { question: "" } } };
  return { state: agent.waitsFor.length > 0 ? "waiting" : "idle", doing: undefined };
}

function spent(usage, tokens) {
  return {
    ...usage,
    calls: usage.calls + 1,
    promptTokens: usage.promptTokens + tokens.promptTokens,
    completionTokens: usage.completionTokens + tokens.completionTokens,
  };
}

function newAgent(model, entry) {
  const role = model.roles.get(entry.role);
  return {
    id: entry.agent, role: role?.name ?? entry.role, roleId: entry.role, service: role?.service, parent: entry.parent,
    task: entry.task, depth: (model.agents.get(entry.parent)?.depth ?? 0) + 1, state: "idle", waiting: 0,
    waitsFor: [], createdAt: entry.at, usage: NOTHING_SPENT, asOf: entry.seq, named: true,
  };
}

function newTask(entry) {
  return {
    id: entry.task, title: "", state: "open", createdAt: entry.at, agents: 0, usage: NOTHING_SPENT, waitingForUser: 0,
  };
}

/** If a message is the prompt of its task, returns the beginning of its first line as the title of the task. */
function titled(next, entry) {
  const first = entry.from === "user" && entry.to === "root" && next.tasks.get(entry.task)?.title === "";
  if (!first) return {};
  const line = entry.text.split("\n", 1)[0];
  // A character takes one or two places of a string.
  const characters = [...line.slice(0, 2 * (TITLE + 1))];
  return { title: characters.length > TITLE ? `${characters.slice(0, TITLE).join("")}…` : line };
}

/**
 * Counts the agents of a model in each state, without the person. If a task is given, counts only the agents of the task
 * and root. Root then counts with its state in this task.
 */
export function counts(model, task = null) {
  const all = Object.fromEntries(STATES.map((state) => [state, 0]));
  for (const agent of model.agents.values()) {
    if (agent.id === "user") continue;
    if (!task || agent.task === task) all[agent.state] += 1;
    else if (!agent.task) all[stateIn(model, agent, task)] += 1;
  }
  return all;
}

/** The states of an agent that hold in all of its tasks. */
const EVERYWHERE = ["idle", "paused", "ended"];

/** Returns the state of an agent in one task. The agent may have several tasks. */
function stateIn({ agents, moments, questions, approvals }, agent, task) {
  const { id, state, doing, waitsFor } = agent;
  const isHere = (one) => one.task === task;
  if (EVERYWHERE.includes(state) || tasksOf(doing).includes(task)) return state;
  const here = momentsOf(moments, id).find(isHere);
  if (here) return here.doing.state;
  if (approvals.some((one) => one.agent === id && isHere(one)) || questions.some((one) => one.from === id && isHere(one))) return "asking";
  if (waitsFor.some((one) => agents.get(one)?.task === task)) return "waiting";
  // After some events, the page knows that the agent does something, but not yet in which task.
  const isKnown = tasksOf(doing).length > 0 || momentsOf(moments, id).length > 0;
  return isKnown ? "idle" : state;
}

/** Whether a message is an unanswered question to the person. */
export function isOpenQuestion(message) {
  return message.to === "user" && message.expects === "answer" && !message.answeredBy
    && message.state !== "bounced" && message.state !== "failed";
}
