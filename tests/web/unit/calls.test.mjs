import assert from "node:assert/strict";
import { test } from "node:test";
import { afterEvents, callsOf, commandOf, outputOf, runsCommand } from "../../../crates/api/web/assets/calls.js";
import { eventOf, reasonsOf } from "../../../crates/api/web/assets/reasons.js";

const event = (seq, kind, more = {}) => ({ seq, at: seq * 1000, event: kind, task: "t", agent: "a", call: "c1", tool: "bash", ...more });
const turn = (seq, kind, more = {}) => ({ seq, at: seq * 1000, event: kind, task: "t", agent: "a", ...more });
const after = (...entries) => afterEvents(new Map(), entries);
const only = (calls) => {
  assert.equal(calls.size, 1);
  return [...calls.values()][0];
};
const RUN = [event(1, "tool_started", { arguments: "{}" }), event(2, "tool_progress", { text: "one" }), event(3, "tool_progress", { text: "two" })];
const END = event(4, "tool_called", { durationMs: 1500, head: "done" });

test("a call runs with its newest report, and ends with its duration and the beginning of its result", () => {
  const running = only(after(...RUN));
  assert.deepEqual([running.state, running.tool, running.arguments, running.begunAt, running.progress], ["running", "bash", "{}", 1000, "two"]);
  const ended = only(after(...RUN, END));
  assert.deepEqual([ended.state, ended.durationMs, ended.head, ended.error], ["ended", 1500, "done", undefined]);
  const failed = only(after(...RUN, event(4, "tool_called", { error: "tool_failed" })));
  assert.deepEqual([failed.error, failed.failed, ended.failed], ["tool_failed", 4, undefined], "the event that explains the failure");
});

test("invariant: events that are read again change nothing", () => {
  const all = [...RUN, END];
  const calls = after(...all);
  for (let from = 0; from < all.length; from += 1) assert.equal(afterEvents(calls, all.slice(from)), calls);
  assert.equal(afterEvents(calls, [turn(9, "turn_started")]), calls);
});

test("the end of a turn drops its calls that still run, and no others", () => {
  const others = [event(1, "tool_started", { agent: "b" }), event(1, "tool_started", { task: "u", call: "c2" })];
  for (const kind of ["turn_ended", "agent_stopped"]) {
    const calls = after(...RUN, ...others, turn(5, kind));
    assert.deepEqual([...calls.values()].map((call) => call.state), ["dropped", "running", "running"], kind);
  }
  assert.equal(only(after(...RUN, END, turn(5, "turn_ended"))).state, "ended");
});

test("the same id in a later turn is another call", () => {
  const calls = after(...RUN, END, turn(5, "turn_ended"), event(6, "tool_started", { arguments: "{}" }));
  assert.deepEqual([only(calls).state, only(calls).began, only(calls).head], ["running", 6, undefined]);
});

test("a call of the society's own tools, or one whose start is unknown, is not shown", () => {
  assert.equal(after(turn(1, "tool_called", { tool: "send_message" }), event(2, "tool_called"), event(3, "tool_progress", { text: "x" })).size, 0);
});

test("ended calls are forgotten before running ones, and an agent's calls are listed latest first", () => {
  const many = Array.from({ length: 400 }, (_, at) => event(at + 2, "tool_started", { call: `c${at + 2}` }));
  const ends = many.map((one) => event(one.seq + 1000, "tool_called", { call: one.call }));
  const calls = after(RUN[0], ...many, ...ends);
  assert.equal(calls.size, 300);
  assert.equal(calls.get("a c1").state, "running");
  const listed = callsOf(calls, "a");
  assert.deepEqual([listed[0].call, listed.at(-1).call], ["c401", "c1"]);
  assert.deepEqual(callsOf(calls, "b"), []);
});

test("a running call shows the output of its command, otherwise its newest report, and in the end its result", () => {
  const running = only(after(...RUN));
  assert.equal(outputOf(running, { output: "three" }), "three");
  assert.equal(outputOf(running, { output: "" }), "two", "the daemon has not read the output yet");
  assert.equal(outputOf(running), "two");
  assert.equal(outputOf(only(after(...RUN, END)), { output: "three" }), "done");
});

test("a running call of bash waits for the command in the foreground of its agent and its task", () => {
  const running = only(after(...RUN));
  const command = { agent: "a", task: "t", command: "ls" };
  const others = [{ ...command, id: "cmd-1" }, { ...command, agent: "b" }, { ...command, task: "u" }];
  assert.equal(commandOf([...others, command], running), command);
  assert.equal(commandOf(others, running), undefined);
  assert.equal(commandOf([command], only(after(...RUN, END))), undefined);
  assert.equal(commandOf([command], { ...running, tool: "fetch_page" }), undefined);
  assert.deepEqual([runsCommand([running]), runsCommand([]), runsCommand([only(after(...RUN, END))])], [true, false, false]);
});

test("a refusal and a failure in the history lead to their events, which are read as far back as needed", async () => {
  const events = [
    event(1, "tool_called", { call: "c1", error: "not_found", task: "u" }), event(2, "tool_called", { call: "c1", error: "unknown_contact" }),
    event(3, "tool_called", { call: "c2" }), turn(4, "turn_ended", { failure: "broken" }), turn(5, "turn_ended"),
  ];
  const asked = [];
  const api = { events: async (filter) => {
    asked.push(filter);
    const page = events.filter((one) => one.seq < filter.before).slice(-2);
    return { events: page, next: page[0]?.seq };
  } };
  const entry = (at, record, more) => ({ at: at * 1000, record: { record, ...more } });
  const refused = entry(2, "tool_finished", { call: "c1" });
  const reasons = reasonsOf(api, "a", "t");
  assert.deepEqual(await reasons([entry(5, "heard")]), []);
  assert.equal(asked.length, 0, "events are read for a page that needs none");
  const late = await reasons([entry(4, "failed")]);
  assert.equal(eventOf(entry(4, "failed"), late).seq, 4);
  assert.equal(eventOf(entry(5, "stopped"), late), undefined);
  assert.deepEqual(asked.map((one) => one.before), [Number.MAX_SAFE_INTEGER, 4]);
  assert.deepEqual({ ...asked[0], before: 0 }, { agent: "a", task: "t", kind: "tool_called,turn_ended", before: 0, limit: 500 });
  const all = await reasons([refused, entry(3, "tool_finished", { call: "c2" })]);
  assert.equal(eventOf(refused, all).seq, 2, "the same id in another task is another call");
  assert.equal(eventOf(entry(3, "tool_finished", { call: "c2" }), all), undefined);
  assert.equal(eventOf(entry(2, "heard"), all), undefined);
});
