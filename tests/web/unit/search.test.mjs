import assert from "node:assert/strict";
import { test } from "node:test";
import { meaning } from "../../../crates/api/web/assets/keys.js";
import { keep, read } from "../../../crates/api/web/assets/preferences.js";
import { grouped, shorter } from "../../../crates/api/web/assets/search.js";
import { STATES, counts } from "../../../crates/api/web/assets/state.js";
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

test("the counts of a task are of its agents and root", () => {
  const agents = new Map([["root", { id: "root", state: "thinking" }], ["user", { id: "user", state: "idle" }],
    ["a", { id: "a", task: "t-1", state: "idle" }], ["b", { id: "b", task: "t-2", state: "idle" }]]);
  assert.equal(counts(agents).idle, 2);
  assert.deepEqual([counts(agents, "t-1").idle, counts(agents, "t-1").thinking], [1, 1]);
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
