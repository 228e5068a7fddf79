// Tests the live view in a real browser, on a real daemon with the rehearsal models.
//
// Environment variables:
// - POLITY_BIN: the polity program (default: target/debug/polity of the checkout).
// - CHROMIUM: the browser, if it is not in a usual place.
// - POLITY_ASSETS=checkout: uses the scripts and styles of the checkout, to test a change without a build.
// - POLITY_LATE_MS=200: delays drawings and answers by 200 ms, to find checks that do not wait for their condition.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { commandsOf } from "./commands.mjs";
import { crowdOf } from "./crowd.mjs";
import { foreseesOf } from "./foresees.mjs";
import { handsOf } from "./hands.mjs";
import { hostileOf } from "./hostile.mjs";
import { resultsOf } from "./results.mjs";
import { nowOf } from "./now.mjs";
import { stuckOf } from "./stuck.mjs";
import { tasksOf } from "./tasks.mjs";
import { rightsOf } from "./rights.mjs";
import { silentOf } from "./silent.mjs";
import { CONTENT, QUESTION, asker } from "./support/asker.mjs";
import { launch, open, whereChromium } from "./support/browser.mjs";
import { Daemon } from "./support/daemon.mjs";
import { many } from "./support/many.mjs";
import { serviceAt } from "./support/model.mjs";
import { PHONE, openAgain, withSociety } from "./support/society.mjs";
import { PIECES, REASONING, streamer } from "./support/streamer.mjs";
import { verdict } from "./support/verdict.mjs";
import {
  closeDialog, conversationIsWhole, go, idle, isFocused, live, row, send, showsAgent, timeline, timelineIsWhole, toast, until,
} from "./support/page.mjs";

const PICTURE = fileURLToPath(new URL("../../examples/picture.png", import.meta.url));
const BINARY = process.env.POLITY_BIN ?? fileURLToPath(new URL("../../target/debug/polity", import.meta.url));

const chromium = whereChromium();
if (!chromium) {
  console.log("SKIPPED: Chromium is not installed, so the live view was not tested (Debian: apt-get install chromium)");
  process.exit(0);
}
if (!existsSync(BINARY)) {
  console.error(`no program at ${BINARY}: build it first, or set POLITY_BIN`);
  process.exit(1);
}

let step = "";
const says = (text) => {
  step = text;
  console.log(`- ${text}`);
};
const skipped = [];
const skips = (part) => {
  skipped.push(part);
  console.log(`  SKIPPED: ${part}`);
};

async function prompts(page, daemon) {
  says("the login form accepts only the right token");
  const { page: stranger, context } = await open(page.context().browser());
  const answer = await stranger.goto(daemon.url);
  assert.equal(answer.status(), 401);
  await stranger.locator("input[name=token]").fill("wrong");
  await stranger.locator("button").click();
  await stranger.locator("[role=alert]").waitFor();
  await context.close();

  await page.locator("input[name=token]").fill(daemon.token);
  await page.locator("button").click();
  await live(page);

  says("the home page shows that nobody is at work, and offers the message box");
  await page.locator("body[data-page=now]").waitFor();
  await page.locator(".page-now .nothing").waitFor();
  await page.locator(".composer textarea[name=text]").waitFor();

  says("a banner on every page says that the models are rehearsals");
  for (const name of ["now", "services", "conversation"]) {
    await go(page, name);
    await page.locator(".rehearsal-banner strong", { hasText: "Rehearsal" }).waitFor();
  }
  await go(page, "conversation");

  says("a prompt with a picture: the tree grows, the page shows the picture and the answer");
  await page.locator("input[type=file]").setInputFiles(PICTURE);
  await page.locator(".attached-file img").waitFor();
  await send(page, "看看这张图片");
  const shown = page.locator(".message.mine .picture img");
  await shown.waitFor();
  await until("the picture is decoded", () => shown.evaluate((image) => image.complete && image.naturalWidth === 480));
  await until("two agents are hired", async () => (await page.locator(".tree-row").count()) >= 3);
  await page.locator(".message:not(.mine):not(.interim)", { hasText: "最终结果" }).waitFor();
  await idle(daemon);
  await conversationIsWhole(page, daemon);
  assert.equal(await page.locator(".message.mine").count(), 1);

  says("the timeline shows the messages, and how the picture was routed");
  await timelineIsWhole(page, daemon);
  const filter = (group) => page.locator(`.timeline-head button.group-${group}`);
  await filter("models").click();
  await timelineIsWhole(page, daemon, ["models"]);
  await page.locator(".routing-image_url").first().waitFor();
  await page.locator(".routing-described").first().waitFor();
  await filter("models").click();
  await timelineIsWhole(page, daemon);
  await filter("messages").click();
  await timelineIsWhole(page, daemon, ["messages"]);
  await page.locator(".event.group-messages .tag", { hasText: "assignment" }).first().waitFor();
  await filter("messages").click();
  await timelineIsWhole(page, daemon);
}

async function explains(page, daemon) {
  says("\"Why?\" on a described picture: the service, its revision, who can see, and a remedy that works");
  const { events } = await daemon.get("/api/events?kind=model_answered&agent=root&before=9007199254740991");
  const answered = events.findLast((event) => event.content?.some((shown) => shown.routing === "described"));
  const { artifact, why } = answered.content.find((shown) => shown.routing === "described");
  await go(page, "timeline");
  const chip = page.locator(`a.routing-described[href$="/why/${encodeURIComponent(`artifact:${artifact}@${answered.sent}`)}"]`);
  await chip.first().click();
  const detail = page.locator("aside.detail");
  const fact = (name) => detail.locator(`.why .fact-${name}`);
  await fact("described").locator("a.who", { hasText: "root" }).waitFor();
  await fact("service_takes").filter({ hasText: answered.service }).filter({ hasText: String(answered.revision) }).waitFor();
  await fact("others_can").filter({ hasText: why.services[0] }).waitFor();

  says("the request as it was sent opens from the reasons");
  await fact("described").locator("a", { hasText: String(answered.sent) }).last().click();
  await detail.locator(".role-system").waitFor();
  const sent = await daemon.get(`/api/sent/${answered.sent}`);
  await until("all messages are shown", async () => (await detail.locator(".history .record").count()) === JSON.parse(sent.body).messages.length);
  assert.equal(await detail.locator(".as-sent pre").textContent(), sent.body);
  await page.goBack();

  says("the remedy introduces an agent that can see");
  const introduce = detail.locator("[data-remedy=introduce]").first();
  const to = (await introduce.locator("a.who .id").first().textContent()).trim();
  const knows = async () => (await daemon.get("/api/agents/root/contacts")).some((contact) => contact.agent === to);
  assert.equal(await knows(), false);
  await introduce.locator("button").click();
  await until("root knows the agent", knows);
  await until("the remedy is gone", async () => (await introduce.count()) === 0);
  await idle(daemon);

  says("a remedy runs the turn of the explained request again, with a service that sees");
  const tasks = async () => (await daemon.get("/api/tasks")).tasks;
  const had = (await tasks()).length;
  await detail.locator("[data-remedy=run_again] button").click();
  const chosen = await page.locator("dialog.fork select").inputValue();
  assert.ok(why.services.includes(chosen), chosen);
  await page.locator("dialog.fork button.primary").click();
  await until("the turn runs again", async () => (await tasks()).length === had + 1);
  await idle(daemon);
  const again = await daemon.get(`/api/events?kind=model_answered&agent=root&task=${(await tasks())[0].id}`);
  assert.equal(again.events[0].service, chosen);
  assert.ok(again.events[0].content.some((shown) => shown.artifact === artifact && shown.routing === "image_url"));

  says("a turn is run again from the history of an agent, with another text");
  const before = (await daemon.get("/api/tasks")).tasks.length;
  await row(page, "root").click();
  await detail.locator("#tab-history").click();
  await detail.locator(".fork-here").first().click();
  await page.locator("dialog.fork textarea").fill("你好");
  await page.locator("dialog.fork button.primary").click();
  await until("the fork is there", async () => (await daemon.get("/api/tasks")).tasks.length === before + 1);
  await idle(daemon);
  const [forked] = (await daemon.get("/api/tasks")).tasks;
  assert.equal(forked.title, "你好");
  assert.equal(forked.outcome, "answered");
  await page.keyboard.press("Escape");
}

async function looksAtAgents(page, daemon) {
  says("an agent's page: brief, contacts, the stored conversation, the next request");
  const { agents } = await daemon.get("/api/agents");
  const reader = agents.find((agent) => agent.depth === 2);
  const lead = agents.find((agent) => agent.depth === 1);
  await row(page, reader.id).click();
  const detail = page.locator("aside.detail");
  await detail.locator(".brief dd").first().waitFor();
  await detail.locator(".contacts .who", { hasText: lead.id }).waitFor();
  await detail.locator(".rights li", { hasText: "organization" }).waitFor();
  await detail.locator("#tab-history").click();
  await detail.locator(".record-heard .picture img").first().waitFor();
  await detail.locator(".record-replied").first().waitFor();
  await detail.locator("#tab-request").click();
  await detail.locator(".role-system").waitFor();
  await detail.locator(".routing-image_url").waitFor();
  await detail.locator("#tab-overview").click();

  says("keys: move in the tree, open, close, show help");
  const tree = page.locator("[role=tree]");
  const at = (id) => until(`the keys act on ${id}`, async () => (await tree.getAttribute("aria-activedescendant")) === `tree-${id}`);
  await page.keyboard.press("t");
  await until("the tree has the focus", () => isFocused(tree));
  await page.keyboard.press("Home");
  await at("root");
  await page.keyboard.press("ArrowDown");
  await at(lead.id);
  await page.keyboard.press("ArrowLeft");
  await until("the branch is closed", async () => (await row(page, lead.id).getAttribute("aria-expanded")) === "false");
  assert.equal(await row(page, reader.id).count(), 0);
  await page.keyboard.press("ArrowRight");
  await row(page, reader.id).waitFor();
  await at(lead.id);
  await page.keyboard.press("Enter");
  await showsAgent(page, lead.id);
  await until("the column beside the page has the focus", () => isFocused(detail.locator("h2")));
  await page.keyboard.press("Escape");
  await detail.waitFor({ state: "hidden" });
  await page.keyboard.press("?");
  await page.locator("dialog.help[open] kbd").first().waitFor();
  await closeDialog(page);
  return { lead, reader };
}

async function finds(page, daemon, reader) {
  says("one field finds prompts, messages, agents and artifacts; its filter stays");
  await page.keyboard.press("/");
  await page.locator("body[data-page=search]").waitFor();
  const field = page.locator("input[name=search]");
  await until("the field has the focus", () => isFocused(field));
  await field.fill("看看这张图片");
  const hits = page.locator(".page-search .hit");
  await hits.filter({ has: page.locator("mark", { hasText: "看看这张图片" }) }).first().waitFor({ state: "attached" });
  await field.fill('"<img src=x> NEAR(');
  await page.locator(".page-search .nothing").waitFor();
  await page.locator(".page-search select").selectOption("agent");
  await field.fill(reader.id);
  const hit = page.locator(`.page-search .hit[data-key="agent-${reader.id}"] .hit-title`);
  await hit.waitFor({ state: "attached" });
  if (!(await hit.isVisible())) await page.locator(".hits-over summary").click();
  await hit.click();
  await showsAgent(page, reader.id);
  await page.keyboard.press("Escape");
  // The filters of the search, the timeline, the artifacts, the tasks and the tree stay.
  const chips = [["timeline", page.locator(".timeline-head .group-models")], ["artifacts", page.locator(".page-artifacts .chip[data-key=image]")]];
  for (const [name, chip] of chips) {
    await go(page, name);
    await chip.click();
  }
  const kinds = () => page.locator(".tile").evaluateAll((all) => [...new Set(all.map((one) => /kind-(\w+)/.exec(one.className)[1]))].join());
  await until("only pictures are shown", async () => (await kinds()) === "image");
  const states = page.locator(".page-tasks select");
  await go(page, "tasks");
  await states.selectOption("answered");
  const ended = page.locator(".legend-state.state-ended");
  const isEndedShown = async () => (await ended.getAttribute("aria-pressed")) === "true";
  const wasEndedShown = await isEndedShown();
  await ended.click();
  await until("the tree shows other states", async () => (await isEndedShown()) !== wasEndedShown);
  await page.reload();
  await live(page);
  assert.equal(await isEndedShown(), !wasEndedShown, "the tree has forgotten which states it shows");
  await ended.click();
  await go(page, "tasks");
  assert.equal(await states.inputValue(), "answered", "the page of the tasks has forgotten its filter");
  await states.selectOption("");
  await until("the filter stays", async () => (await page.locator(".page-search select").inputValue()) === "agent");
  for (const [name, chip] of chips.toReversed()) {
    await go(page, name);
    await until(`the filter of the page ${name} stays`, async () => (await chip.getAttribute("aria-pressed")) === "true");
    if (name === "artifacts") await until("only pictures are shown", async () => (await kinds()) === "image");
    else await timelineIsWhole(page, daemon, ["models"]);
    await chip.click();
  }
  await timelineIsWhole(page, daemon);
  await go(page, "search");
  await page.locator(".page-search select").selectOption("");
  await go(page, "conversation");
  await idle(daemon);
}

/** Presses the mouse on an element, then runs `happens`, which redraws the element, and then releases the mouse. */
async function pressWhile(page, locator, happens) {
  await locator.hover();
  await page.mouse.down();
  await happens();
  await page.mouse.up();
}

async function clicks(page, daemon) {
  says("an element that is redrawn while the mouse is pressed on it still gets the click");
  await go(page, "conversation");
  await pressWhile(page, row(page, "root"), async () => {
    await daemon.write("先别急");
    // Wait for the message. The page reads it a little later than its event, which the tree may show already.
    await page.locator(".message.mine", { hasText: "先别急" }).waitFor();
  });
  await showsAgent(page, "root");
  await idle(daemon);
  await page.keyboard.press("Escape");
  await page.locator("aside.detail").waitFor({ state: "hidden" });
}

async function writes(page, daemon, reader) {
  says("a message to another agent, with a pasted and a dropped file");
  await row(page, reader.id).click();
  await page.locator("aside.detail .actions button.primary").click();
  await until("the box is addressed", async () => (await page.locator(".receiver").inputValue()).includes(reader.id));
  for (const sort of ["paste", "drop"]) {
    await page.evaluate((name) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([`# ${name}\n<b>not bold</b>\n`], `${name}.md`, { type: "text/markdown" }));
      const field = document.querySelector("textarea[name=text]");
      if (name === "paste") field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true }));
      else document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }, sort);
    await page.locator(".attached-file", { hasText: `${sort}.md` }).waitFor();
  }
  await page.locator(".attached-file", { hasText: "drop.md" }).locator("button").click();
  await page.locator(".attached-file", { hasText: "drop.md" }).waitFor({ state: "detached" });
  await send(page, "请读这份文件");
  await go(page, "conversation");
  // Wait until the bubble is drawn in its final form, so that it does not move when it is clicked.
  const bubble = page.locator(".message.mine", { hasText: "请读这份文件" });
  await bubble.waitFor();
  await idle(daemon);
  const written = (await daemon.get("/api/messages?from=user&limit=1000")).messages.find((message) => message.text === "请读这份文件");
  const version = `${written.id} ${written.state} ${written.answeredBy ?? ""}`;
  await until("the message is drawn in its final form", async () => (await bubble.getAttribute("data-version")) === version);
  await bubble.locator(".chip", { hasText: "paste.md" }).click();
  const text = page.locator("aside.detail .artifact-text");
  await until("the text is shown as text", async () => (await text.textContent()).includes("<b>not bold</b>"));
  assert.equal(await page.locator("aside.detail b").count(), 0);
  await page.locator(".message:not(.mine)", { has: page.locator(".who", { hasText: reader.id }) }).first().waitFor();

  says("the response to a message is lost: the page sends the message again, and it arrives once");
  let attempts = 0;
  const keys = new Set();
  await page.route("**/api/messages", async (route) => {
    if (route.request().method() !== "POST") return route.fallback();
    attempts += 1;
    keys.add(await route.request().headerValue("idempotency-key"));
    if (attempts > 2) return route.continue();
    await page.locator(".write-head .elapsed").waitFor();
    await route.fetch();
    return route.abort();
  });
  await send(page, "只说一次");
  await page.locator(".message.mine", { hasText: "只说一次" }).waitFor();
  await until("it is sent", async () => (await page.locator("textarea[name=text]").inputValue()) === "");
  assert.equal(await page.locator(".write-head .elapsed").count(), 0);
  await page.unroute("**/api/messages");
  assert.equal(attempts, 3);
  assert.equal(keys.size, 1);
  const { messages } = await daemon.get("/api/messages?from=user&limit=1000");
  assert.equal(messages.filter((message) => message.text === "只说一次").length, 1);
  await idle(daemon);
  await conversationIsWhole(page, daemon);
  assert.equal(await page.locator(".message.mine", { hasText: "只说一次" }).count(), 1);
}

async function steers(page, daemon, { lead, reader }) {
  says("an agent is paused with its descendants, resumed and stopped");
  const stateOf = async (id) => (await daemon.get(`/api/agents/${id}`)).state;
  const detail = page.locator("aside.detail");
  await row(page, lead.id).click();
  await showsAgent(page, lead.id);
  await detail.getByRole("button", { name: "Pause" }).click();
  await page.locator("dialog[open] button.primary").click();
  await page.locator(`#tree-${lead.id}.is-paused`).waitFor();
  await page.locator(`#tree-${reader.id}.is-paused`).waitFor();
  await toast(page, "paused");
  assert.equal(await stateOf(reader.id), "paused");
  await detail.getByRole("button", { name: "Resume" }).click();
  await page.locator("dialog[open] button.primary").click();
  await page.locator(`#tree-${lead.id}:not(.is-paused)`).waitFor();
  await toast(page, "resumed");
  assert.notEqual(await stateOf(reader.id), "paused");
  await detail.getByRole("button", { name: "Stop" }).click();
  await page.locator("dialog[open] button.danger.primary").click();
  await toast(page, "stopped");
  await page.keyboard.press("Escape");
  await detail.waitFor({ state: "hidden" });
}

async function stopsATask(page, daemon) {
  says("a task that makes no progress is stopped in the list of tasks");
  await daemon.post("/api/agents/root/pause?scope=agent");
  const { task } = await daemon.write("这个任务会被停止");
  await go(page, "tasks");
  const line = page.locator(`tr[data-key="${task}"]`);
  await line.getByRole("button", { name: "Stop this task" }).click();
  await page.locator("dialog[open] button.danger.primary").click();
  await toast(page, "stopped");
  await page.locator(`tr.task-unanswered[data-key="${task}"]`).waitFor();
  assert.equal((await daemon.get(`/api/tasks/${task}`)).stoppedBy, "user");
  await line.getByRole("button", { name: "Stop this task" }).waitFor({ state: "detached" });

  says("its details lead to the reasons why it has no answer, and a remedy leads to the message box");
  await line.locator(".task-files").click();
  const detail = page.locator("aside.detail");
  await detail.locator(".task-head .outcome-unanswered").waitFor();
  await detail.locator(".task-head .why-link").click();
  await detail.locator(".fact-stopped_by_user").waitFor();
  await detail.locator("[data-remedy=write] button").click();
  await until("the box has the focus", () => isFocused(page.locator("textarea[name=text]")));
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await detail.waitFor({ state: "hidden" });
  await daemon.post("/api/agents/root/resume?scope=agent");
}

async function configures(page, daemon) {
  says("the page shows a mistake in the configuration, and removes it once it is fixed");
  daemon.configure("app.json", { discover: false, language: "zh", limits: { maxDepth: "deep" } });
  await page.locator(".problems-banner", { hasText: "/limits/maxDepth" }).waitFor();
  await go(page, "services");
  await page.locator(".configuration .problems", { hasText: "/limits/maxDepth" }).waitFor();
  await page.locator(".card .capabilities").first().waitFor();
  daemon.configure("app.json", { discover: false, language: "zh", limits: { maxDepth: 7 } });
  await page.locator(".problems-banner").waitFor({ state: "hidden" });
  await page.locator(".page-services .pane-head button").click();
  await page.locator(".configuration .limits dd", { hasText: /^7$/ }).waitFor();
  await go(page, "artifacts");
  await page.locator(".tile.kind-image img").first().waitFor();
  await go(page, "tasks");
  await page.locator(".tasks tbody tr", { hasText: "看看这张图片" }).waitFor();
}

async function answers(page, daemon) {
  says("another model replaces the old one, asks the user, and gets an answer");
  const model = await asker();
  try {
    daemon.configure("llmservices.json", { services: [serviceAt("asker", model.url, { price: { input: 1, output: 2 } })] });
    await go(page, "services");
    await page.locator(".card[data-service=asker]").waitFor();
    await page.locator(".rehearsal-banner").waitFor({ state: "hidden" });
    await go(page, "conversation");
    await page.locator(".receiver").fill("root");
    await page.locator(".receiver").press("Enter");
    await page.locator(".write-head select").first().selectOption("");
    await send(page, "该用哪一份？");
    await page.locator(".banner.questions", { hasText: QUESTION }).waitFor();
    await page.locator(".message.asks", { hasText: QUESTION }).waitFor();
    await page.locator("#tree-root .badge.ask").waitFor();
    await until("the title says so", async () => (await page.title()).startsWith("(1)"));
    await page.locator(".banner.questions button.primary").click();
    await until("the box has the focus", () => isFocused(page.locator("textarea[name=text]")));
    await send(page, "六月的");
    await page.locator(".message:not(.mine)", { hasText: CONTENT }).waitFor();
    await page.locator(".banner.questions").waitFor({ state: "hidden" });
    await page.locator("#tree-root .badge.ask").waitFor({ state: "detached" });
    await go(page, "services");
    await page.locator(".card[data-service=asker] .spent", { hasText: "cost" }).waitFor();
    // Wait until no agent uses this model, because the next line removes the model's service.
    await idle(daemon);
    daemon.configure("llmservices.json", { services: [] });
    await page.locator(".card[data-service=rehearsal-text]").waitFor();
  } finally {
    model.close();
  }
}

async function streams(page, daemon) {
  says("an agent shows its true state, and the answer of its model while it arrives");
  const model = await streamer();
  try {
    daemon.configure("llmservices.json", { services: [{ id: "streamer", name: "streamer", baseURL: model.url, model: "streamer" }] });
    await go(page, "services");
    await page.locator(".card[data-service=streamer]").waitFor();
    await go(page, "conversation");
    await page.locator(".receiver").fill("root");
    await page.locator(".receiver").press("Enter");
    await page.locator(".write-head select").first().selectOption("");
    await send(page, "慢慢说");
    await row(page, "root").locator(".state-thinking").waitFor();
    await row(page, "root").click();
    await showsAgent(page, "root");
    await page.locator("aside.detail .arriving .prose", { hasText: PIECES.join("") }).waitFor();
    // The reasoning is folded: its element exists, but is hidden until the person opens it.
    const reasoning = page.locator("aside.detail .arriving details .prose", { hasText: REASONING });
    await reasoning.waitFor({ state: "attached" });
    assert.equal(await reasoning.isVisible(), false);
    await page.locator("aside.detail .arriving summary").click();
    await reasoning.waitFor();
    await page.locator("aside.detail .agent-head .doing", { hasText: "streamer" }).waitFor();
    await page.locator("aside.detail .agent-head .elapsed").waitFor();

    says("the conversation shows the arriving answer too, marked as such, and the home page its last line");
    const coming = page.locator(".page-conversation .arriving-message");
    await coming.locator(".prose", { hasText: PIECES.join("") }).waitFor();
    await coming.locator(".tag", { hasText: "arriving" }).waitFor();
    const folded = coming.locator("details .prose", { hasText: REASONING });
    await folded.waitFor({ state: "attached" });
    assert.equal(await folded.isVisible(), false);
    await coming.locator("summary").click();
    await folded.waitFor();
    const { tasks } = await daemon.get("/api/tasks");
    const task = tasks.find((one) => one.title === "慢慢说").id;
    const thinking = (count) => page.locator(".legend-state.state-thinking .count", { hasText: new RegExp(`^${count}$`) }).waitFor();
    await thinking(1);
    await page.locator(".task-choice").selectOption(tasks.find((one) => one.id !== task).id);
    await coming.waitFor({ state: "detached" });
    // The counts of the states are those of the chosen task, and root does not think in that one.
    await thinking(0);
    await page.locator(".task-choice").selectOption(task);
    await coming.waitFor();
    await thinking(1);
    await page.locator(".task-choice").selectOption("");
    await go(page, "now");
    await page.locator(".now-card[data-key=root] .now-arriving", { hasText: new RegExp(`^${PIECES.slice(1).join("")}$`) }).waitFor();
    await go(page, "conversation");
    await coming.waitFor();

    model.finish();
    await page.locator(".message:not(.mine)", { hasText: PIECES.join("") }).waitFor();
    await coming.waitFor({ state: "detached" });
    await page.locator("aside.detail .arriving").waitFor({ state: "detached" });
    await row(page, "root").locator(".state-idle").waitFor();
    await page.locator("aside.detail .detail-head button").last().click();
    await page.locator("aside.detail").waitFor({ state: "hidden" });
    await idle(daemon);
    daemon.configure("llmservices.json", { services: [] });
    await go(page, "services");
    await page.locator(".card[data-service=rehearsal-text]").waitFor();
  } finally {
    model.finish();
    model.close();
  }
}

/** Matches requests that read messages. */
const messagesRead = /\/api\/messages\?/;

/** Returns whether the marked element still exists and still has the focus. */
const hasFocus = (page) => page.evaluate(() => document.activeElement === globalThis.marked);

async function staysPut(page, daemon) {
  const underway = new Set();
  page.on("request", (request) => { if (messagesRead.test(request.url())) underway.add(request); });
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => underway.delete(request));

  says("while events come, an element keeps the focus and a list keeps its choices");
  await page.evaluate(() => {
    globalThis.choice = document.querySelector(".task-choice");
    globalThis.options = [...globalThis.choice.options];
    globalThis.marked = document.querySelector(".legend .state-idle");
    globalThis.marked.focus();
  });
  await go(page, "conversation");
  await page.evaluate(() => globalThis.marked.focus());
  await daemon.write("顺便看看");
  await page.locator(".message.mine", { hasText: "顺便看看" }).waitFor();
  await idle(daemon);
  await until("the new task can be chosen", () => page.evaluate(() => globalThis.choice.isConnected && [...globalThis.choice.options].some((one) => one.text === "顺便看看")));
  assert.ok(await page.evaluate(() => globalThis.options.every((one) => one.isConnected)), "an old choice was replaced");
  assert.ok(await hasFocus(page), "the legend has lost the focus");

  says("a message that could not be read appears as soon as it can be read");
  // Until the test writes the message, all requests of the page for messages fail. So no request that began earlier can
  // bring the message. After that, three more requests fail.
  let failures = -Infinity;
  await page.route(messagesRead, (route) => {
    failures += 1;
    return failures > 3 ? route.fallback() : route.abort();
  });
  await until("nothing is being read", () => underway.size === 0);
  failures = 0;
  await daemon.write("听得到吗？");
  await page.locator(".message.mine", { hasText: "听得到吗？" }).waitFor();
  assert.ok(failures > 3);
  await page.unroute(messagesRead);

  says("the end of the conversation stays in sight when the list grows while it scrolls, and only then");
  const scroll = page.locator(".page-conversation .scroll");
  const below = () => scroll.evaluate((one) => Math.round(one.scrollHeight - one.scrollTop - one.clientHeight));
  const scrollBy = (by) => scroll.evaluate((one, pixels) => new Promise((resolve) => {
    one.addEventListener("scroll", resolve, { once: true });
    one.scrollTop += pixels;
  }), by);
  /** Makes the last message higher, as a picture does when it is loaded. Before that, scrolls in the same moment. */
  const grow = (height, by) => scroll.evaluate((one, [pixels, more]) => {
    one.scrollTop += more;
    one.querySelector(".message:last-child").style.minHeight = pixels;
  }, [height, by]);
  const drawn = () => page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
  await until("the end is in sight", async () => (await below()) <= 1);
  // Such a small distance still counts as the end.
  await scrollBy(-40);
  await grow("600px", 40);
  await until("the end is in sight again", async () => (await below()) <= 1);
  await scrollBy(-200);
  await grow("900px", 0);
  await drawn();
  assert.ok(await below() >= 500, "the list has left the place to which the person has scrolled");
  await grow("", 0);
  await until("the end is in sight once more", async () => (await below()) <= 1);

  says("a hidden page holds no stream, and shows everything when it is visible again");
  const look = (hidden) => page.evaluate((now) => {
    Object.defineProperty(document, "hidden", { value: now, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  const ofStream = (request) => request.headers().accept === "text/event-stream";
  const ended = page.waitForEvent("requestfailed", ofStream);
  await look(true);
  await ended;
  await daemon.write("没人在看");
  const begun = page.waitForEvent("request", ofStream);
  await look(false);
  await begun;
  await page.locator(".message.mine", { hasText: "没人在看" }).waitFor();
  assert.ok(await page.locator(".banner.lost").isHidden());
  await idle(daemon);

  says("a draft survives a change of language, and a dropped file is attached once");
  const field = page.locator("textarea[name=text]");
  await field.fill("half a thought");
  for (const name of ["时间线", "Timeline"]) {
    await page.locator("button.language").click();
    await page.locator("nav.pages", { hasText: name }).waitFor();
    assert.equal(await field.inputValue(), "half a thought");
    await until("the button for the language has the focus", () => isFocused(page.locator("button.language")));
  }
  await page.evaluate(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["once"], "once.txt", { type: "text/plain" }));
    document.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
  });
  await page.locator(".attached-file").first().waitFor();
  assert.equal(await page.locator(".attached-file").count(), 1);
  await page.locator(".attached-file button").click();
  await page.locator(".attached-file").waitFor({ state: "detached" });
  await field.fill("");

  says("the key for pausing asks first, and keys of one letter can be switched off");
  const steered = [];
  page.on("request", (request) => { if (/\/api\/agents\/[^/]+\/(pause|resume|stop)/.test(request.url())) steered.push(request.url()); });
  await page.locator("[role=tree]").focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("p");
  await closeDialog(page);
  await page.keyboard.press("?");
  await page.locator("dialog.help input[name=letters]").uncheck();
  await closeDialog(page);
  const place = await page.evaluate(() => location.hash);
  await page.keyboard.press("?");
  await page.keyboard.press("2");
  // These keys must have no effect. The page handles keys in order, so a new dialog or a new address would be visible
  // by now.
  assert.equal(await page.locator("dialog").count(), 0);
  assert.equal(await page.evaluate(() => location.hash), place);
  await page.locator(".top-end button").first().click();
  await page.locator("dialog.help input[name=letters]").check();
  await closeDialog(page);
  // The keys above must not have caused a request to pause an agent, and must not have opened a dialog. Such an effect
  // would come before the requests of the next two lines, so the checks after these lines would see it.
  await go(page, "tasks");
  await page.evaluate(() => fetch("/api/tasks"));
  assert.deepEqual(steered, []);
  assert.notEqual((await daemon.get("/api/agents/root")).state, "paused");
  await go(page, "conversation");

  says("each tab names its panel, and the user's page has no tabs");
  await row(page, "root").click();
  await showsAgent(page, "root");
  const tab = page.locator("aside.detail [role=tab][aria-selected=true]");
  await tab.waitFor();
  assert.equal(await page.locator(`#${await tab.getAttribute("aria-controls")}[role=tabpanel]`).count(), 1);
  await page.evaluate(() => { location.hash = "#/conversation/agent/user"; });
  await showsAgent(page, "user");
  await page.locator("aside.detail .facts").first().waitFor();
  assert.equal(await page.locator("aside.detail [role=tablist], aside.detail [role=tabpanel]").count(), 0);
  await page.locator("aside.detail .detail-head button").last().click();
  await page.locator("aside.detail").waitFor({ state: "hidden" });
}

async function survives(page, daemon, quietly) {
  says("the daemon is killed and restarted: the page goes on without gaps and duplicates");
  await timelineIsWhole(page, daemon);
  for (let round = 1; round <= 3; round += 1) {
    await go(page, "conversation");
    await send(page, `第 ${round} 次，看看还在不在`);
    await page.locator(".message.mine", { hasText: `第 ${round} 次` }).waitFor();
    await quietly(async () => {
      await daemon.kill();
      await page.locator(".connection[data-state=lost]").waitFor();
      await page.locator(".banner.lost").waitFor();
      await daemon.start();
      await live(page);
    });
    await page.locator(".banner.lost").waitFor({ state: "hidden" });
    await idle(daemon);
    await timelineIsWhole(page, daemon);
    await conversationIsWhole(page, daemon);
    assert.equal(await page.locator(".message.mine", { hasText: `第 ${round} 次` }).count(), 1);
  }
}

/** For each page, a selector that matches when the page shows its content. */
const CONTENTS = {
  now: ".page-now .nothing",
  society: ".tree-row", conversation: ".message", timeline: ".page-timeline .event", tasks: ".tasks tbody tr",
  artifacts: ".tile", services: ".card", approvals: ".page-approvals .nothing", search: ".page-search input",
};

async function looks(browser, page, daemon) {
  says("Chinese and English, light and dark, reduced motion, a phone");
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.locator("[role=tree]").focus();
  await page.keyboard.press("d");
  await until("it is dark", async () => (await ground()) !== light);
  await page.reload();
  await live(page);
  assert.notEqual(await ground(), light, "the colour scheme was not remembered");
  await page.keyboard.press("d");
  await until("it is light", async () => (await ground()) === light);
  await page.locator("button.language").click();
  await page.locator("nav.pages", { hasText: "时间线" }).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.lang), "zh-Hans");
  await live(page);
  await page.locator(".tree-row").first().waitFor();
  await page.locator("button.language").click();
  await page.locator("nav.pages", { hasText: "Timeline" }).waitFor();

  const phone = await openAgain(browser, page.context(), daemon, { ...PHONE, reducedMotion: "reduce" });
  await phone.page.locator("nav.pages", { hasText: "时间线" }).waitFor();
  assert.notEqual(await phone.page.evaluate(() => getComputedStyle(document.body).backgroundColor), light);
  for (const [name, content] of Object.entries(CONTENTS)) {
    await go(phone.page, name);
    await phone.page.locator(content).first().waitFor();
    const width = await phone.page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `${name} is ${width} pixels wide`);
  }
  await go(phone.page, "society");
  await row(phone.page, "root").click();
  await phone.page.locator("aside.detail .tabs").waitFor();
  assert.deepEqual(await phone.page.evaluate(() => globalThis.observed.motions), [], "something has moved although reduced motion is wanted");
  assert.equal(await phone.page.evaluate(() => document.getAnimations().length), 0);
  assert.deepEqual(await phone.complaints(), []);
  await phone.context.close();
}

async function bears(browser, page, daemon) {
  says("1,000 agents and 100,000 events: few elements, bounded memory");
  const society = many({ agents: 1000, events: 105_000, asOf: 100_000 });
  const big = await open(browser, { storageState: await page.context().storageState().then(({ cookies }) => ({ cookies, origins: [] })) });
  let streams = 0;
  await big.page.route("**/api/**", async (route) => {
    const request = route.request();
    if (request.headers().accept === "text/event-stream") {
      streams += 1;
      // The second stream never gets an answer. So the page does not change the state of the connection that it shows.
      if (streams > 1) return undefined;
      const blocks = Array.from({ length: 5000 }, (_, at) => society.entry(100_001 + at));
      return route.fulfill({ contentType: "text/event-stream", body: blocks.map((entry) => `id: ${entry.seq}\nevent: ${entry.event}\ndata: ${JSON.stringify(entry)}\n\n`).join("") });
    }
    if (request.url().endsWith("/content")) return route.fulfill({ contentType: "image/png", body: readFileSync(PICTURE) });
    const answer = society.answer(request.method(), request.url());
    return route.fulfill(answer ? { json: answer } : { status: 404, json: {} });
  });
  await big.page.goto(`${daemon.url}/#/timeline`);
  await until("the page holds all events", async () => Number(await timeline(big.page).getAttribute("data-last")) === 105_000);
  await big.page.locator(".questions", { hasText: "the one of May" }).waitFor();
  await big.page.locator(".badge.ask").first().waitFor();
  const elements = () => big.page.evaluate(() => document.querySelectorAll("*").length);
  const rows = () => big.page.locator(".row").count();
  assert.ok(await elements() < 4000, `${await elements()} elements`);
  assert.ok(await rows() < 150, `${await rows()} rows`);

  for (let page_ = 0; page_ < 40; page_ += 1) {
    const first = await timeline(big.page).getAttribute("data-first");
    await timeline(big.page).evaluate((element) => { element.scrollTop = 0; });
    await until("an older page is read", async () => (await timeline(big.page).getAttribute("data-first")) !== first);
  }
  assert.ok(Number(await timeline(big.page).getAttribute("data-first")) < 96_000);
  assert.ok(Number(await timeline(big.page).getAttribute("data-held")) <= 3000);
  assert.ok(await rows() < 150, `${await rows()} rows`);
  await big.page.locator(".timeline-head > button").first().click();
  await until("the page holds the oldest events", async () => (await timeline(big.page).getAttribute("data-first")) === "1");
  for (let page_ = 0; page_ < 20; page_ += 1) {
    const last = await timeline(big.page).getAttribute("data-last");
    await timeline(big.page).evaluate((element) => { element.scrollTop = element.scrollHeight; });
    await until("a newer page is read", async () => (await timeline(big.page).getAttribute("data-last")) !== last);
  }
  assert.ok(Number(await timeline(big.page).getAttribute("data-held")) <= 3000);

  await big.page.locator("[role=tree]").focus();
  await big.page.keyboard.press("Home");
  for (let at = 0; at < 60; at += 1) await big.page.keyboard.press("PageDown");
  await big.page.locator('.tree-row.at[data-at="600"]').waitFor();
  assert.ok(await rows() < 150, `${await rows()} rows`);
  assert.ok(await elements() < 4000, `${await elements()} elements`);
  const session = await big.context.newCDPSession(big.page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  assert.ok(usedSize < 48 * 1024 * 1024, `${Math.round(usedSize / 1024 / 1024)} MiB in use`);
  console.log(`  ${await elements()} elements, ${await rows()} rows, ${Math.round(usedSize / 1024 / 1024)} MiB`);
  assert.deepEqual(await big.complaints(), []);
  await big.context.close();
}

/** Tests explanations and forks. Uses a daemon of its own, because both add messages and tasks. */
async function reasons(browser) {
  await withSociety(browser, BINARY, { name: "reasons" }, async ({ daemon, page }) => {
    await go(page, "conversation");
    await page.locator("input[type=file]").setInputFiles(PICTURE);
    await page.locator(".attached-file img").waitFor();
    await send(page, "看看这张图片");
    await page.locator(".message:not(.mine):not(.interim)", { hasText: "最终结果" }).waitFor();
    await idle(daemon);
    await explains(page, daemon);
  });
}

const daemon = new Daemon(BINARY);
let browser = null;
let failed = false;
try {
  await daemon.start();
  browser = await launch(chromium);
  const { page, complaints, quietly } = await open(browser);
  // Without a token, the daemon answers 401 with the login form. The browser logs the 401 as an error, which is
  // expected here.
  await quietly(() => page.goto(daemon.url));
  await prompts(page, daemon);
  const agents = await looksAtAgents(page, daemon);
  await finds(page, daemon, agents.reader);
  await clicks(page, daemon);
  await writes(page, daemon, agents.reader);
  await resultsOf(page, daemon, says);
  await steers(page, daemon, agents);
  await stopsATask(page, daemon);
  await configures(page, daemon);
  await answers(page, daemon);
  await streams(page, daemon);
  await staysPut(page, daemon);
  await survives(page, daemon, quietly);
  await looks(browser, page, daemon);
  await reasons(browser);
  await tasksOf(browser, BINARY, says);
  await nowOf(browser, BINARY, says);
  await stuckOf(browser, BINARY, says);
  await silentOf(browser, BINARY, says);
  await crowdOf(browser, BINARY, says);
  await foreseesOf(browser, BINARY, says);
  await handsOf(browser, BINARY, says, skips);
  await commandsOf(browser, BINARY, says, skips);
  await rightsOf(browser, BINARY, says);
  await hostileOf(browser, BINARY, says);
  await bears(browser, page, daemon);
  says("the page has logged no error and contacted no other server");
  assert.deepEqual((await complaints()).filter((one) => !one.includes("net::ERR_FAILED")), []);
  console.log(verdict(skipped));
} catch (error) {
  failed = true;
  console.error(`\nFAILED at: ${step}\n${error.stack}\n\nthe log of the daemon:\n${daemon.said.slice(-4000)}`);
  if (process.env.POLITY_FAILURE_PICTURE && browser) {
    const page = browser.contexts().at(-1)?.pages()[0];
    await page?.screenshot({ path: process.env.POLITY_FAILURE_PICTURE }).catch(() => {});
  }
} finally {
  await browser?.close();
  await daemon.kill();
  daemon.remove();
}
process.exit(failed ? 1 : 0);
