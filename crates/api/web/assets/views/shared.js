// Elements that several views use.

import { contentOf } from "../api.js";
import { h, icon } from "../dom.js";
import { cost, isTime, moment, short, size, whole } from "../format.js";
import { write } from "../route.js";

/** Creates a link that opens an agent, a message or an artifact in the detail column, next to the current page. */
export function detailLink(app, kind, id, properties, ...children) {
  const href = write({ page: app.store.ui.route.page, detail: { kind, id } });
  return h("a", {
    href,
    onclick: (event) => {
      // Update the link, because the current page may have changed since the link was created.
      event.currentTarget.href = write({ page: app.store.ui.route.page, detail: { kind, id } });
    },
    ...properties,
  }, ...children);
}

/**
 * Returns the name to show for an id. For an agent, this is its name or, without a name, its role. For the user and
 * the system, it is a word in the page's language.
 */
export function nameOf(app, id) {
  if (id === "user") return app.t("you");
  if (id === "system") return app.t("system");
  const agent = app.store.model.agents.get(id);
  return agent ? agent.name ?? agent.role : id;
}

/** Creates a link to an agent. The link contains the id, because several agents may have the same name. */
export function who(app, id) {
  const name = nameOf(app, id);
  if (id === "user" || id === "system") return h(`span.who.who-${id}`, {}, name);
  return detailLink(app, "agent", id, { class: "who" }, name, name === id ? null : h("span.id", {}, id));
}

/** Shows the state of an agent as an icon and a word. */
export function stateMark(app, state) {
  return h("span", { class: `state state-${state}` }, icon(state), app.t(`state.${state}`));
}

/** Shows a time in short form. The tooltip shows the full date and time. */
export function time(app, at, text) {
  return h("time", { datetime: isTime(at) ? new Date(at).toISOString() : null, title: whole(at, app.t.language) },
    text ?? moment(at, Date.now(), app.t.language));
}

/**
 * Shows how a model got an artifact: as text, as a picture, as sound, as a file, or as a description. A click opens the
 * artifact. If the request with the number `sent` contained only a description, a click opens the explanation instead.
 */
export function routingChip(app, shown, sent) {
  const { shape, words, properties, explains } = routingOf(app, shown, sent);
  const [kind, id] = explains ? ["why", `artifact:${shown.artifact}@${sent}`] : ["artifact", shown.artifact];
  return detailLink(app, kind, id, properties, icon(shape), h("span.chip-name", {}, app.nameOfArtifact(shown.artifact)),
    h("span.chip-note", {}, words), explains ? h("span.why-mark", {}, app.t("why")) : null);
}

/**
 * Shows on the page of an artifact how a model got this artifact. Only a chip with an explanation is a link, because
 * the artifact itself is open already.
 */
export function ownRoutingChip(app, shown, sent) {
  const { shape, words, properties, explains } = routingOf(app, shown, sent);
  if (!explains) return h("span", properties, icon(shape), words);
  return detailLink(app, "why", `artifact:${shown.artifact}@${sent}`, properties, icon(shape), h("span.chip-note", {}, words),
    h("span.why-mark", {}, app.t("why")));
}

/** Returns what both chips share, and whether the daemon can explain the routing. */
function routingOf(app, { routing }, sent) {
  const shape = { text: "text", image_url: "image", input_audio: "audio", file: "document", described: "described" };
  return {
    shape: shape[routing] ?? "other",
    words: app.t.has(`routing.${routing}`) ? app.t(`routing.${routing}`) : routing,
    properties: { class: `chip routing routing-${routing}`, title: app.t("routing.title", { routing }) },
    explains: routing === "described" && Boolean(sent),
  };
}

/**
 * Creates the link "Why?" to the explanation of an event, a task, an agent or a message. `id` is the number of the
 * event, or the id of the task, agent or message.
 */
export function whyLink(app, id) {
  return detailLink(app, "why", String(id), { class: "why-link" }, app.t("why"));
}

/** Shows an artifact as a small link with its name and size. */
export function artifactChip(app, artifact) {
  app.knowArtifact(artifact);
  return detailLink(app, "artifact", artifact.id, { class: "chip" }, icon(artifact.kind),
    h("span.chip-name", {}, artifact.filename ?? artifact.id), h("span.chip-note", {}, size(artifact.size)));
}

/** Shows an artifact as a small link if the page knows only its id. */
export function artifactIdChip(app, id) {
  return detailLink(app, "artifact", id, { class: "chip" }, icon("attach"),
    h("span.chip-name", {}, app.nameOfArtifact(id)));
}

/** Shows a preview of an artifact: an image, a player for sound or video, or a small link for any other kind. */
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

/** Shows the number of tokens sent to and received from models, and the cost if it is known. */
export function spent(app, usage) {
  const tokens = app.t("tokens", { in: short(usage.promptTokens), out: short(usage.completionTokens) });
  return h("span.spent", { title: app.t("tokens.title", usage) },
    usage.cost === undefined ? tokens : `${tokens} · ${app.t("cost", { amount: cost(usage.cost) })}`);
}

/** Returns the title of a task, or its id if the title is not known. */
export function titleOf(app, id) {
  const task = app.store.model.tasks.get(id);
  return task?.title || id;
}

/** Creates a definition list of names and values. Leaves out pairs without a value. */
export function facts(...pairs) {
  return h("dl.facts", {}, pairs
    .filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false)
    .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** Shows a value that may be a text, a list of texts, or any JSON. */
export function value(what) {
  if (typeof what === "string") return h("div.prose", {}, what);
  if (Array.isArray(what) && what.every((one) => typeof one === "string")) {
    return h("ul.plain", {}, what.map((one) => h("li", {}, one)));
  }
  return code(what);
}

/** Shows a value in a code block: a text as it is, and any other value as formatted JSON. */
export function code(what) {
  return h("pre.code", { tabindex: "0" }, typeof what === "string" ? what : JSON.stringify(what, null, 2));
}

/** Shows the input and output capabilities of a model. */
export function capabilities(app, have) {
  if (!have) return null;
  const list = (name, all) => h("span.capabilities", {}, h("span.dim", {}, name),
    all.map((one) => h("span.tag", {}, app.t.has(`capability.${one}`) ? app.t(`capability.${one}`) : one)));
  return h("div.both", {}, list(app.t("capability.input"), have.input ?? []),
    list(app.t("capability.output"), have.output ?? []));
}

/** Creates a button with a label, and with an icon if `shape` names one. */
export function button(label, onclick, properties = {}, shape = null) {
  return h("button", { type: "button", onclick, ...properties }, shape ? icon(shape) : null,
    label ? h("span.label", {}, label) : null);
}

/** Creates a button with an icon only. `name` is the tooltip and the label for screen readers. */
export function iconButton(name, shape, onclick, properties = {}) {
  return h("button.bare", { type: "button", title: name, "aria-label": name, onclick, ...properties }, icon(shape));
}

/** Shows the error of a failed read, with a button that tries again. */
export function trouble(app, error, again) {
  return h("div.trouble", { role: "alert" }, icon("parked"), h("span", {}, app.explain(error)),
    again ? button(app.t("again"), again) : null);
}

/** Shows an active filter; a click removes it. */
export function filterChip(app, text, remove) {
  return h("button.chip.on", { type: "button", title: app.t("filter.remove"), onclick: remove },
    h("span.name", {}, text), icon("close"));
}

/** Shows a text in place of an empty list. */
export function nothing(text, ...more) {
  return h("div.nothing", {}, h("p", {}, text), more);
}

/** Creates a section with a heading. */
export function section(title, ...content) {
  return h("section.part", {}, h("h3", {}, title), ...content);
}
