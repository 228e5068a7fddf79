// Checks how the view shows a server that has accepted a request and sends nothing: what happens next, and when.

import assert from "node:assert/strict";
import { chatModel, saying, serviceAt } from "./support/model.mjs";
import { go, idle, row, showsAgent, until } from "./support/page.mjs";
import { withSociety } from "./support/society.mjs";

const DONE = "另一家服务答复了。";
/** For how many seconds the daemon waits for the first byte of an answer: longer than the test takes. */
const PATIENCE_S = 600;
const SILENT_AFTER_S = 10;

/** What the view says about the silence. The groups are the minutes and seconds of the silence, and of the time left. */
const SILENCE = /quiet has sent nothing for (\d+):(\d\d); polity ends this attempt in (\d+):(\d\d), then asks far instead/;

/** Runs a society whose service sends nothing, and has a fallback. */
export async function silentOf(browser, binary, says) {
  const quiet = await chatModel(() => new Promise(() => {}));
  const far = await chatModel(() => saying(DONE));
  const services = [serviceAt("quiet", quiet.url, { fallback: "far", timeouts: { firstByteMs: PATIENCE_S * 1000 } }), serviceAt("far", far.url)];
  const model = { close: () => [quiet, far].forEach((one) => one.close()) };
  await withSociety(browser, binary, { name: "the silent server", app: { retry: { maxAttempts: 2 } }, services, model }, async ({ daemon, page }) => {
    await page.locator(".page-now .nothing").waitFor();
    await page.evaluate(record);
    await daemon.write("有人在吗？");
    await tells(page, daemon, quiet, says);
    await comesTrue(page, daemon, quiet, says);
  });
}

/** Records each text about a silence that the home page shows. This function runs in the page. */
function record() {
  globalThis.silences = new Set();
  const now = document.querySelector(".page-now");
  const read = () => now.querySelectorAll(".now-card .now-doing > .bad").forEach((one) => globalThis.silences.add(one.textContent));
  new MutationObserver(read).observe(now, { childList: true, characterData: true, subtree: true });
}

async function tells(page, daemon, quiet, says) {
  says("a server that has accepted a request and sends nothing: first the agent only thinks");
  const card = page.locator(".now-card[data-key=root]");
  await until("the request is at the server", () => quiet.under() === 1);
  await card.locator(".now-doing .state-thinking").waitFor();

  says("after ten seconds, the card, the tree, the agent's page and the list of what is stuck say what happens when");
  await card.locator(".now-doing > .bad", { hasText: SILENCE }).waitFor();
  await page.locator(".stuck-service", { hasText: "The service quiet has accepted a request and sends nothing" }).waitFor();
  await page.locator(".stuck-service button[data-does=runAgain]", { hasText: "far" }).click();
  assert.equal(await page.locator("dialog.fork[open] select").inputValue(), "far");
  await page.locator("dialog.fork[open] .actions button").last().click();
  await page.locator("dialog.fork").waitFor({ state: "detached" });
  await until("the tree says so", async () => SILENCE.test(await row(page, "root").getAttribute("title")));
  await row(page, "root").click();
  await showsAgent(page, "root");
  const detail = page.locator("aside.detail");
  await detail.locator(".agent-head .bad", { hasText: SILENCE }).waitFor();
  await page.locator(".stuck-service .why-link").click();
  await detail.locator(".why .fact-does", { hasText: SILENCE }).waitFor();
  await detail.locator(".detail-head button").last().click();
  await detail.waitFor({ state: "hidden" });
}

async function comesTrue(page, daemon, quiet, says) {
  says("the server closes the connection: the fallback is asked, as announced, and nothing is silent any more");
  quiet.close();
  await idle(daemon);
  const events = await daemon.events();
  assert.equal(events.find((one) => one.event === "model_failed").service, "quiet");
  assert.equal(events.find((one) => one.event === "model_answered").service, "far");
  await page.locator(".page-now .nothing").waitFor();
  await page.locator(".stuck-service", { hasText: "The service quiet keeps failing" }).waitFor();
  await until("the tree no longer says so", async () => !SILENCE.test(await row(page, "root").getAttribute("title")));
  await go(page, "conversation");
  await page.locator(".message:not(.mine)", { hasText: DONE }).waitFor();

  const texts = await page.evaluate(() => [...globalThis.silences]);
  assert.ok(texts.length > 0);
  for (const text of texts) {
    const [, minutes, seconds, minutesLeft, secondsLeft] = SILENCE.exec(text).map(Number);
    const [silent, left] = [minutes * 60 + seconds, minutesLeft * 60 + secondsLeft];
    assert.ok(silent >= SILENT_AFTER_S, text);
    // The view cuts both times to whole seconds, so their sum may lack a second.
    assert.ok([PATIENCE_S - 1, PATIENCE_S].includes(silent + left), text);
  }
}
