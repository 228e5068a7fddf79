// The part of the HTTP API that the page uses. Every failure becomes an `ApiError`. When the session has ended, the
// page loads `/`, where the server shows the form for the token.

import { CALL_KINDS } from "./calls.js";

const PATIENCE_MS = 20_000;

/** The failure of a request. `status` is the HTTP status, or 0 if the server did not answer. */
export class ApiError extends Error {
  constructor(status, code, detail) {
    super(detail);
    Object.assign(this, { status, code });
  }
}

/** Turns an unsuccessful answer into an error. If the session has ended, calls `leave`, which loads the login form. */
export async function refusal(response, leave) {
  if (response.status === 401) leave();
  const problem = await response.json().catch(() => ({}));
  const detail = problem.detail || problem.title || `HTTP ${response.status}`;
  return new ApiError(response.status, problem.error ?? "unknown", detail);
}

/**
 * Adds query parameters to a path. Parameters with empty values are left out. A list becomes several parameters of
 * the same name.
 */
export function address(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (Array.isArray(value)) for (const one of value) query.append(name, one);
    else if (value !== undefined && value !== null && value !== "" && value !== false) query.append(name, value);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** Cuts a list of ids into parts, so that no address becomes too long. */
function parts(ids) {
  return Array.from({ length: Math.ceil(ids.length / 200) }, (_, part) => ids.slice(200 * part, 200 * (part + 1)));
}

/** Inserts ids into a path, percent-encoded: `` path`/api/agents/${id}` ``. */
export function path(parts, ...ids) {
  return parts.reduce((all, part, at) => all + encodeURIComponent(ids[at - 1]) + part);
}

/**
 * Returns an object with a function for each route. When the session has ended, these functions call `leave`, which
 * loads the login form.
 */
export function connect(leave) {
  async function send(method, target, options = {}) {
    let response;
    try {
      response = await fetch(target, {
        method,
        headers: { Accept: "application/json", ...options.headers },
        body: options.body,
        signal: options.signal ?? AbortSignal.timeout(options.patience ?? PATIENCE_MS),
      });
    } catch (error) {
      throw new ApiError(0, "unreachable", error.message);
    }
    if (!response.ok) throw await refusal(response, leave);
    return response;
  }
  const get = async (target, parameters) => (await send("GET", address(target, parameters))).json();
  const post = async (target, options) => {
    const text = await (await send("POST", target, options)).text();
    return text === "" ? null : JSON.parse(text);
  };

  /**
   * Reads all agents, page by page, or only the agents with these ids. Every event up to the number `asOf` has already
   * changed the data of the agents.
   */
  async function agents(ids) {
    const all = new Map();
    let asOf = Infinity;
    for (const some of ids ? parts(ids) : [undefined]) {
      let after;
      do {
        const page = await get("/api/agents", { ids: some?.join(","), ended: true, limit: 1000, after });
        asOf = Math.min(asOf, page.asOf);
        for (const agent of page.agents) all.set(agent.id, { ...agent, asOf: page.asOf });
        after = page.next;
      } while (after);
    }
    return { agents: [...all.values()], asOf };
  }

  return {
    agents,
    agent: (id) => get(path`/api/agents/${id}`),
    conversation: (id, task, before) => get(path`/api/agents/${id}/conversation`, { task, before, limit: 60 }),
    request: (id, task) => get(path`/api/agents/${id}/request`, { task }),
    sent: (number) => get(path`/api/sent/${number}`),
    why: (id, filter) => get(path`/api/why/${id}`, filter),
    tryService: (id) => post(path`/api/services/${id}/try`),
    patchRole: (id, changes) => send("PATCH", path`/api/roles/${id}`, {
      headers: { "Content-Type": "application/json" }, body: JSON.stringify(changes),
    }),
    fork: (id, fork, key) => post(path`/api/tasks/${id}/fork`, {
      headers: { "Content-Type": "application/json", "Idempotency-Key": key }, body: JSON.stringify(fork),
    }),
    stopTask: (id) => post(path`/api/tasks/${id}/stop`),
    steer: (id, verb, scope) => post(address(path`/api/agents/${id}/` + verb, { scope })),
    task: (id) => get(path`/api/tasks/${id}`),
    tasks: (after, state) => get("/api/tasks", { limit: 200, after, state }),
    /** Reads all questions that wait for an answer, oldest first. */
    openApprovals: async () => {
      const all = [];
      let after;
      do {
        const page = await get("/api/approvals", { state: "open", limit: 200, after });
        all.push(...page.approvals);
        after = page.next;
      } while (after);
      return all.reverse();
    },
    answerApproval: (id, answer, reason) => post(path`/api/approvals/${id}`, {
      headers: { "Content-Type": "application/json" }, body: JSON.stringify({ answer, reason }),
    }),
    workspace: (id, agent, at) => get(path`/api/tasks/${id}/workspace`, { agent, path: at }),
    changes: (id, commit) => get(path`/api/tasks/${id}/changes`, { commit }),
    /** Reads the newest events about calls. If `agent` is given, reads only the calls of this agent. */
    calls: async (agent) => (await get("/api/events", { agent, kind: CALL_KINDS.join(","), before: Number.MAX_SAFE_INTEGER, limit: 500 })).events,
    /** Reads the running commands of an agent. */
    commands: (agent) => get("/api/commands", { agent }),
    permissions: () => get("/api/permissions"),
    removePermission: (id) => send("DELETE", path`/api/permissions/${id}`),
    search: (filter) => get("/api/search", filter),
    /** Reads the cards and the stuck items that the home page shows. */
    now: () => get("/api/now", { limit: 60 }),
    messages: (filter) => get("/api/messages", filter),
    message: (id) => get(path`/api/messages/${id}`),
    shown: (id) => post(path`/api/messages/${id}/shown`),
    artifacts: (filter) => get("/api/artifacts", filter),
    artifact: (id) => get(path`/api/artifacts/${id}`),
    uses: (id) => get(path`/api/artifacts/${id}/uses`),
    services: () => get("/api/services"),
    config: () => get("/api/config"),
    reload: () => post("/api/config/reload"),
    events: (filter) => get("/api/events", filter),
    write: (letter, key) => post("/api/messages", {
      headers: { "Content-Type": "application/json", "Idempotency-Key": key },
      body: JSON.stringify(letter),
    }),
    store: (file) => post(address("/api/artifacts", { filename: file.name }), {
      headers: { "Content-Type": file.type || "application/octet-stream" },
      body: file,
      patience: 600_000,
    }),
    /**
     * Reads the first bytes of a text artifact. In the result, `whole` is true if these bytes are the whole artifact.
     */
    beginning: async (id, bytes) => {
      const response = await send("GET", contentOf(id), { headers: { Accept: "*/*", Range: `bytes=0-${bytes - 1}` } });
      const buffer = await response.arrayBuffer();
      const whole = response.status === 200 || Number(response.headers.get("Content-Range")?.split("/")[1]) <= bytes;
      // The range may end in the middle of a character. The decoder then leaves this character out.
      return { text: new TextDecoder("utf-8").decode(buffer, { stream: !whole }), whole };
    },
  };
}

/** Returns the path of the route that serves an artifact's bytes. */
export function contentOf(id) {
  return path`/api/artifacts/${id}/content`;
}

/** Returns the path of the route that serves an HTML page, an SVG picture or a PDF for a frame. */
export function pageOf(id) {
  return path`/api/artifacts/${id}/page`;
}
