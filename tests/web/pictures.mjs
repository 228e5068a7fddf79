// Takes the pictures of the documentation in a real browser, on a real daemon: `just pictures`.
//
// POLITY_PICTURES is the directory for the pictures (default: docs/pictures). The other environment variables are those
// of run.mjs.

import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { launch, open, whereChromium } from "./support/browser.mjs";
import { ALONE, ANSWER, PROMPT, QUESTION, company } from "./support/company.mjs";
import { withDaemon } from "./support/daemon.mjs";
import { serviceAt } from "./support/model.mjs";
import { go, idle, row, send, showsAgent, until } from "./support/page.mjs";
import { logIn, openAgain } from "./support/society.mjs";

const CHART = fileURLToPath(new URL("../../examples/picture.png", import.meta.url));
const BINARY = process.env.POLITY_BIN ?? fileURLToPath(new URL("../../target/debug/polity", import.meta.url));
const TO = process.env.POLITY_PICTURES ?? fileURLToPath(new URL("../../docs/pictures/", import.meta.url));
const WIDE = { width: 1280, height: 800 };
/** Maximum size of a picture, in bytes. Larger pictures would make the repository heavy. */
const MOST_BYTES = 200_000;

/** Waits until the page's toasts have disappeared and its images are loaded, and saves a picture of the page. */
async function take(page, name) {
  await until("all notes have gone", async () => (await page.locator(".toast").count()) === 0);
  await until("all pictures are there", () => page.evaluate(() => [...document.images].every((image) => image.complete || !image.checkVisibility())));
  await page.mouse.move(0, 0);
  const file = join(TO, `${name}.png`);
  await page.screenshot({ path: file, animations: "disabled" });
  const { size } = statSync(file);
  if (size > MOST_BYTES) throw new Error(`${file} has ${size} bytes`);
  console.log(`- ${file}, ${Math.ceil(size / 1000)} kB`);
}

function services(url) {
  const at = (id, input, more = {}) =>
    serviceAt(id, url, { capabilities: { input: ["text", ...input], output: ["text", "tool_calling"] }, ...more });
  return [at("writer", [], { price: { input: 1, output: 4 } }), at("eyes", ["vision"], { price: { input: 2, output: 8 } }),
    at("local", [], { capabilityTags: ["local"], maxConcurrentRequests: 1 })];
}

/**
 * Each page is also shown in these windows, and a further picture is taken there. The name of such a picture ends with
 * the key of its window.
 */
const WINDOWS = {
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
  dark: { viewport: WIDE, colorScheme: "dark" },
};

/** Opens the view in each of `WINDOWS`. */
const openAll = (browser, context, daemon) =>
  Promise.all(Object.entries(WINDOWS).map(async ([end, options]) => ({ end, ...await openAgain(browser, context, daemon, options) })));

/**
 * Takes a picture of a page, and a further picture in each of the windows, which it then closes. `shows` gets a page
 * and brings it into the state that the picture must show.
 */
async function takeAll(page, windows, name, shows) {
  await shows(page);
  await take(page, name);
  for (const { end, page: other, context } of windows) {
    await shows(other);
    await take(other, `${name}-${end}`);
    await context.close();
  }
}

/** Goes to an address of the view. */
const goTo = (page, address) => page.evaluate((to) => { location.hash = to; }, address);

/** Returns an object that contains each agent under the name of its role. */
async function byRole(daemon) {
  const { agents } = await daemon.get("/api/agents");
  return Object.fromEntries(agents.map((agent) => [agent.role, agent]));
}

async function atWork(browser, context, page, daemon) {
  await daemon.write(ALONE);
  await idle(daemon);
  await page.locator("input[type=file]").setInputFiles(CHART);
  await page.locator(".attached-file img").waitFor();
  // Open the windows first: ten seconds after the prompt, the view would call the servers silent.
  const windows = await openAll(browser, context, daemon);
  await send(page, PROMPT);
  const states = { Reader: "thinking", Researcher: "retrying", Planner: "thinking", Critic: "queued", Analyst: "waiting" };
  await until("every agent is in its state", async () => {
    const found = await byRole(daemon);
    return Object.entries(states).every(([role, state]) => found[role]?.state === state);
  });
  await takeAll(page, windows, "now", async (shown) => {
    for (const state of ["asking", "waiting", "thinking", "retrying", "queued"]) await shown.locator(`.now-card.is-${state} .elapsed`).first().waitFor();
    // The cards and the tree learn of the states by different reads.
    for (const state of ["asking", "waiting"]) await shown.locator(`.tree-row .state-${state}`).first().waitFor({ state: "attached" });
    const question = shown.locator(".stuck-question", { hasText: QUESTION });
    await question.waitFor();
    const out = await shown.evaluate(() => [...document.querySelectorAll(".now-card *")].filter((part) =>
      part.getBoundingClientRect().right > part.closest(".now-card").getBoundingClientRect().right).map((part) => part.textContent));
    if (out.length > 0) throw new Error(`these stick out of their cards: ${out.join("; ")}`);
    if (shown !== page) await question.locator(".actions").scrollIntoViewIfNeeded();
  });
}

async function afterwards(browser, context, page, daemon) {
  const task = (await daemon.get("/api/tasks")).tasks.find((one) => one.title === PROMPT);
  const { Planner: planner, Reader: reader } = await byRole(daemon);

  await row(page, "root").locator(".state-idle").waitFor();
  await takeAll(page, await openAll(browser, context, daemon), "task", async (shown) => {
    await goTo(shown, `#/tasks/task/${task.id}`);
    await shown.locator("#task-tab-changes").click();
    await shown.locator(".commit", { hasText: planner.id }).locator("button").click();
    await shown.locator(".file-diff .diff-added").first().waitFor();
  });

  const { events } = await daemon.get("/api/events?kind=model_answered&agent=root&before=9007199254740991");
  const answered = events.find((event) => event.content?.some((shown) => shown.routing === "described"));
  const { artifact } = answered.content.find((shown) => shown.routing === "described");
  await takeAll(page, await openAll(browser, context, daemon), "why", async (shown) => {
    await goTo(shown, `#/timeline/why/${encodeURIComponent(`artifact:${artifact}@${answered.sent}`)}`);
    await shown.locator("[data-remedy=introduce]").waitFor();
  });

  const { artifacts } = await daemon.get("/api/artifacts");
  const plan = artifacts.find((one) => one.filename === "plan.md");
  await takeAll(page, await openAll(browser, context, daemon), "artifact", async (shown) => {
    await goTo(shown, `#/artifacts/artifact/${plan.id}`);
    await shown.locator("aside.detail h2 .id", { hasText: plan.id }).waitFor();
    await shown.locator("aside.detail .markdown td.align-right").first().waitFor();
  });

  await go(page, "timeline");
  await row(page, reader.id).click();
  await showsAgent(page, reader.id);
  await page.locator("aside.detail .contacts").waitFor();
  await take(page, "timeline");

  const { page: dark } = await openAgain(browser, context, daemon, WINDOWS.dark);
  await go(dark, "conversation");
  await dark.locator(".message", { hasText: ANSWER }).waitFor();
  await row(dark, "root").click();
  await showsAgent(dark, "root");
  await dark.locator("aside.detail .contacts").waitFor();
  await take(dark, "dark");
}

const chromium = whereChromium();
if (!chromium) throw new Error("Chromium is not installed");
mkdirSync(TO, { recursive: true });
const model = await company();
const browser = await launch(chromium);
// After a failed call, an agent makes a long pause before its next attempt. So the pictures can show such an agent.
const app = { language: "en", retry: { baseDelayMs: 30_000 } };
try {
  await withDaemon(BINARY, { name: "the pictures", app, services: services(model.url), model }, async (daemon) => {
    const opened = await open(browser, { viewport: WIDE });
    const { page, context } = opened;
    await logIn(opened, daemon);
    await atWork(browser, context, page, daemon);
    await page.locator(".stuck-question button").first().click();
    await send(page, "In units, please.");
    model.release("Reader");
    await until("the Analyst has finished", async () => (await byRole(daemon)).Analyst.state === "idle");
    model.release("Planner");
    await idle(daemon);
    await afterwards(browser, context, page, daemon);
  });
} finally {
  await browser.close();
}
