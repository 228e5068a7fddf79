// Checks how the view shows work outside the society: calls that wait for the person's answer, running calls, and
// changed files.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DONE, maker } from "./support/maker.mjs";
import { serviceAt } from "./support/model.mjs";
import { go, idle, isFocused, live, row, until } from "./support/page.mjs";
import { runner } from "./support/runner.mjs";
import { PHONE, openAgain, withSociety } from "./support/society.mjs";

const FILES = [["notes/a.md", "# Notes\n"], ["b.md", "refused\n"], ["c.md", "third\n"], ["d.md", "fourth\n"]];

/** The settings of a society whose policy asks the user before each change of a file. */
const app = { tools: { policy: [{ group: "files", write: true, decide: "ask" }] } };

export async function handsOf(browser, binary, says, skips) {
  const model = await maker(FILES);
  await withSociety(browser, binary, { name: "hands", app, services: [serviceAt("maker", model.url)], model }, async ({ daemon, page, context }) => {
    await plays(page, daemon, says, skips);
    await choosesAWorkspace(page, daemon, says);
    await seesTheEdits(page, daemon, says);
    await allowsMore(page, daemon, says);
    await onAPhone(browser, context, daemon, says);
  });
  await showsTheWay(browser, binary, says);
}

const card = (page, path) => page.locator(".approval", { hasText: path });
const count = (page) => page.locator("nav.pages .count-badge");
const openQuestion = (daemon, path) => until(`a question about ${path} is open`, async () =>
  (await daemon.get("/api/approvals?state=open")).approvals.find((one) => one.arguments.path === path));

async function plays(page, daemon, says, skips) {
  says("a call that waits is in sight on every page: a banner, a count, the state of the agent");
  const { task } = await daemon.write("写几个文件");
  await page.locator(".page-now .stuck-approval", { hasText: "str_replace_editor" }).waitFor();
  await until("the count is 1", async () => (await count(page).textContent()) === "1");
  await row(page, "root").locator(".state-asking").waitFor();
  await page.locator(".page-now .stuck-approval button[data-does=decide]").click();
  await page.locator("body[data-page=approvals]").waitFor();
  await go(page, "timeline");
  await page.locator(".approvals-banner").waitFor();

  says("the question shows all arguments and the change as a difference; yes lets the call run");
  await page.keyboard.press("a");
  const first = card(page, "notes/a.md");
  await first.locator(".diff-added", { hasText: "# Notes" }).waitFor();
  await until("the question has the focus", () => isFocused(first));
  // The page itself needs no banner.
  await page.locator(".approvals-banner").waitFor({ state: "hidden" });
  await first.locator(".facts", { hasText: "file_text" }).waitFor();
  const file = (path) => join(daemon.data, "workspaces", task, "main", path);
  assert.throws(() => readFileSync(file("notes/a.md")), "the call has run before it was allowed");
  await first.locator(".actions button.primary").press("Enter");
  await first.waitFor({ state: "detached" });
  await until("the file is there", () => {
    try {
      return readFileSync(file("notes/a.md"), "utf8") === "# Notes\n";
    } catch {
      return false;
    }
  });

  says("no, with a reason that the agent is told");
  const second = card(page, "b.md");
  await second.locator("input").fill("not this one");
  await second.locator("input").press("Enter");
  await second.waitFor({ state: "detached" });
  const refused = await until("the refusal is stored", async () => (await daemon.get(`/api/approvals?task=${task}&state=denied`)).approvals[0]);
  assert.equal(refused.reason, "not this one");

  says("a question that was answered elsewhere disappears; a permission is listed and can be removed");
  const third = card(page, "c.md");
  await third.waitFor();
  const { id } = await openQuestion(daemon, "c.md");
  await daemon.answer(id, { answer: "always" });
  await third.waitFor({ state: "detached" });
  await idle(daemon);
  await count(page).waitFor({ state: "hidden" });
  assert.equal(readFileSync(file("d.md"), "utf8"), "fourth\n", "the permission covers the next call");
  const permission = page.locator(".permissions tbody tr", { hasText: "str_replace_editor" });
  await permission.locator("button").click();
  await permission.waitFor({ state: "detached" });
  assert.deepEqual(await daemon.get("/api/permissions"), []);

  says("the agent's page and the timeline show the calls with their arguments, duration and result");
  await row(page, "root").click();
  const calls = page.locator("aside.detail .call-card");
  await calls.filter({ hasText: "d.md" }).locator(".tag").waitFor();
  await page.reload();
  await live(page);
  await calls.filter({ hasText: "d.md" }).waitFor();
  await go(page, "timeline");
  await page.locator(".event", { hasText: "called str_replace_editor" }).locator(".tag").first().waitFor();

  says("the files of the task, and what the agent changed in which turn");
  await go(page, "tasks");
  await page.locator(`tr[data-key="${task}"] .task-files`).click();
  const detail = page.locator("aside.detail");
  await detail.locator(".file-tree .link", { hasText: "notes" }).click();
  await detail.locator(".file-tree .link", { hasText: "a.md" }).click();
  await detail.locator(".file-shown .code", { hasText: "# Notes" }).waitFor();
  assert.equal(await detail.locator(".file-tree .link", { hasText: "b.md" }).count(), 0);
  await detail.locator("#task-tab-changes").click();
  const changes = await until("the turn is recorded", async () => {
    const read = await daemon.get(`/api/tasks/${task}/changes`);
    return (read.recording === "nothing" || read.commits.some((one) => one.agent === "root")) && read;
  });
  if (changes.recording === "nothing") {
    // Without git, there are no commits. The page then shows what the tools wrote.
    skips("the commits of a workspace, because this machine has no git");
    await detail.locator(".edits .diff-added", { hasText: "third" }).waitFor();
    return;
  }
  const { id: newest } = changes.commits.find((one) => one.agent === "root");
  const commit = detail.locator(`.commit[data-key="${newest}"]`);
  await commit.locator(".who", { hasText: "root" }).waitFor();
  await commit.locator(".tag", { hasText: /^turn \d+$/ }).waitFor();
  await commit.locator("button").click();
  await commit.locator(".diff-added", { hasText: "third" }).waitFor();
}

/** Begins a task in a directory, with the message box. `access` is "read" or "write". Returns the id of the task. */
async function begins(page, daemon, directory, access, text) {
  await go(page, "conversation");
  await page.locator(".composer select").first().selectOption("");
  await page.locator("input[name=workspace]").fill(directory);
  await page.locator(".composer select[aria-label='Rights in the directory']").selectOption(access);
  await page.locator("textarea[name=text]").fill(text);
  await page.locator("textarea[name=text]").press("Enter");
  const task = await until("the task has begun", async () => (await daemon.get("/api/tasks")).tasks.find((one) => one.title === text));
  return task.id;
}

async function choosesAWorkspace(page, daemon, says) {
  says("a directory for a new task, read-only");
  const project = join(daemon.home, "project");
  mkdirSync(project);
  const task = await begins(page, daemon, project, "read", "再写一次");
  assert.equal((await daemon.get(`/api/tasks/${task}/workspace`)).workspace, `${project}:ro`);
  // The first task has ended with the same words.
  await until("both tasks are done", async () => (await page.locator(".message", { hasText: DONE }).count()) === 2);
}

async function seesTheEdits(page, daemon, says) {
  says("in a directory of the user, without commits: what the tools for files wrote, by agent and turn");
  const project = join(daemon.home, "mine");
  mkdirSync(project);
  const task = await begins(page, daemon, project, "write", "写在我的目录里");
  assert.equal((await daemon.get(`/api/tasks/${task}/workspace`)).workspace, project);
  for (const path of ["notes/a.md", "b.md", "c.md", "d.md"]) {
    const { id } = await openQuestion(daemon, path);
    await daemon.answer(id, { answer: path === "b.md" ? "no" : "yes" });
  }
  await idle(daemon);
  await page.goto(`${daemon.url}/#/tasks/task/${task}`);
  await page.locator("#task-tab-changes").click();
  const edits = page.locator("aside.detail .edits");
  await edits.locator(".who", { hasText: "root" }).waitFor();
  await edits.locator(".tag", { hasText: /^turn \d+$/ }).first().waitFor();
  await edits.locator(".file-diff", { hasText: "notes/a.md" }).locator(".diff-added", { hasText: "# Notes" }).waitFor();
  await edits.locator(".file-diff", { hasText: "d.md" }).locator(".diff-added", { hasText: "fourth" }).waitFor();
  assert.equal(await edits.locator(".file-diff").count(), 3, "the refused call changed nothing");
}

async function allowsMore(page, daemon, says) {
  says("yes for this task: the next task asks again; always: no later task asks");
  await go(page, "approvals");
  const isDone = (task) => existsSync(join(daemon.data, "workspaces", task, "main", "d.md"));
  const begun = [];
  for (const [text, choice] of [["只在这个任务里", "Yes, for this task"], ["以后都可以", "Always"]]) {
    const { task } = await daemon.write(text);
    await openQuestion(daemon, "notes/a.md");
    const shown = card(page, "notes/a.md");
    await shown.locator(".actions button", { hasText: choice }).click();
    await shown.waitFor({ state: "detached" });
    await until("the later calls run without a question", () => isDone(task));
    begun.push(task);
  }
  const { task } = await daemon.write("不用再问");
  await until("all calls run without a question", () => isDone(task));
  const permissions = await daemon.get("/api/permissions");
  assert.deepEqual(permissions.map((one) => one.task), [begun[0], undefined]);
  await idle(daemon);

  // The checks after this one need a question.
  for (const { id } of permissions) {
    const shown = page.locator(`.permissions tbody tr[data-key="${id}"]`);
    await shown.locator("button").click();
    await shown.waitFor({ state: "detached" });
  }
  assert.deepEqual(await daemon.get("/api/permissions"), []);
}

async function onAPhone(browser, context, daemon, says) {
  says("the pages fit a phone, in Chinese and dark");
  await daemon.write("手机上看");
  const phone = await openAgain(browser, context, daemon, PHONE);
  await phone.page.goto(`${daemon.url}/#/approvals`);
  await phone.page.locator(".approval .actions button", { hasText: "本任务内允许" }).waitFor();
  const width = () => phone.page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(await width() <= 390, `the approvals are ${await width()} pixels wide`);
  const { tasks } = await daemon.get("/api/tasks");
  await phone.page.goto(`${daemon.url}/#/tasks/task/${tasks.at(-1).id}`);
  await phone.page.locator("#task-tab-changes").click();
  await phone.page.locator("aside.detail").locator(".commit, .edits").first().waitFor();
  assert.ok(await width() <= 390, `the changes are ${await width()} pixels wide`);
  assert.deepEqual(await phone.complaints(), []);
  await phone.context.close();
}

/** Root reads a file in the user's directory, and then writes a file. */
async function showsTheWay(browser, binary, says) {
  says("a question shows how content from outside has reached the agent");
  const reads = ["str_replace_editor", { command: "view", path: "own.txt" }];
  const writes = ["str_replace_editor", { command: "create", path: "new.md", file_text: "new\n" }];
  const model = await runner([reads, writes]);
  await withSociety(browser, binary, { name: "the way", app, services: [serviceAt("runner", model.url)], model }, async ({ daemon, page }) => {
    const project = join(daemon.home, "project");
    mkdirSync(project);
    writeFileSync(join(project, "own.txt"), "mine\n");
    await daemon.write("先读再写", { workspace: project });
    await openQuestion(daemon, "new.md");
    await go(page, "approvals");
    const steps = card(page, "new.md").locator("ol.way li");
    await until("the way is shown", async () => (await steps.count()) === 2);
    assert.deepEqual(await steps.allTextContents(), ["files", "root read it with str_replace_editor"]);
  });
}
