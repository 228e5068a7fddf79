// Starts the page: reads the state of the society, follows the events, and shows both.

import { connect } from "./api.js";
import { brief } from "./events.js";
import { LANGUAGES, preferred, texts } from "./i18n.js";
import { meaning, takesLetters } from "./keys.js";
import { keep, read } from "./preferences.js";
import { keepFresh, readAll } from "./refresh.js";
import { PAGES, parse, write } from "./route.js";
import { Store } from "./store.js";
import { follow, presence } from "./stream.js";
import { mountApprovals } from "./views/approvals.js";
import { mountArtifacts } from "./views/artifacts.js";
import { keepTime } from "./views/calls.js";
import { mountBanners } from "./views/banners.js";
import { mountComposer } from "./views/composer.js";
import { mountConversation } from "./views/conversation.js";
import { mountDetail } from "./views/detail.js";
import { askScope, askStopTask, showHelp } from "./views/dialogs.js";
import { mountFrame } from "./views/frame.js";
import { mountSearch } from "./views/search.js";
import { mountNow } from "./views/now.js";
import { mountServices } from "./views/services.js";
import { nameOf } from "./views/shared.js";
import { mountTasks } from "./views/tasks.js";
import { mountTimeline } from "./views/timeline.js";
import { mountTree } from "./views/tree.js";

/**
 * Maximum number of artifact names to remember. Many events contain only an artifact's id, but the page shows its
 * name.
 */
const NAMES = 5000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5000;

const api = connect(() => location.assign("/"));
const preferences = read();
const store = new Store({
  route: parse(location.hash),
  task: preferences.task,
  agent: null,
  groups: new Set(preferences.groups),
  tree: { closed: new Set(), states: new Set(preferences.states), text: "", at: "root", finished: preferences.showFinished },
  agentTab: "overview",
  put: new Set(),
  foldedProblems: null,
  search: "",
});
// The message box continues with the task that the person had chosen when the page was closed.
store.write({ ...store.draft, task: preferences.task });
const names = new Map();
let reread = null;
let app = null;
let views = {};
let built = new AbortController();

/** Builds all views in the chosen language. Each view then reads its data again. */
function build() {
  built.abort();
  built = new AbortController();
  const language = preferences.language in LANGUAGES ? preferences.language : preferred(navigator.languages);
  document.documentElement.lang = language === "zh" ? "zh-Hans" : language;
  app = { api, store, preferences, t: texts(language), signal: built.signal, ...actions };
  const banners = mountBanners(app);
  const tree = mountTree(app);
  const pages = {
    now: mountNow(app), conversation: mountConversation(app), timeline: mountTimeline(app), tasks: mountTasks(app),
    artifacts: mountArtifacts(app), services: mountServices(app),
    approvals: mountApprovals(app), search: mountSearch(app),
  };
  const composer = mountComposer(app);
  const detail = mountDetail(app);
  const frame = mountFrame(app, { banners, tree, pages, composer, detail });
  document.body.replaceChildren(...frame.element);
  keepTime(built.signal);
  views = { banners, tree, ...pages, composer, detail, frame };
  for (const view of Object.values(views)) {
    const end = store.subscribe((model, ui, entries) => view.update(model, ui, entries));
    built.signal.addEventListener("abort", end);
  }
}

function keepName(id, name) {
  names.delete(id);
  names.set(id, name);
  if (names.size > NAMES) names.delete(names.keys().next().value);
}

/**
 * Shows the page of the current address at once, without waiting for a frame. The caller then sets the focus to a field
 * of this page. The field cannot get the focus while the page is still hidden.
 */
function showAtOnce() {
  store.look({ route: parse(location.hash) });
  store.flush();
}

/** The actions that views may call. */
const actions = {
  nameOf: (id) => nameOf(app, id),
  nameOfArtifact: (id) => names.get(id) ?? id,
  knowArtifact: (artifact) => keepName(artifact.id, artifact.filename ?? artifact.id),
  /** Remembers the names of artifacts, because later events contain only their ids. */
  learn(entries) {
    for (const entry of entries) if (entry.event === "artifact_stored") keepName(entry.artifact, entry.filename ?? entry.artifact);
  },
  /** Returns the text of an error for the person. */
  explain(error) {
    const key = `error.${error.code}`;
    if (app.t.has(key)) return app.t(key, { detail: error.message });
    return error.message;
  },
  say: (text, sort) => views.banners.say(text, sort),
  go(page) {
    const narrow = matchMedia("(max-width: 900px)").matches;
    location.hash = write({ page, detail: narrow ? null : store.ui.route.detail });
  },
  open(kind, id, { focus = false } = {}) {
    location.hash = write({ page: store.ui.route.page, detail: { kind, id } });
    if (focus) requestAnimationFrame(() => requestAnimationFrame(() => views.detail.focus()));
  },
  close() {
    location.hash = write({ page: store.ui.route.page, detail: null });
    document.body.classList.remove("wide-detail");
  },
  chooseTask(task) {
    store.look({ task });
    actions.prefer({ task });
  },
  /** Changes and stores preferences. */
  prefer(change) {
    Object.assign(preferences, change);
    keep(preferences);
  },
  filterAgent(agent) {
    store.look({ agent });
    actions.go("timeline");
  },
  showComposer() {
    if (!["now", "conversation", "timeline"].includes(store.ui.route.page)) actions.go("conversation");
  },
  compose({ to, task, text }) {
    const narrow = matchMedia("(max-width: 900px)").matches;
    if (narrow) location.hash = write({ page: "conversation", detail: null });
    else actions.showComposer();
    showAtOnce();
    views.composer.address(to, task, text);
  },
  /** Tells the person about a sent message. `told` contains the codes of the warnings that the person has seen. */
  sent(posted, told) {
    if (store.ui.task && store.ui.task !== posted.task) actions.chooseTask(posted.task);
    for (const warning of posted.warnings ?? []) if (!told.includes(warning.code)) actions.say(warning.text, "warning");
    if (posted.duplicate) actions.say(app.t("write.duplicate"));
    else if (store.ui.route.page !== "conversation" || posted.to !== "root") actions.say(app.t("write.sent", { name: app.nameOf(posted.to) }));
  },
  async steer(id, verb) {
    const below = [...store.model.agents.values()].filter((agent) => agent.parent === id && agent.state !== "ended").length;
    const scope = await askScope(app, id, verb, below);
    if (!scope) return;
    try {
      const { agents } = await api.steer(id, verb, scope);
      actions.say(app.t(`${verb}.done`, { n: agents.length }));
      await reread("agents");
    } catch (error) {
      actions.say(actions.explain(error), "bad");
    }
  },
  async stopTask(task) {
    if (!(await askStopTask(app, task.title || task.id))) return;
    try {
      const { agents } = await api.stopTask(task.id);
      actions.say(app.t("stop.done", { n: agents.length }));
      await Promise.all([reread("agents"), reread("tasks")]);
    } catch (error) {
      actions.say(actions.explain(error), "bad");
    }
  },
  async reloadConfiguration() {
    try {
      await api.reload();
      await Promise.all([reread("config"), reread("services")]);
      actions.say(app.t("config.reloaded", { revision: store.model.config.revision }));
    } catch (error) {
      actions.say(actions.explain(error), "bad");
    }
  },
  rereadApprovals: () => reread("approvals"),
  useLetters(letters) {
    preferences.letters = letters;
    keep(preferences);
  },
  applyTheme() {
    if (preferences.theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = preferences.theme;
    keep(preferences);
  },
  /** Performs the action of a shortcut. */
  act({ does, number }) {
    const agent = store.ui.route.detail?.kind === "agent" ? store.ui.route.detail.id : views.tree.current();
    const known = store.model.agents.get(agent);
    switch (does) {
      case "page":
        actions.go(PAGES[number - 1]);
        return requestAnimationFrame(() => requestAnimationFrame(() => views[PAGES[number - 1]].focus()));
      case "find":
        actions.go("search");
        showAtOnce();
        return views.search.focus();
      case "tree":
        if (matchMedia("(max-width: 900px)").matches) actions.go("society");
        return requestAnimationFrame(() => requestAnimationFrame(() => views.tree.focus()));
      case "write":
        return store.ui.route.detail?.kind === "agent" && agent !== "user"
          ? actions.compose({ to: agent, task: store.ui.task }) : (actions.showComposer(), showAtOnce(), views.composer.focus());
      case "pause":
        return known && known.state !== "ended" && agent !== "user"
          ? actions.steer(agent, ["paused", "parked"].includes(known.state) ? "resume" : "pause") : undefined;
      case "stop":
        return known && known.state !== "ended" && agent !== "user" ? actions.steer(agent, "stop") : undefined;
      case "question": {
        const first = store.model.questions.at(-1);
        return first ? actions.compose({ to: first.from, task: first.task }) : undefined;
      }
      case "approval":
        actions.go("approvals");
        return views.approvals.focus();
      case "theme": {
        const dark = preferences.theme === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : preferences.theme === "dark";
        preferences.theme = dark ? "light" : "dark";
        actions.applyTheme();
        return views.frame.drawTheme();
      }
      case "language":
        preferences.language = app.t.language === "en" ? "zh" : "en";
        keep(preferences);
        build();
        return document.querySelector("button.language").focus();
      case "close":
        if (takesLetters(document.activeElement)) return document.activeElement.blur();
        return store.ui.route.detail ? actions.close() : undefined;
      case "help":
        return showHelp(app);
      default:
        return undefined;
    }
  },
};

async function begin() {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(LONGEST_PAUSE_MS, pause * 2)) {
    try {
      return await readAll(store, api);
    } catch (error) {
      if (error.status === 401) return null;
      store.dispatch({ type: "connection", state: "lost" });
      if (error.status !== 0) actions.say(actions.explain(error), "bad");
      await new Promise((resolve) => { setTimeout(resolve, pause); });
    }
  }
}

async function isThere(task) {
  try {
    return !(await api.task(task)).forgottenAt;
  } catch (error) {
    return error.status !== 404;
  }
}

actions.applyTheme();
build();
addEventListener("hashchange", () => store.look({ route: parse(location.hash) }));
document.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;
  const { key, ctrlKey, metaKey, altKey, isComposing, defaultPrevented, repeat } = event;
  const writing = takesLetters(document.activeElement);
  const found = meaning({ key, ctrlKey, metaKey, altKey, isComposing, defaultPrevented, repeat, writing }, preferences.letters);
  if (!found) return;
  if (found.does !== "close") event.preventDefault();
  actions.act(found);
});

reread = keepFresh(store, api);
const last = await begin();
// The stored task may belong to another society, or the daemon may have deleted it. The page then shows all tasks.
if (last !== null && store.ui.task && !(await isThere(store.ui.task))) {
  actions.chooseTask(null);
  if (store.draft.task) store.write({ ...store.draft, task: null });
}
if (last !== null) {
  follow({
    last, presence, page: (filter) => api.events(filter), leave: () => location.assign("/"),
    onentries: (entries) => {
      actions.learn(entries);
      store.events(entries.map(brief));
    },
    onglimpses: (glimpses) => store.dispatch({ type: "glimpses", glimpses }),
    onreset: () => {
      store.dispatch({ type: "reset" });
      return begin();
    },
    onstate: (state) => store.dispatch({ type: "connection", state }),
    signal: new AbortController().signal,
  });
}
