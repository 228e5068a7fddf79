// How the tests look at a page: whatever is checked is waited for, and several facts that belong together are read at one
// moment. A check that nothing more comes waits first for something that comes later than that would.

import assert from "node:assert/strict";
import { groupOf } from "../../../crates/api/web/assets/events.js";
import { PATIENCE_MS } from "./daemon.mjs";

/** Asks until it holds; gives what was found. */
export async function until(what, holds) {
  const begin = Date.now();
  for (;;) {
    const found = await holds();
    if (found) return found;
    if (Date.now() - begin > PATIENCE_MS) throw new Error(`never: ${what}`);
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}

export const live = (page) => page.locator(".connection[data-state=live]").waitFor();
export const timeline = (page) => page.locator(".page-timeline .virtual");
export const row = (page, id) => page.locator(`#tree-${id}`);

/** Goes to a page, and waits until it is shown. */
export async function go(page, name) {
  await page.locator(`nav.pages a.to-${name}`).click();
  await page.locator(`body[data-page=${name}]`).waitFor();
}

/** Closes what stands above the page. */
export async function closeDialog(page) {
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
}

/** Waits until the column beside the page shows an agent, read from the server. */
export const showsAgent = (page, id) =>
  page.locator("aside.detail h2 .id", { hasText: new RegExp(`^${id}$`) }).waitFor();

/** Whether an element has the focus. */
export const isFocused = (locator) => locator.evaluate((element) => element === document.activeElement);

/** Waits until a toast has said this, even if it is gone again. */
export const toast = (page, words) =>
  until(`a toast says ${words}`, () => page.evaluate((text) => globalThis.observed.toasts.some((one) => one.includes(text)), words));

/** Writes in the box and sends it. */
export async function send(page, text) {
  await page.locator("textarea[name=text]").fill(text);
  await page.locator("textarea[name=text]").press("Enter");
}

/** Waits until nothing is left to do in any task. */
export const idle = (daemon) =>
  until("all tasks are idle", async () => (await daemon.get("/api/tasks")).tasks.every((task) => task.state === "idle"));

/** What the timeline holds and shows, and the filter that it was read with. */
const held = (page) => timeline(page).evaluate((list) => ({
  ...list.dataset,
  groups: [...document.querySelectorAll(".timeline-head [class*=group-][aria-pressed=true]")].map((one) => /group-(\w+)/.exec(one.className)[1]),
  rows: [...list.querySelectorAll(".event")].map((one) => /group-(\w+)/.exec(one.className)[1]),
}));

/**
 * The timeline shows these groups of events, or all, and holds whatever the API has of them between its ends: no gap, no
 * double. It must reach the newest event that there is when this is called.
 */
export async function timelineIsWhole(page, daemon, groups = []) {
  await go(page, "timeline");
  const meant = (entry) => groups.length === 0 || groups.includes(groupOf(entry));
  const last = (await daemon.events()).filter(meant).at(-1).seq;
  const now = await until(`the timeline shows ${groups.join() || "everything"} up to ${last}`, async () => {
    const found = await held(page);
    return found.groups.join() === groups.join() && Number(found.last) >= last && found.rows.length > 0 && found;
  });
  const between = (await daemon.events(Number(now.first) - 1)).filter((entry) => meant(entry) && entry.seq <= Number(now.last));
  assert.equal(Number(now.held), between.length, "as many as there are");
  if (groups.length > 0) assert.deepEqual(now.rows.filter((group) => !groups.includes(group)), [], "no row of another group");
}

/** The conversation shows each message that the API has between its ends once, up to the newest there is now. */
export async function conversationIsWhole(page, daemon) {
  await go(page, "conversation");
  const said = async () => (await daemon.get("/api/messages?with=user&order=newest&limit=200")).messages.map((one) => one.id).reverse();
  const last = (await said()).at(-1);
  const ids = () => page.locator(".message").evaluateAll((all) => all.map((one) => one.dataset.id));
  const shown = await until(`the conversation shows ${last}`, async () => {
    const found = await ids();
    return found.includes(last) && found;
  });
  const all = await said();
  assert.deepEqual(shown, all.slice(all.indexOf(shown[0]), all.indexOf(shown.at(-1)) + 1), "each message once, in order");
}
