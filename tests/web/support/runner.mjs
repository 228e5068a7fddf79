// A chat model. As root, it makes one call after another, and then says that it is done. As any other agent, it says at
// once that it is done.

import { createServer } from "node:http";

export const DONE = "都跑完了。";

/** Starts the model's server; `url` is the `baseURL` for `llmservices.json`. Each call is `[tool, arguments]`. */
export async function runner(calls) {
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    const { messages } = JSON.parse(text);
    const made = messages.filter((message) => message.role === "tool").length;
    const [tool, given] = (JSON.stringify(messages[0]).includes("agentId=root") && calls[made]) || [];
    const call = tool && { id: `call${String(made).padStart(5, "0")}`, type: "function", function: { name: tool, arguments: JSON.stringify(given) } };
    const message = { role: "assistant", content: call ? null : DONE, ...(call ? { tool_calls: [call] } : {}) };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ id: "1", object: "chat.completion", created: 1, model: "runner", choices: [{ index: 0, message, finish_reason: call ? "tool_calls" : "stop" }], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } }));
  });
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
