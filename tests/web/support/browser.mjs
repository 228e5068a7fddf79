// Starts Chromium without a window. Records forbidden actions of a page: logged errors, violations of the content
// security policy, and requests to other servers.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { PATIENCE_MS } from "./daemon.mjs";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const ARGUMENTS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--js-flags=--expose-gc",
];

const ASSETS = new URL("../../../crates/api/web/assets/", import.meta.url);

/** Returns the path of Chromium, or null if it is not installed. */
export function whereChromium() {
  return [process.env.CHROMIUM, ...PLACES].find((place) => place && existsSync(place)) ?? null;
}

export function launch(executablePath) {
  return chromium.launch({ executablePath, args: ARGUMENTS });
}

/**
 * Delay of drawings and answers in milliseconds. With a delay, a check that does not wait for its condition fails.
 */
const LATE_MS = Number(process.env.POLITY_LATE_MS ?? 0);

/**
 * Records toasts and animations, so that a test can check them when they are over. This function runs in the page.
 */
function observe() {
  globalThis.observed = { toasts: [], motions: [] };
  new MutationObserver((changes) => {
    for (const change of changes) {
      for (const node of change.addedNodes) if (node.classList?.contains("toast")) globalThis.observed.toasts.push(node.textContent);
    }
  }).observe(document, { childList: true, subtree: true });
  for (const motion of ["animationstart", "transitionrun"]) {
    document.addEventListener(motion, (event) => globalThis.observed.motions.push(`${motion} ${event.target.className}`), true);
  }
}

/**
 * Opens the fold of finished agents, unless the page has stored preferences: most tests look at agents of finished tasks.
 * This function runs in the page.
 */
function showFinished() {
  try {
    localStorage.setItem("polity-preferences", localStorage.getItem("polity-preferences") ?? JSON.stringify({ showFinished: true }));
  } catch {
    // Some frames have no storage.
  }
}

/** Delays every drawing of the page by `ms`. This function runs in the page. */
function beLate(ms) {
  const native = globalThis.requestAnimationFrame.bind(globalThis);
  globalThis.requestAnimationFrame = (draw) => native(() => setTimeout(() => draw(performance.now()), ms));
}

/**
 * Opens a page with its own session. `complaints` returns everything that the page did wrong so far: errors, warnings
 * and forbidden requests. `quietly` runs a function during which the daemon may be missing, and the missing daemon
 * causes no complaint then.
 */
export async function open(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: "en-US", colorScheme: "light", ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  await context.addInitScript(observe);
  await context.addInitScript(showFinished);
  if (LATE_MS > 0) {
    await context.addInitScript(beLate, LATE_MS);
    await context.route("**/api/**", async (route) => {
      await new Promise((resolve) => { setTimeout(resolve, LATE_MS); });
      return route.fallback().catch(() => {});
    });
  }
  if (process.env.POLITY_ASSETS) {
    await context.route("**/assets/**", (route) =>
      route.fulfill({ path: fileURLToPath(new URL(new URL(route.request().url()).pathname.slice("/assets/".length), ASSETS)) }));
  }
  const page = await context.newPage();
  const had = [];
  const quiet = { on: false };
  page.on("console", (message) => {
    if (!["error", "warning"].includes(message.type())) return;
    if (quiet.on && /net::ERR_|401|503/.test(message.text())) return;
    // In the frame of a hostile page, the browser rightly blocks all scripts, including those of this test. So ignore
    // its message about blocked scripts.
    if (message.text().startsWith("Blocked script execution") && /\/page$/.test(message.location().url)) return;
    had.push(`${message.type()}: ${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => had.push(`thrown: ${error.stack || error.message}`));
  page.on("request", (request) => {
    const { hostname, protocol } = new URL(request.url());
    // The PDF viewer is an extension of the browser and loads its own files.
    if (!["blob:", "data:", "chrome:", "chrome-extension:"].includes(protocol) && hostname !== "127.0.0.1") had.push(`asked ${request.url()}`);
  });
  let marks = 0;
  /**
   * Waits until the test has received everything that the page has logged. For this, it writes a mark into the page's
   * log and waits for the mark.
   */
  const heard = async () => {
    marks += 1;
    const mark = `mark ${marks}`;
    const arrived = page.waitForEvent("console", (message) => message.text() === mark);
    await page.evaluate((text) => console.debug(text), mark);
    await arrived;
  };
  const complaints = async () => {
    await heard();
    return had;
  };
  /** Runs `what`, which may stop the daemon, and then waits for all errors that the stopped daemon causes. */
  const quietly = async (what) => {
    quiet.on = true;
    const done = await what();
    await heard();
    quiet.on = false;
    return done;
  };
  return { page, context, complaints, quietly };
}
