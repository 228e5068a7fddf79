// Pieces that several views show.

import { contentOf } from "../api.js";
import { h, icon } from "../dom.js";
import { cost, isTime, moment, short, size, whole } from "../format.js";
import { write } from "../route.js";

/** A link to the page of an agent, a message or an artifact, beside the page one is on. */
export function detailLink(app, kind, id, properties, ...children) {
  const href = write({ page: app.store.ui.route.page, detail: { kind, id } });
  return h("a", {
    href,
    onclick: (event) => {
      // The page may have changed since this link was made.
      event.currentTarget.href = write({ page: app.store.ui.route.page, detail: { kind, id } });
    },
    ...properties,
  }, ...children);
}

/** What somebody is called: a name of its own, else its role; the person and the system in words. */
export function nameOf(app, id) {
  if (id === "user") return app.t("you");
  if (id === "system") return app.t("system");
  const agent = app.store.model.agents.get(id);
  return agent ? agent.name ?? agent.role : id;
}

/** Somebody, as a link to the page of that agent; with the id, because names need not be unique. */
export function who(app, id) {
  const name = nameOf(app, id);
  if (id === "user" || id === "system") return h(`span.who.who-${id}`, {}, name);
  return detailLink(app, "agent", id, { class: "who" }, name, name === id ? null : h("span.id", {}, id));
}

/** The state of an agent: a shape, and its word. */
export function stateMark(app, state) {
  return h("span", { class: `state state-${state}` }, icon(state), app.t(`state.${state}`));
}

/** A moment, in short; in full where one points at it. */
export function time(app, at, text) {
  return h("time", { datetime: isTime(at) ? new Date(at).toISOString() : null, title: whole(at, app.t.language) },
    text ?? moment(at, Date.now(), app.t.language));
}

/** How an artifact was shown to a model: what the model got, and of which artifact. */
export function routingChip(app, shown) {
  const shape = { text: "text", image_url: "image", input_audio: "audio", file: "document", described: "described" };
  const words = app.t.has(`routing.${shown.routing}`) ? app.t(`routing.${shown.routing}`) : shown.routing;
  return detailLink(app, "artifact", shown.artifact,
    { class: `chip routing routing-${shown.routing}`, title: app.t("routing.title", { routing: shown.routing }) },
    icon(shape[shown.routing] ?? "other"), h("span.chip-name", {}, app.nameOfArtifact(shown.artifact)),
    h("span.chip-note", {}, words));
}

/** An artifact, named. */
export function artifactChip(app, artifact) {
  app.knowArtifact(artifact);
  return detailLink(app, "artifact", artifact.id, { class: "chip" }, icon(artifact.kind),
    h("span.chip-name", {}, artifact.filename ?? artifact.id), h("span.chip-note", {}, size(artifact.size)));
}

/** An artifact of which only the id is known here. */
export function artifactIdChip(app, id) {
  return detailLink(app, "artifact", id, { class: "chip" }, icon("attach"),
    h("span.chip-name", {}, app.nameOfArtifact(id)));
}

/** An artifact in small: a picture is shown, sound and video can be played, anything else is named. */
export function preview(app, artifact) {
  app.knowArtifact(artifact);
  const name = artifact.filename ?? artifact.id;
  if (artifact.kind === "image") {
    return detailLink(app, "artifact", artifact.id, { class: "picture", title: name },
      h("img", { src: contentOf(artifact.id), alt: name, loading: "lazy", decoding: "async" }));
  }
  if (artifact.kind === "audio") {
    return h("figure.player", {}, h("figcaption", {}, artifactChip(app, artifact)),
      h("audio", { controls: true, preload: "none", src: contentOf(artifact.id) }));
  }
  if (artifact.kind === "video") {
    return h("figure.player", {}, h("figcaption", {}, artifactChip(app, artifact)),
      h("video", { controls: true, preload: "metadata", src: contentOf(artifact.id) }));
  }
  return artifactChip(app, artifact);
}

/** Tokens in and out, and what they cost where that is known. */
export function spent(app, usage) {
  const tokens = app.t("tokens", { in: short(usage.promptTokens), out: short(usage.completionTokens) });
  return h("span.spent", { title: app.t("tokens.title", usage) },
    usage.cost === undefined ? tokens : `${tokens} · ${app.t("cost", { amount: cost(usage.cost) })}`);
}

/** The title of a task. */
export function titleOf(app, id) {
  const task = app.store.model.tasks.get(id);
  return task?.title || id;
}

/** Names with values, as a list of definitions; what has no value is left out. */
export function facts(...pairs) {
  return h("dl.facts", {}, pairs
    .filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false)
    .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** A value that may be a text or a structure. */
export function value(what) {
  if (typeof what === "string") return h("div.prose", {}, what);
  if (Array.isArray(what) && what.every((one) => typeof one === "string")) {
    return h("ul.plain", {}, what.map((one) => h("li", {}, one)));
  }
  return code(what);
}

/** JSON as it is. */
export function code(what) {
  return h("pre.code", { tabindex: "0" }, typeof what === "string" ? what : JSON.stringify(what, null, 2));
}

/** Capabilities, what a model takes and what it gives. */
export function capabilities(app, have) {
  if (!have) return null;
  const list = (name, all) => h("span.capabilities", {}, h("span.dim", {}, name),
    all.map((one) => h("span.tag", {}, app.t.has(`capability.${one}`) ? app.t(`capability.${one}`) : one)));
  return h("div.both", {}, list(app.t("capability.input"), have.input ?? []),
    list(app.t("capability.output"), have.output ?? []));
}

/** A button. */
export function button(label, onclick, properties = {}, shape = null) {
  return h("button", { type: "button", onclick, ...properties }, shape ? icon(shape) : null,
    label ? h("span.label", {}, label) : null);
}

/** A button that only shows a shape; its name is for those who point at it or cannot see it. */
export function iconButton(name, shape, onclick, properties = {}) {
  return h("button.bare", { type: "button", title: name, "aria-label": name, onclick, ...properties }, icon(shape));
}

/** That something could not be read, and why. */
export function trouble(app, error, again) {
  return h("div.trouble", { role: "alert" }, icon("parked"), h("span", {}, app.explain(error)),
    again ? button(app.t("again"), again) : null);
}

/** A filter that counts, with what takes it away. */
export function filterChip(app, text, remove) {
  return h("button.chip.on", { type: "button", title: app.t("filter.remove"), onclick: remove },
    h("span.name", {}, text), icon("close"));
}

/** A place where nothing is. */
export function nothing(text, ...more) {
  return h("div.nothing", {}, h("p", {}, text), more);
}

/** A part with a heading. */
export function section(title, ...content) {
  return h("section.part", {}, h("h3", {}, title), ...content);
}
