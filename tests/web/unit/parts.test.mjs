import assert from "node:assert/strict";
import { test } from "node:test";
import { append } from "../../../crates/api/web/assets/dom.js";
import { texts } from "../../../crates/api/web/assets/i18n.js";
import { doingLine } from "../../../crates/api/web/assets/views/doing.js";
import { factParts } from "../../../crates/api/web/assets/views/why.js";

/** A stand-in for an element of a browser. It has only what `h` needs, and the text that a person would read. */
class Stub {
  constructor(tag) {
    Object.assign(this, { tag, attributes: {}, children: [], classList: { add() {} } });
  }

  setAttribute(name, value) {
    this.attributes[name] = value;
  }

  addEventListener() {}

  append(child) {
    this.children.push(child);
  }

  get textContent() {
    return this.children.map((child) => child.textContent ?? child).join("");
  }
}

globalThis.document = { createElement: (tag) => new Stub(tag), createElementNS: (_, tag) => new Stub(tag) };

const app = { t: texts("en"), store: { ui: { route: { page: "now" } }, model: { agents: new Map(), tasks: new Map() } } };
const shown = (parts) => append(new Stub("p"), parts);

/** Returns the targets of all links in an element, in their order. */
const linksOf = ({ attributes = {}, children = [] }) => [...(attributes.href ? [attributes.href] : []), ...children.flatMap(linksOf)];

test("an agent that waits is shown with each agent that it waits for, and with the request", () => {
  const requests = [{ agent: "clerk", request: "m000000004", task: "t" }, { agent: "scribe", request: "m000000007", task: "t" }];
  const line = shown(doingLine(app, { state: "waiting", doing: { state: "waiting", requests } }));
  assert.ok(line.textContent.endsWith("clerk m000000004, scribe m000000007"), line.textContent);
  assert.deepEqual(linksOf(line), ["#/now/agent/clerk", "#/now/message/m000000004", "#/now/agent/scribe", "#/now/message/m000000007"]);
});

test("the silence of a server stands in words beside what the agent does", () => {
  const silence = { since: Date.now() - 12_000, until: Date.now() + 60_000, then: "retry" };
  const line = (more) => shown(doingLine(app, { state: "thinking", doing: { state: "thinking", service: "local", ...more } })).textContent;
  assert.match(line({ silence }), /at local.*local has sent nothing for \d+:\d\d; polity ends this attempt in \d+:\d\d, then asks it again$/);
  assert.doesNotMatch(line({}), /nothing/);
});

test("an explanation tells a question about a call by its state, with the arguments and the person's reason", () => {
  const given = "{\"command\":\"ls\"}";
  const asked = { fact: "call_asked", approval: "q1", agent: "clerk", task: "t", tool: "bash", arguments: given, since: 1 };
  const told = (more) => shown(factParts(app, { ...asked, ...more })).textContent;
  assert.equal(told({ state: "open" }), `clerk asks whether it may call bash: ${given}`);
  assert.equal(told({ state: "allowed" }), `you allowed clerk to call bash: ${given}`);
  assert.equal(told({ state: "denied", reason: "not today" }), `you did not allow clerk to call bash: ${given} not today`);
});

test("an explanation tells since when a message has no answer, and links a failed attempt to its request", () => {
  const unanswered = (to) => shown(factParts(app, { fact: "unanswered", message: "m000000004", from: "root", to, since: 86_400_000 }));
  assert.match(unanswered("clerk").textContent, /^clerk has not answered m000000004 of root \S/);
  assert.match(unanswered("user").textContent, /^you have not answered m000000004 of root \S/);
  const attempt = { fact: "attempt_failed", agent: "clerk", service: "local", attempt: 2, kind: "rate_limited", reason: "busy" };
  assert.deepEqual(linksOf(shown(factParts(app, attempt))), ["#/now/agent/clerk"]);
  assert.deepEqual(linksOf(shown(factParts(app, { ...attempt, sent: 7 }))), ["#/now/agent/clerk", "#/now/sent/7"]);
});
