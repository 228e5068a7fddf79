// Shows something else in an element, and leaves what stays the same where it is: it keeps the focus, the selection, what
// is open, and where it is scrolled to.

import { append, handlersOf } from "./dom.js";

/** What the person changes: only a view that means it changes it. */
const OWN = new Set(["open", "value"]);

/** Puts these children into an element, keeping those that are there already and are still meant. */
export function refill(element, ...children) {
  const wanted = append(document.createDocumentFragment(), children);
  return morphChildren(element, [...wanted.childNodes]);
}

/** Makes exactly these nodes the children of an element; those that stay are not touched. */
export function arrange(element, wanted) {
  const stay = new Set(wanted);
  for (const child of [...element.childNodes]) if (!stay.has(child)) child.remove();
  let at = element.firstChild;
  for (const child of wanted) {
    if (child === at) at = at.nextSibling;
    else element.insertBefore(child, at);
  }
  return element;
}

function morphChildren(element, wanted) {
  const keyed = new Map();
  const others = [];
  for (const child of element.childNodes) {
    const key = keyOf(child);
    if (key) keyed.set(key, child);
    else others.push(child);
  }
  let next = 0;
  arrange(element, wanted.map((child) => {
    const key = keyOf(child);
    if (key) {
      const same = keyed.get(key);
      return same && alike(same, child) ? morph(same, child) : child;
    }
    const at = others.findIndex((one, index) => index >= next && alike(one, child));
    if (at < 0) return child;
    next = at + 1;
    return morph(others[at], child);
  }));
  return element;
}

/** What makes a child the same whatever has become of it. */
function keyOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return null;
  if (node.dataset.key) return node.dataset.key;
  return node.localName === "option" ? `option ${node.value}` : null;
}

function alike(before, after) {
  return before.nodeType === after.nodeType && before.nodeName === after.nodeName
    && (before.nodeType !== Node.ELEMENT_NODE || before.type === after.type);
}

/** Makes what is there look and act like another. */
export function morph(before, after) {
  if (before.nodeType === Node.TEXT_NODE) {
    if (before.data !== after.data) before.data = after.data;
    return before;
  }
  for (const { name } of [...before.attributes]) {
    if (!after.hasAttribute(name) && !OWN.has(name)) before.removeAttribute(name);
  }
  for (const { name, value } of after.attributes) {
    // The policy of the page lets no attribute bring a style; what a script sets is no such.
    if (name === "style") before.style.cssText = value;
    else if (before.getAttribute(name) !== value && !OWN.has(name)) before.setAttribute(name, value);
  }
  handlersOf(before, handlersOf(after));
  morphChildren(before, [...after.childNodes]);
  return before;
}
