import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fresh } from "../../../crates/api/web/assets/draft.js";
import { foresee } from "../../../crates/api/web/assets/foresee.js";
import { LANGUAGES, texts } from "../../../crates/api/web/assets/i18n.js";

const service = (id, input, more = {}) => ({ id, capabilities: { input: ["text", ...input], output: ["text"] }, callsTools: true, isDefault: id === "words", rulesTokens: 0, ...more });
const WORDS = service("words", [], { contextWindow: 100 });
const EYES = service("eyes", ["vision"]);
const FILES = service("files", ["file"]);

function modelOf(services) {
  const agents = [
    { id: "root", state: "idle" }, { id: "writer", service: "words", state: "idle" }, { id: "reader", service: "eyes", state: "idle" },
    { id: "halted", service: "words", state: "paused" }, { id: "failed", service: "words", state: "parked" },
  ];
  return { services, config: { limits: { maxArtifactBytes: 1000, maxMessageChars: 1000, inlineTextChars: 240 } }, agents: new Map(agents.map((agent) => [agent.id, agent])) };
}

function check(services, draft, names, ...expect) {
  const files = names.map((one, at) => {
    const [name, type = "", bytes = 10] = one.split(" ");
    return { id: at, name, file: { type, size: Number(bytes) } };
  });
  const found = foresee({ ...fresh(), ...draft, files }, modelOf(services));
  assert.deepEqual(found.map((one) => one.code), expect, `${names} ${JSON.stringify(draft).slice(0, 80)}`);
  return found;
}

test("media that no service takes, by their types or their names", () => {
  check([WORDS], {}, []);
  const [told] = check([WORDS], {}, ["a.png image/png", "b.jpg image/jpeg"], "nobody_takes");
  assert.deepEqual(told, { code: "nobody_takes", names: "a.png, b.jpg", capability: "vision" });
  check([WORDS, EYES], {}, ["a.png image/png"]);
  check([WORDS, EYES], {}, ["a.mp3 audio/mpeg", "b.mkv"], "nobody_takes", "nobody_takes");
  check([WORDS, { ...EYES, refusedMedia: { all: true, artifacts: [] } }], {}, ["a.png image/png"], "nobody_takes");
  check([WORDS], {}, ["a.svg image/svg+xml", "b.html text/html", "c.rs", "d.constructor"]);
  check([WORDS, EYES], {}, ["a.heic image/heic", "B.HEIC"], "undecoded");
});

test("documents whose text cannot be read", () => {
  check([WORDS], {}, ["a.pdf application/pdf", "b.docx", "c.xls", "d.key"]);
  check([WORDS], {}, ["a.doc application/msword", "b.zip application/zip"], "unreadable");
  check([WORDS, FILES], {}, ["a.doc application/msword"]);
});

test("a receiver that cannot see although others can, and receivers that are halted", () => {
  const [told] = check([WORDS, EYES], { to: "writer" }, ["a.png image/png"], "described");
  assert.deepEqual([told.service, told.services], ["words", "eyes"]);
  check([WORDS, EYES], { to: "reader" }, ["a.png image/png"]);
  check([WORDS, EYES], { to: "nobody" }, ["a.png image/png"]);
  check([WORDS, EYES], { to: "halted" }, [], "paused");
  check([WORDS, EYES], { to: "failed" }, [], "parked");
});

test("what is too large or too long", () => {
  check([WORDS], {}, ["a.txt text/plain 1001", "b.txt text/plain 1000"], "too_large");
  check([EYES], {}, [], ...[]);
  check([{ ...EYES, isDefault: true }], { text: "x".repeat(1001) }, [], "too_long");
  check([{ ...EYES, isDefault: true }], { text: "😀".repeat(1000) }, []);
  check([WORDS, EYES], { text: "x".repeat(400) }, []);
  const [told] = check([WORDS, EYES], { text: "x".repeat(401) }, [], "does_not_fit");
  assert.deepEqual([told.n, told.window], [101, 100]);
  check([WORDS, EYES], { text: "字".repeat(101) }, [], "does_not_fit");
  check([WORDS, EYES], { text: "x".repeat(401), service: "eyes" }, []);
  check([WORDS, EYES], { text: "x".repeat(401), task: "t-1" }, []);
  check([WORDS, EYES], { text: "x".repeat(401), to: "writer" }, [], "does_not_fit");
});

test("the rules of root and the attached texts take room in the window, too", () => {
  const roomy = { ...WORDS, contextWindow: 1000, rulesTokens: 800 };
  const n = (text, files, to = "root") => check([roomy], { text, to }, files, "does_not_fit")[0].n;
  check([roomy], { text: "x".repeat(800) }, []);
  assert.equal(n("x".repeat(801), []), 1001);
  check([roomy], { text: "x".repeat(801), to: "writer" }, []);
  check([{ ...roomy, rulesTokens: 1001 }], {}, []);
  // Of a long text, a request shows 240 characters. It shows no bytes of other files.
  const files = ["a.txt text/plain 40", "b.json application/json 999", "c.pdf application/pdf 999", "d.csv text/csv;x=y 8"];
  check([roomy], { text: "x".repeat(512) }, files);
  assert.equal(n("x".repeat(513), files), 1001);
  // A small window shows less of each text, but at least 200 characters.
  check([WORDS], { text: "x".repeat(200) }, ["a.txt text/plain 999"]);
  check([WORDS], { text: "x".repeat(201) }, ["a.txt text/plain 999"], "does_not_fit");
  check([WORDS], {}, ["a.txt text/plain 999", "b.txt text/plain 999"]);
  check([WORDS], {}, ["a.txt text/plain 999", "b.txt text/plain 999", "c.txt text/plain 1"], "does_not_fit");
});

test("a model that calls no tools, if it is root's and the message begins a task", () => {
  const bare = { ...WORDS, callsTools: false };
  const [told] = check([bare, EYES], { text: "count" }, [], "no_tools");
  assert.deepEqual(told, { code: "no_tools", service: "words" });
  check([bare], {}, ["a.txt text/plain"], "no_tools");
  check([bare], { text: "x".repeat(401) }, ["a.png image/png"], "does_not_fit", "no_tools", "nobody_takes");
  check([WORDS, { ...EYES, callsTools: false }], { text: "count", service: "eyes" }, [], "no_tools");
  check([WORDS, { ...EYES, callsTools: false }], { text: "count" }, []);
  check([bare, EYES], { text: "count", service: "eyes" }, []);
  check([bare], { text: "count", task: "t-1" }, []);
  check([bare], { text: "count", to: "writer" }, []);
  check([bare], { text: " " }, []);
});

test("the warning about tools has the words of the daemon", () => {
  for (const language of Object.keys(LANGUAGES)) {
    const file = readFileSync(new URL(`../../../prompts/${language}/texts.toml`, import.meta.url), "utf8");
    const [, warnings] = file.split("[warning]\n");
    assert.equal(texts(language)("foreseen.no_tools", { service: "words" }), warnings.match(/^no_tools = "(.+)"$/m)[1].replace("{service}", "words"), language);
  }
});

test("before the services and the limits are known, nothing is foreseen", () => {
  const draft = { ...fresh(), files: [{ id: 1, name: "a.png", file: { type: "image/png", size: 1 } }] };
  assert.deepEqual(foresee(draft, { ...modelOf([]) }), []);
  assert.deepEqual(foresee(draft, { ...modelOf([WORDS]), config: null }), []);
});

test("every warning has a text in every language", () => {
  const source = readFileSync(new URL("../../../crates/api/web/assets/foresee.js", import.meta.url), "utf8");
  const codes = [...source.matchAll(/add\("(\w+)"/g)].map((match) => match[1]).concat("paused", "parked");
  assert.equal(codes.length, 10);
  for (const language of Object.keys(LANGUAGES)) for (const code of codes) assert.ok(texts(language).has(`foreseen.${code}`), `${language} ${code}`);
});
