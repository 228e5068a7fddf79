import assert from "node:assert/strict";
import { test } from "node:test";
import { texts } from "../../../crates/api/web/assets/i18n.js";
import { meaning } from "../../../crates/api/web/assets/keys.js";
import { keep, read } from "../../../crates/api/web/assets/preferences.js";
import { newestAndOpen } from "../../../crates/api/web/assets/refresh.js";
import { grouped, shorter } from "../../../crates/api/web/assets/search.js";
import { STATES, counts, initial } from "../../../crates/api/web/assets/state.js";
import { childrenOf, foldable, isFinished, rowsOf } from "../../../crates/api/web/assets/tree.js";

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

test("where nothing is found, the page says how far a search sees", () => {
  for (const language of ["en", "zh"]) {
    const told = texts(language)("search.none");
    assert.ok(told.includes("20,000") && told.includes("16 KiB"), told);
  }
});

test("the key / searches, also while letters are shortcuts only", () => {
  assert.deepEqual(meaning({ key: "/" }), { does: "find" });
  assert.equal(meaning({ key: "/", writing: true }), null);
});

const TASKS = new Map([["over", { state: "idle" }], ["open", { state: "open" }]]);
const agentOf = (id, state, task, more) => [id, { id, role: id, parent: "root", state, task, createdAt: 0, ...more }];
const AGENTS = new Map([
  agentOf("root", "idle", undefined, { parent: undefined }), agentOf("user", "idle"), agentOf("a", "ended", "open"),
  agentOf("b", "idle", "over"), agentOf("c", "idle", "open"), agentOf("d", "paused", "over", { parent: "b" }),
  agentOf("e", "idle", "forgotten"), agentOf("f", "thinking", "over"),
]);

test("an agent is finished if it has ended, or if it is idle and so is its task", () => {
  const finished = [...AGENTS.values()].filter((agent) => isFinished(agent, TASKS));
  assert.deepEqual(finished.map((one) => one.id), ["a", "b", "e"]);
});

test("finished agents come last", () => {
  assert.deepEqual(childrenOf(AGENTS, TASKS).get("root").map((one) => one.id), ["c", "f", "a", "b", "e"]);
});

test("finished agents are folded, except those above agents that are not", () => {
  const check = (more, rows, folded) => {
    const view = { closed: new Set(), states: new Set(STATES), text: "", task: null, finished: false, tasks: TASKS, ...more };
    assert.deepEqual(rowsOf(AGENTS, view).map(({ agent, faint }) => agent.id + (faint ? "~" : "")), rows);
    assert.deepEqual(foldable(AGENTS, view).map((agent) => agent.id), folded);
  };
  check({}, ["root", "c", "f", "b~", "d"], ["a", "b", "e"]);
  check({ finished: true }, ["root", "c", "f", "a", "b", "d", "e"], ["a", "b", "e"]);
  check({ states: new Set(["idle"]) }, ["root", "c"], ["b", "e"]);
  check({ task: "open" }, ["root", "c"], ["a"]);
  // The person has asked for these agents.
  check({ task: "over" }, ["root", "f", "b", "d"], []);
  check({ text: "e" }, ["root~", "e"], []);
});

test("the page knows the newest tasks, and all open ones", async () => {
  const asked = [];
  const pages = [{ tasks: [{ id: 9 }], next: 8 }, { tasks: [{ id: 7 }], next: 3 }, { tasks: [{ id: 2 }] }];
  const api = { tasks: async (...filter) => {
    asked.push(filter);
    return pages.shift();
  } };
  assert.deepEqual((await newestAndOpen(api)).map((task) => task.id), [9, 7, 2]);
  assert.deepEqual(asked, [[], [8, "open"], [3, "open"]]);
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
  let stored = null;
  globalThis.localStorage = { getItem: () => stored, setItem: (_, text) => { stored = text; } };
  try {
    const first = read();
    assert.deepEqual(first.states, STATES);
    assert.ok(first.task === null && first.showOver === false && first.showFinished === false);
    const chosen = {
      states: ["ended"], taskState: "open", searchKind: "agent", showOver: true, showFinished: true, groups: ["models"],
      artifactKind: "image", task: "t-1",
    };
    keep({ ...first, ...chosen });
    const kept = read();
    assert.deepEqual(Object.fromEntries(Object.keys(chosen).map((name) => [name, kept[name]])), chosen);
    for (const bad of ["{", "null", "{\"hidden\":7,\"task\":{},\"groups\":{}}", "{\"hidden\":[1,null],\"theme\":\"pink\"}"]) {
      stored = bad;
      assert.deepEqual(read().groups, []);
      assert.ok(Array.isArray(read().states) && read().theme === "auto" && read().task === null, bad);
    }
  } finally {
    delete globalThis.localStorage;
  }
});
