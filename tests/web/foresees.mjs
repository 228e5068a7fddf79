// Checks that the message box warns the user, before a message is sent, of what will not work.

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { go, idle, live, row, send, toast, until } from "./support/page.mjs";
import { withSociety } from "./support/society.mjs";

const PICTURE = fileURLToPath(new URL("../../examples/picture.png", import.meta.url));

const service = (id, model, input) => ({ id, baseURL: "rehearsal:", model, capabilities: { input: ["text", ...input], output: ["text", "tool_calling"] } });
const WORDS = service("words", "rehearsal-text", []);
const EYES = service("eyes", "rehearsal-multimodal", ["vision"]);

const told = (page, code) => page.locator(`.foreseen li[data-code=${code}]`);
const gone = (page) => until("nothing is told", async () => (await page.locator(".foreseen li").count()) === 0);

/** Runs a society. At first, it has only one model, and this model takes only text. */
export async function foreseesOf(browser, binary, says) {
  await withSociety(browser, binary, { name: "the message box", services: [WORDS] }, async ({ daemon, page }) => {
    await aboutTools(page, daemon, says);
    await aboutFiles(page, daemon, says);
    const reader = await aboutReceivers(page, daemon, says);
    await folds(page, daemon, reader, says);
  });
}

async function aboutTools(page, daemon, says) {
  says("the message box says before a task starts that the model of root calls no tools");
  const text = page.locator("textarea[name=text]");
  await text.fill("数一数");
  daemon.configure("llmservices.json", { services: [{ ...WORDS, capabilities: { input: ["text"], output: ["text"] } }] });
  await told(page, "no_tools").filter({ hasText: "service words calls no tools" }).waitFor();
  await page.locator("button.language").click();
  await told(page, "no_tools").filter({ hasText: "服务 words 的模型不能调用工具" }).waitFor();
  await page.locator("button.language").click();
  daemon.configure("llmservices.json", { services: [WORDS] });
  await gone(page);
  await text.fill("");
}

async function attach(page, ...files) {
  const before = await page.locator(".attached-file").count();
  await page.locator("input[type=file]").setInputFiles(files);
  await until("the files are attached", async () => (await page.locator(".attached-file").count()) === before + files.length);
}

async function detachAll(page) {
  for (let left = await page.locator(".attached-file").count(); left > 0; left -= 1) {
    await page.locator(".attached-file button").first().click();
    await until("a file is gone", async () => (await page.locator(".attached-file").count()) === left - 1);
  }
}

async function aboutFiles(page, daemon, says) {
  says("the message box says before sending that no service sees the attached picture");
  await attach(page, PICTURE);
  await told(page, "nobody_takes").filter({ hasText: "picture.png" }).filter({ hasText: "pictures" }).waitFor();
  assert.deepEqual((await daemon.get("/api/tasks")).tasks, [], "a message was sent");
  await page.locator("button.language").click();
  await told(page, "nobody_takes").filter({ hasText: "没有服务接收图片" }).waitFor();
  await page.locator("button.language").click();

  says("what it said is not said again after sending");
  await send(page, "看看这张图片");
  await until("the message has arrived", async () => (await daemon.get("/api/tasks")).tasks.length === 1);
  await until("the box is empty", async () => (await page.locator("textarea[name=text]").inputValue()) === "");
  await toast(page, "Sent to");
  await gone(page);
  await idle(daemon);
  assert.deepEqual(await page.evaluate(() => globalThis.observed.toasts.filter((one) => one.includes("picture.png"))), []);

  says("documents: which ones no model can read, and which pictures no model gets");
  const of = (name, mimeType) => ({ name, mimeType, buffer: Buffer.from("x") });
  await attach(page, of("old.doc", "application/msword"), of("new.docx", ""), of("a.pdf", "application/pdf"));
  await told(page, "unreadable").filter({ hasText: "old.doc:" }).waitFor();
  await attach(page, of("IMG_1.HEIC", "image/heic"));
  await told(page, "undecoded").filter({ hasText: "IMG_1.HEIC:" }).waitFor();
  await detachAll(page);
  await gone(page);

  says("a service that sees is added: the warning goes");
  await attach(page, PICTURE);
  await told(page, "nobody_takes").waitFor();
  daemon.configure("llmservices.json", { services: [WORDS, EYES] });
  await gone(page);
  await detachAll(page);

  says("a remedy for the picture that nobody could see prepares the message that asks for somebody");
  const { artifacts } = await daemon.get("/api/artifacts?kind=image");
  await page.evaluate((id) => { location.hash = `#/conversation/why/${encodeURIComponent(`artifact:${id}`)}`; }, artifacts[0].id);
  await page.locator("aside.detail [data-remedy=hire] button").click();
  const text = page.locator("textarea[name=text]");
  await until("the message is prepared", async () => (await text.inputValue()).includes("eyes"));
  await text.fill("");
  await page.locator("aside.detail .detail-head button").last().click();
  await attach(page, PICTURE);
}

async function aboutReceivers(page, daemon, says) {
  says("the receiver matters: one that cannot see, one that can, one that is paused");
  await page.locator(".write-head select").first().selectOption("");
  await send(page, "看看这张图片");
  const agents = await until("a reader is hired", async () => {
    const found = (await daemon.get("/api/agents")).agents;
    return found.some((agent) => agent.service === "eyes") && found;
  });
  await idle(daemon);
  const reader = agents.find((agent) => agent.service === "eyes");
  const lead = agents.find((agent) => agent.id === reader.parent);
  await go(page, "conversation");
  const to = async (agent) => {
    await page.locator(".receiver").fill(agent);
    await page.locator(".receiver").press("Enter");
  };
  await attach(page, PICTURE);
  await to(lead.id);
  await told(page, "described").filter({ hasText: "eyes" }).waitFor();
  await to(reader.id);
  await gone(page);
  await daemon.post(`/api/agents/${reader.id}/pause?scope=agent`);
  await told(page, "paused").waitFor();
  await to("root");
  await gone(page);
  await row(page, reader.id).waitFor();
  return reader.id;
}

async function folds(page, daemon, reader, says) {
  says("in the tree, agents of finished tasks are folded, also after a reload");
  const fold = page.locator(".tree-fold button");
  await fold.click();
  // The reader is paused, so it is not finished. The agent above it stays with it.
  await page.locator(".tree-fold button[aria-expanded=false]").waitFor();
  await row(page, reader).waitFor();
  await daemon.post(`/api/agents/${reader}/resume?scope=agent`);
  await row(page, reader).waitFor({ state: "detached" });
  const { agents } = await daemon.get("/api/agents");
  await fold.filter({ hasText: new RegExp(`\\b${agents.length - 2}\\b`) }).waitFor();
  assert.deepEqual(await page.locator(".tree-row").evaluateAll((all) => all.map((one) => one.id)), ["tree-root"]);
  await page.reload();
  await live(page);
  await fold.waitFor();
  assert.equal(await row(page, reader).count(), 0);
  await fold.click();
  await row(page, reader).waitFor();
}
