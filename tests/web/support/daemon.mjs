// Starts a real daemon with its own temporary directories. Without other services, its models are rehearsals.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Maximum wait for a condition before the test fails, in milliseconds. No check waits for a fixed time. */
export const PATIENCE_MS = 120_000;

/** The lowest port that operating systems assign automatically. So no program gets a lower port by chance. */
const GIVEN_FROM = 32_768;

/**
 * Returns a free port below `GIVEN_FROM`, because such a port stays free while the daemon is stopped. Tests that run at
 * the same time begin their search at different ports.
 */
async function freePort() {
  for (let port = 20_000 + (process.pid * 7) % 10_000; port < GIVEN_FROM; port += 1) {
    const server = createServer();
    const free = await new Promise((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => { server.close(resolve); });
    return port;
  }
  throw new Error("no port is free");
}

/**
 * Returns a file's text, or null if the file does not exist. A missing file is no error, because a starting daemon
 * removes the `daemon.json` of the previous daemon.
 */
function contentOf(file) {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return null;
    throw error;
  }
}

export class Daemon {
  constructor(binary) {
    this.binary = binary;
    this.home = mkdtempSync(join(tmpdir(), "polity-web-"));
    this.data = join(this.home, "data");
    this.config = join(this.home, "config");
    mkdirSync(this.config);
    this.configure("app.json", { discover: false, language: "zh" });
    this.port = 0;
    this.said = "";
  }

  /**
   * Replaces a configuration file in one step. Otherwise the daemon could read half of the file and report a problem.
   */
  configure(name, content) {
    const unfinished = join(this.home, `${name}.unfinished`);
    writeFileSync(unfinished, JSON.stringify(content, null, 2));
    renameSync(unfinished, join(this.config, name));
  }

  async start() {
    this.port ||= await freePort();
    const environment = { PATH: process.env.PATH, HOME: this.home };
    const listen = `127.0.0.1:${this.port}`;
    this.process = spawn(this.binary, ["serve", "--listen", listen, "--config", this.config, "--data", this.data], { env: environment, stdio: ["ignore", "pipe", "pipe"] });
    this.ended = new Promise((resolve) => { this.process.once("exit", (code, signal) => resolve({ code, signal })); });
    for (const stream of [this.process.stdout, this.process.stderr]) stream.on("data", (data) => { this.said += data; });
    const begin = Date.now();
    const note = join(this.data, "daemon.json");
    for (;;) {
      const found = JSON.parse(contentOf(note) ?? "null");
      if (found?.pid === this.process.pid) {
        this.url = found.url;
        this.token = readFileSync(join(this.data, "token"), "utf8").trim();
        return;
      }
      if (this.process.exitCode !== null || this.process.signalCode !== null || Date.now() - begin > PATIENCE_MS) throw new Error(`the daemon is not ready:\n${this.said}`);
      await new Promise((resolve) => { setTimeout(resolve, 20); });
    }
  }

  async kill(signal = "SIGKILL") {
    this.process?.kill(signal);
    return this.ended;
  }

  /** Returns the API's answer to a GET request with the token. */
  async get(path) {
    const response = await fetch(this.url + path, { headers: { Authorization: `Bearer ${this.token}` } });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  /** Sends a POST request without a body, such as a request to pause an agent. Returns the API's answer. */
  async post(path) {
    const response = await fetch(this.url + path, { method: "POST", headers: { Authorization: `Bearer ${this.token}` } });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  /**
   * Sends a message of the user to the agent `root`, through the API, as another program would. `more` has further
   * fields of the message.
   */
  async write(text, more = {}) {
    const headers = { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" };
    const response = await fetch(`${this.url}/api/messages`, { method: "POST", headers, body: JSON.stringify({ to: "root", text, ...more }) });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return response.json();
  }

  /**
   * Answers the daemon's question to the user whether an agent may make a tool call. Sends the answer through the API,
   * as another program would.
   */
  async answer(approval, answer) {
    const headers = { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" };
    const response = await fetch(`${this.url}/api/approvals/${approval}`, { method: "POST", headers, body: JSON.stringify(answer) });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  }

  /** Returns all events with a number above `after`. */
  async events(after = 0) {
    const all = [];
    for (;;) {
      const { events } = await this.get(`/api/events?after=${all.at(-1)?.seq ?? after}&limit=1000`);
      all.push(...events);
      if (events.length < 1000) return all;
    }
  }

  remove() {
    rmSync(this.home, { recursive: true, force: true });
  }
}

/**
 * Runs `plays` on a daemon of its own. `app` and `services` are the content of the daemon's configuration. Without
 * `services`, the models are rehearsals. At the end, this function closes `model`.
 */
export async function withDaemon(binary, { name, app = {}, services = null, model = null }, plays) {
  const daemon = new Daemon(binary);
  try {
    daemon.configure("app.json", { discover: false, language: "zh", ...app });
    if (services) daemon.configure("llmservices.json", { services });
    await daemon.start();
    await plays(daemon);
  } catch (error) {
    error.message += `\nthe log of the daemon of ${name}:\n${daemon.said.slice(-2000)}`;
    throw error;
  } finally {
    model?.close();
    await daemon.kill();
    daemon.remove();
  }
}
