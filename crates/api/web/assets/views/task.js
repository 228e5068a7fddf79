// The detail view of a task: its state, the files of its workspaces, and what each agent changed in each turn.

import { h, fill, append, icon } from "../dom.js";
import { passes } from "../draft.js";
import { byTurn } from "../edits.js";
import { size } from "../format.js";
import { refill } from "../morph.js";
import { kept } from "../reading.js";
import { diffBlock } from "./diff.js";
import { outcomeOf, standing } from "./outcome.js";
import { button, nothing, spent, time, titleOf, trouble, who, whyLink } from "./shared.js";

const TABS = ["files", "changes"];
const REREAD_MS = 400;
/** Events after which files may have changed. */
const CHANGING = new Set(["tool_called", "turn_ended"]);

export function showTask(app, id, title, body, signal) {
  const { t, api } = app;
  let tab = "files";
  let returns = null;
  let task = null;
  /** The agent whose worktree is shown. An empty string stands for the workspace that all agents share. */
  let agent = "";
  /** The entries of each open directory, by the path of the directory. */
  let directories = new Map();
  let file = null;
  let place = null;
  let changes = null;
  /**
   * The diffs of the open commits, by commit. A commit never changes, so the page reads the diff of each commit only
   * once.
   */
  const diffs = new Map();

  const head = h("p.lead.task-head");
  const tabs = h("div.tabs", { role: "tablist", "aria-label": t("task.parts"), onkeydown: ontabkey });
  const panel = h("div.panel", { role: "tabpanel", id: "task-panel", tabindex: "0" });
  append(fill(body), [head, tabs, panel]);

  const load = kept(async () => {
    try {
      // The page holds only the newest tasks, so it may have to read an older task from the server.
      task = app.store.model.tasks.get(id) ?? await api.task(id);
      changes = await api.changes(id);
      if (tab === "files") await readFiles();
      draw();
    } catch (error) {
      if (!changes || !passes(error)) fill(panel, trouble(app, error, load));
      if (passes(error)) throw error;
    }
  }, { delay: REREAD_MS, signal });

  /** Reads the open directories and the open file again. Closes the directories and the file that no longer exist. */
  async function readFiles() {
    const shown = agent;
    const found = new Map();
    for (const path of new Set([".", ...directories.keys()])) {
      const read = await ifThere(path);
      if (path === ".") place = read;
      if (read?.content.kind === "directory") found.set(path, read.content);
    }
    const open = file ? await ifThere(file.path) : null;
    if (shown !== agent) return;
    directories = found;
    file = open;
  }

  async function ifThere(path) {
    try {
      return await api.workspace(id, agent || undefined, path);
    } catch (error) {
      if (path !== "." && (error.status === 404 || error.status === 422)) return null;
      throw error;
    }
  }

  function draw() {
    refill(title, titleOf(app, id), " ", h("span.id", {}, id));
    refill(head, task ? [outcomeOf(app, task), standing(task) === "open" ? whyLink(app, task.id) : null, h("span.dim", {}, spent(app, task.usage)), h("span.dim", {}, time(app, task.createdAt))] : []);
    refill(tabs, TABS.map((one) => h("button", {
      type: "button", role: "tab", id: `task-tab-${one}`, "aria-controls": "task-panel", "aria-selected": String(tab === one),
      tabindex: tab === one ? "0" : "-1", onclick: () => choose(one),
    }, t(`task.${one}`))));
    panel.setAttribute("aria-labelledby", `task-tab-${tab}`);
    if (changes) refill(panel, tab === "files" ? files() : history());
  }

  function choose(one) {
    tab = one;
    draw();
    load();
  }

  function ontabkey(event) {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    event.preventDefault();
    choose(TABS[1 - TABS.indexOf(tab)]);
    tabs.querySelector("[aria-selected=true]").focus();
  }

  function files() {
    return [placeChoice(), place?.workspace ? h("p.dim.small", {}, h("code", {}, place.workspace)) : null,
      directories.get(".")?.entries.length > 0 ? list(".") : nothing(t("workspace.empty")),
      file ? fileShown() : null];
  }

  function placeChoice() {
    if (changes.worktrees.length === 0) return null;
    const select = h("select", { "aria-label": t("workspace.place"), onchange: () => {
      agent = select.value;
      directories = new Map();
      file = null;
      load();
    } }, h("option", { value: "" }, t("workspace.shared")),
    changes.worktrees.map((one) => h("option", { value: one }, t("workspace.of", { name: one }))));
    select.value = agent;
    return h("p", {}, select);
  }

  function list(path) {
    const { entries, leftOut } = directories.get(path);
    return h("ul.file-tree", { "data-key": `list ${path}` }, entries.map((entry) => {
      const full = path === "." ? entry.name : `${path}/${entry.name}`;
      const isOpen = directories.has(full);
      const isDirectory = entry.kind === "directory";
      return h("li", { "data-key": full }, h("button.link", {
        type: "button", "aria-expanded": isDirectory ? String(isOpen) : null,
        "aria-current": file?.path === full ? "true" : null, onclick: () => toggle(full, isOpen),
      }, icon(isDirectory ? "open" : entry.kind === "file" ? "text" : "other"), entry.name),
      entry.size === undefined ? null : h("span.dim.small", {}, size(entry.size)),
      isOpen ? list(full) : null);
    }), leftOut > 0 ? h("li.dim", {}, t("workspace.left", { n: leftOut })) : null);
  }

  async function toggle(path, isOpen) {
    if (isOpen) {
      for (const one of [...directories.keys()]) if (one === path || one.startsWith(`${path}/`)) directories.delete(one);
      return draw();
    }
    try {
      const read = await api.workspace(id, agent || undefined, path);
      if (read.content.kind === "directory") directories.set(path, read.content);
      else file = { ...read, path };
      draw();
    } catch (error) {
      app.say(app.explain(error), "bad");
    }
    return undefined;
  }

  function fileShown() {
    const { content } = file;
    return h("section.part.file-shown", { "data-key": "file" }, h("h3", {}, h("code", {}, file.path), " ", h("span.dim", {}, size(content.size))),
      content.kind === "binary" ? h("p.dim", {}, t("workspace.binary")) : h("pre.code", { tabindex: "0" }, content.text),
      content.shown < content.size ? h("p.dim", {}, t("workspace.cut", { shown: size(content.shown), size: size(content.size) })) : null);
  }

  function history() {
    const note = changes.recording === "turns" ? null : h("p.dim", {}, t(`changes.${changes.recording}`));
    const edits = byTurn(changes.edits ?? []);
    if (changes.commits.length === 0 && edits.length === 0) return [note, nothing(t("changes.none"))];
    return [note, changes.commits.length === 0 ? null : h("div.commits", {}, changes.commits.map(commitShown)),
      edits.length === 0 ? null : [h("p.dim", {}, t("changes.edits")), h("div.commits.edits", {}, edits.map(editsShown))]];
  }

  /** Shows what one agent wrote in one turn with the tools for files. */
  function editsShown(group) {
    return h("article.commit", { "data-key": `edits ${group.key}` },
      h("header", {}, who(app, group.agent), h("span.tag", {}, t("changes.turn", { n: group.turn })), h("span.spring"), time(app, group.at)),
      group.edits.map((one) => fileDiff(one, one.call)));
  }

  function fileDiff(one, key) {
    return h("section.file-diff", { "data-key": key },
      h("h4", {}, h("span", { class: `tag change-${one.change}` }, t(`change.${one.change}`)), " ", h("code", {}, one.path)),
      one.patch ? diffBlock(app, one.patch) : null);
  }

  function commitShown(commit) {
    const open = diffs.get(commit.id);
    const author = commit.agent === "polity" ? h("span.who-system", {}, "polity") : who(app, commit.agent);
    return h("article.commit", { "data-key": commit.id },
      h("header", {}, author, commit.turn === undefined ? null : h("span.tag", {}, t("changes.turn", { n: commit.turn })),
        commit.worktree ? h("span.tag.quiet", {}, t("workspace.of", { name: commit.worktree })) : null,
        h("span.spring"), time(app, commit.at)),
      h("p.small", {}, commit.turn === undefined ? commit.message : null,
        commit.files.slice(0, 6).map((path) => [" ", h("code", {}, path)]),
        commit.files.length > 6 ? ` ${t("questions.more", { n: commit.files.length - 6 })}` : null),
      commit.files.length === 0 ? null : button(t(open ? "changes.hide" : "changes.show"), () => showDiff(commit),
        { class: "small", "aria-expanded": String(Boolean(open)) }),
      open ? open.map((one) => fileDiff(one, one.path)) : null);
  }

  async function showDiff(commit) {
    if (diffs.delete(commit.id)) return draw();
    try {
      diffs.set(commit.id, (await api.changes(id, commit.id)).files);
      draw();
    } catch (error) {
      app.say(app.explain(error), "bad");
    }
    return undefined;
  }

  draw();
  return {
    update(model, ui, entries) {
      const now = model.tasks.get(id) ?? task;
      if (now !== task) {
        task = now;
        draw();
      }
      const concerns = returns !== model.returns || entries.some((one) => one.task === id && CHANGING.has(one.event));
      if (!concerns) return;
      ({ returns } = model);
      load();
    },
  };
}
