// Checks 2,000 hostile messages, names and artifacts. The view must show them, but must not run or load anything that
// they contain.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { open } from "./support/browser.mjs";
import { go, until } from "./support/page.mjs";
import { hostileTexts, payloads } from "./support/payloads.mjs";
import { logIn, withDaemon } from "./support/society.mjs";

const MESSAGES = 1000;
const ARTIFACTS = 800;
const AGENTS = 200;
const AT_ONCE = 40;
/** Number of messages that the page reads with one request. The page holds at most `PART` messages. */
const PAGE = 40;
const PART = 200;
/** The file name extensions and MIME types of the artifacts. */
const FILES = [
  ["md", "text/markdown"], ["html", "text/html"], ["svg", "image/svg+xml"], ["txt", "text/plain"], ["json", "application/json"], ["csv", "text/csv"],
  ["js", "text/javascript"], ["diff", "text/x-diff"], ["xhtml", "application/xhtml+xml"], ["png", "image/png"], ["pdf", "application/octet-stream"],
];

/**
 * A server that nothing may contact. It counts connections and not requests, because a browser may connect without
 * sending a request.
 */
async function outsider() {
  let connections = 0;
  const server = createServer((_request, response) => response.end());
  server.on("connection", () => { connections += 1; });
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  return { url: `http://127.0.0.1:${server.address().port}`, count: () => connections, close: () => { server.closeAllConnections(); server.close(); } };
}

/** Runs a function for each item, several items at the same time. */
async function each(items, run) {
  let next = 0;
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    while (next < items.length) {
      next += 1;
      await run(items[next - 1], next - 1);
    }
  }));
}

/**
 * Records violations of the content security policy, and scripts that run, in every frame. This function runs in the
 * page.
 */
function watch() {
  globalThis.hostile = { ran: [], violations: [] };
  globalThis.ran = (what) => globalThis.hostile.ran.push(String(what));
  for (const name of ["alert", "confirm", "prompt"]) globalThis[name] = globalThis.ran;
  document.addEventListener("securitypolicyviolation", (event) => globalThis.hostile.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
}

async function fills(daemon, outside) {
  const headers = { Authorization: `Bearer ${daemon.token}` };
  await daemon.post("/api/agents/root/pause?scope=agent");
  const { task } = await daemon.write("<b>the first</b>");
  const texts = hostileTexts(outside, MESSAGES - 1);
  await each(texts, async (text) => {
    const body = JSON.stringify({ to: "root", task, text: text.toWellFormed() });
    const response = await fetch(`${daemon.url}/api/messages`, { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body });
    assert.equal(response.status, 201, `${await response.text()} for ${text}`);
  });
  const names = payloads(outside);
  const artifacts = [];
  await each(hostileTexts(outside, ARTIFACTS), async (text, at) => {
    const [end, type] = FILES[at % FILES.length];
    const name = `${names[at % names.length].toWellFormed().replaceAll(/[\n\r\u0000]/g, "").slice(0, 80)}.${end}`;
    const response = await fetch(`${daemon.url}/api/artifacts?filename=${encodeURIComponent(name)}&task=${task}`, { method: "POST", headers: { ...headers, "Content-Type": type }, body: text });
    assert.equal(response.status, 201, `${await response.clone().text()} for ${name}`);
    artifacts.push(await response.json());
  });
  return artifacts;
}

/** Adds agents with hostile names to the society's own agents. */
async function hostileAgents(context, outside) {
  const names = payloads(outside);
  await context.route("**/api/agents?*", async (route) => {
    const response = await route.fetch();
    const page = await response.json();
    const root = page.agents.find((agent) => agent.id === "root");
    if (root) {
      page.agents.push(...Array.from({ length: AGENTS }, (_, at) => ({
        ...root, id: `hostile-${at}`, parent: "root", depth: 1, state: "idle", name: `${names[at % names.length]} ${at}`, role: names[(at + 9) % names.length], waitsFor: [],
      })));
    }
    return route.fulfill({ response, json: page });
  });
}

/** Checks the elements of the page: nothing in it may run or load anything. */
async function isHarmless(page, where) {
  const found = await page.evaluate(() => {
    const bad = [];
    for (const element of document.body.querySelectorAll("*")) {
      if (["SCRIPT", "OBJECT", "EMBED", "STYLE", "LINK", "META", "BASE", "MATH"].includes(element.tagName.toUpperCase())) bad.push(element.outerHTML.slice(0, 200));
      for (const { name, value } of element.attributes) {
        if (name.startsWith("on") || name === "srcdoc" || name === "srcset" || name === "ping" || name === "background" || name === "style" && element.closest(".markdown")) bad.push(`${name}=${value}`);
        if (["href", "src", "action", "xlink:href", "data", "poster"].includes(name)) {
          const url = new URL(value, location.href);
          const isOurs = url.origin === location.origin || url.protocol === "blob:";
          const isLink = name === "href" && element.tagName === "A" && ["http:", "https:", "mailto:"].includes(url.protocol);
          if (!isOurs && !isLink) bad.push(`${name}=${value}`);
          if (isLink && !isOurs && element.rel !== "noopener noreferrer") bad.push(`rel of ${value}`);
          if (isOurs && element.tagName === "A" && !/^(#\/|\/api\/artifacts\/[a-z0-9]+\/content$|#)/.test(value)) bad.push(`a leads to ${value}`);
        }
      }
    }
    const turned = document.body.innerText.match(/[\u202a-\u202e\u2066-\u2069\u0000]/);
    if (turned) bad.push(`a character that deceives: ${turned[0].charCodeAt(0)}`);
    return { bad, ...globalThis.hostile };
  });
  assert.deepEqual(found, { bad: [], ran: [], violations: [] }, where);
}

export async function hostileOf(browser, binary, says) {
  const outside = await outsider();
  await withDaemon(binary, { name: "hostile texts", model: outside }, async (daemon) => {
    says(`${MESSAGES + ARTIFACTS + AGENTS} hostile messages, artifacts and names are stored`);
    const artifacts = await fills(daemon, outside.url);
    const opened = await open(browser);
    const { page, context, complaints } = opened;
    await context.addInitScript(watch);
    await hostileAgents(context, outside.url);
    const asked = [];
    const dialogs = [];
    const session = await context.newCDPSession(page);
    await session.send("Network.enable");
    session.on("Network.requestWillBeSent", ({ request }) => {
      // The browser may load the files of its PDF viewer, which is an extension.
      if (!request.url.startsWith(`${daemon.url}/`) && !/^(?:blob|data|chrome|chrome-extension):/.test(request.url)) asked.push(request.url);
    });
    page.on("dialog", (dialog) => { dialogs.push(dialog.message()); dialog.dismiss(); });
    await logIn(opened, daemon);
    await go(page, "conversation");
    await reads(page, says);
    await opens(page, artifacts, says);
    says("nothing has run, nothing was loaded from outside, the policy had nothing to report");
    assert.deepEqual({ asked, dialogs, connections: outside.count() }, { asked: [], dialogs: [], connections: 0 });
    assert.deepEqual(await complaints(), []);
    await frames(page, daemon, outside, says);
    assert.deepEqual(dialogs, []);
    await context.close();
  });
}

async function reads(page, says) {
  says("all messages are shown, formatted and as written");
  const ids = () => page.locator(".messages .message").evaluateAll((all) => all.map((one) => one.dataset.id));
  const clickAll = () => page.evaluate(() => { for (const one of document.querySelectorAll(".message .as-written")) one.click(); });
  const formatted = page.locator(".message .markdown");
  const seen = new Set();
  let marked = 0;
  // The page holds only a part of the conversation. Each part is checked both formatted and unformatted.
  for (;;) {
    const shown = await until("messages are shown", async () => {
      const now = await ids();
      return now.some((id) => !seen.has(id)) ? now : null;
    });
    for (const id of shown) seen.add(id);
    if (seen.size % PART < PAGE || seen.size === MESSAGES) {
      await isHarmless(page, `the conversation from ${shown[0]}`);
      const count = await formatted.count();
      marked = Math.max(marked, count / shown.length);
      await clickAll();
      await until("the messages are shown as written", async () => (await formatted.count()) === 0);
      await isHarmless(page, `the conversation from ${shown[0]}, as written`);
      await clickAll();
      await until("they are formatted again", async () => (await formatted.count()) === count);
    }
    if (seen.size === MESSAGES) break;
    await page.locator("button.earlier").click();
  }
  assert.ok(marked > 0.5, `only ${marked} of the messages are formatted`);
  for (const name of ["timeline", "tasks", "services"]) {
    await go(page, name);
    await isHarmless(page, name);
  }
  await until("the names are in the tree", async () => (await page.locator(".tree-row").count()) > 10);
  for (let at = 0; at < 8; at += 1) {
    await page.locator("[role=tree]").evaluate((tree, part) => { tree.scrollTop = (tree.scrollHeight * part) / 8; }, at);
    await isHarmless(page, "the tree");
  }
}

async function opens(page, artifacts, says) {
  says("all artifacts are listed, and one in each way is opened");
  await go(page, "artifacts");
  const tiles = page.locator(".tile");
  await tiles.first().waitFor();
  for (;;) {
    const count = await tiles.count();
    if (count === ARTIFACTS) break;
    await page.locator(".page-artifacts .foot button").click();
    await until("more artifacts are listed", async () => (await tiles.count()) > count);
  }
  await isHarmless(page, "the artifacts");
  const chosen = FILES.flatMap(([end]) => artifacts.filter((one) => one.filename.endsWith(`.${end}`)).slice(0, 4));
  assert.equal(chosen.length, 4 * FILES.length);
  for (const { id, kind } of chosen) {
    await page.evaluate((to) => { location.hash = `#/artifacts/artifact/${to}`; }, id);
    const detail = page.locator("aside.detail");
    await detail.locator("h2 .id", { hasText: id }).waitFor();
    await detail.locator(".part").nth(1).waitFor();
    if (kind === "text") await detail.locator(".artifact-text > *").first().waitFor();
    await isHarmless(page, `artifact ${id}`);
  }
}

/**
 * Shows hostile pages in frames. The content security policy of these pages may report violations, but no request may
 * leave the browser.
 */
async function frames(page, daemon, outside, says) {
  says("hostile pages in a frame run nothing and contact nobody");
  const headers = { Authorization: `Bearer ${daemon.token}`, "Content-Type": "text/html" };
  const pages = await Promise.all(payloads(outside.url).filter((text) => text.startsWith("<") && text.includes(outside.url)).map(async (text, at) => {
    const response = await fetch(`${daemon.url}/api/artifacts?filename=page-${at}.html`, { method: "POST", headers, body: `<p>page</p>${text}` });
    return (await response.json()).id;
  }));
  assert.ok(pages.length > 20);
  for (const id of pages) {
    await page.evaluate((to) => { location.hash = `#/artifacts/artifact/${to}`; }, id);
    await page.locator("aside.detail h2 .id", { hasText: id }).waitFor();
    await page.locator("aside.detail .looks button[data-key=page]").click();
    const path = `/api/artifacts/${id}/page`;
    await page.locator(`iframe.page-frame[src="${path}"]`).waitFor();
    const frame = await until("the frame has its page", () => page.frames().find((one) => one.url().endsWith(path)));
    await frame.waitForLoadState("load");
  }
  assert.equal(outside.count(), 0, "a page in a frame has contacted a server");
}
