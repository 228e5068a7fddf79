// Lets agents use official MCP servers, unmodified, with a real daemon and scripted models. Checks every request to a
// model against the JSON Schema of chat completions. `run.sh` installs the servers and runs this program.
//
// Environment variables:
// - POLITY_BIN: the polity program.
// - SERVERS_NODE: the directory `node_modules` of the servers in JavaScript.
// - SERVERS_PYTHON: the directory of the servers in Python. If it is empty, these servers are left out.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { withDaemon } from "../web/support/daemon.mjs";
import { calling, chatModel, said, saying, serviceAt } from "../web/support/model.mjs";
import { idle, until } from "../web/support/page.mjs";

const { POLITY_BIN, SERVERS_NODE, SERVERS_PYTHON } = process.env;
const beside = (file) => new URL(file, import.meta.url);

const Ajv = createRequire(import.meta.url)(join(SERVERS_NODE, "ajv/dist/2020.js")).default;
const isChatRequest = new Ajv({ strict: false }).compile(JSON.parse(readFileSync(beside("../openai_chat_request.strict.schema.json"))));

const PICTURE = readFileSync(beside("../../examples/picture.png"));
/** The picture of `everything`, in base64. */
const { MCP_TINY_IMAGE } = await import(join(SERVERS_NODE, "@modelcontextprotocol/server-everything/dist/tools/get-tiny-image.js"));

/** Maximum length of a tool result that a model is shown, in characters. */
const TOOL_RESULT_CHARS = 8_000;
/** Maximum size of a message from a server, in bytes (`message_bytes` in `crates/servers/src/bounds.rs`). */
const MESSAGE_BYTES = 16 * 2 ** 20;

const directory = mkdtempSync(join(tmpdir(), "polity-servers-"));
process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
const files = join(directory, "files");
mkdirSync(files);

/** Returns the entry of a server in `mcpServers`. */
const node = (name, ...args) => ({ command: join(SERVERS_NODE, ".bin", `mcp-server-${name}`), args });
const python = (name, ...args) => ({ command: join(SERVERS_PYTHON, `mcp-server-${name}`), args });

/** Returns the entry of a server that appends the id of its process to `file` whenever it is started. */
function noted(file, { command, args, ...more }) {
  return { command: "sh", args: ["-c", 'echo $$ >>"$0"; exec "$@"', file, command, ...args], ...more };
}

/** Returns the process ids that a server has appended to `file`. */
const startsIn = (file) => readFileSync(file, "utf8").trim().split("\n").map(Number);

/** Returns whether there is a process with this id. */
function isRunning(id) {
  try {
    return process.kill(id, 0);
  } catch {
    return false;
  }
}

/** Waits until all servers are connected. A model call waits for their tools only ten seconds. */
async function connected(daemon) {
  let servers = [];
  await until("the servers are connected", async () => {
    servers = await daemon.get("/api/servers");
    return servers.every((server) => server.state === "connected");
  }).catch((error) => { throw new Error(JSON.stringify(servers), { cause: error }); });
}

/**
 * Gives a society one task, and runs `plays` meanwhile. `scripts` has the calls of each model; the first model is that of
 * root. A model makes one call after another, and then says that it is done. A call is `[tool, arguments]`, or a function
 * that returns a promise for it. `inputs` has the input capabilities of a model, if they are more than text.
 *
 * `plays` gets the daemon, all `requests` so far, a function that returns the newest `results` of a model's calls, and a
 * function that waits until the task has `ended`.
 */
async function play(name, { servers, scripts, inputs = {} }, plays) {
  console.log(`servers: ${name}`);
  const requests = [];
  const results = (model) => requests.findLast((request) => request.model === model)?.messages.filter((message) => message.role === "tool").map(said) ?? [];
  let daemon = null;
  const model = await chatModel(async (messages, _, request) => {
    requests.push(request);
    const call = scripts[request.model][messages.filter((message) => message.role === "tool").length];
    return call ? calling(typeof call === "function" ? await call(daemon) : call) : saying("done");
  });
  const services = Object.keys(scripts).map((id) =>
    serviceAt(id, model.url, { capabilities: { input: inputs[id] ?? ["text"], output: ["text", "tool_calling"] } }));
  const app = {
    language: "en", mcpServers: servers, limits: { toolResultChars: TOOL_RESULT_CHARS },
    tools: { deferAbove: 100, policy: [{ group: "mcp:*", decide: "allow" }] },
  };
  await withDaemon(POLITY_BIN, { name, app, services, model }, async (started) => {
    daemon = started;
    await connected(daemon);
    await daemon.write("Begin.");
    const ended = async () => {
      await until("the models have the results of all calls", () => Object.entries(scripts).every(([id, calls]) => results(id).length === calls.length));
      await idle(daemon);
    };
    await plays({ daemon, requests, results, ended });
    // With this signal, the daemon also ends its servers.
    assert.deepEqual(await daemon.kill("SIGTERM"), { code: 0, signal: null });
  });
  for (const request of requests) assert.ok(isChatRequest(request), JSON.stringify(isChatRequest.errors?.slice(0, 5)));
}

/** Returns the content of an artifact. */
async function contentOf(daemon, reference) {
  const id = reference.replace("artifact:", "");
  const response = await fetch(`${daemon.url}/api/artifacts/${id}/content`, { headers: { Authorization: `Bearer ${daemon.token}` } });
  assert.equal(response.status, 200);
  return Buffer.from(await response.arrayBuffer());
}

/**
 * Lets an agent call a tool of each server. A row is the name of a server, its entry, the tool, its arguments, and what
 * the result must contain.
 */
async function eachServer(rows) {
  const names = rows.map(([name]) => name);
  const society = {
    servers: Object.fromEntries(rows),
    scripts: { reader: rows.map(([name, , tool, given]) => [`${name}__${tool}`, given]) },
  };
  await play(`an agent uses ${names.join(", ")}`, society, async ({ results, ended }) => {
    await ended();
    for (const [at, result] of results("reader").entries()) assert.ok(result.includes(rows[at][4]), `${names[at]}: ${result}`);
  });
}

async function serversInJavaScript() {
  const path = join(files, "note.txt");
  writeFileSync(path, "a line of text");
  const memory = { ...node("memory"), env: { MEMORY_FILE_PATH: join(directory, "memory.jsonl") } };
  const entities = [{ name: "Ada", entityType: "person", observations: ["writes"] }];
  const thought = { thought: "x", nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 };
  await eachServer([
    ["filesystem", node("filesystem", files), "read_text_file", { path }, "a line of text"],
    ["memory", memory, "create_entities", { entities }, "Ada"],
    ["thinking", node("sequential-thinking"), "sequentialthinking", thought, "totalThoughts"],
    ["everything", node("everything"), "echo", { message: "hello" }, "Echo: hello"],
  ]);
}

async function serversInPython() {
  const page = createServer((_, response) => response.setHeader("content-type", "text/html").end("<article><h1>A page</h1><p>Some words.</p></article>"));
  await new Promise((resolve) => { page.listen(0, "127.0.0.1", resolve); });
  const url = `http://127.0.0.1:${page.address().port}/`;
  const noon = { source_timezone: "UTC", time: "12:00", target_timezone: "Asia/Tokyo" };
  const rows = [
    ["time", python("time"), "convert_time", noon, "21:00"],
    ["fetch", python("fetch", "--ignore-robots-txt", "--allow-private-ips"), "fetch", { url }, "Some words."],
  ];
  const repository = join(directory, "repository");
  if (spawnSync("git", ["init", "--quiet", repository]).status === 0) {
    writeFileSync(join(repository, "new"), "a line");
    rows.push(["git", python("git", "--repository", repository), "git_status", { repo_path: repository }, "new"]);
  }
  // These servers need seconds of processor time to start. Together they would start too slowly on a busy machine.
  for (const row of rows) await eachServer([row]);
  page.close();
}

/**
 * `get-tiny-image` returns a picture beside texts. `read_media_file` returns one as content, and again, in base64, as
 * structured content.
 */
async function pictures() {
  const path = join(files, "picture.png");
  writeFileSync(path, PICTURE);
  const hire = ["spawn_agent_with_task", {
    role: { name: "viewer", rolePrompt: "You look at pictures.", requiredCapabilities: ["vision"] },
    taskBrief: { objective: "Look at the pictures", constraints: [], inputs: "the tools", outputs: "one line", completion_criteria: "the line is said" },
    initialMessage: { text: "Look." },
  }];
  const look = [["everything__get-tiny-image", {}], ["filesystem__read_media_file", { path }]];
  const society = {
    servers: { everything: node("everything"), filesystem: node("filesystem", files) },
    scripts: { reader: [hire, ...look], viewer: look }, inputs: { viewer: ["text", "vision"] },
  };
  await play("a picture is seen by a model with vision, and described to one without", society, async ({ daemon, requests, results, ended }) => {
    await ended();
    const shown = [Buffer.from(MCP_TINY_IMAGE, "base64"), PICTURE];
    const { agents } = await daemon.get("/api/agents");
    const viewer = agents.find((agent) => agent.service === "viewer").id;

    const parts = requests.findLast((request) => request.model === "viewer").messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
    const urls = parts.filter((part) => part.type === "image_url").map((part) => part.image_url.url.split(","));
    assert.deepEqual(urls.map(([head]) => head), shown.map(() => "data:image/png;base64"));
    assert.deepEqual(urls.map(([, data]) => Buffer.from(data, "base64")), shown);

    for (const [at, described] of results("reader").slice(1).entries()) {
      assert.ok(described.length < 1_000, described);
      for (const line of ["【Attachment received】", "Type: image", "MIME type: image/png", `Suggested recipients: ${viewer}`]) {
        assert.ok(described.split("\n").includes(line), `${line} is missing in: ${described}`);
      }
      const [, reference] = /^Artifact ID: (artifact:\w+)$/m.exec(described);
      assert.deepEqual(await contentOf(daemon, reference), shown[at]);
    }
    for (const request of requests.filter(({ model }) => model === "reader")) {
      const text = JSON.stringify(request);
      assert.doesNotMatch(text, /image_url|;base64,|[A-Za-z0-9+/]{64}/);
    }
  });
}

/** The servers send a long text, a text that is longer than a message may be, and thousands of reports in one call. */
async function floods() {
  const END = "This is the end.";
  const long = join(files, "long.txt");
  const endless = join(files, "endless.txt");
  writeFileSync(long, `${"A line of a long text.\n".repeat(20_000)}${END}`);
  writeFileSync(endless, "A line of an endless text.\n".repeat(1_500_000));
  const REPORTS = 3_000;
  const society = {
    servers: { everything: node("everything"), filesystem: node("filesystem", files) },
    scripts: {
      reader: [
        ["filesystem__read_text_file", { path: long }],
        ["filesystem__read_text_file", { path: endless }],
        ["filesystem__get_file_info", { path: long }],
        ["everything__trigger-long-running-operation", { duration: 0, steps: REPORTS }],
      ],
    },
  };
  await play("floods become artifacts, errors and few events", society, async ({ daemon, requests, results, ended }) => {
    await ended();
    const [cut, refused, alive, reported] = results("reader");
    const { ref, characters, beginning } = JSON.parse(cut);
    assert.ok(beginning.includes("A line of a long text.") && !beginning.includes(END), beginning);
    const kept = (await contentOf(daemon, ref)).toString();
    assert.equal(kept.length, characters);
    assert.equal(JSON.parse(kept).content, readFileSync(long, "utf8"));
    assert.equal(JSON.parse(refused).error, "mcp_failed");
    assert.ok(refused.includes(`the answer is longer than ${MESSAGE_BYTES} bytes; ask for less`), refused);
    assert.ok(alive.includes("size: "), alive);
    assert.ok(reported.includes(`Steps: ${REPORTS}.`), reported);
    const reports = (await daemon.events()).filter((one) => one.event === "tool_progress");
    // A call lasts at most a minute, and causes at most four such events a second.
    assert.ok(reports.length > 0 && reports.length <= 240, `${reports.length} events`);
    for (const message of requests.flatMap((request) => request.messages)) {
      if (message.role === "tool") assert.ok(said(message).length <= TOOL_RESULT_CHARS, said(message).slice(0, 200));
    }
  });
}

async function killedAndHanging() {
  // The limit of a call that hangs. The other call of the same server must stay below it on a busy machine, too.
  const timeoutMs = 5_000;
  const [mortal, slow] = ["mortal", "slow"].map((name) => join(directory, name));
  let startsBeforeKill = [];
  const isBack = async (daemon) => {
    await until("the killed server is started again", () => startsIn(mortal).length > startsBeforeKill.length);
    await connected(daemon);
    return ["mortal__echo", { message: "I am back" }];
  };
  const society = {
    servers: { mortal: noted(mortal, node("everything")), slow: noted(slow, { ...node("everything"), timeoutMs }) },
    scripts: {
      reader: [
        ["mortal__trigger-long-running-operation", { duration: 60, steps: 600 }], isBack,
        ["slow__trigger-long-running-operation", { duration: 60, steps: 1 }], ["slow__echo", { message: "I was never away" }],
      ],
    },
  };
  await play("a server is killed during a call, and another hangs", society, async ({ daemon, results, ended }) => {
    await until("the call reports progress", async () => (await daemon.events()).some((one) => one.event === "tool_progress"));
    startsBeforeKill = startsIn(mortal);
    const startsOfSlow = startsIn(slow);
    process.kill(startsBeforeKill.at(-1), "SIGKILL");
    await ended();
    const [killed, back, hung, still] = results("reader");
    for (const result of [killed, hung]) assert.equal(JSON.parse(result).error, "mcp_failed", result);
    assert.ok(killed.includes("the connection ended before the answer; the call may have had its effect"), killed);
    assert.ok(back.includes("Echo: I am back"), back);
    assert.ok(hung.includes(`no answer within ${timeoutMs} ms; the call may have had its effect`), hung);
    assert.ok(still.includes("Echo: I was never away"), still);
    assert.deepEqual(startsIn(slow), startsOfSlow, "a call that hangs does not end its server");
  });
  assert.deepEqual([...startsIn(mortal), ...startsIn(slow)].filter(isRunning), [], "the daemon has left servers behind");
}

await serversInJavaScript();
if (SERVERS_PYTHON) await serversInPython();
await pictures();
await floods();
await killedAndHanging();
