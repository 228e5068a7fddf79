// Checks that the view counts the agents in each state correctly: 34 agents use one service, which takes one request at
// a time.

import assert from "node:assert/strict";
import { open } from "./support/browser.mjs";
import { WORKERS, crowd } from "./support/crowd.mjs";
import { Daemon } from "./support/daemon.mjs";
import { go, idle, live, until } from "./support/page.mjs";

/** Runs a society of root and 33 workers. */
export async function crowdOf(browser, binary, says) {
  const model = await crowd();
  const daemon = new Daemon(binary);
  try {
    daemon.configure("app.json", { discover: false, language: "zh", limits: { maxChildren: 40 } });
    daemon.configure("llmservices.json", { services: [{ id: "crowd", name: "crowd", baseURL: model.url, model: "crowd", maxConcurrentRequests: 1, dialect: { stream: false } }] });
    await daemon.start();
    const { page, context, complaints, quietly } = await open(browser);
    await quietly(() => page.goto(daemon.url));
    await page.locator("input[name=token]").fill(daemon.token);
    await page.locator("button").click();
    await live(page);
    await counts(page, daemon, model, says);
    await reports(page, daemon, model, says);
    assert.deepEqual(await complaints(), []);
    await context.close();
  } catch (error) {
    error.message += `\nthe log of the daemon of the crowd:\n${daemon.said.slice(-2000)}`;
    throw error;
  } finally {
    model.close();
    await daemon.kill();
    daemon.remove();
  }
}

/** Records the counts of all states whenever the page draws them again. This function runs in the page. */
function record() {
  const legend = document.querySelector(".legend");
  const read = () => Object.fromEntries([...legend.querySelectorAll(".legend-state")].map((one) =>
    [/state-(\w+)/.exec(one.className)[1], Number(one.querySelector(".count").textContent)]));
  globalThis.counted = [read()];
  new MutationObserver(() => globalThis.counted.push(read())).observe(legend, { childList: true, characterData: true, subtree: true });
}

const counted = (page) => page.evaluate(() => globalThis.counted);
const sum = (count) => Object.values(count).reduce((all, one) => all + one, 0);

async function counts(page, daemon, model, says) {
  says("34 agents and one place: at every moment, as many agents think as requests are at the server");
  await page.evaluate(record);
  await daemon.write("请雇用所有工人。");
  await until("the first worker's request is at the server, and all others are queued", async () => {
    const now = (await counted(page)).at(-1);
    return model.held().length === 1 && now.thinking === 1 && now.queued >= WORKERS - 1;
  });
  for (let gone = 0; gone < WORKERS; gone += 1) {
    await until(`the server holds request ${gone + 1}`, () => model.held().length === 1);
    const [agent] = model.held();
    // The model server now holds one request, and gets no other request until the test lets this one go.
    await page.locator(`.now-card.is-thinking[data-key="${agent}"]`).waitFor();
    assert.equal(await page.locator(".now-card.is-thinking").count(), 1);
    const now = (await counted(page)).at(-1);
    assert.equal(now.thinking, model.held().length, JSON.stringify(now));
    assert.equal(sum(now), WORKERS + 1, JSON.stringify(now));
    model.letGo();
  }
  await idle(daemon);
  await until("all agents are idle", async () => (await counted(page)).at(-1).idle === WORKERS + 1);
  assert.equal(model.most(), 1);
  const wrong = (await counted(page)).filter((count) => count.thinking > model.most());
  assert.deepEqual(wrong, [], "the page showed more agents thinking than the server ever had requests");
}

async function reports(page, daemon, model, says) {
  says("the final report shows its table, its list and its code as such");
  await go(page, "conversation");
  const report = page.locator(".message:not(.mine)", { hasText: "没有遗漏" });
  await report.locator("table td", { hasText: "完成" }).waitFor();
  await report.locator("li", { hasText: "没有重复" }).waitFor();
  await report.locator("pre code", { hasText: "const done = 33;" }).waitFor();
}
