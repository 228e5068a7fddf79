// A chat model that plays root and a clerk. Root hires the clerk and passes on the clerk's answer. The clerk answers
// when the test calls `release`.

import { createServer } from "node:http";

export const OBJECTIVE = "数一数这本书有多少页";
export const WAITING = "请稍等。";
export const COUNTED = "一共 312 页";

/** A text that only the system prompt of the clerk contains. */
const CLERK = "你是一名书记员。";

/**
 * Starts the model's server. `release` lets the clerk answer. `isAsked` tells whether a request for the clerk has
 * arrived.
 */
export async function hirer() {
  let release;
  const released = new Promise((resolve) => { release = resolve; });
  let asked = false;
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    const { messages } = JSON.parse(text);
    let message;
    if (said(messages[0]).includes(CLERK)) {
      asked = true;
      await released;
      message = { role: "assistant", content: COUNTED };
    } else {
      message = asRoot(messages);
    }
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ id: "1", object: "chat.completion", created: 1, model: "hirer", choices: [{ index: 0, message, finish_reason: message.tool_calls ? "tool_calls" : "stop" }], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } }));
  });
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    release,
    isAsked: () => asked,
    close() {
      release();
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
  if (results.length === 0) return calling("call00001", "create_role", { name: "书记员", rolePrompt: CLERK });
  if (results.length === 1) {
    return calling("call00002", "spawn_agent_with_task", {
      roleId: JSON.parse(said(results[0])).id,
      taskBrief: { objective: OBJECTIVE, constraints: [], inputs: "这本书", outputs: "一个数", completion_criteria: "说出页数" },
      initialMessage: "请数页数。",
    });
  }
  const heard = messages.some((message) => message.role === "user" && said(message).includes(COUNTED));
  return { role: "assistant", content: heard ? `书记员说：${COUNTED}。` : WAITING };
}

function calling(id, name, values) {
  return { role: "assistant", content: null, tool_calls: [{ id, type: "function", function: { name, arguments: JSON.stringify(values) } }] };
}
