// Tests the unmodified OpenAI client for JavaScript with a society: chat, streaming, a picture, errors.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import OpenAI from "openai";

const { POLITY_URL: url, POLITY_TOKEN: apiKey, POLITY_PICTURE: picture } = process.env;
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, timeout: 120_000 });
const run = randomUUID().slice(0, 8);
const user = (content) => ({ role: "user", content });
const model = "polity";

// Models.
const models = [];
for await (const one of client.models.list()) models.push(one.id);
assert(models.includes("polity"), models.join());
assert.equal((await client.models.retrieve("polity")).object, "model");

// Chat. The second request of a conversation continues the same task.
const question = user(`介绍一下你自己 ${run}`);
const first = await client.chat.completions.create({ model, messages: [question] }).withResponse();
const [choice] = first.data.choices;
assert.equal(choice.finish_reason, "stop");
assert.equal(choice.logprobs, null);
assert.equal(choice.message.refusal, null);
assert(choice.message.content);
assert(first.data.usage.total_tokens > 0);
const task = first.response.headers.get("x-polity-task");
const messages = [question, choice.message, user("再说一遍")];
const second = await client.chat.completions.create({ model, messages }).withResponse();
assert.equal(second.response.headers.get("x-polity-task"), task);

// Streaming.
let [text, reasoning, usage, finish] = ["", "", null, null];
const stream = await client.chat.completions.create({
  model,
  messages: [user(`流式 ${run}`)],
  stream: true,
  stream_options: { include_usage: true },
});
for await (const chunk of stream) {
  usage = chunk.usage ?? usage;
  for (const { delta, finish_reason } of chunk.choices) {
    text += delta.content ?? "";
    reasoning += delta.reasoning_content ?? "";
    finish = finish_reason ?? finish;
  }
}
assert(text);
assert.match(reasoning, /root/);
assert.equal(finish, "stop");
assert(usage.total_tokens > 0);

// The client's helper function that puts the pieces of a stream together.
const helper = client.chat.completions.stream({ model, messages: [user(`帮手 ${run}`)] });
assert(await helper.finalContent());

// A picture. Its bytes must reach a model with vision.
const data = `data:image/png;base64,${readFileSync(picture).toString("base64")}`;
const shown = await client.chat.completions.create({
  model,
  messages: [user([{ type: "text", text: `看看这张图片 ${run}` }, { type: "image_url", image_url: { url: data } }])],
});
assert.match(shown.choices[0].message.content, /480 × 270/);

// Errors.
const ask = (fields) => client.chat.completions.create({ model, messages: [user(`x ${run}`)], ...fields });
await assert.rejects(ask({ model: "gpt-4o" }), (error) => error instanceof OpenAI.NotFoundError && error.code === "model_not_found");
await assert.rejects(ask({ n: 2 }), (error) => error instanceof OpenAI.BadRequestError && error.param === "n");
await assert.rejects(
  ask({ messages: [user([{ type: "image_url", image_url: { url: "https://example.com/cat.png" } }])] }),
  OpenAI.BadRequestError,
);
const stranger = new OpenAI({ baseURL: `${url}/v1`, apiKey: "wrong", maxRetries: 0 });
await assert.rejects(stranger.models.retrieve("polity"), OpenAI.AuthenticationError);
console.log("ok");
