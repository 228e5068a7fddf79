// Functions that check a page. They wait for each condition, and read related facts at the same moment. To check that
// no further event arrives, a test causes a later event and waits until this event has arrived.

import assert from "node:assert/strict";
import { groupOf } from "../../../crates/api/web/assets/events.js";
import { PATIENCE_MS } from "./daemon.mjs";

/** Calls `holds` until it returns a truthy value, and returns this value. */
export async function until(what, holds) {
  const begin = Date.now();
  for (;;) {
    const found = await holds();
    if (found) return found;
    if (Date.now() - begin > PATIENCE_MS) throw new Error(`this has not happened: ${what}`);
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}

export const live = (page) => page.locator(".connection[data-state=live]").waitFor();
export const timeline = (page) => page.locator(".page-timeline .virtual");
export const row = (page, id) => page.locator(`#tree-${id}`);

/** Opens one of the view's pages, and waits until it is shown. */
export async function go(page, name) {
  await page.locator(`nav.pages a.to-${name}`).click();
  await page.locator(`body[data-page=${name}]`).waitFor();
}

/** Waits for a dialog, closes it with Escape, and waits until the dialog has disappeared. */
export async function closeDialog(page) {
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
}

/** Waits until the column beside the page shows this agent. */
export const showsAgent = (page, id) =>
  page.locator("aside.detail h2 .id", { hasText: new RegExp(`^${id}$`) }).waitFor();

/** Returns whether an element has the focus. */
export const isFocused = (locator) => locator.evaluate((element) => element === document.activeElement);

/**
 * Waits until a toast with these words has appeared. The toast may already have disappeared again. Each toast counts
 * only once, so the toast of an earlier action is not taken for that of a later one.
 */
export const toast = (page, words) =>
  until(`a toast says ${words}`, () => page.evaluate((text) => {
    const at = globalThis.observed.toasts.findIndex((one) => one.includes(text));
    if (at >= 0) globalThis.observed.toasts.splice(at, 1);
    return at >= 0;
  }, words));

/** Types a text into the message box and sends it with Enter. */
export async function send(page, text) {
  await page.locator("textarea[name=text]").fill(text);
  await page.locator("textarea[name=text]").press("Enter");
}

/** Waits until every task is idle. */
export const idle = (daemon) =>
  until("all tasks are idle", async () => (await daemon.get("/api/tasks")).tasks.every((task) => task.state === "idle"));

/** Returns the timeline's events, its visible rows and its filter, all read at the same moment. */
const held = (page) => timeline(page).evaluate((list) => ({
  ...list.dataset,
  groups: [...document.querySelectorAll(".timeline-head [class*=group-][aria-pressed=true]")].map((one) => /group-(\w+)/.exec(one.className)[1]),
  rows: [...list.querySelectorAll(".event")].map((one) => /group-(\w+)/.exec(one.className)[1]),
}));

/**
 * Checks that the timeline shows all events of these groups, or of all groups if `groups` is empty. From its oldest to
 * its newest event, the timeline must contain each such event of the API exactly once. It must also contain the event
 * that is the newest one when this function is called.
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
  assert.equal(Number(now.held), between.length, "the timeline has a gap or a duplicate");
  if (groups.length > 0) assert.deepEqual(now.rows.filter((group) => !groups.includes(group)), [], "the timeline has rows of another group");
}

/**
 * Checks that the conversation shows the newest message of the API. From the oldest to the newest message that it
 * shows, it must show each message of the API once.
 */
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
  assert.deepEqual(shown, all.slice(all.indexOf(shown[0]), all.indexOf(shown.at(-1)) + 1), "the conversation must show each message once, in order");
}
