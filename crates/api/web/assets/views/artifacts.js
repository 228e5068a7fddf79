// The page with all artifacts. Images are shown as pictures.

import { contentOf } from "../api.js";
import { h, fill, icon } from "../dom.js";
import { size } from "../format.js";
import { arrange, refill } from "../morph.js";
import { kept } from "../reading.js";
import { button, detailLink, nothing, time, trouble, nameOf } from "./shared.js";

const KINDS = ["text", "image", "audio", "video", "document", "other"];
const PAGE = 60;

export function mountArtifacts(app) {
  const { store, t, api } = app;
  let kind = KINDS.includes(app.preferences.artifactKind) ? app.preferences.artifactKind : null;
  let task;
  let generation = 0;
  let returns = 0;
  let stale = false;
  let held = [];
  const kinds = h("div.chips", { role: "group", "aria-label": t("filter.kind") });
  const grid = h("div.grid", { role: "list" });
  const foot = h("div.foot");
  const element = h("section.page.page-artifacts", { "aria-label": t("page.artifacts") },
    h("div.pane-head", {}, h("h2", {}, t("page.artifacts")), kinds), h("div.scroll", { tabindex: "0" }, grid, foot));

  function drawKinds() {
    refill(kinds, KINDS.map((one) => h("button.chip", {
      type: "button", "aria-pressed": String(kind === one), onclick: () => {
        kind = kind === one ? null : one;
        app.prefer({ artifactKind: kind ?? "" });
        drawKinds();
        load();
      }, "data-key": one,
    }, icon(one), t(`kind.${one}`))));
  }

  /** Reads the newest artifacts. The function `more` reads older artifacts. */
  const load = kept(async () => {
    generation += 1;
    const mine = generation;
    try {
      const page = await api.artifacts({ task, kind, limit: PAGE });
      if (mine === generation) show([], page);
    } catch (error) {
      if (mine === generation) fill(foot, trouble(app, error, load));
      throw error;
    }
  }, { delay: 200, signal: app.signal });

  async function more(after) {
    const mine = generation;
    try {
      const page = await api.artifacts({ task, kind, limit: PAGE, after });
      if (mine === generation) show(held, page);
    } catch (error) {
      if (mine === generation) fill(foot, trouble(app, error, () => more(after)));
    }
  }

  function show(before, page) {
    held = [...before, ...page.artifacts];
    const drawn = new Map([...grid.children].map((child) => [child.dataset.artifact, child]));
    arrange(grid, held.map((artifact) => {
      app.knowArtifact(artifact);
      return drawn.get(artifact.id) ?? tile(artifact);
    }));
    refill(foot, page.next ? button(t("more"), () => more(page.next)) : null,
      held.length === 0 ? nothing(t("artifacts.none")) : null);
  }

  function tile(artifact) {
    const name = artifact.filename ?? artifact.type ?? artifact.id;
    return h("div.tile-holder", { role: "listitem", "data-artifact": artifact.id }, detailLink(app, "artifact", artifact.id, { class: `tile kind-${artifact.kind}` },
      h("span.tile-picture", {}, artifact.kind === "image"
        ? h("img", { src: contentOf(artifact.id), alt: "", loading: "lazy", decoding: "async" }) : icon(artifact.kind)),
      h("span.tile-name", {}, name),
      h("span.tile-note", {}, `${t(`kind.${artifact.kind}`)} · ${size(artifact.size)}`),
      h("span.tile-note", {}, nameOf(app, artifact.owner), " · ", time(app, artifact.createdAt))));
  }

  drawKinds();
  return {
    element,
    focus: () => grid.querySelector("a")?.focus(),
    update(model, ui, entries) {
      stale ||= entries.some((entry) => entry.event === "artifact_stored" || entry.event === "task_forgotten") || returns !== model.returns;
      ({ returns } = model);
      if (!model.ready || ui.route.page !== "artifacts") return;
      if (task === ui.task && !stale) return;
      ({ task } = ui);
      stale = false;
      load();
    },
  };
}
