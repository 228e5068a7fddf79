// Tests what the tests in a browser say in the end.

import assert from "node:assert/strict";
import test from "node:test";
import { verdict } from "../support/verdict.mjs";

test("a part that was skipped is named in the end", () => {
  assert.equal(verdict([]), "all checks passed");
  assert.equal(
    verdict(["no sandbox, so no commands", "no git, so no changes"]),
    "all checks passed but those that were skipped:\n- SKIPPED: no sandbox, so no commands\n- SKIPPED: no git, so no changes",
  );
});
