// Checks 2,000 hostile messages, names and artifacts on all pages. The view must show them, but must not run or load
// anything that they contain.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { open } from "./support/browser.mjs";
import { withDaemon } from "./support/daemon.mjs";
import { countOf, fileNameFrom, intruder } from "./support/intruder.mjs";
import { go, showsAgent, until } from "./support/page.mjs";
import { hostileTexts, payloads } from "./support/payloads.mjs";
import { logIn } from "./support/society.mjs";

const MESSAGES = 1000;
const ARTIFACTS = 800;
/** Agents that root hires under names that the daemon accepts, and agents with names that it would refuse. */
const AGENTS = 100;
const FORGED = 100;
/** After this many messages, the next one begins a task, so that the list of tasks has hostile titles. */
const PER_TASK = 10;
const AT_ONCE = 40;
/** Number of messages that the page reads with one request. The page holds at most `PART` messages. */
const PAGE = 40;
const PART = 200;
/** The file name extensions and MIME types of the artifacts. */
const FILES = [
  ["md", "text/markdown"], ["html", "text/html"], ["svg", "image/svg+xml"], ["txt", "text/plain"], ["json", "application/json"], ["csv", "text/csv"],
  ["js", "text/javascript"], ["diff", "text/x-diff"], ["xhtml", "application/xhtml+xml"], ["png", "image/png"], ["pdf", "application/octet-stream"],
];

/** Number of artifacts to open, for each kind whose content the page formats. Of each other kind, four are opened. */
const OPENED = { md: 64, html: 24 };

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

/**
 * Waits until every agent that root has hired is in the state that the model leads to. Then pauses root, so that it
 * does not answer what follows.
 */
async function hires(daemon) {
  const { task } = await daemon.write("<b>the first</b>");
  const expected = { parked: countOf("fails", AGENTS), asking: countOf("writes", AGENTS), thinking: 1, queued: countOf("hangs", AGENTS) - 1 };
  expected.idle = AGENTS - Object.values(expected).reduce((all, one) => all + one, 0);
  const workers = await until(`the agents are in these states: ${JSON.stringify(expected)}`, async () => {
    const found = (await daemon.get("/api/agents?limit=1000")).agents.filter((one) => !["root", "user"].includes(one.id));
    return found.length === AGENTS && Object.entries(expected).every(([state, count]) => found.filter((one) => one.state === state).length === count) && found;
  });
  await until("root is at rest", async () => ["asking", "waiting"].includes((await daemon.get("/api/agents/root")).state));
  await daemon.post("/api/agents/root/pause?scope=agent");
  return { task, workers };
}

async function fills(daemon, outside, task) {
  const headers = { Authorization: `Bearer ${daemon.token}` };
  const texts = hostileTexts(outside, MESSAGES);
  await each(texts, async (text, at) => {
    const body = JSON.stringify({ to: "root", text: text.toWellFormed(), ...(at % PER_TASK > 0 ? { task } : {}) });
    const response = await fetch(`${daemon.url}/api/messages`, { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body });
    assert.equal(response.status, 201, `${await response.text()} for ${text}`);
  });
  const names = payloads(outside);
  const artifacts = [];
  await each(hostileTexts(outside, ARTIFACTS), async (text, at) => {
    const [end, type] = FILES[at % FILES.length];
    const name = `${fileNameFrom(names[at % names.length])}.${end}`;
    const response = await fetch(`${daemon.url}/api/artifacts?filename=${encodeURIComponent(name)}&type=${encodeURIComponent(text.toWellFormed())}&task=${task}`, { method: "POST", headers: { ...headers, "Content-Type": type }, body: text });
    assert.equal(response.status, 201, `${await response.clone().text()} for ${name}`);
    const stored = await response.json();
    assert.ok(stored.filename.endsWith(name.trim().slice(-12)), `${name} was stored as ${stored.filename}`);
    artifacts.push(stored);
  });
  return artifacts;
}

/** Returns the number of all `messages` or `artifacts` that a path of the API lists. */
async function countAll(daemon, path, name) {
  let count = 0;
  let after = "";
  for (;;) {
    const page = await daemon.get(`${path}limit=1000${after}`);
    count += page[name].length;
    if (!page.next) return count;
    after = `&before=${encodeURIComponent(page.next)}`;
  }
}

/** Adds agents whose names the daemon would refuse to the society's own agents. The page must not rely on the daemon. */
async function forgeAgents(context, outside) {
  const names = payloads(outside);
  await context.route("**/api/agents?*", async (route) => {
    const response = await route.fetch();
    const page = await response.json();
    const root = page.agents.find((agent) => agent.id === "root");
    if (root) {
      page.agents.push(...Array.from({ length: FORGED }, (_, at) => ({
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
    const read = [...document.body.querySelectorAll("[title], [alt], [aria-label]")].flatMap((one) => ["title", "alt", "aria-label"].map((name) => one.getAttribute(name) ?? ""));
    for (const text of [document.body.textContent, ...read]) {
      const turned = text.match(/[\u202a-\u202e\u2066-\u2069\u0000]/);
      if (turned) bad.push(`a character that deceives: ${turned[0].charCodeAt(0)}`);
    }
    return { bad, ...globalThis.hostile };
  });
  assert.deepEqual(found, { bad: [], ran: [], violations: [] }, where);
}

export async function hostileOf(browser, binary, says) {
  const outside = await outsider();
  const model = await intruder(outside.url, AGENTS);
  const app = {
    limits: { maxChildren: AGENTS, maxAgentsPerTask: AGENTS + 1, maxFailedTurns: 1 }, tools: { policy: [{ group: "files", write: true, decide: "ask" }] },
  };
  const both = { close: () => [outside, model].forEach((one) => one.close()) };
  await withDaemon(binary, { name: "hostile texts", app, services: model.services, model: both }, async (daemon) => {
    says(`${MESSAGES + ARTIFACTS + AGENTS + FORGED} hostile messages, artifacts and names: agents hire agents`);
    const { task, workers } = await hires(daemon);
    const opened = await open(browser);
    const { page, context, complaints } = opened;
    await context.addInitScript(watch);
    await forgeAgents(context, outside.url);
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
    await explains(page, says);
    says("all messages and artifacts arrive while the page is open");
    const artifacts = await fills(daemon, outside.url, task);
    await page.locator(".stuck-request").first().waitFor();
    await isHarmless(page, "the home page with requests that are stuck");
    await reads(page, await countAll(daemon, "/api/messages?with=user&order=newest&", "messages"), says);
    await visits(page, daemon, workers, says);
    await searches(page, says);
    await opens(page, artifacts, await countAll(daemon, "/api/artifacts?", "artifacts"), says);
    await changes(page, daemon, task, says);
    says("nothing has run, nothing was loaded from outside, the policy had nothing to report");
    assert.deepEqual({ asked, dialogs, connections: outside.count() }, { asked: [], dialogs: [], connections: 0 });
    assert.deepEqual(await complaints(), []);
    await frames(page, daemon, outside, says);
    assert.deepEqual(dialogs, []);
    await context.close();
  });
}

const detailOf = (page) => page.locator("aside.detail");

async function closeDetail(page) {
  await detailOf(page).locator(".detail-head button").last().click();
  await detailOf(page).waitFor({ state: "hidden" });
}

async function explains(page, says) {
  says("the home page: cards and stuck items of each sort, and the reasons for them");
  await go(page, "now");
  for (const state of ["thinking", "queued", "asking"]) await page.locator(`.now-card.is-${state}`).first().waitFor();
  const reasons = [];
  for (const kind of ["question", "approval", "parked", "service"]) {
    const items = page.locator(`.stuck-${kind}`);
    await items.first().waitFor();
    reasons.push(...await items.evaluateAll((all) => all.slice(0, 3).filter((one) => one.querySelector(".why-link")).map((one) => one.dataset.key)));
  }
  await isHarmless(page, "the home page");
  assert.ok(reasons.length > 5, `only ${reasons.length} stuck items have reasons`);
  for (const key of reasons) {
    await page.locator(".stuck-item").and(page.locator(`[data-key=${JSON.stringify(key)}]`)).locator(".why-link").click();
    await detailOf(page).locator(".why > li").first().waitFor();
    await isHarmless(page, `the reasons of ${key}`);
    await closeDetail(page);
  }
}

async function reads(page, total, says) {
  says("all messages are shown, formatted and as written");
  assert.ok(total >= MESSAGES);
  await go(page, "conversation");
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
    if (seen.size % PART < PAGE || seen.size === total) {
      await isHarmless(page, `the conversation from ${shown[0]}`);
      const count = await formatted.count();
      marked = Math.max(marked, count / shown.length);
      await clickAll();
      await until("the messages are shown as written", async () => (await formatted.count()) === 0);
      await isHarmless(page, `the conversation from ${shown[0]}, as written`);
      await clickAll();
      await until("they are formatted again", async () => (await formatted.count()) === count);
    }
    if (seen.size === total) break;
    await page.locator("button.earlier").click();
  }
  assert.ok(marked > 0.5, `only ${marked} of the messages are formatted`);
}

/** Scrolls a list to each of eight places, and checks each time what the list has drawn there. */
async function scrolls(page, list, where) {
  for (let at = 0; at < 8; at += 1) {
    await list.evaluate((element, part) => new Promise((resolve) => {
      const before = element.scrollTop;
      element.addEventListener("scroll", resolve, { once: true });
      element.scrollTop = (element.scrollHeight * part) / 8;
      if (element.scrollTop === before) resolve();
    }), at);
    await isHarmless(page, `${where}, part ${at}`);
  }
}

/**
 * Scrolls a list to a place. When this function returns, the list has drawn its rows there. Returns whether the list has
 * moved.
 */
const scrollTo = (list, top) => list.evaluate((element, to) => new Promise((resolve) => {
  const before = element.scrollTop;
  element.addEventListener("scroll", () => resolve(true), { once: true });
  element.scrollTop = to;
  if (element.scrollTop === before) resolve(false);
}), top);

/** Scrolls through a whole list, and checks each part of it. Returns the ids of all rows. */
async function walks(page, list, where) {
  const ids = new Set();
  const height = await list.evaluate((element) => element.clientHeight);
  let top = 0;
  await scrollTo(list, top);
  do {
    await isHarmless(page, `${where}, from ${top}`);
    for (const id of await list.locator(".row").evaluateAll((all) => all.map((one) => one.id))) ids.add(id);
    top += height;
  } while (await scrollTo(list, top));
  return ids;
}

async function visits(page, daemon, workers, says) {
  says("the tree, the timeline, the tasks, the services, the approvals, and agents of each sort");
  await until("the names are in the tree", async () => (await page.locator(".tree-row").count()) > 10);
  const drawn = await walks(page, page.locator("[role=tree]"), "the tree");
  const named = [...workers.map((one) => one.id), ...Array.from({ length: FORGED }, (_, at) => `hostile-${at}`)];
  assert.deepEqual(named.filter((id) => !drawn.has(`tree-${id}`)), [], "these agents are not in the tree");
  await go(page, "timeline");
  await page.locator(".page-timeline .event").first().waitFor();
  await scrolls(page, page.locator(".page-timeline .virtual"), "the timeline");
  for (const [name, content, least] of [["tasks", ".tasks tbody tr", MESSAGES / PER_TASK / 2], ["services", ".card", 3], ["approvals", ".approval", countOf("writes", AGENTS)]]) {
    await go(page, name);
    await until(`${name} are shown`, async () => (await page.locator(`.page-${name} ${content}`).count()) >= least);
    await isHarmless(page, name);
  }
  const detail = detailOf(page);
  const ofStates = ["parked", "thinking", "queued", "idle"].map((state) => workers.find((one) => one.state === state));
  for (const { id } of [...ofStates, ...workers.filter((one) => one.state === "idle").slice(1, 4)]) {
    await page.evaluate((to) => { location.hash = `#/services/agent/${encodeURIComponent(to)}`; }, id);
    await showsAgent(page, id);
    await detail.locator("#tab-overview").click();
    await detail.locator(".brief dd").first().waitFor();
    await isHarmless(page, `agent ${id}`);
    await detail.locator("#tab-history").click();
    await detail.locator(".record-heard").first().waitFor();
    await isHarmless(page, `the history of ${id}`);
    await detail.locator("#tab-request").click();
    await detail.locator(".role-system").waitFor();
    await isHarmless(page, `the next request of ${id}`);
  }
  await closeDetail(page);
}

/** A word for each kind of hits, and for all kinds together. */
const SEARCHES = [["", "onerror"], ["task", "script"], ["message", "javascript"], ["agent", "globalThis"], ["artifact", "evil"], ["", "<img src=x"]];

async function searches(page, says) {
  says("a search finds hostile tasks, messages, agents and artifacts");
  await go(page, "search");
  for (const [kind, words] of SEARCHES) {
    const answer = page.waitForResponse((one) => {
      const { pathname, searchParams } = new URL(one.url());
      return pathname === "/api/search" && searchParams.get("q") === words && (searchParams.get("kind") ?? "") === kind;
    });
    await page.locator(".page-search select").selectOption(kind);
    await page.locator("input[name=search]").fill(words);
    await page.locator("input[name=search]").press("Enter");
    const { hits } = await (await answer).json();
    assert.ok(hits.length > 0, `nothing was found for ${words}`);
    const wanted = hits.map((hit) => `${hit.kind}-${hit.id}`).sort().join();
    await until(`the hits for ${words} are shown`, async () =>
      (await page.locator(".page-search .hit").evaluateAll((all) => all.map((one) => one.dataset.key))).sort().join() === wanted);
    await isHarmless(page, `the search for ${words}`);
  }
  await page.locator(".page-search select").selectOption("");
}

async function opens(page, artifacts, total, says) {
  const chosen = FILES.flatMap(([end]) => artifacts.filter((one) => one.filename.endsWith(`.${end}`)).slice(0, OPENED[end] ?? 4));
  assert.equal(chosen.length, FILES.reduce((all, [end]) => all + (OPENED[end] ?? 4), 0));
  says(`${chosen.length} artifacts are opened, and all are listed`);
  // The page of the artifacts shows all of them, so each look at the elements of the page would take long there.
  await go(page, "services");
  for (const { id, kind } of chosen) {
    await page.evaluate((to) => { location.hash = `#/services/artifact/${to}`; }, id);
    const detail = page.locator("aside.detail");
    await detail.locator("h2 .id", { hasText: id }).waitFor();
    await detail.locator(".part").nth(1).waitFor();
    if (kind === "text") await detail.locator(".artifact-text > *").first().waitFor();
    await isHarmless(page, `artifact ${id}`);
  }
  await closeDetail(page);
  await go(page, "artifacts");
  const tiles = page.locator(".tile");
  await tiles.first().waitFor();
  for (;;) {
    const count = await tiles.count();
    if (count === total) break;
    await page.locator(".page-artifacts .foot button").click();
    await until("more artifacts are listed", async () => (await tiles.count()) > count);
  }
  await isHarmless(page, "the artifacts");
}

async function changes(page, daemon, task, says) {
  says("files with hostile names and content, and their differences");
  for (const { id } of (await daemon.get("/api/approvals?state=open&limit=1000")).approvals) await daemon.answer(id, { answer: "yes" });
  await until("the files are written", async () => (await daemon.get(`/api/tasks/${task}/workspace`)).content.entries?.length > 0);
  await page.evaluate((to) => { location.hash = `#/tasks/task/${to}`; }, task);
  const detail = detailOf(page);
  await detail.locator("#task-tab-files").click();
  const file = detail.locator(".file-tree .link", { hasText: ".md" }).first();
  await file.waitFor();
  await isHarmless(page, "the files of the task");
  await file.click();
  await detail.locator(".file-shown").waitFor();
  await isHarmless(page, "a file");
  await detail.locator("#task-tab-changes").click();
  // Without git, there are no commits. The page then shows at once what the tools wrote.
  await detail.locator(".commit button, .edits .diff-added").first().click();
  await detail.locator(".diff-added").first().waitFor();
  await isHarmless(page, "the changes of the task");
  await closeDetail(page);
}

/**
 * Shows hostile pages in frames. The content security policy of these pages may report violations, but no request may
 * leave the browser.
 */
async function frames(page, daemon, outside, says) {
  says("hostile pages in a frame run nothing and contact nobody");
  const headers = { Authorization: `Bearer ${daemon.token}`, "Content-Type": "text/html" };
  const pages = await Promise.all(payloads(outside.url).filter((text) => text.startsWith("<") && text.includes(outside.url)).map(async (text, at) => {
    const response = await fetch(`${daemon.url}/api/artifacts?filename=page-${at}.html`, { method: "POST", headers, body: `<noscript><p id="no-script">page</p></noscript>${text}` });
    return (await response.json()).id;
  }));
  assert.ok(pages.length > 20);
  for (const id of pages) {
    await page.evaluate((to) => { location.hash = `#/artifacts/artifact/${to}`; }, id);
    await page.locator("aside.detail h2 .id", { hasText: id }).waitFor();
    await page.locator("aside.detail .looks button[data-key=page]").click();
    const path = `/api/artifacts/${id}/page`;
    const shown = page.locator(`iframe.page-frame[src="${path}"]`);
    await shown.waitFor();
    assert.equal(await shown.getAttribute("sandbox"), "", "the frame of a page allows something");
    const frame = await until("the frame has its page", () => page.frames().find((one) => one.url().endsWith(path)));
    await frame.waitForLoadState("load");
    // The browser shows this element only if no script can run.
    await frame.locator("#no-script").waitFor();
  }
  assert.equal(outside.count(), 0, "a page in a frame has contacted a server");
}
