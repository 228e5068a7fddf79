// A headless Chromium, and what a page may not do while it is looked at: complain, break its policy, ask others.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const ARGUMENTS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--js-flags=--expose-gc",
];

const ASSETS = new URL("../../../crates/api/web/assets/", import.meta.url);

/** Where Chromium is, if it is anywhere. */
export function whereChromium() {
  return [process.env.CHROMIUM, ...PLACES].find((place) => place && existsSync(place)) ?? null;
}

export function launch(executablePath) {
  return chromium.launch({ executablePath, args: ARGUMENTS });
}

/**
 * A page of its own session. `complaints` has all that it must not have; while `quiet.on` is set, that the daemon cannot be
 * reached is none, because it is not there then.
 */
export async function open(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: "en-US", colorScheme: "light", ...options });
  if (process.env.POLITY_ASSETS) {
    await context.route("**/assets/**", (route) =>
      route.fulfill({ path: fileURLToPath(new URL(new URL(route.request().url()).pathname.slice("/assets/".length), ASSETS)) }));
  }
  const page = await context.newPage();
  const complaints = [];
  const quiet = { on: false };
  page.on("console", (message) => {
    if (!["error", "warning"].includes(message.type())) return;
    if (quiet.on && /net::ERR_|401|503/.test(message.text())) return;
    complaints.push(`${message.type()}: ${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => complaints.push(`thrown: ${error.stack || error.message}`));
  page.on("request", (request) => {
    const { hostname, protocol } = new URL(request.url());
    if (!["blob:", "data:"].includes(protocol) && hostname !== "127.0.0.1") complaints.push(`asked ${request.url()}`);
  });
  return { page, context, complaints, quiet };
}
