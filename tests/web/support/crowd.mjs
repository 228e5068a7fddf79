// A chat model that plays root and its 33 workers. Root hires all workers at once and gives a report at the end. The
// server holds each request of a worker until the test lets it go.

import { createServer } from "node:http";

export const WORKERS = 33;
export const REPORT = "# 报告\n\n| 工人 | 结果 |\n|---|---|\n| 全部 | 完成 |\n\n- 没有遗漏\n- 没有重复\n\n```js\nconst done = 33;\n```\n";

/** A text that only the system prompts of workers contain. */
const WORKER = "你是一名工人。";

/** Starts the model's server. `most` returns the largest number of requests that were in progress at the same time. */
export async function crowd() {
  const held = [];
  let most = 0;
  let under = 0;
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    const { messages } = JSON.parse(text);
    under += 1;
    most = Math.max(most, under);
    let message;
    if (said(messages[0]).includes(WORKER)) {
      const agent = /agentId=(\S+)/.exec(said(messages[0]))[1];
      await new Promise((resolve) => { held.push({ agent, resolve }); });
      message = { role: "assistant", content: "做完了" };
    } else {
      message = asRoot(messages);
    }
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ id: "1", object: "chat.completion", created: 1, model: "crowd", choices: [{ index: 0, message, finish_reason: message.tool_calls ? "tool_calls" : "stop" }], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } }), () => { under -= 1; });
  });
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    /** Returns the agents whose requests the server holds. */
    held: () => held.map((one) => one.agent),
    most: () => most,
    letGo() { held.shift()?.resolve(); },
    close() {
      for (const one of held) one.resolve();
      server.closeAllConnections();
      server.close();
    },
  };
}

function said(message) {
  return typeof message.content === "string" ? message.content : JSON.stringify(message.content);
}

function asRoot(messages) {
  const results = messages.filter((message) => message.role === "tool");
  if (results.length === 0) return calling([["create_role", { name: "工人", rolePrompt: WORKER }]]);
  if (results.length === 1) {
    const roleId = JSON.parse(said(results[0])).id;
    return calling(Array.from({ length: WORKERS }, (_, number) => ["spawn_agent_with_task", {
      roleId,
      taskBrief: { objective: `第 ${number + 1} 份工作`, constraints: [], inputs: "无", outputs: "一句话", completion_criteria: "说做完了" },
      initialMessage: "请开始。",
    }]));
  }
  const heard = messages.filter((message) => message.role === "user" && said(message).includes("做完了"));
  return { role: "assistant", content: heard.length < WORKERS ? "" : REPORT };
}

function calling(calls) {
  const tool_calls = calls.map(([name, given], at) => ({ id: `call${String(at).padStart(5, "0")}`, type: "function", function: { name, arguments: JSON.stringify(given) } }));
  return { role: "assistant", content: null, tool_calls };
}
