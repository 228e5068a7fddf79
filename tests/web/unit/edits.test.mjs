import assert from "node:assert/strict";
import { test } from "node:test";
import { byTurn } from "../../../crates/api/web/assets/edits.js";

const edit = (agent, turn, at) => ({ agent, turn, at, path: `${at}.md` });

test("edits are grouped by agent and turn: the latest group first, the oldest edit of a group first", () => {
  const groups = byTurn([edit("a", 3, 5), edit("b", 2, 4), edit("a", 3, 3), edit("a", 1, 2), edit("b", 2, 1)]);
  assert.deepEqual(groups.map(({ key, at }) => [key, at]), [["a 3", 5], ["b 2", 4], ["a 1", 2]]);
  assert.deepEqual(groups.map((group) => group.edits.map((one) => one.at)), [[3, 5], [1, 4], [2]]);
  assert.deepEqual(byTurn([]), []);
});
