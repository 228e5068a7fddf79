import assert from "node:assert/strict";
import { test } from "node:test";
import { isDiff, linesOf } from "../../../crates/api/web/assets/diff.js";

const kinds = (text) => linesOf(text).map(({ kind }) => kind).join(" ");

test("each line of a difference has its kind", () => {
  const check = (text, expect) => assert.equal(kinds(text), expect, text);
  check("--- a/f\n+++ b/f\n@@ -2,2 +2,2 @@\n 2\n-4\n+four\n", "file file hunk same removed added");
  check("--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n", "file file hunk added file");
  check("diff --git a/f b/f\nnew file mode 100644\n@@ -0,0 +1 @@\n+x\ndiff --git a/g b/g\n", "file file hunk added file");
  check("@@ -1,2 +1,2 @@\n-a\n+b\n c\ndiff --git a/g b/g\n", "hunk removed added same file");
  check("@@ -1,3 +1 @@\n--- old\n-++ old\n\n", "hunk removed removed same");
  check("@@ -0,0 +1 @@\n++++ b/f\n", "hunk added");
  check("", "file");
});

test("only a text with the head of a hunk is a difference", () => {
  assert.equal(isDiff("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"), true);
  for (const text of ["", "- a list\n+ another", "@@ nothing @@", "rm -rf build"]) assert.equal(isDiff(text), false, text);
});

test("invariant: no line is lost or changed", () => {
  for (const text of ["a\nb", "@@ -1,9 +1,9 @@\n x", "\n\n", "@@ -1 +1 @@\n-a\n+b\n+c\n-d\n"]) {
    const whole = linesOf(text).map(({ text: line }) => line).join("\n");
    assert.equal(text.endsWith("\n") ? `${whole}\n` : whole, text);
  }
});
