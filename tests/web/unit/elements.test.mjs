import assert from "node:assert/strict";
import { test } from "node:test";
import { callCard } from "../../../crates/api/web/assets/views/calls.js";
import { arriving } from "../../../crates/api/web/assets/views/doing.js";

/** A stand-in for an element of the page. `String()` writes the tag, the classes, and the children. */
class Stub {
  constructor(tag) {
    Object.assign(this, { tag, className: "", attributes: new Map(), children: [] });
    this.classList = { add: (...names) => { this.className = [this.className, ...names].join(" ").trim(); } };
  }

  setAttribute(name, value) {
    this.attributes.set(name, value);
  }

  addEventListener() {}

  append(child) {
    this.children.push(child);
  }

  toString() {
    const open = this.attributes.has("open") ? " open" : "";
    return `<${[this.tag, ...this.className.split(" ").filter(Boolean)].join(".")}${open} ${this.children.join("")}>`;
  }

  /** Returns this element and all elements in it. */
  all() {
    return [this, ...this.children.flatMap((child) => (child instanceof Stub ? child.all() : []))];
  }
}

globalThis.document = { createElement: (tag) => new Stub(tag), createElementNS: (_space, tag) => new Stub(tag) };

test("an arriving answer: the reasoning is folded, then the text, then each call by its name", () => {
  const shown = (saying) => String(arriving({ t: (key) => key }, { saying: { answer: 1, text: "", reasoning: "", calls: [], ...saying } }));
  assert.equal(shown({}), "null");
  assert.equal(shown({ text: "ok" }), "<article.arriving <div.prose ok>>");
  assert.equal(shown({ calls: ["find"] }), "<article.arriving <p.with-icon → <code find>>>");
  assert.equal(shown({ text: "ok", reasoning: "hm", calls: ["find", "bash"] }),
    "<article.arriving <details <summary doing.reasoning><div.prose.dim hm>><div.prose ok>"
    + "<p.with-icon → <code find>><p.with-icon → <code bash>>>");
});

test("\"Why?\" opens from a call that has failed, and from no other", () => {
  const app = { t: (key) => key, store: { ui: { route: { page: "now" } } } };
  const call = { key: "a c1", agent: "a", task: "t", tool: "bash", state: "ended", durationMs: 1500 };
  const links = (more) => callCard(app, { ...call, ...more }).all().filter((one) => one.tag === "a");
  assert.deepEqual(links({}), []);
  const [why] = links({ error: "tool_failed", failed: 42 });
  assert.equal(why.attributes.get("href"), "#/now/why/42");
});
