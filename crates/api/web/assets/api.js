// The HTTP API, as far as the page needs it. Each failure is an `ApiError`; where the session is gone the page is left,
// because the server shows the form for the token there.

const PATIENCE_MS = 20_000;

/** Why a request brought nothing. `status` is 0 where no answer came at all. */
export class ApiError extends Error {
  constructor(status, code, detail) {
    super(detail);
    Object.assign(this, { status, code });
  }
}

/** Says that an answer is no success. `leave` is called where there is no session any more. */
export async function refusal(response, leave) {
  if (response.status === 401) leave();
  const problem = await response.json().catch(() => ({}));
  const detail = problem.detail || problem.title || `HTTP ${response.status}`;
  return new ApiError(response.status, problem.error ?? "unknown", detail);
}

/** A path with what is known of its parameters; lists become several of the same name. */
export function address(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (Array.isArray(value)) for (const one of value) query.append(name, one);
    else if (value !== undefined && value !== null && value !== "" && value !== false) query.append(name, value);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** Puts ids into a path: `` path`/api/agents/${id}` ``. */
export function path(parts, ...ids) {
  return parts.reduce((all, part, at) => all + encodeURIComponent(ids[at - 1]) + part);
}

/** The routes. `leave` is called when the session is gone. */
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

  /** All agents, page by page; each carries up to which event it is known. */
  async function agents() {
    const all = new Map();
    let asOf = Infinity;
    let after;
    do {
      const page = await get("/api/agents", { ended: true, limit: 1000, after });
      asOf = Math.min(asOf, page.asOf);
      for (const agent of page.agents) all.set(agent.id, { ...agent, asOf: page.asOf });
      after = page.next;
    } while (after);
    return { agents: [...all.values()], asOf };
  }

  return {
    agents,
    agent: (id) => get(path`/api/agents/${id}`),
    conversation: (id, task, before) => get(path`/api/agents/${id}/conversation`, { task, before, limit: 60 }),
    request: (id, task) => get(path`/api/agents/${id}/request`, { task }),
    stopTask: (id) => post(path`/api/tasks/${id}/stop`),
    steer: (id, verb, scope) => post(address(path`/api/agents/${id}/` + verb, { scope })),
    tasks: (after) => get("/api/tasks", { limit: 200, after }),
    messages: (filter) => get("/api/messages", filter),
    message: (id) => get(path`/api/messages/${id}`),
    shown: (id) => post(path`/api/messages/${id}/shown`),
    artifacts: (filter) => get("/api/artifacts", filter),
    artifact: (id) => get(path`/api/artifacts/${id}`),
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
    /** The beginning of a text artifact, and whether there is more. */
    beginning: async (id, bytes) => {
      const response = await send("GET", contentOf(id), { headers: { Accept: "*/*", Range: `bytes=0-${bytes - 1}` } });
      const buffer = await response.arrayBuffer();
      const whole = response.status === 200 || Number(response.headers.get("Content-Range")?.split("/")[1]) <= bytes;
      // A character may be cut in the middle; what is left of it is not shown.
      return { text: new TextDecoder("utf-8").decode(buffer, { stream: !whole }), whole };
    },
  };
}

/** Where the bytes of an artifact are. */
export function contentOf(id) {
  return path`/api/artifacts/${id}/content`;
}
