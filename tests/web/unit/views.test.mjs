import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { ASSETS, WEB, scripts } from "./assets.mjs";
import { address, path } from "../../../crates/api/web/assets/api.js";
import { changed, failed, fresh, letter, passes, sendable, sending, stored } from "../../../crates/api/web/assets/draft.js";
import { GROUPS, brief, kindsOf, matches } from "../../../crates/api/web/assets/events.js";
import { clock, cost, elapsed, firstLine, moment, short, size, whole } from "../../../crates/api/web/assets/format.js";
import { LANGUAGES, pieces, preferred, texts } from "../../../crates/api/web/assets/i18n.js";
import { SHORTCUTS, meaning } from "../../../crates/api/web/assets/keys.js";
import { PAGES, parse, write } from "../../../crates/api/web/assets/route.js";
import { STATES } from "../../../crates/api/web/assets/state.js";
import { usesOf } from "../../../crates/api/web/assets/views/calls.js";
import { detailsOf, silenceOf } from "../../../crates/api/web/assets/views/doing.js";
import { chipsOf } from "../../../crates/api/web/assets/views/sentence.js";
import { rowsOf, step } from "../../../crates/api/web/assets/tree.js";
import { inSight, offsets, rowAt } from "../../../crates/api/web/assets/virtual.js";

const { en, zh } = LANGUAGES;

test("all languages have the same keys, in order, with the same places in them", () => {
  for (const texts of Object.values(LANGUAGES)) assert.deepEqual(Object.keys(texts), Object.keys(en));
  const places = (text) => [...new Set(text.match(/\{\w+\}/g) ?? [])].sort();
  for (const key of Object.keys(en)) {
    assert.notEqual(zh[key].trim(), "", key);
    // An English text may have two forms, `singular|plural`. A Chinese text has one form. Each English form is compared
    // with the Chinese text.
    for (const form of en[key].split("|")) assert.deepEqual(places(zh[key]), places(form), key);
  }
});

test("every text that a script asks for is there, and every text is asked for", () => {
  const source = scripts().filter(([name]) => !name.startsWith("i18n")).map(([, text]) => text).join("\n");
  const asked = new Set([...source.matchAll(/"([a-z][\w.]*)"/g)].map((match) => match[1]));
  for (const [, key] of source.matchAll(/\bt(?:\.parts)?\(\s*"([^"]+)"/g)) assert.ok(key in en, `no text for ${key}`);
  const made = [...source.matchAll(/`([a-z][\w.]*\.)?\$\{/g)].map((match) => match[1]).filter(Boolean);
  const ends = [...source.matchAll(/`\$\{\w+\}(\.\w+)`/g)].map((match) => match[1]);
  for (const key of Object.keys(en)) {
    const found = asked.has(key) || made.some((start) => key.startsWith(start)) || ends.some((end) => key.endsWith(end));
    assert.ok(found, `no script uses ${key}`);
  }
});

test("every state of an agent has its texts, its shape and its colour, and the page knows no other", () => {
  const source = readFileSync(new URL("../../../crates/view/src/doing.rs", import.meta.url), "utf8");
  const body = /pub enum AgentState \{([\s\S]*?)\n\}/.exec(source)[1];
  const states = [...body.matchAll(/^ {4}([A-Z]\w+)/gm)].map((match) => match[1].toLowerCase());
  assert.deepEqual([...STATES].sort(), [...states].sort());
  const [dom, css] = ["dom.js", "css/parts.css"].map((name) => readFileSync(new URL(name, ASSETS), "utf8"));
  for (const state of states) {
    assert.ok(`state.${state}` in en && `state.${state}.what` in en, state);
    assert.ok(en[`state.${state}`].startsWith(state), `the page has another word for ${state} than the API and the commands`);
    assert.ok(dom.includes(`\n  ${state}: [`), state);
    assert.ok(css.includes(`.state-${state} {`), state);
  }
});

test("what an agent does is told with its details, and what follows a silence", () => {
  const app = { t: texts("en") };
  const check = (doing, expect) => assert.equal(detailsOf(app, doing, 10_000), expect);
  check({ state: "thinking", service: "local", tokens: 0 }, "at local");
  check({ state: "thinking", service: "local", tokens: 7 }, "at local, 7 tokens");
  check({ state: "queued", service: "local" }, "local");
  check({ state: "queued", service: "local", place: 3, closedUntil: 15_000 }, "local, place 3, which takes no calls for 0:05");
  check({ state: "running", tools: ["bash", "fetch"] }, "bash, fetch");
  check({ state: "retrying", service: "local", attempt: 2, of: 4, until: 12_000, why: "busy" },
    "local in 0:02, after failure 2 of 4: busy");
  check({ state: "idle" }, "");
  check(undefined, "");
  const silent = (silence) => silenceOf(app, { state: "thinking", service: "local", silence }, 20_000);
  assert.equal(silent(undefined), "");
  assert.equal(silent({ since: 8_000, until: 60_000, then: "retry" }), "local has sent nothing for 0:12; polity ends this attempt in 0:40, then asks it again");
  assert.equal(silent({ since: 8_000, until: 60_000, then: "fallback", fallback: "far" }),
    "local has sent nothing for 0:12; polity ends this attempt in 0:40, then asks far instead");
  assert.equal(silent({ since: 8_000, until: 60_000, then: "give_up" }), "local has sent nothing for 0:12; polity ends this attempt in 0:40, and the call fails");
});

test("what a running command uses is told, and what is not known is left out", () => {
  const uses = { processes: 1, memoryBytes: 2_000_000, diskBytes: 0, outputBytes: 0 };
  assert.equal(usesOf(texts("en"), uses), "1 process, 2.0 MB of memory");
  const more = { ...uses, processes: 3, diskBytes: 5_000, outputBytes: 70 };
  assert.equal(usesOf(texts("en"), more), "3 processes, 2.0 MB of memory, 5.0 kB added on disk, 70 B printed");
  assert.equal(usesOf(texts("zh"), uses), "1 个进程, 内存 2.0 MB");
});

test("every kind of event, outcome, failure, next attempt and remedy of the runtime has its text, and each event its group", () => {
  const source = readFileSync(new URL("../../../crates/view/src/event.rs", import.meta.url), "utf8");
  const snake = (name) => name.replace(/\B[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
  const variants = (text, name) => {
    const body = new RegExp(`pub enum ${name} \\{([\\s\\S]*?)\\n\\}`).exec(text)[1];
    return [...body.matchAll(/^ {4}([A-Z]\w+)/gm)].map((match) => snake(match[1]));
  };
  const kinds = variants(source, "Event");
  assert.ok(kinds.length > 20);
  const grouped = Object.values(GROUPS).flat();
  for (const kind of kinds) {
    assert.ok(`event.${kind}` in en, `event.${kind}`);
    assert.ok(grouped.includes(kind), `no group has ${kind}`);
  }
  const detail = readFileSync(new URL("../../../crates/view/src/event/detail.rs", import.meta.url), "utf8");
  for (const outcome of variants(detail, "Outcome")) assert.ok(`outcome.${outcome}` in en, outcome);
  for (const next of variants(detail, "NextAttempt")) assert.ok(`next.${next}` in en, next);
  const chat = readFileSync(new URL("../../../crates/llm/src/chat.rs", import.meta.url), "utf8");
  for (const kind of variants(chat, "FailureKind")) assert.ok(`failure.${kind}` in en, kind);
  const contact = readFileSync(new URL("../../../crates/society/src/contact.rs", import.meta.url), "utf8");
  for (const how of variants(contact, "Source")) assert.ok(`source.${how}` in en, how);
  const why = readFileSync(new URL("../../../crates/view/src/why.rs", import.meta.url), "utf8");
  const remedies = variants(why, "WhyRemedy");
  assert.ok(remedies.length > 10);
  for (const remedy of remedies) assert.ok(`remedy.${remedy}` in en, remedy);
  const facts = variants(why, "Fact");
  assert.ok(facts.length > 20);
  // The page shows these in other words, or as they are.
  const special = ["not_shown", "does", "said", "then", "call_asked"];
  for (const fact of facts) assert.ok(special.includes(fact) || `why.${fact}` in en, fact);
  const approval = readFileSync(new URL("../../../crates/view/src/approval.rs", import.meta.url), "utf8");
  for (const state of variants(approval, "ApprovalState")) assert.ok(`why.call_asked.${state}` in en, state);
});

test("an event without artifacts has no chips", () => {
  const withArtifacts = ["message_accepted", "model_answered", "artifact_stored"];
  for (const event of Object.values(GROUPS).flat().filter((kind) => !withArtifacts.includes(kind))) {
    assert.deepEqual(chipsOf({}, { event, agent: "root", message: "m000000001" }), [], event);
  }
});

test("every code of an error has its text", () => {
  const read = (path) => readFileSync(new URL(`../../../crates/${path}`, import.meta.url), "utf8");
  const arms = (source) => {
    const body = /pub fn code\(&self\) -> &'static str \{([\s\S]*?)\n    \}/.exec(source)[1];
    return [...body.matchAll(/=> "([a-z_]+)"/g)].map((match) => match[1]);
  };
  const problem = read("api/src/problem.rs");
  const approvals = read("api/src/approvals.rs");
  const made = [...(problem + approvals).matchAll(/StatusCode::[A-Z_]+, "([a-z_]+)"/g)].map((match) => match[1]);
  const refusals = arms(read("society/src/refusal.rs"));
  const writing = arms(read("runtime/src/society/writing.rs"));
  for (const found of [made, refusals, writing]) assert.ok(found.length > 4);
  const codes = new Set([...made, ...refusals, ...writing, "unknown", "unreachable"]);
  for (const code of codes) assert.ok(`error.${code}` in en, code);
  for (const key of Object.keys(en).filter((one) => one.startsWith("error."))) assert.ok(codes.has(key.slice(6)), key);
});

test("nothing makes markup or code out of text, nothing has a style or a handler in markup", () => {
  for (const [name, text] of scripts()) {
    for (const danger of ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "eval(", "new Function", "setAttribute(\"style\"", "createContextualFragment", "http://", "https://"]) {
      // `dom.js` may contain `http://`, because the name of the SVG namespace begins with it. This name looks like a
      // web address, but no browser loads it.
      if (danger === "http://" && name === "dom.js") continue;
      assert.ok(!text.includes(danger), `${name} has ${danger}`);
    }
  }
  const page = readFileSync(new URL("index.html", WEB), "utf8");
  assert.doesNotMatch(page, /<style|style=|<script>| on\w+=|https?:/);
  for (const name of readdirSync(new URL("css/", ASSETS))) {
    assert.doesNotMatch(readFileSync(new URL(`css/${name}`, ASSETS), "utf8"), /url\(|@import/, name);
  }
});

test("every file that a script or the page names is there", () => {
  const names = new Set(readdirSync(ASSETS, { recursive: true }).map((name) => name.replaceAll("\\", "/")));
  for (const [name, text] of scripts()) {
    for (const [, target] of text.matchAll(/from "(\.[^"]+)"/g)) {
      const found = new URL(target, `http://x/${name}`).pathname.slice(1);
      assert.ok(names.has(found), `${name} imports ${target}`);
    }
  }
  for (const [, target] of readFileSync(new URL("index.html", WEB), "utf8").matchAll(/"\/assets\/([^"]+)"/g)) {
    assert.ok(names.has(target), target);
  }
});

test("every script can be read, and uses what it imports", async () => {
  for (const [name, text] of scripts()) {
    // Import all scripts except `main.js`, because importing `main.js` would start the whole page.
    if (name !== "main.js") await import(new URL(name, ASSETS));
    for (const [statement, names] of text.matchAll(/^import (?:\{([^}]+)\}|\w+) from .*$/gm)) {
      const rest = text.replace(statement, "");
      for (const one of (names ?? /^import (\w+)/.exec(statement)[1]).split(",").map((part) => part.trim())) {
        assert.match(rest, new RegExp(`\\b${one}\\b`), `${name} does not use ${one}`);
      }
    }
  }
});

test("text colours have a contrast of at least 4.5 on every ground, light and dark", () => {
  const source = readFileSync(new URL("css/tokens.css", ASSETS), "utf8");
  const colours = Object.fromEntries([...source.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map((match) => [match[1], match.slice(2)]));
  const light = (colour) => {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255).map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const check = (ink, ground) => {
    for (const mode of [0, 1]) {
      const found = contrast(colours[ink][mode], colours[ground][mode]);
      assert.ok(found >= 4.5, `${ink} on ${ground}, ${mode ? "dark" : "light"}: ${found.toFixed(2)}`);
    }
  };
  for (const ink of ["ink", "ink-2", "ink-3", "accent", "ask", "bad", "thinking", "queued", "waiting", "parked", "paused", "idle", "ended"]) {
    for (const ground of ["paper", "surface", "sunken", "hover"]) check(ink, ground);
  }
  check("accent-ink", "accent");
  check("ask", "ask-soft");
  check("bad", "bad-soft");
  for (const ink of ["ink", "ink-2", "ink-3", "accent"]) check(ink, "accent-soft");
  for (const ink of ["ink", "ink-2"]) for (const ground of ["ask-soft", "bad-soft"]) check(ink, ground);
});

test("texts with places and numbers", () => {
  assert.deepEqual(pieces("{a} to {b}", { a: "x", b: "y" }), ["", "x", " to ", "y", ""]);
  assert.equal(texts("en")("calls", { n: 1 }), "1 call");
  assert.equal(texts("en")("calls", { n: 0 }), "0 calls");
  assert.equal(texts("zh")("calls", { n: 2 }), "2 次调用");
  assert.equal(texts("en")("no such"), "no such");
  assert.equal(texts("en")("toString"), "toString");
  assert.equal(preferred(["fr-FR", "zh-TW", "en"]), "zh");
  assert.equal(preferred(["fr"]), "en");
});

test("numbers as people read them", () => {
  assert.deepEqual([0, 999, 1000, 9949, 9950, 999499, 999500, 5100000].map(short), ["0", "999", "1.0k", "9.9k", "10k", "999k", "1.0M", "5.1M"]);
  assert.deepEqual([0, 930, 1200, 65536, 1234567, 5e9].map(size), ["0 B", "930 B", "1.2 kB", "66 kB", "1.2 MB", "5.0 GB"]);
  assert.deepEqual([0, 0.00123, 0.5, 12.345].map(cost), ["0", "0.0012", "0.50", "12.35"]);
  assert.equal(firstLine("👩‍🔬 abc\nd", 4), "👩‍🔬…");
});

test("a time that is none is no reason to show nothing", () => {
  for (const at of [NaN, Infinity, 9e15, -9e15, undefined]) {
    assert.deepEqual([clock(at), moment(at, 0, "en"), whole(at, "en")], ["—", "—", "—"]);
  }
  assert.notEqual(clock(0), "—");
});

test("of a long text only what is shown is held", () => {
  const long = "😀".repeat(100_000);
  const entry = { seq: 1, event: "message_accepted", text: long, objective: "short", problems: Array(50).fill(long) };
  const held = brief(entry);
  assert.ok(held.text.length > 590 && held.text.length <= 600);
  assert.ok(held.text.isWellFormed(), "a character was cut in two");
  assert.equal(held.objective, "short");
  assert.ok(JSON.stringify(held.problems).length < 8 * 700);
  assert.equal(entry.text, long);
});

test("addresses", () => {
  assert.equal(address("/a", { x: 1, y: undefined, z: null, w: "", v: false, k: ["p", "q"] }), "/a?x=1&k=p&k=q");
  assert.equal(address("/a", {}), "/a");
  assert.equal(path`/api/agents/${"a/../b c"}/request`, "/api/agents/a%2F..%2Fb%20c/request");
});

test("invariant: a place that is written is read back", () => {
  for (const page of PAGES) {
    for (const detail of [null, { kind: "agent", id: "reader-7k2f" }, { kind: "artifact", id: "a/b %#?é" }]) {
      assert.deepEqual(parse(write({ page, detail })), { page, detail });
    }
  }
  for (const nonsense of ["", "#", "#/x", "#/timeline/x/y", "#/timeline/agent", "#/timeline/agent/"]) {
    assert.equal(parse(nonsense).detail, null, nonsense);
  }
  assert.deepEqual(parse("#/tasks/agent/%E0%A4%A"), { page: "tasks", detail: { kind: "agent", id: "%E0%A4%A" } });
});

test("filters let through what the server would", () => {
  const none = { task: null, agent: null, kinds: [] };
  const message = { event: "message_accepted", task: "t", from: "a", to: "b" };
  const taskOf = (id) => ({ a: "t", c: "u" })[id];
  const check = (filter, entry, expect) => assert.equal(matches({ ...none, ...filter }, entry, taskOf), expect);
  check({}, message, true);
  check({ task: "t" }, message, true);
  check({ task: "u" }, message, false);
  check({ task: "u" }, { event: "config_taken" }, false);
  check({ task: "u" }, { event: "contact_added", owner: "c", agent: "a" }, true);
  check({ task: "u" }, { event: "agent_paused", agent: "a" }, false);
  check({ agent: "b" }, message, true);
  check({ agent: "a" }, message, true);
  check({ agent: "c" }, message, false);
  check({ kinds: kindsOf(new Set(["models"])) }, message, false);
  check({ kinds: kindsOf(new Set(["messages"])) }, message, true);
  assert.deepEqual(kindsOf(new Set()), []);
});

const agents = (...list) => new Map(list.map(([id, parent, more]) => [id, { id, role: id, parent, state: "idle", waitsFor: [], createdAt: 0, ...more }]));
const view = (more = {}) =>
  ({ closed: new Set(), states: new Set(["idle", "thinking"]), text: "", task: null, finished: true, tasks: new Map(), ...more });
const shown = (rows) => rows.map((row) => `${"-".repeat(row.level - 1)}${row.agent.id}${row.faint ? "~" : ""}${row.hidden ? `+${row.hidden}` : ""}`).join(" ");
const SOCIETY = agents(["user"], ["root", undefined], ["a", "root", { task: "t" }], ["b", "a", { state: "ended", task: "t" }], ["c", "b", { state: "thinking", task: "t" }], ["d", "root", { task: "u" }], ["lost", "nobody", { task: "t" }]);

test("rows of the tree", () => {
  const check = (more, expect) => assert.equal(shown(rowsOf(SOCIETY, view(more))), expect);
  check({}, "root -a --b~ ---c -d lost");
  check({ closed: new Set(["a"]) }, "root -a+2 -d lost");
  check({ task: "u" }, "root -d");
  check({ text: "c" }, "root~ -a~ --b~ ---c");
  check({ states: new Set(["ended"]) }, "root~ -a~ --b");
  check({ text: "nothing" }, "");
});

test("each row knows its place among its siblings", () => {
  const places = rowsOf(SOCIETY, view()).map((row) => [row.agent.id, row.place, row.siblings, row.parent]);
  assert.deepEqual(places, [["root", 1, 2, -1], ["a", 1, 2, 0], ["b", 1, 1, 1], ["c", 1, 1, 2], ["d", 2, 2, 0], ["lost", 2, 2, -1]]);
});

test("keys in the tree", () => {
  const rows = rowsOf(SOCIETY, view());
  const check = (at, key, expect) => assert.deepEqual(step(rows, at, key), expect, `${at} ${key}`);
  check(0, "ArrowDown", { at: 1 });
  check(5, "ArrowDown", null);
  check(1, "ArrowUp", { at: 0 });
  check(0, "ArrowUp", null);
  check(1, "ArrowRight", { at: 2 });
  check(1, "ArrowLeft", { close: "a" });
  check(3, "ArrowLeft", { at: 2 });
  check(3, "ArrowRight", null);
  check(2, "Home", { at: 0 });
  check(2, "End", { at: 5 });
  assert.deepEqual(step(rowsOf(SOCIETY, view({ closed: new Set(["a"]) })), 1, "ArrowRight"), { open: "a" });
});

test("invariant: the rows in sight cover what is seen, and are few", () => {
  const heights = Array.from({ length: 100_000 }, (_, at) => 28 + (at * 37 % 60));
  const starts = offsets(heights, (height) => height);
  const total = starts[heights.length];
  for (let top = 0; top < total; top += 9973) {
    const { first, end } = inSight(starts, top, 900);
    assert.ok(starts[first] <= top);
    assert.ok(starts[end] >= Math.min(total, top + 900));
    assert.ok(end - first < 70);
    assert.ok(starts[rowAt(starts, top)] <= top && starts[rowAt(starts, top) + 1] > top);
  }
  assert.deepEqual(inSight(offsets([], () => 1), 0, 100), { first: 0, end: 0 });
});

test("shortcuts", () => {
  const press = (key, more = {}) => meaning({ key, writing: false, ...more });
  assert.deepEqual(press("2"), { does: "page", number: 2 });
  assert.deepEqual(press("7"), { does: "page", number: 7 });
  assert.deepEqual(press("a"), { does: "approval" });
  assert.equal(press("8"), null);
  assert.deepEqual(press("?"), { does: "help" });
  assert.equal(press("t", { writing: true }), null);
  assert.equal(press("t", { ctrlKey: true }), null);
  assert.equal(press("toString"), null);
  assert.deepEqual(press("Escape", { writing: true }), { does: "close" });
  assert.equal(press("Escape", { isComposing: true }), null);
  assert.equal(press("p", { repeat: true }), null);
  assert.equal(press("Escape", { repeat: true }), null);
  for (const key of ["p", "1", "/", "?"]) assert.equal(meaning({ key, writing: false }, false), null, key);
  assert.deepEqual(meaning({ key: "Escape", writing: false }, false), { does: "close" });
  for (const { does } of SHORTCUTS) assert.ok(`key.${does}` in en);
});

test("a draft keeps its key through every attempt, and gets another when it is changed", () => {
  let draft = changed(fresh(), { text: "hello", files: [{ id: 1, name: "a", reference: null }] });
  assert.equal(sendable(fresh()), false);
  assert.equal(sendable(draft), true);
  draft = sending(draft, "k1", 5);
  assert.equal(draft.since, 5);
  assert.equal(sendable(draft), false);
  draft = stored(draft, 1, "artifact:x");
  draft = failed(draft, "no connection");
  draft = sending(draft, "k2", 9);
  assert.equal(draft.since, 9);
  assert.equal(draft.key, "k1");
  assert.deepEqual(letter(draft), { to: "root", text: "hello", attachments: ["artifact:x"] });
  draft = sending(changed(failed(draft, "no"), { text: "hello!" }), "k3", 12);
  assert.equal(draft.key, "k3");
  assert.equal(draft.files[0].reference, "artifact:x", "the draft has lost its stored file");
});

test("only what may pass is tried again", () => {
  assert.deepEqual([0, 400, 409, 422, 500, 503].map((status) => passes({ status })), [true, false, false, false, false, true]);
});

test("a workspace goes with a message that begins a task, and with no other", () => {
  const draft = changed(fresh(), { text: "a", workspace: " /srv/project " });
  assert.equal(letter(draft).workspace, "/srv/project");
  assert.equal(letter(changed(draft, { access: "read" })).workspace, "/srv/project:ro");
  for (const change of [{ to: "reader-1" }, { task: "t" }, { workspace: "  " }]) assert.ok(!("workspace" in letter(changed(draft, change))));
});

test("a running time", () => {
  for (const [milliseconds, expect] of [[-5, "0:00"], [7999, "0:07"], [725_000, "12:05"], [3_723_000, "1:02:03"]]) {
    assert.equal(elapsed(milliseconds), expect);
  }
});
