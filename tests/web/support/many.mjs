// An invented society of any size, which gives the answers of the API without a server. The same size always gives
// the same society, so a test knows what to expect.

const STATES = ["idle", "thinking", "queued", "waiting", "idle", "parked", "paused", "idle", "ended", "waiting"];
const ROLES = ["组长", "reader", "analyst", "writer", "研究员", "reviewer", "translator"];
const BEGAN = Date.UTC(2026, 10, 21, 9, 0, 0);
const TASKS = ["看看这张图片", "Compare the three reports and write a summary", "整理会议录音"];

export function many({ agents: agentCount, events: eventCount, asOf = eventCount }) {
  const idOf = (at) => (at === 0 ? "root" : `agent-${at.toString(36).padStart(4, "0")}`);
  const usage = (at) => ({ calls: at % 17, promptTokens: at * 731 % 90000, completionTokens: at * 97 % 8000, cost: (at % 40) / 100 });

  function agent(at) {
    const state = at === 0 ? "waiting" : STATES[at % STATES.length];
    return {
      id: idOf(at), role: at === 0 ? "root" : ROLES[at % ROLES.length], depth: at === 0 ? 0 : Math.ceil(Math.log(at + 1) / Math.log(6)),
      ...(at === 0 ? {} : { parent: idOf(Math.floor((at - 1) / 6)), task: `t${at % 3}` }), state,
      service: at % 3 === 0 ? "multimodal" : "local", model: at % 3 === 0 ? "qwen3-vl:8b" : "qwen3:4b",
      capabilities: { input: at % 3 === 0 ? ["text", "vision"] : ["text"], output: ["text", "tool_calling"] },
      waiting: state === "queued" ? 1 + (at % 4) : 0, waitsFor: state === "waiting" ? (at % 7 === 3 ? ["user"] : [idOf(at * 6 + 1)]) : [],
      createdAt: BEGAN + at * 1000, ...(state === "ended" ? { endedAt: BEGAN + at * 2000 } : {}), usage: usage(at),
    };
  }

  const user = { id: "user", role: "user", depth: 0, state: "idle", waiting: 0, waitsFor: [], createdAt: 0, usage: usage(0) };
  const agents = [user, ...Array.from({ length: agentCount }, (_, at) => agent(at))];

  function entry(seq) {
    const someone = idOf(seq * 7 % agentCount);
    const other = idOf(seq * 13 % agentCount);
    const common = { seq, at: BEGAN + seq * 400, task: `t${seq % 3}` };
    switch (seq % 9) {
      case 0:
        return { ...common, event: "message_accepted", message: `m${String(seq).padStart(9, "0")}`, from: someone, to: other, type: "task_assignment", text: `请阅读附件并报告事实（第 ${seq} 号）。Read what is attached, name each fact with where it stands, and say what you could not read.`, attachments: [`art${seq % 50}`], finality: "final" };
      case 1:
        return { ...common, event: "turn_started", agent: someone, message: `m${String(seq - 1).padStart(9, "0")}` };
      case 2:
        return { ...common, event: "model_answered", agent: someone, service: "multimodal", model: "qwen3-vl:8b", revision: 3, usage: { promptTokens: 1500 + seq % 900, completionTokens: seq % 300, source: "reported" }, attempts: 1 + (seq % 4 === 2 ? 1 : 0), content: [{ artifact: `art${seq % 50}`, routing: ["image_url", "described", "text", "file", "input_audio"][seq % 5] }] };
      case 3:
        return { ...common, event: "tool_called", agent: someone, tool: "send_message", ...(seq % 4 === 3 ? { error: "unknown_contact" } : {}) };
      case 4:
        return { ...common, event: "message_accepted", message: `m${String(seq).padStart(9, "0")}`, from: someone, to: seq % 5 === 4 ? "user" : other, type: "general", text: `Report ${seq} is there: picture.png is 480 × 270 pixels.`, inReplyTo: `m${String(seq - 4).padStart(9, "0")}`, finality: seq % 2 ? "interim" : "final" };
      case 5:
        return { ...common, event: "artifact_stored", artifact: `art${seq % 50}`, owner: someone, kind: ["text", "image"][seq % 2], mimeType: seq % 2 ? "image/png" : "text/markdown", size: 930 + seq, filename: seq % 2 ? "picture.png" : "report.md" };
      case 6:
        return { ...common, event: "contact_added", owner: someone, agent: other, source: "introduction", introducedBy: "root" };
      case 7:
        return seq % 4 === 3 ? { ...common, event: "model_failed", agent: someone, service: "local", attempt: 2, kind: "rate_limited", reason: "429 Too Many Requests", next: "retry" } : { ...common, event: "agent_created", agent: someone, parent: other, role: "r1", objective: "Read what is attached and name the facts" };
      default:
        return { ...common, event: "turn_ended", agent: someone };
    }
  }

  const holds = (parameters, found) =>
    (!parameters.get("task") || !found.task || found.task === parameters.get("task"))
    && (!parameters.get("kind") || parameters.get("kind").split(",").includes(found.event))
    && (!parameters.get("agent") || [found.agent, found.to, found.owner, found.from].includes(parameters.get("agent")));

  function events(parameters) {
    const limit = Number(parameters.get("limit") ?? 100);
    const found = [];
    if (parameters.has("before")) {
      for (let seq = Math.min(eventCount, Number(parameters.get("before")) - 1); seq > 0 && found.length < limit; seq -= 1) {
        const one = entry(seq);
        if (holds(parameters, one)) found.unshift(one);
      }
    } else {
      for (let seq = Number(parameters.get("after") ?? 0) + 1; seq <= eventCount && found.length < limit; seq += 1) {
        const one = entry(seq);
        if (holds(parameters, one)) found.push(one);
      }
    }
    return { events: found, next: found.at(-1)?.seq ?? 0, oldest: 1 };
  }

  const artifact = (at) => ({
    id: `art${at}`, reference: `artifact:art${at}`, kind: at % 2 ? "image" : "text", mimeType: at % 2 ? "image/png" : "text/markdown",
    filename: at % 2 ? `picture-${at}.png` : `report-${at}.md`, size: 930 + at * 377, task: `t${at % 3}`, owner: idOf(at), createdAt: BEGAN + at * 1000, meta: {},
  });

  const message = (seq) => {
    const { event: _event, message: id, type, ...rest } = entry(seq);
    return { id, type, ...rest, fromRole: "", attachments: [], expects: seq % 5 === 4 ? "nothing" : "answer", state: "done", createdAt: rest.at };
  };

  const tasks = TASKS.map((title, at) => ({ id: `t${at}`, title, state: at === 0 ? "open" : "idle", ...(at ? { outcome: at === 1 ? "answered" : "awaits_user" } : {}), createdAt: BEGAN + at * 60000, agents: Math.floor(agentCount / 3), usage: usage(at * 999), waitingForUser: at === 2 ? 1 : 0 }));

  const service = (id, model, input, state) => ({
    id, name: id, model, baseURL: "http://127.0.0.1:11434/v1", capabilities: { input, output: ["text", "tool_calling"] }, callsTools: true, capabilityTags: ["多模态"],
    contextWindow: 32768, maxConcurrent: 2, isDefault: id === "local", keySet: id !== "local", agents: Math.floor(agentCount / 2), state, usage: usage(4321), price: { input: 0.25, output: 2 },
  });

  /** Returns the JSON answer to a request, or undefined if the API has no such route. */
  function answer(method, url) {
    const { pathname, searchParams } = new URL(url, "http://localhost");
    const [, , kind, id, part] = pathname.split("/");
    switch (`${kind}${id ? "/id" : ""}${part ? `/${part}` : ""}`) {
      case "agents": {
        const from = Number(searchParams.get("after") ?? 0);
        const limit = Number(searchParams.get("limit") ?? 100);
        return { agents: agents.slice(from, from + limit), ...(from + limit < agents.length ? { next: String(from + limit) } : {}), asOf };
      }
      case "agents/id": {
        const found = agents.find((one) => one.id === id);
        return found && { ...found, contacts: agents.slice(1, 5).map((one, at) => ({ agent: one.id, role: one.role, source: ["parent", "child", "introduction", "preset"][at], ...(at === 2 ? { introducedBy: "root" } : {}), since: BEGAN, standing: "active", capabilities: one.capabilities })), tasks: ["t0", "t1"], holds: [], children: [idOf(3), idOf(4)], rolePrompt: "You read pictures and report what is there.", brief: { objective: "Read what is attached and name the facts", constraints: ["Say what you could not read"], inputs: "artifact:art1", outputs: "a list of facts", completion_criteria: "every attachment is named" } };
      }
      case "agents/id/conversation":
        return { agent: id, task: "t0", entries: [{ seq: 1, turn: 1, at: BEGAN, record: { record: "heard", message: { ...message(9), attachments: [artifact(1)] } } }, { seq: 2, turn: 1, at: BEGAN + 900, record: { record: "replied", text: "I have a look.", calls: [{ id: "c1", name: "get_artifact", arguments: { object: { ref: "artifact:art1" } } }] } }, { seq: 3, turn: 1, at: BEGAN + 950, record: { record: "tool_finished", call: "c1", result: { artifact: { artifact: "art1", offset: 0, limit: null } } } }] };
      case "agents/id/request":
        return { agent: id, task: "t0", service: "multimodal", model: "qwen3-vl:8b", revision: 3, estimatedTokens: 1520, shown: [{ artifact: "art1", routing: "image_url" }], request: { model: "qwen3-vl:8b", messages: [{ role: "system", content: "你是……" }, { role: "user", content: [{ type: "text", text: "【来自用户的消息】" }, { type: "image_url", image_url: { url: "data:image/png;base64,<930 bytes>" } }] }] } };
      case "tasks":
        return { tasks };
      case "messages":
        return { messages: searchParams.get("unshown") ? [] : searchParams.get("to") === "user"
          ? [{ ...message(4), from: idOf(3), to: "user", id: "mq", expects: "answer", text: "Which of the two reports counts, the one of May or that of June?", task: "t2" }]
          : [4, 49, 94].map((seq, at) => ({ ...message(seq), from: at === 2 ? "user" : "root", to: at === 2 ? "root" : "user", expects: "nothing", text: at === 2 ? "看看这张图片" : "The picture is 480 × 270 pixels and shows a bar chart of three months.\n\nMay is highest.", attachments: at === 1 ? [] : [artifact(1)] })) };
      case "messages/id":
        return message(9);
      case "artifacts":
        return { artifacts: Array.from({ length: 24 }, (_, at) => artifact(at)) };
      case "artifacts/id":
        return artifact(Number(id.slice(3)));
      case "services":
        return [service("local", "qwen3:4b", ["text"], { inFlight: 1, waiting: 3, circuit: "closed" }), service("multimodal", "qwen3-vl:8b", ["text", "vision"], { inFlight: 0, waiting: 0, circuit: "open", lastError: "server unreachable: connection refused" })];
      case "config":
        return { revision: 3, directory: "/home/you/polity/config", origin: "llmservices.json", language: "zh", problems: [], services: ["local", "multimodal"], defaultService: "local", limits: { maxToolRounds: 200, maxModelCallsPerTask: 2000, maxCostPerTask: null } };
      case "approvals":
        return { approvals: [] };
      case "permissions":
        return [];
      case "events":
        return events(searchParams);
      default:
        return method === "POST" ? { agents: [] } : undefined;
    }
  }

  return { answer, entry };
}
