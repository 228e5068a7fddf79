// A chat model under foreign control. All texts and names that its agents choose are hostile.

import { Fails, calling, chatModel, said, saying, serviceAt } from "./model.mjs";
import { payloads } from "./payloads.mjs";

/** Number of agents that root hires with one answer of its model. */
const AT_ONCE = 20;
/** One of each `KINDS.length` agents: its server refuses, it asks before a call, its server is silent, and so on. */
const KINDS = ["fails", "writes", "hangs", "errs", ...Array(16).fill("says")];

/**
 * Returns how many of `count` agents are of this kind. "fails": the server refuses the request with a hostile reason.
 * "writes": the agent writes a file, and the person is asked first. "hangs": the server never answers. "errs": the
 * agent makes a call that is refused. "says": the agent answers.
 */
export const countOf = (kind, count) => Array.from({ length: count }, (_, at) => kindOf(at)).filter((one) => one === kind).length;

const kindOf = (at) => KINDS[at % KINDS.length];

/** Makes a text a name that the daemon accepts: without brackets, without invisible characters, and not too long. */
function nameFrom(text) {
  return [...text.replaceAll(/[\p{C}\p{Zl}\p{Zp}\u034f<>[\]]/gu, "").trim()].slice(0, 56).join("").trim();
}

/** Makes a text the name of a file: without slashes and control characters. */
export const fileNameFrom = (text) => text.toWellFormed().replaceAll(/[\p{Cc}/\\]/gu, "").trim().slice(0, 80);

/** Returns the hostile names of agents and roles. */
export const hostileNames = (outside) => [...new Set(payloads(outside).map(nameFrom))].filter((name) => name.length > 2);

/**
 * Starts the model's server. Root hires `count` agents, stores files, and asks the person. `services` are the services
 * for `llmservices.json`.
 */
export async function intruder(outside, count) {
  // The daemon refuses briefs and messages in which nothing is visible.
  const texts = payloads(outside).filter((text) => nameFrom(text) !== "").map((text) => text.toWellFormed());
  const names = hostileNames(outside);
  const text = (at) => texts[at % texts.length];
  const name = (at) => `${names[at % names.length]} ${at}`;

  const hire = (at) => ["spawn_agent_with_task", {
    name: name(at + 7),
    role: {
      name: name(at), rolePrompt: `${text(at)}\n\nworker ${at}.`,
      requiredCapabilities: ["fails", "hangs"].includes(kindOf(at)) ? [kindOf(at)] : [],
    },
    taskBrief: { objective: text(at), constraints: [text(at + 4)], inputs: text(at + 5), outputs: text(at + 6), completion_criteria: text(at + 8) },
    initialMessage: { text: text(at + 9) },
  }];
  const ask = (at) => ["send_message", { to: "user", payload: { message_type: "collaboration_request", text: text(at) } }];
  const store = (at) => ["put_artifact", { type: text(at), content: text(at), meta: { filename: `${fileNameFrom(text(at))}.md`, mimeType: "text/markdown" } }];
  const rounds = [
    ...Array.from({ length: count / AT_ONCE }, (_, round) => Array.from({ length: AT_ONCE }, (_, at) => hire(round * AT_ONCE + at))),
    [1, 3, 5, 40].map(store), [0, 1, 25].map(ask),
  ];
  const write = (at) => ["str_replace_editor", { command: "create", path: `${fileNameFrom(text(at))}.md`, file_text: text(at) }];

  const model = await chatModel((messages) => {
    const worker = /worker (\d+)\./.exec(said(messages[0]));
    const made = messages.filter((message) => message.role === "tool").length;
    if (!worker) {
      const round = rounds.findIndex((_, at) => made < rounds.slice(0, at + 1).flat().length);
      return round < 0 ? saying(text(made)) : calling(...rounds[round]);
    }
    const at = Number(worker[1]);
    switch (kindOf(at)) {
      case "fails":
        throw new Fails(400, text(at / KINDS.length + 1));
      case "hangs":
        return new Promise(() => {});
      case "writes":
        return made > 0 ? saying(text(at)) : calling(write(at / KINDS.length | 0));
      case "errs":
        return made > 0 ? saying(text(at)) : calling(["send_message", { to: text(at), text: text(at) }]);
      default:
        return saying(text(at));
    }
  });
  return { ...model, services: [serviceAt("main", model.url, { name: text(1) }), ...["fails", "hangs"].map((one) => serviceAt(one, model.url, { capabilityTags: [one], maxConcurrentRequests: 1 }))] };
}
