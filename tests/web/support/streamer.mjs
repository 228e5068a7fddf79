// A chat model that streams an answer in pieces. It sends the end of the answer only when the test calls `finish`.

import { createServer } from "node:http";

export const REASONING = "先想一想。";
export const PIECES = ["第一段。\n", "第二段，", "第三段。"];

/** Starts the model's server. `url` is the `baseURL` for `llmservices.json`. `finish` ends all answers. */
export async function streamer() {
  let finish;
  const finished = new Promise((resolve) => { finish = resolve; });
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    const say = (delta, reason = null) => response.write(`data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "streamer", choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`);
    response.writeHead(200, { "content-type": "text/event-stream" });
    say({ role: "assistant", reasoning_content: REASONING });
    for (const content of PIECES) say({ content });
    await finished;
    say({}, "stop");
    response.end("data: [DONE]\n\n");
  });
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    finish,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
