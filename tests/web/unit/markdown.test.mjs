import assert from "node:assert/strict";
import { test } from "node:test";
import { DEEPEST, parse } from "../../../crates/api/web/assets/markdown/blocks.js";
import { DEEPEST_INLINE } from "../../../crates/api/web/assets/markdown/emphasis.js";
import { targetOf } from "../../../crates/api/web/assets/markdown/link.js";

/** Formats inline nodes in a short notation, to compare them with expected texts. */
function inline(nodes) {
  return nodes.map((node) => {
    switch (node.kind) {
      case "text": return node.text;
      case "break": return "<br>";
      case "code": return `<c ${node.text}>`;
      case "math": return `<m ${node.text}>`;
      case "picture": return `<p ${node.alt}|${node.target}>`;
      case "link": return `<a ${inline(node.content)}|${node.target}${node.title ? `|${node.title}` : ""}>`;
      default: return `<${{ strong: "b", emphasis: "i", strike: "s" }[node.kind]} ${inline(node.content)}>`;
    }
  }).join("");
}

/** Formats blocks in a short notation, to compare them with expected texts. */
function short(blocks) {
  return blocks.map((block) => {
    switch (block.kind) {
      case "heading": return `h${block.level}(${inline(block.content)})`;
      case "paragraph": return `p(${inline(block.content)})`;
      case "code": return `code:${block.language}(${block.text})`;
      case "math": return `math(${block.text})`;
      case "rule": return "rule";
      case "quote": return `quote(${short(block.blocks)})`;
      case "list": return `${block.start === null ? "ul" : `ol${block.start}`}${block.isLoose ? "~" : ""}(${block.items.map((item) =>
        `${item.task === null ? "" : item.task ? "[x]" : "[ ]"}${short(item.blocks)}`).join("; ")})`;
      default: return `table:${block.aligns.map((one) => one?.[0] ?? "-").join("")}(${[block.head, ...block.rows].map((row) => row.map(inline).join("|")).join(" / ")})`;
    }
  }).join(" ");
}

const check = (text, expect) => assert.equal(short(parse(text).blocks), expect, JSON.stringify(text));

test("blocks", () => {
  check("", "");
  check("\n \n", "");
  check("one\ntwo\n\nthree", "p(one\ntwo) p(three)");
  check("# One\n## Two ##\n###### Six\n####### seven\n#no", "h1(One) h2(Two) h6(Six) p(####### seven\n#no)");
  check("# C#\n#", "h1(C#) h1()");
  check("One\n===\nTwo\n---", "h1(One) h2(Two)");
  check("---\n***\n_ _ _\n--", "rule rule rule p(--)");
  check("> one\n> > two\nlazy\n\nafter", "quote(p(one) quote(p(two\nlazy))) p(after)");
  check("> ```\n> code\nno", "quote(code:(code)) p(no)");
  check("    code\n\n      more\n\nnot", "code:(code\n\n  more) p(not)");
  check("a\n    b", "p(a\nb)");
  check("a\r\nb\rc", "p(a\nb\nc)");
});

test("code between fences is kept as it stands", () => {
  check("```js\nlet a = *1*;\n\n# b\n```\nafter", "code:js(let a = *1*;\n\n# b) p(after)");
  check("~~~\n```\n~~~~", "code:(```)");
  check("````md\n```\nx\n```\n````", "code:md(```\nx\n```)");
  check("```\nnever closed", "code:(never closed)");
  check("  ```\n  a\n b\n  ```", "code:(a\nb)");
  check("```not`code", "p(```not`code)");
  check("text\n```\ncode\n```", "p(text) code:(code)");
});

test("lists", () => {
  check("- a\n- b", "ul(p(a); p(b))");
  check("* a\n\n* b", "ul~(p(a); p(b))");
  check("3. a\n4. b", "ol3(p(a); p(b))");
  check("1) a", "ol1(p(a))");
  check("- a\n  - b\n    - c\n- d", "ul(p(a) ul(p(b) ul(p(c))); p(d))");
  check("1. a\n  - b\n2. c", "ol1(p(a) ul(p(b)); p(c))");
  check("- [ ] a\n- [x] b\n- [X] c\n- [y] d", "ul([ ]p(a); [x]p(b); [x]p(c); p([y] d))");
  check("- a\nlazy\n\nafter", "ul(p(a\nlazy)) p(after)");
  check("- a\n\n  more\n- b", "ul(p(a) p(more); p(b))");
  check("- ```\n  x\n  ```\n- b", "ul(code:(x); p(b))");
  check("- a\n+ b", "ul(p(a)) ul(p(b))");
  check("-\n- b", "ul(; p(b))");
  check("-no\n2.no", "p(-no\n2.no)");
  check("In 2024 it was\n1986. Not a list", "p(In 2024 it was\n1986. Not a list)");
  check("Items:\n- a", "p(Items:) ul(p(a))");
  check("- - a", "ul(ul(p(a)))");
});

test("tables", () => {
  check("| a | b |\n|---|--:|\n| 1 | 2 |\n\nafter", "table:-r(a|b / 1|2) p(after)");
  check("a | b\n:-: | :--\n1 | **2**\nend", "table:cl(a|b / 1|<b 2>) p(end)");
  check("| a |\n|---|\n| x \\| y |", "table:-(a / x | y)");
  check("Head:\n| a | b |\n|---|---|\n| 1 |", "p(Head:) table:--(a|b / 1)");
  check("| a | b |\n|---|", "p(| a | b |\n|---|)");
  check("| a<br>b |\n|---|", "table:-(a<br>b)");
});

test("inside a block", () => {
  const only = (text, expect) => check(text, `p(${expect})`);
  only("*a* _b_ **c** __d__ ~~e~~ ***f***", "<i a> <i b> <b c> <b d> <s e> <i <b f>>");
  only("snake_case_name 2 * 3 * 4 a*b*c", "snake_case_name 2 * 3 * 4 a<i b>c");
  only("*a **b** c*", "<i a <b b> c>");
  only("**a *b* c**", "<b a <i b> c>");
  only("*foo**bar*", "<i foo**bar>");
  only("**a", "**a");
  only("*a _b* c_", "<i a _b> c_");
  only("**注意：**不要", "<b 注意：>不要");
  only("这是**重点**。", "这是<b 重点>。");
  only("`a*b*` ``c`d`` `e", "<c a*b*> <c c`d> `e");
  only("`` ` ``", "<c `>");
  only("\\*a\\* \\q", "*a* \\q");
  only("a  \nb\\\nc\nd", "a<br>b<br>c\nd");
  only("&lt;b&gt; &amp; &nope; &#60; &", "<b> & &nope; < &");
  only("<b>bold</b> <script>alert(1)</script>", "<b>bold</b> <script>alert(1)</script>");
  only("$a^2$ \\(x+y\\) $$z$$ costs $5 and $6", "<m a^2> <m x+y> <m z> costs $5 and $6");
  check("$$\na\n= b\n$$\n\\[ x \\]", "math(a\n= b) math(x)");
  check("$$ never", "p($$ never)");
});

test("links", () => {
  const only = (text, expect) => check(text, `p(${expect})`);
  only("[a](https://b.example/c)", "<a a|https://b.example/c>");
  only("[**a** b](<x y> \"t\")", "<a <b a> b|x y|t>");
  only("[a](b(c)d) [a](b", "<a a|b(c)d> [a](b");
  only("[a] (b) [c][d]", "[a] (b) [c][d]");
  only("[a [b](c) d](e)", "[a <a b|c> d](e)");
  only("![alt *x*](artifact:abc)", "<p alt *x*|artifact:abc>");
  only("[![p](q)](r)", "<a <p p|q>|r>");
  only("see https://a.example/b_c_(d), or (https://e.example).", "see <a https://a.example/b_c_(d)|https://a.example/b_c_(d)>, or (<a https://e.example|https://e.example>).");
  only("见https://a.example/b。好", "见<a https://a.example/b|https://a.example/b>。好");
  only("见 artifact:mmpqmm6wc2。 xartifact:mmpqmm6wc2 artifact:a/b artifact:", "见 <a artifact:mmpqmm6wc2|artifact:mmpqmm6wc2>。 xartifact:mmpqmm6wc2 artifact:a/b artifact:");
  only("**https://a.example**", "<b <a https://a.example|https://a.example>>");
  only("<https://a.example/x> <javascript:alert(1)>", "<a https://a.example/x|https://a.example/x> <javascript:alert(1)>");
  only("[a](javascript:alert(1)) [b](java&#115;cript:x)", "<a a|javascript:alert(1)> <a b|javascript:x>");
});

test("only harmless targets become links", () => {
  for (const good of ["https://a.example", "http://a.example:8/b?c#d", "HTTPS://A.example/", "mailto:a@b.example"]) {
    assert.equal(targetOf(good)?.kind, "outside", good);
  }
  assert.deepEqual(targetOf("artifact:mmpqmm6wc2"), { kind: "artifact", id: "mmpqmm6wc2" });
  assert.equal(targetOf("https://пример.example/").href, "https://xn--e1afmkfd.example/");
  for (const bad of [
    "", "#", "/x", "x", "//a.example", "javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\tscript:alert(1)",
    "java\nscript:alert(1)", "\u0001javascript:alert(1)", "data:text/html,<script>", "vbscript:x", "file:///etc/passwd", "blob:https://a/b",
    "ftp://a.example", "https:a.example", "https:///a", "https:\\\\a.example", "https://", "https://good.example@evil.example/",
    "https://user:pass@a.example", "https://a.example/\u202egnp.exe", "https://a\u200b.example", "artifact:", "artifact:../x", "artifact:a/b",
    "about:blank", "view-source:https://a.example", "intent://a", "javascript://a.example/%0aalert(1)", "http\t://a.example",
    "feed:javascript:alert(1)", "jar:https://a.example!/", "ws://a.example", `https://a.example/${"x".repeat(3000)}`, "mailto:", "https://a b.example",
  ]) assert.equal(targetOf(bad), null, JSON.stringify(bad));
});

/** Returns a random number generator that produces the same numbers in every run. */
function dice(seed) {
  let state = seed >>> 0;
  return (most) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * most);
  };
}

const MARKS = ["*", "**", "***", "_", "__", "~~", "~", "`", "``", "```", "[", "]", "](", "![", "(", ")", "<", ">", "|", "|---|", "-", "- ",
  "+ ", "1. ", "# ", "> ", "\n", "\n\n", "  ", "    ", "\t", "\\", "$", "$$", "\\(", "\\)", "\\[", "\\]", "---", "===", "~~~", "[ ]", "\"", "'",
  "https://", "mailto:", ":", "!", "\r\n", "&", "&#", ";", "\u202e", "\u0000", "😀", "，"];
const WORDS = ["alpha", "beta", "gamma", "delta", "字", "词语"];

/** Collects all texts of a tree, in their order. */
function said(nodes, into = []) {
  for (const node of nodes) {
    if (node.language) into.push(node.language);
    if (node.text !== undefined) into.push(node.text);
    if (node.alt !== undefined) into.push(node.alt);
    for (const row of node.kind === "table" ? [node.head, ...node.rows] : []) for (const cell of row) said(cell, into);
    for (const part of [node.content, node.blocks]) if (part) said(part, into);
    for (const item of node.items ?? []) said(item.blocks, into);
    if (node.target !== undefined && node.target !== inline(node.content ?? [])) into.push(node.target);
    if (node.title) into.push(node.title);
  }
  return into;
}

const depthOf = (nodes) => nodes.reduce((most, node) => Math.max(most, 1 + depthOf(node.content ?? []) + depthOf(node.blocks ?? [])
  + (node.items ?? []).reduce((deepest, item) => Math.max(deepest, depthOf(item.blocks)), 0)), 0);

test("invariant: every word of a random text is kept, in order, and no text throws", () => {
  for (let seed = 1; seed <= 3000; seed += 1) {
    const roll = dice(seed);
    const pieces = Array.from({ length: 1 + roll(60) }, () => (roll(3) === 0 ? WORDS[roll(WORDS.length)] : MARKS[roll(MARKS.length)]));
    const text = pieces.join("");
    const words = text.match(/alpha|beta|gamma|delta|[字词语]/g) ?? [];
    const { blocks, work } = parse(text);
    assert.deepEqual(said(blocks).join(" ").match(/alpha|beta|gamma|delta|[字词语]/g) ?? [], words, JSON.stringify(text));
    assert.ok(work.steps <= 150 * (text.length + 20), `${work.steps} steps for ${JSON.stringify(text)}`);
    assert.ok(depthOf(blocks) <= 2 * DEEPEST + DEEPEST_INLINE + 4);
  }
});

/** Texts that a careless parser needs much time for. Each function returns a text of about the given length. */
const HOSTILE = {
  stars: (n) => "*".repeat(n), "stars and letters": (n) => "*a ".repeat(n / 3), "both ways": (n) => "*a ".repeat(n / 6) + "a* ".repeat(n / 6),
  "open and closed": (n) => "a**b".repeat(n / 4), "two signs": (n) => "*a _b ".repeat(n / 6), mixed: (n) => "*a**a_a__a".repeat(n / 10),
  "rule of three": (n) => `a${"**b".repeat(n / 6)}${"c* ".repeat(n / 6)}`, strikes: (n) => "~~a ".repeat(n / 4), brackets: (n) => "[".repeat(n),
  "closing brackets": (n) => "[a](".repeat(n / 4), "brackets both ways": (n) => "[".repeat(n / 2) + "]".repeat(n / 2),
  "nested links": (n) => "[".repeat(n / 5) + "](x)".repeat(n / 5), "nested pictures": (n) => "![".repeat(n / 6) + "](x)".repeat(n / 6),
  titles: (n) => "[a](b \"".repeat(n / 7), "other titles": (n) => `${"[a](b '".repeat(n / 14)}${"[a](b \"".repeat(n / 14)}`,
  targets: (n) => "[a](<b".repeat(n / 6), parentheses: (n) => `[a](${"(".repeat(n)}`, backticks: (n) => "`".repeat(n),
  "more backticks": (n) => Array.from({ length: Math.sqrt(2 * n) }, (_, at) => "`".repeat(at + 1)).join(" "), "one backtick": (n) => "`a ``b ".repeat(n / 7),
  dollars: (n) => "$a ".repeat(n / 3), "dollars and lines": (n) => "$a\n".repeat(n / 3), formulas: (n) => "$$a\n# b\n".repeat(n / 8) + "\\]",
  parens: (n) => "\\(".repeat(n / 2), quotes: (n) => ">".repeat(n), "quotes below": (n) => "> a\n".repeat(n / 4), lists: (n) => "- ".repeat(n / 2),
  "deep lists": (n) => Array.from({ length: Math.sqrt(n) }, (_, at) => `${"  ".repeat(at % 40)}- a`).join("\n"), "empty items": (n) => "-\n".repeat(n / 2),
  numbers: (n) => "1. ".repeat(n / 3), blanks: (n) => `- a${"\n".repeat(n)}b`, "blanks in items": (n) => "- a\n\n\n".repeat(n / 6),
  spaces: (n) => " ".repeat(n), "spaces at the end": (n) => `# a${" ".repeat(n)}b`, tabs: (n) => "\t".repeat(n), lines: (n) => "\n".repeat(n),
  rules: (n) => `${"- ".repeat(n / 2)}x`, headings: (n) => "#".repeat(n), "closed headings": (n) => `# ${"# ".repeat(n / 2)}`, bars: (n) => "|".repeat(n),
  tables: (n) => `${"|a".repeat(n / 8)}\n${"|-".repeat(n / 8)}\n${"|\n".repeat(n / 8)}`, "no tables": (n) => "|a\n".repeat(n / 3),
  delimiters: (n) => `a|\n|${"-".repeat(n)}x`, "spaces in tables": (n) => `a|\n${" ".repeat(n)}x`, underlines: (n) => "a\n=".repeat(n / 3),
  fences: (n) => "```\n".repeat(n / 4), "open fence": (n) => `\`\`\`\n${"a\n".repeat(n / 2)}`, angles: (n) => "<".repeat(n), "open angles": (n) => "<https:".repeat(n / 7),
  addresses: (n) => "https://".repeat(n / 8), "long address": (n) => `https://a.example/${"(".repeat(n)}`, dots: (n) => `https://a.example/${".".repeat(n)}`,
  entities: (n) => "&#".repeat(n / 2), ampersands: (n) => "&amp".repeat(n / 4), backslashes: (n) => "\\".repeat(n), letters: (n) => "h".repeat(n), one: (n) => "a".repeat(n),
};

test("invariant: the work grows no faster than the text", () => {
  for (const [name, make] of Object.entries(HOSTILE)) {
    const steps = [1, 2, 4].map((times) => parse(make(10_000 * times)).work.steps / times);
    assert.ok(steps[2] <= 1.2 * steps[0] + 1000, `${name}: ${steps.map(Math.round)} steps for each 10,000 characters`);
    assert.ok(steps[2] <= 60 * 10_000, `${name}: ${steps[2]} steps for 10,000 characters`);
  }
});

test("a megabyte of signs is read, and nothing is deeply nested", () => {
  for (const [name, make] of Object.entries(HOSTILE)) {
    const { blocks } = parse(make(name === "stars" || name === "both ways" ? 1_000_000 : 100_000));
    assert.ok(depthOf(blocks) <= 2 * DEEPEST + DEEPEST_INLINE + 4, name);
  }
});
