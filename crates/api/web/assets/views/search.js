// The page that searches prompts, messages, agents and artifacts for words.

import { h, icon } from "../dom.js";
import { refill } from "../morph.js";
import { KINDS, grouped, shorter } from "../search.js";
import { button, detailLink, nothing, time, trouble, who } from "./shared.js";

const PAUSE_MS = 200;
const PAGE = 50;
const SHAPES = { task: "tasks", agent: "society", message: "conversation", artifact: "document" };

export function mountSearch(app) {
  const { store, t, api, preferences } = app;
  let hits = [];
  let next = null;
  let asked = 0;
  let timer = null;
  let found = "";
  let inTask = null;

  const field = h("input.find", {
    type: "search", name: "search", placeholder: t("search.what"), "aria-label": t("search.what"), value: store.ui.search ?? "",
    oninput: () => {
      clearTimeout(timer);
      timer = setTimeout(anew, PAUSE_MS);
    },
    onkeydown: (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      clearTimeout(timer);
      anew();
    },
  });
  const kinds = h("select", { "aria-label": t("search.kind"), onchange: () => {
    app.prefer({ searchKind: kinds.value });
    anew();
  } }, h("option", { value: "" }, t("search.everything")), KINDS.map((kind) => h("option", { value: kind }, t(`search.kind.${kind}`))));
  kinds.value = preferences.searchKind;
  const only = h("button.chip.filter", { type: "button", hidden: true, onclick: () => app.chooseTask(null) });
  const list = h("ol.hits", { "aria-label": t("search.found") });
  const foot = h("div.foot", { role: "status" });
  const element = h("section.page.page-search", { "aria-label": t("page.search"), role: "search" },
    h("div.pane-head", {}, h("h2", {}, t("page.search")), field, kinds, only), h("div.scroll", { tabindex: "0" }, list, foot));

  /** Starts a new search, which reads its first page. */
  function anew() {
    store.look({ search: field.value });
    read(undefined);
  }

  async function read(after) {
    asked += 1;
    const mine = asked;
    const q = shorter(field.value);
    if (q.trim() === "") {
      [hits, next, found] = [[], null, ""];
      return draw();
    }
    try {
      const page = await api.search({ q, kind: kinds.value, task: store.ui.task, after, limit: PAGE });
      // The person may have changed the query during the read. This result is then outdated.
      if (mine !== asked) return undefined;
      hits = after ? [...hits, ...page.hits] : page.hits;
      next = page.next ?? null;
      found = q;
      return draw();
    } catch (error) {
      return mine === asked ? refill(foot, trouble(app, error, () => read(after))) : undefined;
    }
  }

  function draw() {
    const { active, over } = grouped(hits);
    refill(list, active.map(item),
      over.length > 0 ? h("li.hits-over", { "data-key": "over" }, h("details", {
        open: preferences.showOver || active.length === 0,
      }, h("summary", { onclick: (event) => app.prefer({ showOver: !event.currentTarget.parentElement.open }) },
        t("search.over", { n: over.length })), h("ol.hits", {}, over.map(item)))) : null);
    refill(foot, found !== "" && hits.length === 0 && !next ? nothing(t("search.none")) : null,
      next ? button(t("more"), () => read(next)) : null);
  }

  function item(hit) {
    const parts = hit.snippet.map((piece) => (piece.hit ? h("mark", {}, piece.text) : piece.text));
    return h("li.hit", { "data-key": `${hit.kind}-${hit.id}`, class: hit.over ? "hit over" : "hit" },
      h("div.hit-head", {}, icon(SHAPES[hit.kind]), h("span.dim", {}, t(`search.kind.${hit.kind}`)), title(hit),
        hit.kind === "message" ? [who(app, hit.from), " → ", who(app, hit.to)] : null,
        hit.kind === "artifact" && hit.from ? who(app, hit.from) : null, h("span.spring"), time(app, hit.createdAt)),
      h("p.snippet", { dir: "auto" }, parts));
  }

  function title(hit) {
    if (hit.kind !== "task") return detailLink(app, hit.kind, hit.id, { class: "hit-title" }, hit.name ?? hit.id);
    return h("button.link.hit-title", { type: "button", onclick: () => {
      app.chooseTask(hit.id);
      app.go("conversation");
    } }, hit.id);
  }

  return {
    element,
    focus: () => {
      field.focus();
      field.select();
    },
    update(model, ui) {
      if (inTask === ui.task) return;
      inTask = ui.task;
      only.hidden = !ui.task;
      only.replaceChildren(t("search.in", { name: model.tasks.get(ui.task)?.title || ui.task || "" }), " ", icon("close"));
      if (field.value.trim() !== "") read(undefined);
    },
  };
}
