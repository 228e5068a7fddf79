// Checks that the page of an agent says which role or which setting gives or denies a group of tools.

import assert from "node:assert/strict";
import { open } from "./support/browser.mjs";
import { Daemon } from "./support/daemon.mjs";
import { idle, live, row, showsAgent } from "./support/page.mjs";
import { runner } from "./support/runner.mjs";

const CLERK = {
  role: { name: "书记员", rolePrompt: "你是一名书记员。", toolGroups: ["artifacts"] },
  taskBrief: { objective: "记录", constraints: [], inputs: "无", outputs: "一句话", completion_criteria: "写好" },
  initialMessage: "请记录。",
};

/**
 * Runs a society in which the settings deny some groups of tools to root. Root hires a clerk, whose role denies further
 * groups.
 */
export async function rightsOf(browser, binary, says) {
  const model = await runner([["spawn_agent_with_task", CLERK]]);
  const daemon = new Daemon(binary);
  try {
    daemon.configure("app.json", { discover: false, language: "zh", tools: { root: ["organization", "artifacts", "files"] } });
    daemon.configure("llmservices.json", { services: [{ id: "runner", name: "runner", baseURL: model.url, model: "runner", dialect: { stream: false } }] });
    await daemon.start();
    await daemon.write("请一名书记员");
    await idle(daemon);
    const { page, context, complaints, quietly } = await open(browser);
    await quietly(() => page.goto(daemon.url));
    await page.locator("input[name=token]").fill(daemon.token);
    await page.locator("button").click();
    await live(page);
    await tellsWhy(page, daemon, says);
    assert.deepEqual(await complaints(), []);
    await context.close();
  } catch (error) {
    error.message += `\nthe log of the daemon with rights:\n${daemon.said.slice(-2000)}`;
    throw error;
  } finally {
    model.close();
    await daemon.kill();
    daemon.remove();
  }
}

async function tellsWhy(page, daemon, says) {
  says("an agent's rights: allowed, denied by its role, denied by a setting");
  const { agents } = await daemon.get("/api/agents");
  const clerk = agents.find((agent) => agent.role === "书记员");
  const right = (group) => page.locator("aside.detail .rights li", { has: page.locator("code", { hasText: new RegExp(`^${group}$`) }) });
  await row(page, clerk.id).click();
  await showsAgent(page, clerk.id);
  const own = right("artifacts").filter({ hasText: "allowed by the role 书记员 of" });
  await own.locator(".who .id", { hasText: clerk.id }).waitFor();
  const byRole = right("files").filter({ hasText: "denied by the role 书记员 of" });
  await byRole.locator(".who .id", { hasText: clerk.id }).waitFor();
  await right("web").filter({ hasText: "denied by tools.root in app.json" }).waitFor();
  await row(page, "root").click();
  await showsAgent(page, "root");
  await right("files").filter({ hasText: "allowed by tools.root in app.json" }).waitFor();
  await right("web").filter({ hasText: "denied by tools.root in app.json" }).waitFor();
}
