import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { LANGUAGES, texts } from "../../../crates/api/web/assets/i18n.js";
import { actionsOf, arrivingLine, asOfNow, lastParts, quoteOf, stuckParts, whyAtWork, whyStuck } from "../../../crates/api/web/assets/now.js";

const t = texts("en");
const who = (id) => (id === "user" ? "you" : id);
const said = (parts) => parts.join("");
const source = readFileSync(new URL("../../../crates/view/src/now.rs", import.meta.url), "utf8");

/** Reads the variants of an enum from the Rust source, and returns their names in JSON. */
function variants(name, separator = "_") {
  const body = new RegExp(`pub enum ${name} \\{([\\s\\S]*?)\\n\\}`).exec(source)[1];
  return [...body.matchAll(/^ {4}([A-Z]\w+)/gm)]
    .map((match) => match[1].replace(/\B[A-Z]/g, (letter) => `${separator}${letter}`).toLowerCase());
}

/** One example of each kind of stuck item, with the fields that its description needs. */
const STUCK = {
  question: { agent: "clerk", message: "m000000003", text: "May or June?" },
  approval: { agent: "clerk", tool: "run_command" },
  request: { message: "m000000004", from: "root", to: "clerk", cause: "paused", text: "count" },
  parked: { agent: "clerk", reason: "the key is wrong", askedBy: ["root", "user"] },
  paused: { agent: "clerk" },
  service: { service: "local", trouble: "silent", agents: ["clerk"] },
  answered: { task: "t-1", requests: [{ agent: "clerk" }, { agent: "clerk" }, { agent: "scribe" }] },
};

test("everything that can be stuck has an icon of its own", () => {
  const view = readFileSync(new URL("../../../crates/api/web/assets/views/now.js", import.meta.url), "utf8");
  const shapes = [.../const SHAPES = \{(.*)\};/.exec(view)[1].matchAll(/(\w+): "(\w+)"/g)];
  assert.deepEqual(shapes.map(([, stuck]) => stuck), variants("Stuck"));
  assert.equal(new Set(shapes.map(([, , shape]) => shape)).size, shapes.length);
});

test("everything that can be stuck has its words, in each language", () => {
  assert.deepEqual(variants("Stuck"), Object.keys(STUCK));
  for (const language of Object.keys(LANGUAGES)) {
    for (const [stuck, item] of Object.entries(STUCK)) {
      const words = said(stuckParts(texts(language), { stuck, ...item }, who));
      assert.doesNotMatch(words, /now\.|undefined|\{/, `${language} ${stuck}`);
    }
    for (const cause of variants("Cause")) assert.ok(`now.stuck.request.${cause}` in LANGUAGES[language], cause);
    for (const trouble of variants("Trouble")) assert.ok(`now.stuck.service.${trouble}` in LANGUAGES[language], trouble);
  }
  const words = (stuck) => said(stuckParts(t, { stuck, ...STUCK[stuck] }, who));
  assert.equal(words("request"), "root waits for clerk, which is paused");
  const waits = (cause) => said(stuckParts(t, { stuck: "request", from: "user", to: "root", cause }, (id) => (id === "user" ? "You" : id)));
  assert.equal(waits("paused"), "You wait for root, which is paused");
  for (const cause of variants("Cause")) assert.match(waits(cause), /^You wait for root/, cause);
  assert.equal(words("parked"), "clerk is parked: it failed again and again. Waiting for it: root, you");
  assert.equal(words("paused"), "clerk has work, but is paused");
  assert.equal(said(stuckParts(t, { stuck: "paused", agent: "root" }, who)), "root is paused and takes no prompts");
  assert.equal(words("answered"), "The task counts as answered, but root still waits for clerk, scribe");
  assert.equal(quoteOf({ stuck: "parked", ...STUCK.parked }), "the key is wrong");
});

test("a text names each party once, because an element can stand in one place only", () => {
  for (const table of Object.values(LANGUAGES)) {
    for (const [key, text] of Object.entries(table).filter(([name]) => name.startsWith("now."))) {
      const places = text.split("|")[0].match(/\{\w+\}/g) ?? [];
      assert.equal(new Set(places).size, places.length, key);
    }
  }
});

test("every remedy has a button", () => {
  const remedies = {
    write: { to: "clerk", task: "t-1" },
    decide: { approval: "q1" },
    resume: { agent: "clerk", scope: "subtree" },
    service: { role: "r-1", name: "clerk", services: ["cloud", "slow"], resume: "clerk" },
    run_again: { task: "t-1", turn: 7, services: ["cloud", "slow"] },
    try_again: { service: "local" },
    check_service: { service: "local" },
    stop_agent: { agent: "clerk" },
    stop_task: { task: "t-1" },
  };
  assert.deepEqual(variants("Remedy"), Object.keys(remedies));
  for (const [remedy, more] of Object.entries(remedies)) {
    const actions = actionsOf(t, { remedy, ...more }, { stuck: "request" }, who);
    assert.equal(actions.length, "services" in more ? 2 : 1, remedy);
    for (const { label } of actions) assert.doesNotMatch(label, /now\.|undefined|\{/, remedy);
  }
  const [answer] = actionsOf(t, { remedy: "write", ...remedies.write }, { stuck: "question" }, who);
  assert.deepEqual(answer, { does: "write", label: "Answer", to: "clerk", task: "t-1" });
  const [resume] = actionsOf(t, { remedy: "resume", ...remedies.resume }, { stuck: "paused" }, who);
  assert.deepEqual(resume, { does: "resume", label: "Resume clerk", agent: "clerk", scope: "subtree" });
  const [, slow] = actionsOf(t, { remedy: "service", ...remedies.service }, { stuck: "parked" }, who);
  assert.deepEqual([slow.role, slow.service, slow.resume], ["r-1", "slow", "clerk"]);
  const [again] = actionsOf(t, { remedy: "run_again", ...remedies.run_again }, { stuck: "parked" }, who);
  assert.deepEqual(again, { does: "runAgain", label: "Run again with cloud", task: "t-1", turn: 7, service: "cloud" });
});

test("what an agent last did", () => {
  for (const did of variants("Deed")) {
    const words = said(lastParts(t, { did, text: "x", from: "root", tools: ["ls"] }, who));
    assert.doesNotMatch(words, /now\.|undefined|\{/, did);
  }
  assert.equal(said(lastParts(t, { did: "heard", from: "root", text: "please" }, who)), "heard from root: please");
});

test("an agent that has come to rest since the last read no longer thinks", () => {
  const read = { id: "a", objective: "o", state: "thinking", doing: { state: "thinking" } };
  assert.deepEqual(asOfNow(read, { state: "idle" }), { ...read, state: "idle", doing: undefined });
  assert.deepEqual(asOfNow(read, { state: "thinking" }), read);
  const queued = { state: "queued", doing: { state: "queued", place: 2 } };
  assert.deepEqual(asOfNow(read, queued), { ...read, ...queued });
  assert.deepEqual(asOfNow(read, undefined), read);
});

test("a card never shows what an agent does in one task with the objective of another", () => {
  const read = { id: "root", objective: "o", activeIn: "t-1", state: "thinking", doing: { state: "thinking", task: "t-1" } };
  const known = (state, more) => ({ state, doing: { state, ...more } });
  assert.deepEqual(asOfNow(read, known("queued", { task: "t-2" })), read);
  assert.deepEqual(asOfNow(read, known("waiting", { requests: [{ task: "t-1" }, { task: "t-2" }] })), read);
  assert.equal(asOfNow(read, known("queued", { task: "t-1" })).state, "queued");
  assert.equal(asOfNow(read, known("waiting", { requests: [{ task: "t-1" }] })).state, "waiting");
  assert.equal(asOfNow(read, { state: "idle" }).state, "idle");
});

test("a link to the reasons stands where the daemon knows a reason", () => {
  const thinking = (id, service, silence) => ({ id, state: "thinking", doing: { state: "thinking", service, silence } });
  const agents = new Map([{ id: "clerk", state: "retrying" }, { id: "scribe", state: "queued" }, { id: "reader", state: "paused" },
    thinking("asker", "local", { since: 1, until: 2 }), thinking("talker", "local"), thinking("other", "cloud", { since: 1, until: 2 }),
  ].map((one) => [one.id, one]));
  const stuck = (name, more) => whyStuck({ stuck: name, ...STUCK[name], ...more }, agents);
  assert.equal(stuck("parked"), "clerk");
  assert.equal(stuck("paused"), "clerk");
  for (const cause of variants("Cause")) assert.equal(stuck("request", { cause }), "m000000004", cause);
  assert.equal(stuck("question"), "m000000003");
  assert.equal(stuck("answered"), "t-1");
  assert.equal(stuck("service", { agents: ["scribe", "clerk"] }), "clerk");
  assert.equal(stuck("service", { agents: ["scribe", "talker", "other", "asker"] }), "asker");
  assert.equal(stuck("service", { agents: ["scribe", "unknown", "talker"] }), null, "the server fails or is silent for none of them");
  assert.equal(stuck("approval"), null);

  const waits = (...whom) => whyAtWork({ id: "root", state: "waiting", doing: { state: "waiting", requests: whom.map((agent) => ({ agent })) } }, agents);
  assert.equal(waits("scribe", "reader"), "reader");
  assert.equal(waits("scribe", "unknown"), "root", "the explanation of root tells what the others do");
  assert.equal(whyAtWork(agents.get("clerk"), agents), "clerk");
  assert.equal(whyAtWork(agents.get("scribe"), agents), null);
});

test("the last line of an arriving answer: a call, else the text, else the reasoning", () => {
  const said = (more) => arrivingLine({ text: "", reasoning: "", calls: [], ...more });
  assert.equal(arrivingLine(undefined), "");
  assert.equal(said({}), "");
  assert.equal(said({ reasoning: "first\nI think\n" }), "I think");
  assert.equal(said({ reasoning: "I think", text: "one\ntwo\n\n" }), "two");
  assert.equal(said({ reasoning: "I think", text: "\n" }), "I think");
  assert.equal(said({ text: "one", calls: ["find", "get_artifact"] }), "→ get_artifact");
  const long = said({ text: `begin ${"\u{1f600}".repeat(500)}end` });
  assert.equal([...long].length, 81);
  assert.ok(long.startsWith("…\u{1f600}") && long.endsWith("end"), long);
});
