// A chat model that asks the user one question, and then accepts any answer.

import { createServer } from "node:http";

export const QUESTION = "五月的还是六月的？";
export const CONTENT = "好的，就用它。";

/** Starts the model's server; `url` is the `baseURL` for `llmservices.json`. */
export async function asker() {
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    const { messages } = JSON.parse(text);
    const asked = messages.some((message) => message.tool_calls?.length > 0);
    const last = messages.at(-1);
    const message = asked
      ? { role: "assistant", content: last.role === "tool" ? "我在等答复。" : CONTENT }
      : { role: "assistant", content: null, tool_calls: [{ id: "call00001", type: "function", function: { name: "send_message", arguments: JSON.stringify({ to: "user", payload: { message_type: "collaboration_request", text: QUESTION } }) } }] };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ id: "1", object: "chat.completion", created: 1, model: "asker", choices: [{ index: 0, message, finish_reason: asked ? "stop" : "tool_calls" }], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } }));
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
