// Checks work with several tasks: forks, the task that the message box continues, and the list of tasks.

import assert from "node:assert/strict";
import { chatModel, said, saying, serviceAt } from "./support/model.mjs";
import { go, idle, row, send, showsAgent, until } from "./support/page.mjs";
import { withSociety } from "./support/society.mjs";

/** A chat model that names all colours that the person has told it, in their order. */
const painter = () => chatModel((messages) => {
  const heard = messages.filter((message) => message.role === "user").map(said).join("\n");
  return saying(`依次是：${[...heard.matchAll(/颜色是(\S)/g)].map((found) => found[1]).join("、")}。`);
});

/** Runs a society whose root shows in each answer which messages of the person it knows. */
export async function tasksOf(browser, binary, says) {
  const model = await painter();
  await withSociety(browser, binary, { name: "the tasks", services: [serviceAt("painter", model.url)], model }, async ({ daemon, page }) => {
    await forks(page, daemon, says);
  });
}

/** Returns the texts of the messages in a task between the person and the society, oldest first. */
async function textsIn(daemon, task) {
  const { messages } = await daemon.get(`/api/messages?with=user&order=newest&task=${task}`);
  return messages.map((message) => message.text).reverse();
}

/** Waits until the conversation shows exactly these texts. */
async function showsTexts(page, texts) {
  await until(`the conversation shows: ${texts.join(" ")}`, async () => {
    const shown = await page.locator(".messages .message").evaluateAll((all) => all.map((one) => one.querySelector(".prose, .markdown").textContent));
    return shown.length === texts.length && shown.every((text, at) => text === texts[at]);
  });
}

async function forks(page, daemon, says) {
  says("a fork from the middle of a task, with another text, gets another answer");
  await go(page, "conversation");
  const turns = ["颜色是红", "颜色是蓝", "颜色是黄"];
  const answers = ["依次是：红。", "依次是：红、蓝。", "依次是：红、蓝、黄。"];
  for (const [at, text] of turns.entries()) {
    await send(page, text);
    await page.locator(".message:not(.mine)", { hasText: answers[at] }).waitFor();
    await idle(daemon);
  }
  const { tasks: [original] } = await daemon.get("/api/tasks");
  const whole = turns.flatMap((text, at) => [text, answers[at]]);
  assert.deepEqual(await textsIn(daemon, original.id), whole);

  const detail = page.locator("aside.detail");
  await row(page, "root").click();
  await showsAgent(page, "root");
  await detail.locator("#tab-history").click();
  const forkable = detail.locator(".record-heard", { has: page.locator(".fork-here") });
  await until("each turn can be run again", async () => (await forkable.count()) === turns.length);
  await forkable.filter({ hasText: turns[1] }).locator(".fork-here").click();
  const field = page.locator("dialog.fork textarea");
  assert.equal(await field.inputValue(), turns[1]);
  await field.fill("颜色是绿");
  await page.locator("dialog.fork button.primary").click();
  const fork = await until("the fork is there", async () => (await daemon.get("/api/tasks")).tasks.find((one) => one.id !== original.id));
  await idle(daemon);
  // The view now shows the fork alone. Its root knows the first turn, but neither the second one nor the third one.
  const forked = [...whole.slice(0, 2), "颜色是绿", "依次是：红、绿。"];
  await showsTexts(page, forked);
  assert.deepEqual(await textsIn(daemon, fork.id), forked);
  await page.locator("aside.detail .detail-head button").last().click();
  await detail.waitFor({ state: "hidden" });

  says("the original task has kept its answers");
  await page.locator(".task-choice").selectOption(original.id);
  await showsTexts(page, whole);
  assert.deepEqual(await textsIn(daemon, original.id), whole);
  return { original: original.id, fork: fork.id };
}
