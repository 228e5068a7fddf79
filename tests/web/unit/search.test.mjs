import assert from "node:assert/strict";
import { test } from "node:test";
import { meaning } from "../../../crates/api/web/assets/keys.js";
import { keep, read } from "../../../crates/api/web/assets/preferences.js";
import { grouped, shorter } from "../../../crates/api/web/assets/search.js";
import { STATES, counts, initial } from "../../../crates/api/web/assets/state.js";
import { childrenOf } from "../../../crates/api/web/assets/tree.js";

test("what goes on comes before what is over, each in the order of the server", () => {
  const hits = [{ id: 1, over: true }, { id: 2, over: false }, { id: 3, over: true }, { id: 4, over: false }];
  const { active, over } = grouped(hits);
  assert.deepEqual([active.map((hit) => hit.id), over.map((hit) => hit.id)], [[2, 4], [1, 3]]);
});

test("a search of any length fits into an address, and no character is cut in two", () => {
  assert.equal(shorter("天气 \"x* 😀"), "天气 \"x* 😀");
  const cut = shorter("😀".repeat(10_000));
  assert.equal([...cut].length, 5000);
  assert.ok(encodeURIComponent("天".repeat(5000)).length < 65_534 && encodeURIComponent(cut).length < 65_534);
});

test("the key / searches, also while letters are shortcuts only", () => {
  assert.deepEqual(meaning({ key: "/" }), { does: "find" });
  assert.equal(meaning({ key: "/", writing: true }), null);
});

test("ended agents come last", () => {
  const agent = (id, state, createdAt) => [id, { id, parent: "root", state, createdAt }];
  const agents = new Map([agent("root", "idle", 0), agent("a", "ended", 1), agent("b", "idle", 2), agent("c", "thinking", 3)]);
  agents.get("root").parent = undefined;
  assert.deepEqual(childrenOf(agents).get("root").map((one) => one.id), ["b", "c", "a"]);
});

/** Returns a model in which root has several tasks. */
function modelOf(root, more = {}) {
  const all = [{ id: "root", waitsFor: [], ...root }, { id: "user", state: "idle" },
    { id: "a", task: "t-1", state: "parked" }, { id: "b", task: "t-2", state: "parked" }];
  return { ...initial(), agents: new Map(all.map((one) => [one.id, one])), ...more };
}

test("the counts of a task are of its agents, and of root with its state in this task", () => {
  const thinking = { state: "thinking", doing: { state: "thinking", task: "t-2" } };
  const counted = (model, task) => Object.entries(counts(model, task)).filter(([, n]) => n > 0).flat();
  assert.deepEqual(counted(modelOf(thinking)), ["thinking", 1, "parked", 2]);
  assert.deepEqual(counted(modelOf(thinking), "t-2"), ["thinking", 1, "parked", 1]);
  assert.deepEqual(counted(modelOf(thinking), "t-1"), ["parked", 1, "idle", 1]);
});

test("the state of root in a task", () => {
  const check = (root, more, expect) => {
    const { parked, ...all } = counts(modelOf(root, more), "t-1");
    const [[state]] = Object.entries({ ...all, parked: parked - 1 }).filter(([, n]) => n > 0);
    assert.equal(state, expect, JSON.stringify([root, more]));
  };
  const known = (state, task, more) => ({ state, doing: { state, task }, ...more });
  const moment = (task, state) => [`root ${task}`, { agent: "root", task, doing: { state, task } }];
  const elsewhere = known("thinking", "t-2");
  check(elsewhere, { moments: new Map([moment("t-2", "thinking"), moment("t-1", "queued")]) }, "queued");
  check(elsewhere, { approvals: [{ agent: "root", task: "t-1" }] }, "asking");
  check(elsewhere, { questions: [{ from: "root", task: "t-1" }, { from: "a", task: "t-1" }] }, "asking");
  check(elsewhere, { questions: [{ from: "root", task: "t-2" }, { from: "a", task: "t-1" }] }, "idle");
  check({ ...elsewhere, waitsFor: ["b", "a"] }, {}, "waiting");
  check({ ...elsewhere, waitsFor: ["b", "user"] }, {}, "idle");
  check({ state: "waiting", waitsFor: ["a", "b"], doing: { state: "waiting", requests: [{ task: "t-2" }, { task: "t-1" }] } }, {}, "waiting");
  check({ state: "waiting", waitsFor: ["b"], doing: { state: "waiting", requests: [{ task: "t-2" }] } }, {}, "idle");
  check(known("parked", "t-1"), {}, "parked");
  check(known("parked", "t-2"), {}, "idle");
  check({ state: "paused", doing: { state: "paused" } }, { moments: new Map([moment("t-1", "thinking")]) }, "paused");
  // A message has come, but no glimpse has told the task in which root works.
  check({ state: "ready" }, {}, "ready");
  check({ state: "ready" }, { moments: new Map([moment("t-2", "ready")]) }, "idle");
});

test("filters stay, and whatever else is stored does no harm", () => {
  let kept = null;
  globalThis.localStorage = { getItem: () => kept, setItem: (_, text) => { kept = text; } };
  try {
    const first = read();
    assert.deepEqual(first.states, STATES.filter((state) => state !== "ended"));
    assert.ok(first.task === null && first.showOver === false);
    keep({ ...first, states: ["ended"], taskState: "open", searchKind: "agent", showOver: true, task: "t-1" });
    const { states, taskState, searchKind, showOver, task } = read();
    assert.deepEqual({ states, taskState, searchKind, showOver, task },
      { states: ["ended"], taskState: "open", searchKind: "agent", showOver: true, task: "t-1" });
    for (const bad of ["{", "null", "{\"hidden\":7,\"task\":{}}", "{\"hidden\":[1,null],\"theme\":\"pink\"}"]) {
      kept = bad;
      assert.ok(Array.isArray(read().states) && read().theme === "auto" && read().task === null, bad);
    }
  } finally {
    delete globalThis.localStorage;
  }
});
