// Checks that people can read results: formatted messages, and artifacts of each kind with a list of their uses.

import assert from "node:assert/strict";
import { go, idle, until } from "./support/page.mjs";

const REPORT = `# 报告
The **figures** of [May](https://example.org/may), see [the file](artifact:none1).

1. first
   - [x] inner

| Name | Cost |
|:-----|-----:|
| pear | 12   |

\`\`\`js
const a = 1;
\`\`\`

\`\`\`text
${"a long line of code ".repeat(20)}
\`\`\`

|${" a wide column |".repeat(12)}
|${"---|".repeat(12)}

![chart](https://example.org/chart.png) <b>not bold</b>
`;

const FILES = [
  ["report.md", "text/markdown", REPORT, async (text) => text.locator(".markdown table td.align-right", { hasText: "12" }).waitFor()],
  ["a.json", "application/json", "{\"list\": [1, {\"deep\": \"x\"}]}", async (text) => text.locator("details[open] .token-key", { hasText: "list" }).waitFor()],
  ["a.csv", "text/csv", "name,what\npear,\"a, b\"\n", async (text) => text.locator(".sheet td", { hasText: /^a, b$/ }).waitFor()],
  ["a.diff", "text/x-diff", "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n", async (text) => text.locator(".diff-added", { hasText: "+new" }).waitFor()],
  ["a.py", "text/x-python", "def f():\n    return 1\n", async (text) => text.locator(".token-keyword", { hasText: "def" }).waitFor()],
  ["a.html", "text/html", "<style>h1 { color: red }</style><h1>A page</h1>", async (text, page) => {
    await page.locator("aside.detail .looks button[data-key=page]").click();
    await text.frameLocator("iframe").locator("h1", { hasText: "A page" }).waitFor();
  }],
];

export async function resultsOf(page, daemon, says) {
  says("a report is shown with its table, list and code, and as it was written");
  await go(page, "conversation");
  await daemon.write(REPORT);
  const report = page.locator(".message.mine", { hasText: "报告" });
  await report.locator("h3", { hasText: "报告" }).waitFor();
  await idle(daemon);
  assert.equal(await report.locator("ol > li > ul input[type=checkbox]:checked").count(), 1);
  await report.locator("td.align-right", { hasText: "12" }).waitFor();
  await report.locator(".code-block .token-keyword", { hasText: "const" }).waitFor();
  assert.equal(await report.locator(`a[href="https://example.org/may"] + .link-target`).textContent(), " (https://example.org/may)");
  assert.equal(await report.locator("a[href='#/conversation/artifact/none1']").count(), 1);
  assert.equal(await report.locator("a[href='https://example.org/chart.png']").count(), 1);
  assert.equal(await report.locator("img, b").count(), 0);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await report.locator(".copy").first().click();
  await until("the code is copied", async () => (await page.evaluate(() => navigator.clipboard.readText())) === "const a = 1;");
  await report.locator(".as-written").click();
  await report.locator(".prose", { hasText: "|:-----|-----:|" }).waitFor();
  await report.locator(".as-written").click();
  await report.locator("td.align-right").waitFor();

  says("a wide table and long code do not widen a phone's page");
  const { width, height } = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  await until("the report is narrow", async () => (await report.boundingBox()).width < 390);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 390);
  assert.ok(await report.evaluate((one) => one.scrollWidth <= one.clientWidth + 1), "the report is wider than its bubble");
  await page.setViewportSize({ width, height });

  says("each sort of artifact is shown so that it can be read");
  for (const [name, type, content, check] of FILES) {
    const response = await fetch(`${daemon.url}/api/artifacts?filename=${name}`, { method: "POST", headers: { Authorization: `Bearer ${daemon.token}`, "Content-Type": type }, body: content });
    const { id } = await response.json();
    await page.evaluate((to) => { location.hash = `#/conversation/artifact/${to}`; }, id);
    await page.locator("aside.detail h2 .id", { hasText: id }).waitFor();
    await check(page.locator("aside.detail .artifact-text"), page);
  }

  says("an artifact says where it was used, and how it was shown to whom");
  const { artifacts } = await daemon.get("/api/artifacts?kind=image&limit=1000");
  const { id } = artifacts.at(-1);
  await page.evaluate((to) => { location.hash = `#/conversation/artifact/${to}`; }, id);
  const detail = page.locator("aside.detail");
  await detail.locator("h2 .id", { hasText: id }).waitFor();
  for (const routing of ["described", "image_url"]) await detail.locator(`tr[data-routing=${routing}] a.who`).first().waitFor();
  await detail.locator(".uses li a").last().click();
  await detail.locator(".attachments .picture img").first().waitFor();
  await page.keyboard.press("Escape");
  await detail.waitFor({ state: "hidden" });
}
