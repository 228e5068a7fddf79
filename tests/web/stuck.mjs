// Checks what the view offers when work does not go on: the link "Why?" wherever a reason is known, and each remedy.

import assert from "node:assert/strict";
import { Fails, calling, chatModel, said, saying, serviceAt } from "./support/model.mjs";
import { go, row, send, showsAgent, until } from "./support/page.mjs";
import { withSociety } from "./support/society.mjs";

const QUESTION = "五月的还是六月的？";
const DONE = "账记好了。";

/** Returns the call that hires an agent. The agent's role requires a service with this tag. */
const hire = (name, tag) => ["spawn_agent_with_task", {
  role: { name, rolePrompt: `你是一名${name}。`, requiredCapabilities: [tag] },
  taskBrief: { objective: `做${name}的事`, constraints: [], inputs: "无", outputs: "一句话", completion_criteria: "说做完了" },
  initialMessage: "请开始。",
}];

/** The calls of root, in their order. The first one is refused, because there is no such agent. */
const CALLS = [
  ["send_message", { to: "nobody", text: "在吗？" }],
  hire("会计", "locked"), hire("抄写员", "locked"), hire("信使", "busy"),
  ["send_message", { to: "user", payload: { message_type: "collaboration_request", text: QUESTION } }],
];

/** The facts about a failed attempt: the attempt, and what followed. */
const ATTEMPT = ["attempt_failed", "then"];

/** The facts about an agent that was parked after one failed turn. */
const PARKED = ["parked", "failed_turns", "turn_failed", ...ATTEMPT];

/** At this text, the model of root fails, or never answers. */
const FAILS = "这次不行。";
const HANGS = "慢慢来。";

const boss = () => chatModel((messages, gone) => {
  const asked = said(messages.findLast((message) => message.role === "user"));
  if (asked.includes(FAILS)) throw new Fails(401, "The key is wrong.");
  if (asked.includes(HANGS)) return new Promise((_, fails) => gone.addEventListener("abort", () => fails(new Error("the client is gone"))));
  const made = messages.filter((message) => message.role === "tool").length;
  return made < CALLS.length ? calling(CALLS[made]) : saying("请稍等。");
});

/** Runs a society in which two agents are parked, one pauses after a failure, and root asks the person. */
export async function stuckOf(browser, binary, says) {
  const models = await Promise.all([
    boss(),
    chatModel(() => { throw new Fails(401, "The key is wrong."); }),
    chatModel(() => { throw new Fails(503, "The model is being loaded."); }),
    chatModel(() => saying(DONE)),
  ]);
  const [root, locked, busy, spare] = models.map((model) => model.url);
  const services = [
    serviceAt("boss", root), serviceAt("locked", locked, { capabilityTags: ["locked"] }), serviceAt("busy", busy, { capabilityTags: ["busy"] }),
    serviceAt("spare", spare, { capabilityTags: ["locked"] }),
  ];
  // After a failed attempt, an agent pauses for longer than the test takes. A single failed turn parks an agent.
  const app = { retry: { maxAttempts: 2, baseDelayMs: 3_600_000, maxDelayMs: 3_600_000 }, limits: { maxFailedTurns: 1 } };
  const model = { close: () => models.forEach((one) => one.close()) };
  await withSociety(browser, binary, { name: "what is stuck", app, services, model }, async ({ daemon, page }) => {
    const agents = await begins(page, daemon);
    await explains(page, daemon, agents, says);
    await remedies(page, daemon, agents, says);
    await parks(page, daemon, says);
  });
}

const stuck = (page, kind, text) => page.locator(`.page-now .stuck-${kind}`, { hasText: text });

async function begins(page, daemon) {
  await send(page, "请记账。");
  const agents = await until("two agents are parked, and one pauses", async () => {
    const found = (await daemon.get("/api/agents")).agents;
    const of = (role) => found.find((agent) => agent.role === role);
    const all = { accountant: of("会计"), copyist: of("抄写员"), courier: of("信使") };
    return all.accountant?.state === "parked" && all.copyist?.state === "parked" && all.courier?.state === "retrying" && all;
  });
  await stuck(page, "question", QUESTION).waitFor();
  return agents;
}

const detail = (page) => page.locator("aside.detail");

/** Opens an explanation, and checks that it contains these facts in this order. */
async function opensWhy(page, link, facts) {
  await link.click();
  await until(`the explanation consists of ${facts.join()}`, async () => {
    const shown = await detail(page).locator(".why > li").evaluateAll((all) => all.map((one) => one.className.replace("fact-", "")));
    return shown.join() === facts.join();
  });
  await detail(page).locator(".detail-head button").last().click();
  await detail(page).waitFor({ state: "hidden" });
}

async function explains(page, daemon, { accountant, courier }, says) {
  says("\"Why?\" opens from a stuck item and from the card of an agent");
  await opensWhy(page, stuck(page, "parked", "会计").locator(".why-link"), PARKED);
  await opensWhy(page, stuck(page, "service", "busy").locator(".why-link"), ATTEMPT);
  await opensWhy(page, stuck(page, "question", QUESTION).locator(".why-link"), ["unanswered"]);
  await stuck(page, "service", "busy").locator("button[data-does=checkService]").click();
  await page.locator("body[data-page=services]").waitFor();
  await go(page, "now");
  await opensWhy(page, page.locator(`.now-card[data-key="${courier.id}"] .why-link`), ATTEMPT);

  says("the remedy that runs the turn again proposes a service that has not failed and fits the role");
  await stuck(page, "parked", "会计").locator(".why-link").click();
  await detail(page).locator("[data-remedy=run_again] button").click();
  await page.locator("dialog.fork[open] select").waitFor();
  assert.equal(await page.locator("dialog.fork[open] select").inputValue(), "spare");
  await page.locator("dialog.fork[open] .actions button").last().click();
  await page.locator("dialog.fork").waitFor({ state: "detached" });
  await detail(page).locator(".detail-head button").last().click();
  await detail(page).waitFor({ state: "hidden" });

  says("\"Why?\" opens from a halted agent");
  await row(page, accountant.id).click();
  await showsAgent(page, accountant.id);
  await opensWhy(page, detail(page).locator(".agent-head .why-link"), PARKED);
  await row(page, "root").click();
  await showsAgent(page, "root");
  await detail(page).locator(".agent-head .state-asking").waitFor();
  assert.equal(await detail(page).locator(".agent-head .why-link").count(), 0);

  says("\"Why?\" opens from the history of an agent: a refusal, a failed turn");
  await detail(page).locator("#tab-history").click();
  await opensWhy(page, detail(page).locator(".record-tool_finished", { hasText: "unknown_contact" }).locator(".why-link"), ["call_refused", "said"]);
  await row(page, accountant.id).click();
  await showsAgent(page, accountant.id);
  await opensWhy(page, detail(page).locator(".record-failed .why-link"), ["turn_failed", ...ATTEMPT]);

  says("a paused agent for which root waits is stuck: \"Why?\" names the request and the pause");
  await daemon.post(`/api/agents/${courier.id}/pause?scope=agent`);
  await opensWhy(page, stuck(page, "request", "信使").locator(".why-link"), ["unanswered", "paused"]);

  says("\"Why?\" opens from the timeline: a refusal, a failed attempt, a failed turn, a parked agent, a pause");
  const events = await daemon.events();
  const found = {
    tools: [events.find((one) => one.event === "tool_called" && one.error), ["call_refused", "said"]],
    models: [events.find((one) => one.event === "model_failed"), ATTEMPT],
    turns: [events.find((one) => one.event === "turn_ended" && one.failure), ["turn_failed", ...ATTEMPT]],
    agents: [events.find((one) => one.event === "agent_parked"), PARKED],
  };
  await go(page, "timeline");
  for (const [group, [event, facts]] of Object.entries(found)) {
    // Choose one group, so that all rows of this group are in sight.
    const filter = page.locator(`.timeline-head button.group-${group}`);
    await filter.click();
    await opensWhy(page, page.locator(`.event[data-seq="${event.seq}"] .why-link`), facts);
    if (group === "agents") {
      const { seq } = events.find((one) => one.event === "agent_paused");
      await opensWhy(page, page.locator(`.event[data-seq="${seq}"] .why-link`), ["paused"]);
    }
    await filter.click();
  }
  await daemon.post(`/api/agents/${courier.id}/resume?scope=agent`);

  says("\"Why?\" opens from a message whose request has failed, and from a task that is open");
  const { messages } = await daemon.get(`/api/messages?to=${accountant.id}&limit=1000`);
  const failed = messages.find((message) => message.from === "root" && message.state === "failed");
  await page.evaluate((id) => { location.hash = `#/timeline/message/${id}`; }, failed.id);
  await opensWhy(page, detail(page).locator(".facts .why-link"), ["unanswered", "turn_failed", ...ATTEMPT]);
  const { task } = events.find((one) => one.event === "task_started");
  await go(page, "tasks");
  await page.locator(`tr[data-key="${task}"] .task-files`).click();
  await detail(page).locator(".task-head .why-link").click();
  await detail(page).locator(".why > li.fact-task_open").waitFor();
  await detail(page).locator(".detail-head button").last().click();
  await detail(page).waitFor({ state: "hidden" });
}

async function remedies(page, daemon, { accountant, copyist, courier }, says) {
  says("an answer to a question that is stuck");
  await go(page, "now");
  await stuck(page, "question", QUESTION).locator("button[data-does=write]").click();
  await until("the box is addressed", async () => (await page.locator(".receiver").inputValue()) === "root");
  await send(page, "六月的。");
  await stuck(page, "question", QUESTION).waitFor({ state: "detached" });
  const { messages } = await daemon.get("/api/messages?with=user&limit=1000");
  const question = messages.find((message) => message.text === QUESTION);
  assert.equal(messages.find((message) => message.id === question.answeredBy)?.text, "六月的。");
  // Root now waits for the courier, so the failure of the courier explains why root waits.
  await opensWhy(page, page.locator(".now-card[data-key=root] .why-link"), ATTEMPT);

  says("\"Why?\" of an agent that waits names the request, and what its receiver does");
  await row(page, "root").click();
  await showsAgent(page, "root");
  await opensWhy(page, detail(page).locator(".agent-head .why-link"), ["does", "unanswered", "does", ...ATTEMPT]);

  says("another service for a parked agent, which then works");
  await stuck(page, "parked", "会计").locator("button[data-does=service]", { hasText: "spare" }).click();
  await stuck(page, "parked", "会计").waitFor({ state: "detached" });
  const changed = await daemon.get(`/api/agents/${accountant.id}`);
  assert.equal(changed.service, "spare");
  assert.notEqual(changed.state, "parked");
  await page.locator(".receiver").fill(accountant.id);
  await page.locator(".receiver").press("Enter");
  await send(page, "再试一次。");
  await go(page, "conversation");
  await page.locator(".message:not(.mine)", { hasText: DONE }).waitFor();

  says("the work of a paused agent is stopped, and root waits no longer");
  await go(page, "now");
  await daemon.post(`/api/agents/${courier.id}/pause?scope=agent`);
  await stuck(page, "request", "信使").locator("button[data-does=stopAgent]").click();
  await page.locator("dialog[open] button.danger.primary").click();
  await stuck(page, "request", "信使").waitFor({ state: "detached" });
  await until("root waits for nobody", async () => (await daemon.get("/api/agents/root")).waitsFor.length === 0);
  assert.ok((await daemon.events()).some((one) => one.event === "agent_stopped" && one.agent === courier.id));

  says("a remedy that \"Why?\" names lets a parked agent go on");
  await stuck(page, "parked", "抄写员").locator(".why-link").click();
  await detail(page).locator("[data-remedy=resume] button").click();
  await page.locator("dialog[open] button.primary").click();
  await stuck(page, "parked", "抄写员").waitFor({ state: "detached" });
  assert.notEqual((await daemon.get(`/api/agents/${copyist.id}`)).state, "parked");
  await detail(page).locator(".detail-head button").last().click();
  await detail(page).waitFor({ state: "hidden" });
}

async function parks(page, daemon, says) {
  says("\"Why?\" opens from a task in which root is parked while it works in another");
  const { task } = await daemon.write(FAILS);
  await until("root is parked", async () => (await daemon.events()).some((one) => one.event === "agent_parked" && one.task === task));
  await daemon.write(HANGS);
  await row(page, "root").locator(".state-thinking").waitFor();
  await row(page, "root").click();
  await showsAgent(page, "root");
  await opensWhy(page, detail(page).locator(".agent-head .trouble", { hasText: FAILS }).locator(".why-link"), PARKED);
}
