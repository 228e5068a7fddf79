// Checks the home page: the cards of agents, and the stuck items with their remedies.

import assert from "node:assert/strict";
import { employer } from "./support/employer.mjs";
import { serviceAt } from "./support/model.mjs";
import { go, idle, isFocused, row, timeline, toast, until } from "./support/page.mjs";
import { PHONE, openAgain, withSociety } from "./support/society.mjs";

const OBJECTIVE = "数一数这本书有多少页";
const WAITING = "请稍等。";
const COUNTED = "一共 312 页";

/** Runs a society in which root waits for a clerk. */
export async function nowOf(browser, binary, says) {
  const model = await employer({ role: "书记员", objectives: [OBJECTIVE], done: COUNTED, waiting: WAITING, report: `书记员说：${COUNTED}。` });
  await withSociety(browser, binary, { name: "the home page", services: [serviceAt("clerks", model.url)], model }, async ({ daemon, page, context }) => {
    await plays(page, daemon, model, says);
    await onAPhone(browser, context, daemon, says);
    await finishes(page, daemon, model, says);
  });
}

const card = (page, id) => page.locator(`.now-card[data-key="${id}"]`);
const stuck = (page) => page.locator(".page-now .stuck-item");

async function clerkOf(daemon) {
  const { agents } = await daemon.get("/api/agents");
  return agents.find((agent) => agent.role === "书记员");
}

async function plays(page, daemon, model, says) {
  says("a prompt from the home page: a card for each agent at work, with what it is for and what it does");
  await page.locator(".page-now .nothing").waitFor();
  await page.locator("textarea[name=text]").fill("请问有多少页？");
  await page.locator("textarea[name=text]").press("Enter");
  await until("the clerk's model is asked", () => model.held().length === 1);
  const clerk = await clerkOf(daemon);
  await card(page, clerk.id).locator(".now-objective", { hasText: OBJECTIVE }).waitFor();
  await card(page, clerk.id).locator(".elapsed").waitFor();
  // The tree shows the elapsed time too, for each agent that works or waits.
  for (const id of ["root", clerk.id]) await row(page, id).locator(".tree-model .elapsed").waitFor();
  // Nothing but the page's own clock updates this timer.
  await page.evaluate(() => {
    const timer = document.createElement("span");
    timer.className = "elapsed";
    timer.dataset.since = String(Date.now() - 65_000);
    document.body.append(timer);
  });
  const timer = page.locator("body > .elapsed");
  await until("the elapsed times go on", async () => /^\d+:\d\d$/.test(await timer.textContent()));
  await timer.evaluate((one) => one.remove());
  await card(page, "root").locator(".now-doing", { hasText: "书记员" }).waitFor();
  const { doing } = await daemon.get("/api/agents/root");
  await card(page, "root").locator(".now-doing a.id", { hasText: doing.requests[0].request }).waitFor();
  await card(page, "root").locator("header > .dim").waitFor();
  await card(page, "root").locator(".now-last", { hasText: WAITING }).waitFor();
  assert.equal(await stuck(page).count(), 0);

  says("a request to a paused agent is stuck; its remedy works, also by keyboard");
  await daemon.post(`/api/agents/${clerk.id}/pause?scope=agent`);
  await stuck(page).filter({ hasText: "is paused" }).waitFor();
  await card(page, clerk.id).waitFor({ state: "detached" });
  await page.keyboard.press("Escape");
  await page.keyboard.press("2");
  await page.locator("body[data-page=conversation]").waitFor();
  await page.keyboard.press("1");
  const resume = stuck(page).locator("button[data-does=resume]");
  await until("the remedy has the focus", () => isFocused(resume));
  await page.keyboard.press("Enter");
  await toast(page, "resumed");
  await stuck(page).waitFor({ state: "detached" });
  await card(page, clerk.id).waitFor();
  assert.notEqual((await daemon.get(`/api/agents/${clerk.id}`)).state, "paused");

  says("if everybody is paused, the remedy for root resumes everybody");
  await daemon.post("/api/agents/root/pause?scope=subtree");
  await stuck(page).locator("button[data-does=resume]", { hasText: "Resume root" }).click();
  await until("nothing is stuck", async () => (await stuck(page).count()) === 0);
  await card(page, clerk.id).waitFor();
  assert.notEqual((await daemon.get(`/api/agents/${clerk.id}`)).state, "paused");
}

async function onAPhone(browser, context, daemon, says) {
  says("the home page fits a phone, in Chinese and dark");
  const clerk = await clerkOf(daemon);
  await daemon.post(`/api/agents/${clerk.id}/pause?scope=agent`);
  const phone = await openAgain(browser, context, daemon, PHONE);
  await stuck(phone.page).filter({ hasText: "已暂停" }).waitFor();
  await card(phone.page, "root").waitFor();
  const width = await phone.page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 390, `the home page is ${width} pixels wide`);
  await stuck(phone.page).locator("button[data-does=resume]").click();
  await stuck(phone.page).waitFor({ state: "detached" });
  assert.deepEqual(await phone.complaints(), []);
  await phone.context.close();
}

async function finishes(page, daemon, model, says) {
  says("who has finished steps back");
  model.release();
  await idle(daemon);
  await page.locator(".page-now .nothing").waitFor();
  assert.equal(await page.locator(".now-card, .stuck-item").count(), 0);
  await go(page, "conversation");
  await page.locator(".message:not(.mine)", { hasText: COUNTED }).waitFor();

  says("the timeline, hidden while the events came, opens at the newest");
  await go(page, "timeline");
  const last = (await daemon.events()).at(-1).seq;
  await page.locator(`.event[data-seq="${last}"]`).waitFor();
  await until("its end is in sight", () => timeline(page).evaluate((list) => list.scrollHeight > list.clientHeight && list.scrollTop + list.clientHeight >= list.scrollHeight - 24));
}
