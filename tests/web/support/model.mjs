// The server of a scripted chat model, which answers whole requests. `streamer.mjs` is a model that streams.

import { createServer } from "node:http";

/** Returns the text of a message. If the message has several parts, returns the parts as JSON. */
export function said(message) {
  return typeof message.content === "string" ? message.content : JSON.stringify(message.content);
}

/** Number of calls so far, from which each call gets an id of its own. */
let called = 0;

/** Returns the model's message that calls tools. Each call is a pair: the name of the tool and its arguments. */
export function calling(...calls) {
  const tool_calls = calls.map(([name, given]) => {
    called += 1;
    return { id: `call${String(called).padStart(5, "0")}`, type: "function", function: { name, arguments: JSON.stringify(given) } };
  });
  return { role: "assistant", content: null, tool_calls };
}

/** Returns the model's message that is a text. */
export function saying(content) {
  return { role: "assistant", content };
}

/** A script throws this error to make its server refuse a request. */
export class Fails extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * Starts the model's server. `script(messages, gone, request)` returns the model's message for a request, or a promise
 * for it. `gone` is aborted when the client gives up the request, and `request` is its whole body. In the result, `url`
 * is the `baseURL` for `llmservices.json`. `under` returns the number of requests that are at the server now. `most`
 * returns the largest value of this number so far.
 */
export async function chatModel(script) {
  let under = 0;
  let most = 0;
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    const body = JSON.parse(text);
    const { messages, model } = body;
    const gone = new AbortController();
    under += 1;
    most = Math.max(most, under);
    response.once("close", () => {
      under -= 1;
      gone.abort();
    });
    response.setHeader("content-type", "application/json");
    try {
      const message = await script(messages, gone.signal, body);
      const prompt_tokens = Math.round(text.length / 4);
      response.end(JSON.stringify({ id: "1", object: "chat.completion", created: 1, model, choices: [{ index: 0, message, finish_reason: message.tool_calls ? "tool_calls" : "stop" }], usage: { prompt_tokens, completion_tokens: 40, total_tokens: prompt_tokens + 40 } }));
    } catch (error) {
      response.writeHead(error instanceof Fails ? error.status : 500);
      response.end(JSON.stringify({ error: { message: error.message } }));
    }
  });
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    under: () => under,
    most: () => most,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Returns the declaration of a service whose model is at `url`, for `llmservices.json`. */
export function serviceAt(id, url, more = {}) {
  return { id, name: id, baseURL: url, model: id, dialect: { stream: false }, ...more };
}
