// Opens the live view on a daemon of its own, for one part of the tests.

import assert from "node:assert/strict";
import { open } from "./browser.mjs";
import { withDaemon } from "./daemon.mjs";
import { live } from "./page.mjs";

/** Opens the live view in an opened page, and logs in with the token. */
export async function logIn({ page, quietly }, daemon) {
  // Without a token the daemon answers 401 with the login form, and the browser logs this as an error.
  await quietly(() => page.goto(daemon.url));
  await page.locator("input[name=token]").fill(daemon.token);
  await page.locator("button").click();
  await live(page);
}

/** Opens the view in a further window, which is logged in like `context`. */
export async function openAgain(browser, context, daemon, options) {
  const { cookies } = await context.storageState();
  const opened = await open(browser, { ...options, storageState: { cookies, origins: [] } });
  await opened.page.goto(daemon.url);
  await live(opened.page);
  return opened;
}

/** The options of a window on a phone, in Chinese and dark. */
export const PHONE = { viewport: { width: 390, height: 844 }, locale: "zh-CN", colorScheme: "dark", hasTouch: true };

/**
 * Runs `plays` on a daemon of its own and a page that is logged in. Then checks that the page has logged no error and
 * contacted no other server. The fields of `given` are those of `withDaemon`.
 */
export async function withSociety(browser, binary, given, plays) {
  await withDaemon(binary, given, async (daemon) => {
    const opened = await open(browser);
    await logIn(opened, daemon);
    await plays({ daemon, ...opened });
    assert.deepEqual(await opened.complaints(), []);
    await opened.context.close();
  });
}
