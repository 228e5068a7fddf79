import assert from "node:assert/strict";
import { test } from "node:test";
import { rowsOf, separatorOf } from "../../../crates/api/web/assets/csv.js";
import { languageOf, tokens } from "../../../crates/api/web/assets/highlight.js";
import { isTabbed, looksOf } from "../../../crates/api/web/assets/looks.js";
import { visible } from "../../../crates/api/web/assets/visible.js";

const coloured = (text, name) => tokens(text, name).map(({ kind, text: piece }) => (kind ? `${kind}(${piece})` : piece)).join("");

test("code has colours", () => {
  const check = (name, text, expect) => assert.equal(coloured(text, name), expect);
  check("js", "const a = 'b'; // c", "keyword(const) a = string('b'); comment(// c)");
  check("python", "def f(x): # no\n  return \"\"\"a\nb\"\"\"", "keyword(def) call(f)(x): comment(# no)\n  keyword(return) string(\"\"\"a\nb\"\"\")");
  check("rust", "fn a<'b>() { 1_000u32 /* c */ }", "keyword(fn) a<'b>() { number(1_000u32) comment(/* c */) }");
  check("sql", "SELECT 1 -- x", "keyword(SELECT) number(1) comment(-- x)");
  check("json", "{\"a\": [\"b\", true]}", "{key(\"a\"): [string(\"b\"), keyword(true)]}");
  check("yaml", "- name: x # y", "- key(name): x comment(# y)");
  check("sh", "echo a#b \"c", "echo a#b string(\"c)");
  check("html", "<p id=\"x\">a \"b\"</p><!-- c -->", "tag(<p) id=string(\"x\")>a \"b\"tag(</p)>comment(<!-- c -->)");
  check("no such", "const 'a'", "const 'a'");
  check("constructor", "a", "a");
  assert.equal(languageOf("TypeScript title=x"), "javascript");
  assert.equal(languageOf("__proto__"), null);
});

test("invariant: code keeps every character", () => {
  const signs = ["\"", "'", "`", "\\", "/*", "*/", "//", "#", "--", "<!--", "-->", "<", ">", "\n", " ", "a", "if", "1.5", ":", "=", "\"\"\"", "字", "😀", "$"];
  let state = 7;
  const roll = (most) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * most);
  };
  for (let round = 0; round < 2000; round += 1) {
    const text = Array.from({ length: roll(40) }, () => signs[roll(signs.length)]).join("");
    for (const name of ["js", "py", "rust", "go", "c", "sh", "sql", "yaml", "toml", "json", "html", "css"]) {
      assert.equal(tokens(text, name).map((one) => one.text).join(""), text, `${name} ${JSON.stringify(text)}`);
    }
  }
});

test("tables of values", () => {
  const check = (text, separator, expect, more = 0) => assert.deepEqual(rowsOf(text, separator, 3), { rows: expect, more }, JSON.stringify(text));
  check("", ",", []);
  check("a,b\r\nc,d\n", ",", [["a", "b"], ["c", "d"]]);
  check("\"a,\"\"b\"\"\nc\",d", ",", [["a,\"b\"\nc", "d"]]);
  check("a,,\n,b", ",", [["a", "", ""], ["", "b"]]);
  check("a\n\nb", ",", [["a"], [""], ["b"]]);
  check("\"a\"b,c", ",", [["ab", "c"]]);
  check("\"never closed,\n", ",", [["never closed,\n"]]);
  check("1\n2\n3\n4\n5", ",", [["1"], ["2"], ["3"]], 2);
  check("a\tb", "\t", [["a", "b"]]);
  assert.equal(separatorOf("a;b;c,d\n", false), ";");
  assert.equal(separatorOf("a,b\n;;;;", false), ",");
  assert.equal(separatorOf("a", true), "\t");
});

test("how an artifact is shown", () => {
  const check = (kind, mimeType, filename, ...expect) => assert.deepEqual(looksOf({ kind, mimeType, filename }), expect, `${mimeType} ${filename}`);
  check("text", "text/markdown", "a.txt", "markdown", "text");
  check("text", "text/plain; charset=utf-8", "README.MD", "markdown", "text");
  check("text", "application/json", undefined, "json", "text");
  check("text", "application/geo+json", undefined, "json", "text");
  check("text", "text/csv", "a", "sheet", "text");
  check("text", "text/plain", "a.tsv", "sheet", "text");
  check("text", "text/plain", "a.patch", "diff", "text");
  check("text", "text/html", "a", "code", "page");
  check("image", "image/svg+xml", "a.svg", "code", "page");
  check("text", "text/x-python", "a.py", "code");
  check("document", "application/pdf", "a.pdf", "page");
  check("document", "application/msword", "a.doc", "document");
  check("image", "image/png", "a.md", "image");
  check("other", "application/zip", "a.zip", "other");
  assert.equal(isTabbed({ mimeType: "text/plain", filename: "a.tsv" }), true);
  assert.equal(isTabbed({ mimeType: "text/csv", filename: "a.csv" }), false);
});

test("characters that deceive are visible", () => {
  const check = (text, expect) => assert.equal(visible(text), expect);
  check("", "");
  check("看 👨‍👩‍👧 می‌خواهم\n\ta\r\n", "看 👨‍👩‍👧 می‌خواهم\n\ta\r\n");
  check("evil\u202Etxt.exe", "evil<U+202E>txt.exe");
  check("\u2066a\u2069\u0000\u001b\u009b", "<U+2066>a<U+2069><U+0000><U+001B><U+009B>");
});
