// Checks that people can read results: formatted messages, and artifacts of each kind with a list of their uses.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { go, idle, send, until } from "./support/page.mjs";

/** Returns the path of a file of the tests of `artifacts`. */
const sample = (name) => fileURLToPath(new URL(`../../crates/artifacts/tests/files/${name}`, import.meta.url));

/** A sound and a video: the name of the file, its MIME type, and the element that plays it. */
const PLAYED = [["tone.wav", "audio/wav", "audio"], ["clip.webm", "video/webm", "video"]];

const REPORT = `# 报告
The **figures** of [May](https://example.org/may), see [the file](artifact:none1).

1. first
   - [x] inner

The sum is $a_i * b_i * c$, and the mean is

$$
\\frac{a}{b} * c * d
$$

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
  ["a.json", "application/json", "{\"list\": [1, {\"deep\": \"x\"}]}", async (text) => {
    await text.locator("details[open] .token-key", { hasText: "list" }).waitFor();
    const branch = text.locator("details").last();
    const deep = branch.locator(".token-key", { hasText: "deep" });
    await deep.waitFor({ state: "attached" });
    assert.equal(await deep.isVisible(), false, "a branch on the third level is not folded");
    await branch.locator("summary").click();
    await deep.waitFor();
  }],
  ["a.csv", "text/csv", "name,what\npear,\"a, b\"\n", async (text) => text.locator(".sheet td", { hasText: /^a, b$/ }).waitFor()],
  ["a.diff", "text/x-diff", "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n", async (text) => text.locator(".diff-added", { hasText: "+new" }).waitFor()],
  ["a.py", "text/x-python", "def f():\n    return 1\n", async (text) => text.locator(".token-keyword", { hasText: "def" }).waitFor()],
  ["a.html", "text/html", "<style>h1 { color: red }</style><h1>A page</h1><script>document.querySelector(\"h1\").remove()</script><noscript><p>No script</p></noscript>", async (text, page) => {
    await page.locator("aside.detail .looks button[data-key=page]").click();
    // The browser shows the content of `noscript` only if no script can run.
    await text.frameLocator("iframe").locator("p", { hasText: "No script" }).waitFor();
    await text.frameLocator("iframe").locator("h1", { hasText: "A page" }).waitFor();
    assert.equal(await text.locator("iframe").getAttribute("sandbox"), "", "the frame of a page allows something");
  }],
];

/** Returns a PDF of one page whose whole area is a link. */
function pdf(target) {
  const parts = [
    "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 400] /Annots [<< /Type /Annot /Subtype /Link /Rect [0 0 300 400] /A << /S /URI /URI (${target}) >> >>] >>`,
  ];
  let text = "%PDF-1.4\n";
  const starts = parts.map((part, at) => {
    const start = text.length;
    text += `${at + 1} 0 obj\n${part}\nendobj\n`;
    return `${String(start).padStart(10, "0")} 00000 n \n`;
  });
  return `${text}xref\n0 ${parts.length + 1}\n0000000000 65535 f \n${starts.join("")}trailer << /Size ${parts.length + 1} /Root 1 0 R >>\nstartxref\n${text.length}\n%%EOF`;
}

/** Plays a sound or a video to its end, without making a sound. */
async function plays(player) {
  await player.evaluate((element) => {
    element.muted = true;
    return element.play();
  });
  await until("it is played to its end", () => player.evaluate((element) => element.ended && element.duration > 0));
}

/** Stores an artifact and opens it. Returns the column that shows it. */
async function opened(page, daemon, name, type, content) {
  const response = await fetch(`${daemon.url}/api/artifacts?filename=${name}`, { method: "POST", headers: { Authorization: `Bearer ${daemon.token}`, "Content-Type": type }, body: content });
  const { id } = await response.json();
  await page.evaluate((to) => { location.hash = `#/conversation/artifact/${to}`; }, id);
  await page.locator("aside.detail h2 .id", { hasText: id }).waitFor();
  return page.locator("aside.detail .artifact-text");
}

export async function resultsOf(page, daemon, says) {
  says("a report is shown with its table, list, code and formulas, and as it was written");
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
  assert.deepEqual(await report.locator("code.math, pre.math").allTextContents(), ["a_i * b_i * c", "\\frac{a}{b} * c * d"]);
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
    await check(await opened(page, daemon, name, type, content), page);
  }

  says("of a text that is too long for the page, the page says how much it shows");
  const long = await opened(page, daemon, "long.txt", "text/plain", "a line of a long text\n".repeat(200_000));
  for (const bytes of [1 << 20, 4 << 20]) {
    await long.locator("button.link").click();
    await until(`${bytes} bytes are shown`, () => long.locator("pre").evaluate((text, most) => text.textContent.length === most, bytes));
  }
  await long.locator(".cut", { hasText: "4.2 MB of 4.4 MB" }).waitFor();
  assert.equal(await long.locator("button.link").count(), 0);

  says("sound and video are played: in the column beside the page, and in a message");
  for (const [name, type, element] of PLAYED) {
    await opened(page, daemon, name, type, readFileSync(sample(name)));
    await plays(page.locator(`aside.detail .shown ${element}[controls]`));
  }
  await page.locator("input[type=file]").setInputFiles(PLAYED.map(([name]) => sample(name)));
  await until("both are attached", async () => (await page.locator(".attached-file").count()) === PLAYED.length);
  await send(page, "听一听，看一看");
  const message = page.locator(".message.mine", { hasText: "听一听，看一看" });
  for (const [, , element] of PLAYED) await plays(message.locator(`figure.player ${element}[controls]`));
  await idle(daemon);

  says("a PDF is shown by the browser's viewer, and its links do not lead away without a question");
  const shown = await opened(page, daemon, "a.pdf", "application/pdf", pdf("http://127.0.0.1:9/away"));
  const frame = shown.locator("iframe");
  const path = await frame.getAttribute("src");
  assert.equal(await frame.getAttribute("sandbox"), null, "in a sandbox, the browser shows no PDF");
  await until("the viewer shows the PDF", () => page.frames().filter((one) => one.url() === `${daemon.url}${path}`).length === 2);
  const box = await frame.boundingBox();
  let asked = null;
  // Two clicks can make the browser ask twice. Without a listener, Playwright would answer the second question with yes,
  // and leave the page.
  const stay = (dialog) => {
    asked = dialog.type();
    dialog.dismiss();
  };
  page.on("dialog", stay);
  // The viewer ignores clicks until it has drawn the PDF. The test cannot see when the viewer has drawn it, so the test
  // clicks again and again.
  await until("the browser asks", async () => {
    if (!asked) await page.mouse.click(box.x + box.width * 0.75, box.y + box.height * 0.6);
    return asked;
  });
  assert.equal(asked, "beforeunload");
  assert.ok(page.url().startsWith(daemon.url), page.url());

  says("an artifact says where it was used, and how it was shown to whom");
  const { artifacts } = await daemon.get("/api/artifacts?kind=image&limit=1000");
  const { id } = artifacts.at(-1);
  const detail = page.locator("aside.detail");
  // A click on the PDF that the viewer handles late can take the change of the address back. Then it is made again.
  await until("the page of the artifact is open", async () => {
    await page.evaluate((to) => { location.hash = `#/conversation/artifact/${to}`; }, id);
    try {
      await detail.locator("h2 .id", { hasText: id }).waitFor({ timeout: 10_000 });
      return true;
    } catch {
      await page.evaluate(() => { location.hash = "#/conversation"; });
      return false;
    }
  });
  for (const routing of ["described", "image_url"]) await detail.locator(`tr[data-routing=${routing}] a.who`).first().waitFor();
  // The PDF is no longer on the page, so nothing asks any more.
  page.off("dialog", stay);

  says("the reason why the artifact was described opens from its page");
  await detail.locator("tr[data-routing=described] a.routing-described").first().click();
  await detail.locator(".why .fact-described").waitFor();
  await page.goBack();
  await detail.locator("h2 .id", { hasText: id }).waitFor();
  await detail.locator(".uses li a").last().click();
  await detail.locator(".attachments .picture img").first().waitFor();
  await page.keyboard.press("Escape");
  await detail.waitFor({ state: "hidden" });
}
