// Checks work with several tasks: forks, the task that the message box continues, and the list of tasks.

import assert from "node:assert/strict";
import { calling, chatModel, said, saying, serviceAt } from "./support/model.mjs";
import { go, idle, row, send, showsAgent, until } from "./support/page.mjs";
import { withSociety } from "./support/society.mjs";

/** A text of 30,000 characters, in numbered lines. */
const LONG = Array.from({ length: 1500 }, (_, at) => `${`第 ${at + 1} 行`.padEnd(19, "。")}\n`).join("").trimEnd().padEnd(30_000, "完");

/** The title of a task, too long for one line on a phone. */
const TITLE = "这个任务的题目很长".repeat(7);

/**
 * A chat model that names all colours that the person has told it, in their order. When the person asks it to keep the
 * colours, it stores an artifact. When the person asks for everything, it answers with the long text.
 */
const painter = () => chatModel((messages) => {
  if (said(messages.at(-1)).includes("存起来")) return calling(["put_artifact", { type: "note", content: "红", meta: { filename: "colours.txt" } }]);
  if (said(messages.at(-1)).includes("全部说出来")) return saying(LONG);
  const heard = messages.filter((message) => message.role === "user").map(said).join("\n");
  return saying(`依次是：${[...heard.matchAll(/颜色是(\S)/g)].map((found) => found[1]).join("、")}。`);
});

/** Runs a society whose root shows in each answer which messages of the person it knows. */
export async function tasksOf(browser, binary, says) {
  const model = await painter();
  await withSociety(browser, binary, { name: "the tasks", services: [serviceAt("painter", model.url)], model }, async ({ daemon, page }) => {
    const { original, fork } = await forks(page, daemon, says);
    await continues(page, daemon, original, fork, says);
    await tellsAll(page, daemon, says);
    await stores(page, daemon, says);
    await folds(page, daemon, says);
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
  // The view now shows the fork alone. In the fork, root knows the first turn, but not the second and the third turn of
  // the original.
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

async function continues(page, daemon, original, fork, says) {
  says("the message box continues the task that is open");
  const box = page.locator(".write-head select").first();
  const continued = (task) => until(`the box continues "${task}"`, async () => (await box.inputValue()) === task);
  await page.locator(".task-choice").selectOption(fork);
  await continued(fork);
  await send(page, "颜色是紫");
  await page.locator(".message:not(.mine)", { hasText: "依次是：红、绿、紫。" }).waitFor();
  await idle(daemon);

  await go(page, "tasks");
  await page.locator(`tr[data-key="${fork}"] .fork-of`, { hasText: original }).waitFor();
  await page.locator(`tr[data-key="${original}"] .task-title button`).click();
  await page.locator("body[data-page=conversation]").waitFor();
  await continued(original);
  await send(page, "颜色是黑");
  await page.locator(".message:not(.mine)", { hasText: "依次是：红、蓝、黄、黑。" }).waitFor();
  await idle(daemon);
  assert.equal((await daemon.get("/api/tasks")).tasks.length, 2, "a message has begun a task of its own");

  await page.locator(".task-choice").selectOption("");
  await continued("");
  await send(page, "颜色是白");
  await page.locator(".message:not(.mine)", { hasText: "依次是：白。" }).waitFor();
  await idle(daemon);
  assert.equal((await daemon.get("/api/tasks")).tasks.length, 3);
}

/** Checks that an element contains a whole text, and cuts off no part of it. */
async function isWhole(element, text) {
  await until("the text is there", async () => (await element.textContent()).includes(text.slice(0, 20)));
  assert.equal(await element.textContent(), text);
  const cut = await element.evaluate((one) => {
    const found = [];
    for (let at = one; at && !at.classList.contains("scroll") && !at.classList.contains("detail"); at = at.parentElement) {
      const { overflowY, webkitLineClamp } = getComputedStyle(at);
      if (webkitLineClamp !== "none" || (overflowY !== "visible" && at.scrollHeight > at.clientHeight + 1)) found.push(at.className);
    }
    return found;
  });
  assert.deepEqual(cut, [], "an element cuts the text off");
}

async function tellsAll(page, daemon, says) {
  says("a long answer is shown whole, in the conversation and beside it");
  assert.equal(LONG.length, 30_000);
  await send(page, "全部说出来");
  const message = page.locator(".message:not(.mine)", { hasText: "第 1500 行" });
  await message.waitFor();
  await idle(daemon);
  await isWhole(message.locator(".prose"), LONG);
  await message.locator("header .quiet-link").click();
  const detail = page.locator("aside.detail");
  await isWhole(detail.locator(".prose.boxed"), LONG);
  await detail.locator(".detail-head button").last().click();
  await detail.waitFor({ state: "hidden" });

  says("a long text with Markdown is shown whole too");
  const items = LONG.split("\n").map((line) => `- ${line}`);
  await daemon.write(`${TITLE}\n\n${items.join("\n")}`);
  const mine = page.locator(".message.mine", { hasText: "第 1500 行" });
  await mine.waitFor();
  await idle(daemon);
  assert.deepEqual(await mine.locator(".markdown li").allTextContents(), items.map((item) => item.slice(2)));

  says("the title of a task that is too long for a phone is cut at its end only");
  const { width, height } = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  const title = page.locator(".separator button", { hasText: TITLE.slice(0, 5) });
  const measured = () => title.evaluate((one) => {
    const text = document.createRange();
    text.selectNodeContents(one);
    return { isCut: one.scrollWidth > one.clientWidth, begins: text.getBoundingClientRect().left - one.getBoundingClientRect().left };
  });
  await until("the title is cut", async () => (await measured()).isCut);
  assert.equal(Math.round((await measured()).begins), 0, "the beginning of the title is out of sight");
  await page.setViewportSize({ width, height });
}

async function stores(page, daemon, says) {
  says("an artifact says who made it");
  await send(page, "存起来");
  const made = await until("the artifact is stored", async () => (await daemon.get("/api/artifacts")).artifacts.find((one) => one.filename === "colours.txt"));
  await idle(daemon);
  assert.equal(made.owner, "root");
  await go(page, "artifacts");
  await page.locator(".tile", { hasText: "colours.txt" }).click();
  const detail = page.locator("aside.detail");
  await detail.locator("h2 .id", { hasText: made.id }).waitFor();
  await detail.locator(".facts dt:text-is('Stored by') + dd a.who", { hasText: "root" }).click();
  await showsAgent(page, "root");
  await detail.locator(".detail-head button").last().click();
  await detail.waitFor({ state: "hidden" });
}

/** Checks that no two elements overlap: each begins at the lower edge of the element before it, or further below. */
async function areBelowEachOther(elements) {
  const places = await elements.evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).map(({ top, bottom }) => ({ top, bottom })));
  assert.ok(places.length > 1);
  for (const [at, { top }] of places.entries()) assert.ok(at === 0 || top >= places[at - 1].bottom - 1, JSON.stringify(places));
}

async function folds(page, daemon, says) {
  says("in the list of tasks, what goes on comes first, and finished tasks are folded");
  const finished = (await daemon.get("/api/tasks")).tasks;
  const over = finished.map((task) => task.id);
  await daemon.post("/api/agents/root/pause?scope=agent");
  const { task } = await daemon.write("还没开始");
  await go(page, "tasks");
  const seen = () => page.locator("table.tasks tr[data-key]").evaluateAll((all) => all.filter((one) => one.checkVisibility()).map((one) => one.dataset.key));
  const shows = (wanted) => until(`these tasks are in sight: ${wanted.join()}`, async () => (await seen()).join() === wanted.join());
  await shows([task]);
  const fold = page.locator("table.tasks .fold button");
  await fold.filter({ hasText: new RegExp(`\\b${over.length}\\b`) }).waitFor();
  await fold.click();
  await shows([task, ...over]);
  await areBelowEachOther(page.locator("table.tasks tr:visible"));
  await fold.click();
  await shows([task]);
  // A search shows finished tasks, too.
  const find = page.locator(".page-tasks input.find");
  await find.fill("颜色是白");
  await shows(finished.filter((one) => one.title === "颜色是白").map((one) => one.id));
  await find.fill("");
  await shows([task]);
  await daemon.post("/api/agents/root/resume?scope=agent");
  await idle(daemon);
  await shows([task, ...over]);
  await fold.waitFor({ state: "hidden" });

  says("what a search finds in finished tasks is folded too");
  await go(page, "search");
  await page.locator("input[name=search]").fill("颜色是");
  const folded = page.locator(".hits-over details");
  await folded.locator("summary").waitFor();
  if (!(await folded.evaluate((one) => one.open))) await folded.locator("summary").click();
  await until("several hits are in sight", async () => (await folded.locator(".hit:visible").count()) > 1);
  await areBelowEachOther(folded.locator("summary, .hit:visible"));
}
