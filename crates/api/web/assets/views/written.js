// Shows a text of an agent or of the person, formatted as Markdown. The person can switch to the unformatted text.

import { fill, h } from "../dom.js";
import { markdown } from "./markdown.js";
import { button } from "./shared.js";

/** The keys of the texts that the person has switched to the unformatted form. */
const plainOnes = new Set();

/**
 * Shows a whole text. `key` identifies the text, so that a redrawn text keeps the form that the person has chosen.
 */
export function written(app, key, text, properties = {}) {
  const formatted = markdown(app, text);
  if (!formatted) return h("div.prose", properties, text);
  return fillWritten(app, key, text, h("div.written", properties), formatted);
}

function fillWritten(app, key, text, element, formatted) {
  const isPlain = plainOnes.has(key);
  const label = app.t(isPlain ? "markdown.formatted" : "markdown.written");
  return fill(element,
    isPlain ? h("div.prose", {}, text) : h("div.markdown", {}, formatted ?? markdown(app, text)),
    button(label, (event) => {
      if (isPlain) plainOnes.delete(key);
      else plainOnes.add(key);
      const holder = event.currentTarget.closest(".written");
      fillWritten(app, key, text, holder, null);
      holder.querySelector(":scope > button").focus();
    }, { class: "link small as-written" }));
}
