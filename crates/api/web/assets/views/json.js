// Shows JSON as a tree whose branches can be folded. For a large value, the elements of a branch are created when the
// person opens the branch.

import { fill, h } from "../dom.js";
import { button } from "./shared.js";

/** Number of entries of one branch to show at once. */
const SHOWN = 200;
/** A branch on the first two levels is open at the beginning if it has at most this many entries. */
const OPEN = 40;

/**
 * If a value has at most this many entries, the elements of all branches are created at once, even those of closed
 * branches. A view can then redraw the tree in place.
 */
const EAGER = 2000;

/** Shows a JSON value. */
export function jsonTree(app, value) {
  const fills = entriesIn(value, EAGER) > EAGER ? "late" : "early";
  return h("div.json.code", { tabindex: "0" }, node(app, fills, null, value, 0));
}

/** Counts the entries of a value and of all values in it; stops counting above `most`. */
function entriesIn(value, most) {
  let count = 0;
  const left = [value];
  while (left.length > 0 && count <= most) {
    const one = left.pop();
    if (one === null || typeof one !== "object") continue;
    const inner = Object.values(one);
    count += inner.length;
    if (count <= most) left.push(...inner);
  }
  return count;
}

function node(app, fills, name, value, depth) {
  const label = name === null ? null : [h("span.token-key", {}, name), ": "];
  if (value === null || typeof value !== "object") return h("div.json-leaf", {}, label, leaf(value));
  const entries = Array.isArray(value) ? value.map((one, at) => [String(at), one]) : Object.entries(value);
  const [left, right] = Array.isArray(value) ? "[]" : "{}";
  if (entries.length === 0) return h("div.json-leaf", {}, label, left, right);
  const isOpen = depth < 2 && entries.length <= OPEN;
  const children = h("div.json-children");
  const fillIn = (element) => show(app, fills, element, entries, SHOWN, depth);
  if (isOpen || fills === "early") fillIn(children);
  return h("details", { open: isOpen, ontoggle: (event) => {
    const element = event.currentTarget.lastElementChild;
    if (event.currentTarget.open && !element.hasChildNodes()) fillIn(element);
  } }, h("summary", {}, label, left, h("span.dim", {}, ` ${app.t("json.entries", { n: entries.length })} `), right), children);
}

function show(app, fills, children, entries, count, depth) {
  fill(children, entries.slice(0, count).map(([name, value]) => node(app, fills, name, value, depth + 1)),
    entries.length > count ? button(app.t("json.more", { n: entries.length - count }),
      (event) => show(app, fills, event.currentTarget.parentElement, entries, count * 5, depth), { class: "link" }) : null);
}

function leaf(value) {
  const kind = typeof value === "string" ? "string" : typeof value === "number" ? "number" : "keyword";
  return h(`span.token-${kind}`, {}, JSON.stringify(value));
}
