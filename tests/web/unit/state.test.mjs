import assert from "node:assert/strict";
import { test } from "node:test";
import { alsoWaitsFor } from "../../../crates/api/web/assets/live.js";
import { changedSince, counts, initial, isOpenQuestion, reduce } from "../../../crates/api/web/assets/state.js";

const usage = { calls: 0, promptTokens: 0, completionTokens: 0 };
const agent = (id, more = {}) => ({
  id, role: id, depth: 0, state: "idle", waiting: 0, waitsFor: [], createdAt: 0, usage, asOf: 10, ...more,
});

function begun(...agents) {
  const model = reduce(initial(), { type: "agents", agents });
  return reduce(model, { type: "ready", seq: 10 });
}

const after = (model, ...entries) => reduce(model, { type: "events", entries });
const stateOf = (model, id) => model.agents.get(id).state;

test("a message makes ready, a turn stays so until it is known how far it is, its end rests", () => {
  let model = begun(agent("root"));
  model = after(model, { seq: 11, event: "message_accepted", task: "t", from: "user", to: "root", text: "hello" });
  assert.equal(stateOf(model, "root"), "ready");
  assert.equal(model.agents.get("root").waiting, 1);
  model = after(model, { seq: 12, event: "turn_started", task: "t", agent: "root" });
  assert.equal(stateOf(model, "root"), "ready");
  assert.equal(model.agents.get("root").waiting, 0);
  model = after(model, { seq: 13, event: "turn_ended", task: "t", agent: "root" });
  assert.equal(stateOf(model, "root"), "idle");
});

test("an agent that waits for somebody is waiting when its turn ends", () => {
  const model = begun(agent("root", { state: "thinking", waitsFor: ["a"] }));
  assert.equal(stateOf(after(model, { seq: 11, event: "turn_ended", agent: "root" }), "root"), "waiting");
});

test("an agent whose question was answered asks no more when its turn ends, unless it has another question", () => {
  const answered = { seq: 11, event: "message_accepted", task: "t", from: "user", to: "root", text: "red", inReplyTo: ["m1"] };
  const ends = (...asked) => {
    const question = { state: "asking", doing: { state: "asking", task: "t", about: { question: "m1" } }, waitsFor: ["user", "a"] };
    const questions = asked.map((id) => ({ id, from: "root" }));
    const model = reduce(begun(agent("root", question)), { type: "questions", questions });
    const works = after(model, answered, { seq: 12, event: "turn_started", task: "t", agent: "root" });
    assert.equal(stateOf(works, "root"), "ready");
    return stateOf(after(works, { seq: 13, event: "turn_ended", task: "t", agent: "root" }), "root");
  };
  assert.equal(ends("m1"), "waiting");
  assert.equal(ends(), "waiting");
  assert.equal(ends("m1", "m2"), "asking");
});

test("who is halted stays so whatever else happens, until it is resumed", () => {
  for (const [event, state] of [["agent_paused", "paused"], ["agent_parked", "parked"], ["agent_ended", "ended"]]) {
    let model = after(begun(agent("a", { state: "thinking" })), { seq: 11, event, agent: "a" });
    assert.equal(stateOf(model, "a"), state);
    model = after(model,
      { seq: 12, event: "turn_ended", agent: "a" },
      { seq: 13, event: "message_accepted", task: "t", from: "root", to: "a", text: "" },
      { seq: 14, event: "turn_started", agent: "a" });
    assert.equal(stateOf(model, "a"), state);
    model = after(model, { seq: 15, event: "agent_resumed", agent: "a" });
    assert.equal(stateOf(model, "a"), state === "ended" ? "ended" : "idle");
  }
});

test("who is stopped rests and is parked no longer, but stays paused", () => {
  for (const [event, state] of [["turn_started", "idle"], ["agent_parked", "idle"], ["agent_paused", "paused"], ["agent_ended", "ended"]]) {
    const model = after(begun(agent("a")), { seq: 11, event, agent: "a" }, { seq: 12, event: "agent_stopped", agent: "a" });
    assert.equal(stateOf(model, "a"), state, event);
  }
});

test("a stop takes away the messages of an agent and its questions to the person, but root may have others", () => {
  const stopped = (one) => after(begun(one), { seq: 11, event: "agent_stopped", task: "t", agent: one.id }).agents.get(one.id);
  const of = ({ state, waiting, waitsFor }) => ({ state, waiting, waitsFor });
  assert.deepEqual(of(stopped(agent("a", { state: "parked", waiting: 2 }))), { state: "idle", waiting: 0, waitsFor: [] });
  assert.deepEqual(of(stopped(agent("a", { state: "asking", waitsFor: ["user"] }))), { state: "idle", waiting: 0, waitsFor: [] });
  assert.deepEqual(of(stopped(agent("a", { state: "paused", waiting: 2, waitsFor: ["user", "b"] }))),
    { state: "paused", waiting: 0, waitsFor: ["b"] });
  assert.deepEqual(of(stopped(agent("root", { state: "thinking", waiting: 1 }))), { state: "ready", waiting: 1, waitsFor: [] });
});

test("the questions and tasks are read again when an agent ends, because its questions are dropped", () => {
  const { stale } = after(begun(agent("a")), { seq: 11, event: "agent_ended", agent: "a" });
  assert.deepEqual([stale.agents, stale.tasks, stale.questions], [1, 1, 1]);
});

test("a hired agent hangs below who hired it, with the name of its role", () => {
  const model = after(begun(agent("root")),
    { seq: 11, event: "role_created", task: "t", role: "r1", name: "reader", creator: "root", service: "s" },
    { seq: 12, at: 5, event: "agent_created", task: "t", agent: "a", parent: "root", role: "r1", objective: "o" });
  const { parent, role, depth, service } = model.agents.get("a");
  assert.deepEqual({ parent, role, depth, service }, { parent: "root", role: "reader", depth: 1, service: "s" });
  assert.equal(model.stale.agents, 1);
});

test("an event that comes twice counts once, one that an agent was read after not at all", () => {
  const answered = (seq) => ({ seq, event: "model_answered", agent: "a", usage: { promptTokens: 5, completionTokens: 2 } });
  let model = begun(agent("a", { asOf: 12 }));
  model = after(model, answered(11), answered(13), answered(13));
  model = after(model, answered(13));
  assert.deepEqual(model.agents.get("a").usage, { calls: 1, promptTokens: 5, completionTokens: 2 });
  assert.equal(model.seq, 13);
});

test("invariant: reading agents again at any moment changes no state that events have brought", () => {
  const entries = [
    { seq: 11, event: "turn_started", agent: "a" },
    { seq: 12, event: "turn_ended", agent: "a" },
    { seq: 13, event: "agent_paused", agent: "a" },
    { seq: 14, event: "agent_resumed", agent: "a" },
    { seq: 15, event: "turn_started", agent: "a" },
  ];
  const states = ["idle", "ready", "idle", "paused", "idle", "ready"];
  for (let read = 0; read <= entries.length; read += 1) {
    for (let known = 0; known <= entries.length; known += 1) {
      const model = after(begun(agent("a")), ...entries.slice(0, known));
      const again = reduce(model, { type: "agents", agents: [agent("a", { asOf: 10 + read, state: states[read] })] });
      assert.equal(stateOf(again, "a"), states[Math.max(read, known)], `read at ${read}, known to ${known}`);
      assert.equal(stateOf(after(again, ...entries.slice(known)), "a"), "ready");
    }
  }
});

test("who is not there any more when all are read is gone, who came later stays", () => {
  let model = begun(agent("root"), agent("gone"));
  model = after(model, { seq: 20, event: "agent_created", task: "t", agent: "new", parent: "root", role: "r" });
  model = reduce(model, { type: "agents", agents: [agent("root", { asOf: 15 })] });
  assert.deepEqual([...model.agents.keys()], ["root", "new"]);
});

test("a task begins with its first line, and ends with its outcome", () => {
  let model = after(begun(agent("root")),
    { seq: 11, at: 1, event: "task_started", task: "t" },
    { seq: 12, event: "message_accepted", task: "t", from: "user", to: "root", text: "first\nsecond" });
  assert.equal(model.tasks.get("t").title, "first");
  model = after(model, { seq: 13, event: "task_idle", task: "t", outcome: "answered" });
  assert.deepEqual([model.tasks.get("t").state, model.tasks.get("t").outcome], ["idle", "answered"]);
});

test("the title of a new task is cut between two characters, with a sign", () => {
  const titleOf = (text) => after(begun(agent("root")),
    { seq: 11, at: 1, event: "task_started", task: "t" },
    { seq: 12, event: "message_accepted", task: "t", from: "user", to: "root", text }).tasks.get("t").title;
  const full = `a${"😀".repeat(119)}`;
  assert.equal(titleOf(full), full);
  assert.equal(titleOf(`${full}\nsecond`), full);
  assert.equal(titleOf(`${full}b`), `${full}…`);
  assert.equal(titleOf("天".repeat(10_000)), `${"天".repeat(120)}…`);
});

test("a fork knows which task it was copied from", () => {
  const model = after(begun(agent("root")),
    { seq: 11, at: 1, event: "task_started", task: "t" },
    { seq: 12, event: "task_forked", task: "t", from: "s", turn: 3 });
  assert.equal(model.tasks.get("t").forkedFrom, "s");
});

test("an event that is not known changes nothing but the number", () => {
  const model = begun(agent("root"));
  const next = after(model, { seq: 11, event: "something_new" });
  assert.equal(next.seq, 11);
  assert.deepEqual(next.agents, model.agents);
  assert.deepEqual(next.stale, model.stale);
});

test("events leave the model before them as it was", () => {
  const model = begun(agent("root"));
  const before = structuredClone(model);
  after(model, { seq: 11, event: "turn_started", agent: "root" }, { seq: 12, at: 0, event: "task_started", task: "t" });
  assert.deepEqual(model, before);
});

test("memory does not grow with events", () => {
  let model = begun(agent("root"));
  for (let seq = 11; seq < 20_011; seq += 1) {
    model = after(model, { seq, event: "role_created", role: `r${seq}`, name: "reader", service: "s" });
  }
  assert.equal(model.roles.size, 2000);
});

test("counts leave the person out", () => {
  const all = counts(begun(agent("user"), agent("root"), agent("a", { state: "parked" })));
  assert.equal(all.idle, 1);
  assert.equal(all.parked, 1);
});

test("open questions", () => {
  const question = { to: "user", expects: "answer", state: "done" };
  assert.equal(isOpenQuestion(question), true);
  assert.equal(isOpenQuestion({ ...question, answeredBy: "m" }), false);
  assert.equal(isOpenQuestion({ ...question, to: "root" }), false);
  assert.equal(isOpenQuestion({ ...question, expects: "nothing" }), false);
  assert.equal(isOpenQuestion({ ...question, state: "failed" }), false);
});

test("what an event does not touch stays the same, so nobody draws it again", () => {
  const model = begun(agent("root"));
  const next = after(model, { seq: 11, event: "tool_called", task: "t", agent: "root", tool: "x" });
  for (const part of ["agents", "tasks", "roles", "stale", "services"]) assert.equal(next[part], model[part], part);
  const paused = after(next, { seq: 12, event: "agent_paused", agent: "root" });
  assert.notEqual(paused.agents, next.agents);
  assert.equal(paused.tasks, next.tasks);
  assert.equal(paused.roles, next.roles);
});

test("when the connection is back all is read again; the first time it is there nothing is", () => {
  const connection = (model, state) => reduce(model, { type: "connection", state });
  let model = connection(begun(agent("root")), "live");
  assert.deepEqual([model.returns, ...Object.values(model.stale)], [0, 0, 0, 0, 0, 0, 0]);
  model = connection(connection(model, "lost"), "live");
  assert.deepEqual([model.returns, ...Object.values(model.stale)], [1, 1, 1, 1, 1, 1, 1]);
});

test("of many agents, those that rest are not read again unless an event names them", () => {
  const many = Array.from({ length: 2000 }, (_, number) => agent(`a${number}`, { state: number % 2 ? "idle" : "ended" }));
  let model = begun(agent("user"), agent("root"), agent("busy", { state: "waiting" }), ...many);
  assert.equal(changedSince(null, model), undefined, "the first read is of all agents");
  const last = model;
  model = after(model,
    { seq: 11, event: "message_accepted", task: "t", from: "root", to: "a1", text: "" },
    { seq: 12, event: "turn_ended", task: "t", agent: "busy" });
  assert.deepEqual(changedSince(last, model), ["user", "root", "busy", "a1"]);
  assert.deepEqual(changedSince(model, model), ["user", "root", "busy", "a1"], "a1 works now, and busy waits");
  for (const event of [
    { event: "role_changed", role: "r" }, { event: "task_forked", task: "t2", from: "t" }, { event: "config_taken" },
    { event: "task_forgotten", task: "t" }, { event: "turn_started", task: "t2", agent: "unknown" },
  ]) {
    assert.equal(changedSince(model, after(model, { seq: 13, ...event })), undefined, event.event);
  }
  // The server is ahead of the page, so the data of each agent includes events that the page does not know yet.
  const read = [...model.agents.values()].map(({ id }) => agent(id, { asOf: 90, state: "idle" }));
  assert.deepEqual(changedSince(last, reduce(model, { type: "agents", agents: read, some: true })), ["user", "root"]);
  const created = after(model, { seq: 13, event: "agent_created", task: "t", agent: "new", parent: "root", role: "r" });
  assert.ok(changedSince(last, created).includes("new"));
  const few = begun(agent("user"), agent("root"));
  assert.equal(changedSince(few, few), undefined, "few agents are read as a whole");
});

test("a read of some agents leaves the others as they are, and older data changes nothing", () => {
  const model = after(begun(agent("root"), agent("a"), agent("b")), { seq: 12, event: "turn_started", task: "t", agent: "b" });
  const read = [agent("a", { asOf: 11, waiting: 3 }), agent("b", { asOf: 11, waiting: 3 })];
  const next = reduce(model, { type: "agents", agents: read, some: true });
  assert.deepEqual([...next.agents.keys()], ["root", "a", "b"]);
  assert.deepEqual([next.agents.get("a").waiting, next.agents.get("b")], [3, model.agents.get("b")]);
  assert.equal(reduce(model, { type: "agents", agents: read, some: true }).agents.get("root"), model.agents.get("root"));
});

test("events that begin anew leave nothing of before", () => {
  let model = after(begun(agent("root", { asOf: 500 })), { seq: 700, at: 0, event: "task_started", task: "t" });
  const { stale } = model;
  model = reduce(model, { type: "reset" });
  assert.deepEqual([model.agents.size, model.tasks.size, model.seq, model.ready, model.begins, model.returns], [0, 0, 0, false, 1, 1]);
  assert.equal(model.stale, stale, "a reset must not mark the lists as stale again");
  model = reduce(reduce(model, { type: "agents", agents: [agent("root", { asOf: 3 })] }), { type: "ready", seq: 3 });
  assert.equal(model.agents.get("root").asOf, 3);
  assert.equal(stateOf(after(model, { seq: 4, event: "turn_started", agent: "root" }), "root"), "ready");
});

test("a question about a call disappears as soon as anybody has answered it, and nothing brings it back", () => {
  const open = ["p1", "p2"].map((id) => ({ id, agent: "root", tool: "bash" }));
  let model = reduce(begun(agent("root", { state: "thinking" })), { type: "approvals", approvals: open, permissions: [] });
  model = after(model, { seq: 11, event: "approval_requested", task: "t", agent: "root", approval: "p2", tool: "bash" });
  assert.equal(stateOf(model, "root"), "asking");
  assert.equal(model.stale.approvals, 1, "the page must read the new question");
  model = after(model, { seq: 12, event: "approval_ended", task: "t", agent: "root", approval: "p1", tool: "bash", state: "allowed" });
  assert.deepEqual(model.approvals.map((one) => one.id), ["p2"]);
  assert.equal(model.stale.approvals, 2);
  assert.equal(stateOf(model, "root"), "ready");
});

const thinking = { state: "thinking", task: "t", service: "local", attempt: 1, since: 5, tokens: 1 };
const queued = { state: "queued", task: "t", service: "local", place: 2, since: 5 };
const see = (model, ...glimpses) => reduce(model, { type: "glimpses", glimpses });
const glimpse = (agent, doing, said) => ({ agent, task: "t", doing, said });

test("a glimpse tells how far an agent is with its work, whether it comes before or after the event that began it", () => {
  const began = { seq: 11, event: "turn_started", task: "t", agent: "a" };
  const first = after(see(begun(agent("a")), glimpse("a", queued)), began);
  const second = see(after(begun(agent("a")), began), glimpse("a", queued));
  for (const model of [first, second]) {
    assert.deepEqual(model.agents.get("a").doing, queued);
    assert.equal(stateOf(see(model, glimpse("a", thinking)), "a"), "thinking");
    const ended = see(model, glimpse("a"));
    assert.equal(stateOf(ended, "a"), "ready");
    assert.equal(stateOf(after(model, { seq: 12, event: "turn_ended", agent: "a" }), "a"), "idle");
  }
});

test("a read that is older than a glimpse does not undo it, and the end of a connection forgets all", () => {
  let model = see(begun(agent("a", { state: "ready" })), glimpse("a", thinking));
  model = reduce(model, { type: "agents", agents: [agent("a", { state: "queued", asOf: 12 })] });
  assert.equal(stateOf(model, "a"), "thinking");
  assert.equal(reduce({ ...model, connection: "live" }, { type: "connection", state: "lost" }).moments.size, 0);
});

test("an agent does not seem to think any more when a glimpse tells of others only, whether the read comes before or after it", () => {
  const read = { type: "agents", agents: [agent("root", { state: "thinking", doing: thinking }), agent("a", { state: "ready" })] };
  const model = begun(agent("root", { state: "thinking", doing: thinking }), agent("a", { state: "ready" }));
  for (const later of [see(model, glimpse("a", thinking)), reduce(see(model, glimpse("a", thinking)), read)]) {
    assert.equal(stateOf(later, "root"), "ready");
    assert.equal(stateOf(later, "a"), "thinking");
  }
  assert.equal(stateOf(reduce(model, read), "root"), "thinking", "no glimpse has come yet");
  const lost = reduce({ ...see(model, glimpse("a", thinking)), connection: "live" }, { type: "connection", state: "lost" });
  assert.equal(stateOf(reduce(lost, read), "root"), "thinking", "nobody tells what agents are doing");
});

test("what holds root up in one task does not hide what it does in another", () => {
  const elsewhere = { agent: "root", task: "t-2", doing: { ...thinking, task: "t-2" } };
  for (const state of ["asking", "parked"]) {
    const held = begun(agent("root", { state, doing: { state, task: "t", since: 1 } }));
    assert.equal(stateOf(see(held, glimpse("root", thinking)), "root"), state, "an old glimpse of the same task");
    const model = see(held, elsewhere);
    assert.equal(stateOf(model, "root"), "thinking", state);
    assert.equal(model.agents.get("root").doing.task, "t-2");
  }
  const works = see(begun(agent("root", { state: "ready", waitsFor: ["user"] })), elsewhere);
  const asks = { seq: 11, event: "approval_requested", task: "t", agent: "root", approval: "p1", tool: "bash" };
  assert.equal(stateOf(after(works, asks), "root"), "thinking");
  assert.equal(stateOf(after(works, { seq: 11, event: "turn_ended", task: "t", agent: "root" }), "root"), "thinking");
  assert.equal(stateOf(after(works, { seq: 11, event: "turn_ended", task: "t-2", agent: "root" }), "root"), "asking");
});

test("whom an agent waits for is not said twice", () => {
  assert.deepEqual(alsoWaitsFor({ state: "asking", waitsFor: ["user", "a"] }), ["a"]);
  assert.deepEqual(alsoWaitsFor({ state: "thinking", waitsFor: ["user", "a"] }), ["user", "a"]);
});

test("an agent that is halted or has no work is not at work, whatever a late glimpse says", () => {
  for (const state of ["paused", "parked", "ended", "idle"]) {
    assert.equal(stateOf(see(begun(agent("a", { state })), glimpse("a", thinking)), "a"), state);
  }
});

test("the pieces of an answer are joined, another answer begins anew, and a gap is shown", () => {
  const said = (answer, text, more = {}) => ({ answer, text, ...more });
  let model = begun(agent("a", { state: "ready" }));
  const text = () => model.moments.get("a t").saying.text;
  model = see(model, glimpse("a", thinking, said(7, "one ")), glimpse("a", thinking, said(7, "two")));
  assert.equal(text(), "one two");
  model = see(model, glimpse("a", { ...thinking, tokens: 3 }));
  assert.equal(text(), "one two");
  model = see(model, glimpse("a", thinking, said(7, "four", { textSkipped: true })));
  assert.equal(text(), "one two…four");
  model = see(model, glimpse("a", thinking, said(9, "new", { calls: ["bash"] })));
  assert.deepEqual(model.moments.get("a t").saying, { answer: 9, text: "new", reasoning: "", calls: ["bash"] });
  model = see(model, glimpse("a", { state: "running", task: "t", tools: ["bash"], since: 5 }));
  assert.equal(model.moments.get("a t").saying, undefined);
});
