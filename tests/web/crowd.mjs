// Checks that the view counts the agents in each state correctly: 34 agents use one service, which takes one request at
// a time.

import assert from "node:assert/strict";
import { employer } from "./support/employer.mjs";
import { serviceAt } from "./support/model.mjs";
import { go, idle, until } from "./support/page.mjs";
import { withSociety } from "./support/society.mjs";

const WORKERS = 33;
const REPORT = "# 报告\n\n| 工人 | 结果 |\n|---|---|\n| 全部 | 完成 |\n\n- 没有遗漏\n- 没有重复\n\n```js\nconst done = 33;\n```\n";

/** Runs a society of root and 33 workers. */
export async function crowdOf(browser, binary, says) {
  const objectives = Array.from({ length: WORKERS }, (_, number) => `第 ${number + 1} 份工作`);
  const model = await employer({ role: "工人", objectives, done: "做完了", waiting: "", report: REPORT });
  const services = [serviceAt("crowd", model.url, { maxConcurrentRequests: 1 })];
  await withSociety(browser, binary, { name: "the crowd", app: { limits: { maxChildren: 40 } }, services, model }, async ({ daemon, page }) => {
    await counts(page, daemon, model, says);
    await reports(page, says);
  });
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

async function reports(page, says) {
  says("the final report shows its table, its list and its code as such");
  await go(page, "conversation");
  const report = page.locator(".message:not(.mine)", { hasText: "没有遗漏" });
  await report.locator("table td", { hasText: "完成" }).waitFor();
  await report.locator("li", { hasText: "没有重复" }).waitFor();
  await report.locator("pre code", { hasText: "const done = 33;" }).waitFor();
}
