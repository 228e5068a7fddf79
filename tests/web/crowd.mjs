// Checks that the view counts the agents in each state correctly: 34 agents use one service, which takes one request at
// a time.

import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { STATES } from "../../crates/api/web/assets/state.js";
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

/**
 * Returns how many agents are in each state according to the daemon. The form is the same as that of the page's counts.
 */
async function daemonCounts(daemon) {
  const count = Object.fromEntries(STATES.map((state) => [state, 0]));
  for (const agent of (await daemon.get("/api/agents?limit=1000")).agents) if (agent.id !== "user") count[agent.state] += 1;
  return count;
}

/**
 * Checks each redraw of the counts.
 *
 * `held` contains a pair of redraws for each request of a worker. At the first redraw, the server held the request, and
 * the page agreed with the daemon. The second redraw is the last one before the test let the request go. All redraws
 * from the first to the second must show exactly one thinking agent, for two reasons:
 * - Exactly one request is at the server all this time, because the service takes one request at a time, and only the
 *   test lets the held request go.
 * - The page has already shown this agent as thinking, so it knows of the request. All later news is about other
 *   agents, and none of these can get a request to the server.
 *
 * So this check needs no clock, even if the page draws late. At all other redraws, the page may still show an earlier
 * state. But it must never show more thinking agents than `most`. This is the largest number of requests that were at
 * the server at the same time.
 */
function checkRedraws(all, held, most) {
  const whole = all.findIndex((count) => sum(count) === WORKERS + 1);
  assert.ok(whole >= 0, "the page has never shown all agents");
  for (const [at, count] of all.entries()) {
    const what = `redraw ${at} of ${all.length}: ${JSON.stringify(count)}`;
    // While root hires, agents are added. After that, each redraw shows all of them, each in one state.
    if (at < whole) assert.ok(at === 0 || sum(count) >= sum(all[at - 1]), what);
    else assert.equal(sum(count), WORKERS + 1, what);
    assert.ok(count.thinking <= most, what);
    if (held.some(([from, to]) => from <= at && at <= to)) assert.equal(count.thinking, 1, what);
  }
}

async function counts(page, daemon, model, says) {
  says("34 agents and one place: at every moment, as many agents think as requests are at the server");
  await page.evaluate(record);
  await daemon.write("请雇用所有工人。");
  await until("the first worker's request is at the server, and all others are queued", async () => {
    const now = (await counted(page)).at(-1);
    return model.held().length === 1 && now.thinking === 1 && now.queued >= WORKERS - 1;
  });
  const held = [];
  for (let gone = 0; gone < WORKERS; gone += 1) {
    await until(`the server holds request ${gone + 1}`, () => model.held().length === 1);
    const [agent] = model.held();
    await page.locator(`.now-card.is-thinking[data-key="${agent}"]`).waitFor();
    // No agent changes its state until the test lets the request go. So the page and the daemon agree after a while.
    const from = await until("the page counts like the daemon", async () => {
      const own = await daemonCounts(daemon);
      const all = await counted(page);
      return own.thinking === 1 && isDeepStrictEqual(all.at(-1), own) && all.length - 1;
    });
    assert.equal(model.under(), 1);
    assert.equal(await page.locator(".now-card.is-thinking").count(), 1);
    held.push([from, (await counted(page)).length - 1]);
    model.letGo();
  }
  await idle(daemon);
  await until("all agents are idle", async () => (await counted(page)).at(-1).idle === WORKERS + 1);
  assert.equal(model.most(), 1);
  checkRedraws(await counted(page), held, model.most());
}

async function reports(page, says) {
  says("the final report shows its table, its list and its code as such");
  await go(page, "conversation");
  const report = page.locator(".message:not(.mine)", { hasText: "没有遗漏" });
  await report.locator("table td", { hasText: "完成" }).waitFor();
  await report.locator("li", { hasText: "没有重复" }).waitFor();
  await report.locator("pre code", { hasText: "const done = 33;" }).waitFor();
}
