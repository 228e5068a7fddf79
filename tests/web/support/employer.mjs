// A chat model that plays root and the workers that root hires, one for each objective. Root gives its report when it
// has heard from all of them. The server holds each request of a worker until the test lets it go.

import { calling, chatModel, said, saying } from "./model.mjs";

/**
 * Starts the model's server. `role` is the name of the workers' role, and `done` is the answer of each worker. Root
 * says `waiting` until it has heard all answers, and then `report`.
 */
export async function employer({ role, objectives, done, waiting, report }) {
  /** A text that only the system prompts of workers contain. */
  const prompt = `你是一名${role}。`;
  let held = [];
  let open = false;

  function asRoot(messages) {
    const results = messages.filter((message) => message.role === "tool");
    if (results.length === 0) return calling(["create_role", { name: role, rolePrompt: prompt }]);
    if (results.length === 1) {
      const roleId = JSON.parse(said(results[0])).id;
      return calling(...objectives.map((objective) => ["spawn_agent_with_task", {
        roleId,
        taskBrief: { objective, constraints: [], inputs: "无", outputs: "一句话", completion_criteria: "说做完了" },
        initialMessage: "请开始。",
      }]));
    }
    const heard = messages.filter((message) => message.role === "user" && said(message).includes(done));
    return saying(heard.length < objectives.length ? waiting : report);
  }

  const model = await chatModel(async (messages, gone) => {
    if (!said(messages[0]).includes(prompt)) return asRoot(messages);
    const one = { agent: /agentId=(\S+)/.exec(said(messages[0]))[1] };
    if (!open) {
      await new Promise((resolve) => {
        one.letGo = resolve;
        held.push(one);
        gone.addEventListener("abort", () => { held = held.filter((other) => other !== one); });
      });
    }
    return saying(done);
  });
  return {
    ...model,
    /** Returns the agents whose requests the server holds. */
    held: () => held.map((one) => one.agent),
    /** Lets the oldest held request go. */
    letGo() { held.shift()?.letGo(); },
    /** Lets all requests go, and holds no further one. */
    release() {
      open = true;
      for (const one of held.splice(0)) one.letGo();
    },
  };
}
