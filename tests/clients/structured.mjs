// Tests structured output and responses with the unmodified OpenAI client, LangChain and the AI SDK.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createOpenAI } from "@ai-sdk/openai";
import { ChatOpenAI } from "@langchain/openai";
import { generateObject, generateText, streamText } from "ai";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const { POLITY_URL: url, POLITY_TOKEN: apiKey } = process.env;
const baseURL = `${url}/v1`;
const model = "polity";
// Makes a question unique, because the daemon recognises a repeated conversation as the same task.
const question = (text) => `${text} ${randomUUID().slice(0, 8)}`;
const City = z.object({
  city: z.string(),
  people: z.number().int(),
  river: z.string().nullable(),
  landmarks: z.array(z.object({ name: z.string(), kind: z.enum(["church", "tower"]) })),
});
const fits = (value) => assert.deepEqual(City.parse(value), value);

// OpenAI's client: `.parse()` on `/v1/chat/completions` and `/v1/responses`, and responses as a stream.
const client = new OpenAI({ baseURL, apiKey, timeout: 120_000 });
const completion = await client.chat.completions.parse({
  model,
  messages: [{ role: "user", content: question("介绍一座城市") }],
  response_format: zodResponseFormat(City, "city"),
});
fits(completion.choices[0].message.parsed);
const response = await client.responses.parse({
  model,
  input: question("介绍一座城市"),
  text: { format: zodTextFormat(City, "city") },
});
fits(response.output_parsed);
const more = await client.responses.create({ model, input: question("再说一点"), previous_response_id: response.id });
assert(more.output_text);
const stream = client.responses.stream({ model, input: question("流式") });
const events = new Set();
for await (const event of stream) events.add(event.type);
assert(events.has("response.reasoning_summary_text.delta") && events.has("response.output_text.delta"), [...events].join());
assert((await stream.finalResponse()).output_text);

// LangChain.
const chat = new ChatOpenAI({ model, apiKey, configuration: { baseURL } });
fits(await chat.withStructuredOutput(City, { method: "jsonSchema" }).invoke(question("介绍一座城市")));
// JSON mode guarantees an object, but no particular fields.
const anything = chat.withConfig({ response_format: { type: "json_object" } });
assert.equal(typeof JSON.parse((await anything.invoke(question("介绍一座城市"))).content), "object");

// The AI SDK, on `/v1/responses` and `/v1/chat/completions`.
globalThis.AI_SDK_LOG_WARNINGS = false;
const openai = createOpenAI({ baseURL, apiKey });
for (const of of [openai(model), openai.chat(model)]) {
  fits((await generateObject({ model: of, schema: City, prompt: question("介绍一座城市") })).object);
  assert((await generateText({ model: of, prompt: question("你好") })).text);
  let text = "";
  const streamed = streamText({ model: of, prompt: question("流式") });
  for await (const piece of streamed.textStream) text += piece;
  assert(text);
}
console.log("ok");
