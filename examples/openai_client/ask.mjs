// Asks polity a question with OpenAI's client for JavaScript, and then a second question in the same conversation.
// ask.py does the same in Python.
import assert from "node:assert/strict";
import OpenAI from "openai";

const { POLITY_URL, POLITY_TOKEN } = process.env;
const client = new OpenAI({ baseURL: `${POLITY_URL}/v1`, apiKey: POLITY_TOKEN, timeout: 3_600_000 });
const ask = async (messages) => {
  const { data, response } = await client.chat.completions.create({ model: "polity", messages }).withResponse();
  return { answer: data.choices[0].message, task: response.headers.get("x-polity-task") };
};

const question = { role: "user", content: "Introduce yourself to a reader of JavaScript." };
const first = await ask([question]);
const second = await ask([question, first.answer, { role: "user", content: "Say it again, shorter." }]);
console.log(`Two answers from task ${first.task}:\n${first.answer.content}\n\n${second.answer.content}`);

assert(first.answer.content && second.answer.content);
assert.equal(second.task, first.task, "the follow-up began another task");
