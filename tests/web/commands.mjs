// Checks how the view shows the running commands of an agent, in the background and in the foreground.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { open } from "./support/browser.mjs";
import { Daemon } from "./support/daemon.mjs";
import { idle, live, row, showsAgent, until } from "./support/page.mjs";
import { runner } from "./support/runner.mjs";

/** Returns a command that prints a line, waits for a file, prints another line, and waits for another file. */
const steps = (name) =>
  `echo ${name} one; until [ -e two ]; do sleep 0.05; done; echo ${name} two; until [ -e three ]; do sleep 0.05; done`;

/** Runs a society in which root runs a command in the background and another one in the foreground. */
export async function commandsOf(browser, binary, says, skips) {
  const model = await runner([["bash", { command: steps("behind"), background: true }], ["bash", { command: steps("before") }]]);
  const daemon = new Daemon(binary);
  try {
    // Allow commands. Otherwise, the user would be asked about them on a machine with the sandbox level `partial`.
    daemon.configure("app.json", { discover: false, language: "zh", tools: { policy: [{ group: "command", decide: "allow" }] } });
    daemon.configure("llmservices.json", { services: [{ id: "runner", name: "runner", baseURL: model.url, model: "runner", dialect: { stream: false } }] });
    await daemon.start();
    const { task } = await daemon.write("跑两个命令");
    const commands = await until("both commands run, or none can", async () => {
      const running = await daemon.get("/api/commands?agent=root");
      if (running.length === 2) return running;
      return (await daemon.get(`/api/tasks/${task}`)).state === "idle" && [];
    });
    if (commands.length === 0) return skips("running commands, because this machine has no sandbox");
    const { page, context, complaints, quietly } = await open(browser);
    await quietly(() => page.goto(daemon.url));
    await page.locator("input[name=token]").fill(daemon.token);
    await page.locator("button").click();
    await live(page);
    await watches(page, daemon, { task, id: commands[0].id }, says);
    assert.deepEqual(await complaints(), []);
    await context.close();
  } catch (error) {
    error.message += `\nthe log of the daemon with commands:\n${daemon.said.slice(-2000)}`;
    throw error;
  } finally {
    model.close();
    await daemon.kill();
    daemon.remove();
  }
}

async function watches(page, daemon, { task, id }, says) {
  says("an agent's page shows the output of its running commands and what they use, while it grows");
  const go = (file) => writeFileSync(join(daemon.data, "workspaces", task, "main", file), "");
  await row(page, "root").click();
  await showsAgent(page, "root");
  const detail = page.locator("aside.detail");
  const behind = detail.locator(".command-card", { hasText: id });
  const before = detail.locator(".call-card.call-running:not(.command-card)");
  for (const card of [behind, before]) await card.locator(".command-uses", { hasText: /\d process/ }).waitFor();
  await behind.locator(".code", { hasText: /^behind one$/ }).waitFor();
  await before.locator(".code", { hasText: /^before one$/ }).waitFor();
  go("two");
  await behind.locator(".code", { hasText: /^behind one\s+behind two$/ }).waitFor();
  await before.locator(".code", { hasText: /^before one\s+before two$/ }).waitFor();
  go("three");
  await behind.waitFor({ state: "detached" });
  await detail.locator(".call-card.call-ended .code", { hasText: "exitCode" }).first().waitFor();
  await idle(daemon);
}
