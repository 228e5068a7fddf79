// All artifacts, pictures as pictures.

import { contentOf } from "../api.js";
import { h, fill, icon } from "../dom.js";
import { size } from "../format.js";
import { button, detailLink, nothing, time, trouble, nameOf } from "./shared.js";

const KINDS = ["text", "image", "audio", "video", "document", "other"];
const PAGE = 60;

export function mountArtifacts(app) {
  const { store, t, api } = app;
  let kind = null;
  let task;
  let generation = 0;
  let scheduled = 0;
  let stale = false;
  const kinds = h("div.chips", { role: "group", "aria-label": t("filter.kind") });
  const grid = h("div.grid", { role: "list" });
  const foot = h("div.foot");
  const element = h("section.page.page-artifacts", { "aria-label": t("page.artifacts") },
    h("div.pane-head", {}, h("h2", {}, t("page.artifacts")), kinds), h("div.scroll", { tabindex: "0" }, grid, foot));

  function drawKinds() {
    fill(kinds, KINDS.map((one) => h("button.chip", {
      type: "button", "aria-pressed": String(kind === one), onclick: () => {
        kind = kind === one ? null : one;
        drawKinds();
        load();
      },
    }, icon(one), t(`kind.${one}`))));
  }

  async function load(after) {
    generation += 1;
    const mine = generation;
    stale = false;
    try {
      const page = await api.artifacts({ task, kind, limit: PAGE, after });
      if (mine !== generation) return;
      for (const artifact of page.artifacts) app.knowArtifact(artifact);
      if (!after) fill(grid);
      grid.append(...page.artifacts.map(tile));
      fill(foot, page.next ? button(t("more"), () => load(page.next)) : null,
        grid.children.length === 0 ? nothing(t("artifacts.none")) : null);
    } catch (error) {
      if (mine === generation) fill(foot, trouble(app, error, () => load(after)));
    }
  }

  function tile(artifact) {
    const name = artifact.filename ?? artifact.type ?? artifact.id;
    return h("div.tile-holder", { role: "listitem" }, detailLink(app, "artifact", artifact.id, { class: `tile kind-${artifact.kind}` },
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
      stale ||= entries.some((entry) => entry.event === "artifact_stored" || entry.event === "task_forgotten");
      if (!model.ready || ui.route.page !== "artifacts") return;
      if (task !== ui.task) {
        task = ui.task;
        load();
      } else if (stale && !scheduled) {
        scheduled = setTimeout(() => {
          scheduled = 0;
          load();
        }, 500);
      }
    },
  };
}
