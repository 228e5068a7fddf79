// The detail view of an agent: its brief, contacts and history, and the request that would go to its model now.

import { callsOf, commandOf, runsCommand } from "../calls.js";
import { h, fill, append } from "../dom.js";
import { passes } from "../draft.js";
import { clock } from "../format.js";
import { refill } from "../morph.js";
import { kept } from "../reading.js";
import { eventOf, reasonsOf } from "../reasons.js";
import { alsoWaitsFor, momentsOf } from "../live.js";
import { isHalted } from "../now.js";
import { callCard, commandCard } from "./calls.js";
import { forkTurn } from "./dialogs.js";
import { arriving, doingLine } from "./doing.js";
import { requestBody } from "./request.js";
import { typeName } from "./sentence.js";
import {
  button, capabilities, code, facts, nothing, preview, routingChip, section, spent, time, titleOf, trouble,
  value, who, whyLink, detailLink,
} from "./shared.js";
import { written } from "./written.js";

const TABS = ["overview", "history", "request"];
const REREAD_MS = 400;
/** Number of ended calls to show. */
const ENDED_CALLS = 3;
/**
 * Time between two reads of the commands while a command runs. Events cannot trigger these reads, because the output of
 * background commands causes no events.
 */
const COMMANDS_MS = 1_000;

export function showAgent(app, id, title, body, signal) {
  const { store, t, api } = app;
  let detail = null;
  let tab = store.ui.agentTab;
  let task = null;
  let shown = null;
  let hasCalls = id === "user";
  let seen;
  let seenCalls = null;
  let commands = [];
  let parkings = [];
  let seenMoments = null;
  let returns = 0;
  const offered = id === "user" ? [] : TABS;
  if (!offered.includes(tab)) tab = "overview";
  fill(title, app.nameOf(id));

  const head = h("div.agent-head");
  // For the user, this view shows only an overview, so it has no tabs.
  const tabs = offered.length === 0 ? null : h("div.tabs", { role: "tablist", "aria-label": t("agent.parts"), onkeydown: ontabkey });
  const panel = h("div.panel", tabs ? { role: "tabpanel", id: "agent-panel", tabindex: "0" } : {});
  const answer = h("div.answer");
  const calls = h("div.calls");
  append(fill(body), [head, answer, calls, tabs, panel]);

  const load = kept(async () => {
    try {
      detail = await api.agent(id);
      // The newest parkings, oldest first.
      parkings = detail.holds.length > 0 ? (await api.events({ agent: id, kind: "agent_parked", before: Number.MAX_SAFE_INTEGER, limit: 500 })).events : [];
      if (!hasCalls) store.dispatch({ type: "calls", entries: await api.calls(id) });
      hasCalls = true;
      task ??= store.ui.task && detail.tasks.includes(store.ui.task) ? store.ui.task : detail.tasks[0] ?? null;
      drawHead();
      // Tabs other than the overview are loaded only when the person selects them, so that their content does not move
      // while the person reads it.
      if (tab === "overview" || !panel.hasChildNodes()) await drawPanel();
    } catch (error) {
      if (!detail || !passes(error)) fill(panel, trouble(app, error, load));
      if (passes(error)) throw error;
    }
  }, { delay: REREAD_MS, signal });

  const readCommands = kept(async () => {
    commands = await api.commands(id);
    drawCalls();
  }, { delay: REREAD_MS, signal });

  const tick = setInterval(() => {
    const runs = commands.length > 0 || runsCommand(callsOf(store.model.calls, id));
    if (runs && store.model.connection === "live" && !document.hidden) readCommands();
  }, COMMANDS_MS);
  signal.addEventListener("abort", () => clearInterval(tick));

  /** Shows the running calls and commands, and the latest calls that have ended. */
  function drawCalls() {
    const all = callsOf(store.model.calls, id);
    const running = all.filter((call) => call.state === "running");
    const ended = all.filter((call) => call.state !== "running").slice(0, ENDED_CALLS);
    refill(calls, running.map((call) => callCard(app, call, commandOf(commands, call))),
      commands.filter((command) => command.id).map((command) => commandCard(app, command)),
      ended.map((call) => callCard(app, call)));
  }

  function drawHead() {
    const known = store.model.agents.get(id);
    const agent = known
      ? { ...detail, state: known.state, doing: known.doing, usage: known.usage, waiting: known.waiting } : detail;
    refill(title, agent.name ?? (id === "user" ? t("you") : agent.role), " ", h("span.id", {}, id));
    const ended = agent.state === "ended";
    const whom = alsoWaitsFor(agent);
    const waits = whom.length > 0 && agent.state !== "waiting"
      ? h("span.dim", {}, t.parts("waits.for", { who: whom.flatMap((one, at) => [at > 0 ? ", " : "", who(app, one)]) }).flat()) : null;
    refill(head, h("p.lead", {}, doingLine(app, agent), waits, isHalted(agent) || agent.state === "waiting" ? whyLink(app, id) : null),
      detail.holds.map((hold) => h("p.trouble", {}, t("agent.hold", { task: titleOf(app, hold.task), reason: hold.reason }), whyParked(agent, hold))),
      id === "user" ? null : h("div.actions", {},
        ended ? null : button(t("write.to.agent"), () => app.compose({ to: id, task: task ?? undefined }), { class: "primary" }, "conversation"),
        ended ? null : ["paused", "parked"].includes(agent.state)
          ? button(t("resume"), () => app.steer(id, "resume"), {}, "resume")
          : button(t("pause"), () => app.steer(id, "pause"), {}, "pause"),
        ended ? null : button(t("stop"), () => app.steer(id, "stop"), { class: "danger" }, "stop"),
        button(t("agent.events"), () => app.filterAgent(id), {}, "timeline")));
    if (!tabs) return;
    refill(tabs, offered.map((one) => h("button", {
      type: "button", role: "tab", id: `tab-${one}`, "aria-controls": "agent-panel", "aria-selected": String(tab === one),
      tabindex: tab === one ? "0" : "-1", onclick: () => choose(one),
    }, t(`agent.${one}`))));
    panel.setAttribute("aria-labelledby", `tab-${tab}`);
  }

  /** Explains a parking, unless it is the one that the link in the head explains. */
  function whyParked(agent, hold) {
    if (agent.state === "parked" && (agent.doing?.task ?? hold.task) === hold.task) return null;
    const parking = parkings.findLast((one) => one.task === hold.task);
    return parking ? whyLink(app, parking.seq) : null;
  }

  function ontabkey(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    choose(TABS[(TABS.indexOf(tab) + by + TABS.length) % TABS.length]);
    tabs.querySelector("[aria-selected=true]").focus();
  }

  function choose(one) {
    tab = one;
    store.look({ agentTab: one });
    if (detail) drawHead();
    fill(panel);
    drawPanel();
  }

  async function drawPanel() {
    const mine = tab;
    try {
      const content = await { overview: overview, history, request }[mine]();
      if (mine === tab && !signal.aborted) show(mine, content);
    } catch (error) {
      if (mine === tab) fill(panel, trouble(app, error, drawPanel));
    }
  }

  /** Shows the content of a tab. Updates the overview in place, because it changes often; replaces the other tabs. */
  function show(part, content) {
    if (part === "overview" && shown === part) refill(panel, content);
    else fill(panel, content);
    shown = part;
  }

  function overview() {
    const brief = detail.brief;
    return [
      brief ? section(t("brief"), h("div.brief", {}, facts(
        [t("brief.objective"), value(brief.objective)],
        [t("brief.constraints"), brief.constraints.length > 0 ? value(brief.constraints) : t("none")],
        [t("brief.inputs"), value(brief.inputs)],
        [t("brief.outputs"), value(brief.outputs)],
        [t("brief.completion"), value(brief.completion_criteria)],
        [t("brief.collaborators"), brief.collaborators?.length > 0
          ? h("ul.plain", {}, brief.collaborators.map((one) => h("li", {}, who(app, one.agentId), one.description ? ` — ${one.description}` : ""))) : null],
        [t("brief.references"), brief.references?.length > 0 ? value(brief.references) : null],
        [t("brief.priority"), brief.priority ? value(brief.priority) : null],
      ))) : null,
      section(t("contacts"), contacts()),
      section(t("service"), facts(
        [t("service"), detail.service], [t("service.model"), detail.model],
        [t("capabilities"), capabilities(app, detail.capabilities)],
        [t("usage"), spent(app, detail.usage)], [t("usage.calls"), String(detail.usage.calls)],
      )),
      detail.rolePrompt ? section(t("role"), facts([t("role.name"), detail.role],
        [t("role.requires"), detail.requiredCapabilities?.join(", ")], [t("role.tools"), detail.toolGroups?.join(", ")]),
      h("div.prose.boxed", {}, detail.rolePrompt)) : null,
      detail.rights?.length > 0 ? section(t("rights"), rights()) : null,
      detail.interfaceSpec ? section(t("interface"), facts(...Object.entries(detail.interfaceSpec).map(([name, what]) =>
        [t.has(`interface.${name}`) ? t(`interface.${name}`) : name, value(what)]))) : null,
      section(t("facts"), facts(
        [t("agent.parent"), detail.parent ? who(app, detail.parent) : null],
        [t("agent.children"), detail.children.length > 0
          ? h("span", {}, detail.children.flatMap((one, at) => [at > 0 ? ", " : "", who(app, one)])) : null],
        [t("tasks"), detail.tasks.length > 0 ? h("ul.plain", {}, detail.tasks.map((one) => h("li", {}, titleOf(app, one)))) : null],
        [t("agent.hired"), detail.createdAt > 0 ? time(app, detail.createdAt) : null],
        [t("agent.ended"), detail.endedAt ? time(app, detail.endedAt) : null],
      )),
    ];
  }

  /**
   * Lists the tool groups. For each group, shows whether the agent may use it, and which role or setting gives or
   * forbids it.
   */
  function rights() {
    const granted = (right) => right.grantedBy
      ? t.parts("rights.granted.role", { who: who(app, right.grantedBy), role: right.grantedIn })
      : [t("rights.granted.settings"), right.rootGrant && right.rootGrant !== right.group ? [" ", h("code.root-grant", {}, right.rootGrant)] : null];
    const denied = (right) => right.deniedBy
      ? t.parts("rights.role", { who: who(app, right.deniedBy), role: right.deniedIn })
      : [t("rights.settings")];
    return h("ul.plain.rights", {}, detail.rights.map((right) => h("li", { class: right.allowed ? "" : "faint" },
      h("code", {}, right.group), " ", right.allowed ? granted(right) : denied(right))));
  }

  function contacts() {
    if (detail.contacts.length === 0) return nothing(t("contacts.none"));
    const more = detail.moreContacts ? h("p.dim.small", {}, t("contacts.more")) : null;
    return h("div.table-holder", {}, more, h("table.contacts", {},
      h("thead", {}, h("tr", {}, ["contacts.who", "contacts.how", "contacts.can", "contacts.since"].map((key) => h("th", { scope: "col" }, t(key))))),
      h("tbody", {}, detail.contacts.map((one) => h("tr", { class: one.standing === "ended" ? "faint" : "" },
        h("td", {}, who(app, one.agent), one.standing === "ended" ? h("span.tag", {}, t("state.ended")) : null),
        h("td", {}, t(`source.${one.source}`), one.introducedBy ? h("div.small", {}, t.parts("contacts.by", { who: who(app, one.introducedBy) })) : null),
        h("td", {}, (one.capabilities?.input ?? []).map((name) => t.has(`capability.${name}`) ? t(`capability.${name}`) : name).join(", ")),
        h("td", {}, one.since > 0 ? time(app, one.since) : "—"))))));
  }

  function taskChoice() {
    if (detail.tasks.length < 2) return null;
    const select = h("select", { "aria-label": t("filter.task"), onchange: () => { task = select.value; drawPanel(); } },
      detail.tasks.map((one) => h("option", { value: one }, titleOf(app, one))));
    select.value = task;
    return h("p", {}, select);
  }

  async function history() {
    if (!task) return nothing(t("agent.history.none"));
    const list = h("div.history");
    const more = h("div");
    const reasons = reasonsOf(api, id, task);
    const read = async (before) => {
      const page = await api.conversation(id, task, before);
      const events = await reasons(page.entries);
      list.prepend(...page.entries.map((one) => entry(one, eventOf(one, events))));
      fill(more, page.next ? button(t("conversation.earlier"), () => read(page.next).catch((error) => app.say(app.explain(error), "bad")), { class: "earlier" }, "up") : null);
    };
    await read();
    return [taskChoice(), h("p.dim.small", {}, t("agent.history.what")), more, list];
  }

  /** Shows a record. `reason` is the event that explains it, if it is a refusal or a failure. */
  function entry({ seq, turn, at, sent, record }, reason) {
    return h("article.record", { class: `record-${record.record}`, "data-seq": seq },
      h("header", {}, h("strong", {}, t.has(`record.${record.record}`) ? t(`record.${record.record}`) : record.record),
        reason?.error ? h("code", {}, reason.error) : null, reason ? whyLink(app, reason.seq) : null, h("span.spring"), sent ? detailLink(app, "sent", sent, { class: "quiet-link small" }, t("sent.number", { n: sent })) : null,
        record.record === "heard" && forkable(turn, seq) ? button(t("fork"), () => forkAt(turn, record), { class: "quiet fork-here" }, "reload") : null,
        h("span.dim.small", { title: t("turn") }, `#${turn}`), time(app, at, clock(at))),
      recordBody(record, seq));
  }

  /** For each turn, the lowest record number that this view has read so far. */
  const begins = new Map();

  function forkable(turn, seq) {
    if (!begins.has(turn) || begins.get(turn) > seq) begins.set(turn, seq);
    return begins.get(turn) === seq;
  }

  function forkAt(turn, record) {
    const said = typeof record.message === "object" && record.message.from === "user" ? record.message.text : null;
    return forkTurn(app, { task, turn }, said);
  }

  function recordBody(record, seq) {
    switch (record.record) {
      case "heard": {
        const message = record.message;
        if (typeof message !== "object") return h("p.dim", {}, t("record.removed", { id: String(message) }));
        return [h("p.small", {}, who(app, message.from), " ", h("span.tag", {}, typeName(app, message.type)), " ",
          detailLink(app, "message", message.id, { class: "quiet-link" }, message.id)),
        written(app, message.id, message.text),
        message.attachments.length > 0 ? h("div.attachments", {}, message.attachments.map((one) => preview(app, one))) : null];
      }
      case "replied":
        return [record.text ? written(app, `${id} ${seq}`, record.text) : null,
          (record.calls ?? []).map((call) => h("details.call", {}, h("summary", {}, h("code", {}, call.name), " ", h("span.id", {}, call.id)), code(call.arguments?.object ?? call.arguments)))];
      case "tool_finished":
        return h("details.call", {}, h("summary", {}, h("span.id", {}, record.call)), code(record.result.json ?? record.result));
      case "compacted":
        return written(app, `${id} ${seq}`, record.summary);
      case "failed":
      case "stopped":
        return h("div.prose", {}, record.reason);
      case "status":
        return h("p", {}, t("record.window", { used: record.used, window: record.window }));
      default: {
        const { record: _name, ...rest } = record;
        return code(rest);
      }
    }
  }

  async function request() {
    if (!task) return nothing(t("agent.history.none"));
    const found = await api.request(id, task);
    return [taskChoice(),
      h("p.dim.small", {}, t("request.what")),
      facts([t("service"), found.service], [t("service.model"), found.model], [t("revision"), String(found.revision)],
        [t("request.tokens"), t("request.estimate", { n: found.estimatedTokens })],
        [t("request.shown"), found.shown.length > 0 ? h("span.chips", {}, found.shown.map((one) => routingChip(app, one))) : null]),
      button(t("reload"), () => drawPanel(), {}, "reload"),
      ...requestBody(app, found.request)];
  }

  return {
    update(model, ui, entries) {
      if (seenCalls !== model.calls) {
        seenCalls = model.calls;
        drawCalls();
      }
      if (seenMoments !== model.moments) {
        seenMoments = model.moments;
        refill(answer, momentsOf(model.moments, id).map((moment) => arriving(app, moment)).filter(Boolean));
      }
      const now = model.agents.get(id) ?? null;
      const before = seen;
      seen = now;
      // The agent's current action changes often. It does not affect the data that the page has read, so only the head
      // is redrawn.
      if (now !== before && detail) drawHead();
      const concerns = before === undefined || now?.asOf !== before?.asOf || returns !== model.returns
        || entries.some((one) => one.owner === id || one.agent === id || one.to === id);
      if (!concerns) return;
      ({ returns } = model);
      load();
      if (id !== "user") readCommands();
    },
  };
}
