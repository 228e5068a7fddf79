// Updates the content of an element and keeps the unchanged children in place. So the unchanged children keep the
// focus, the selection and the scroll position, and open children stay open.

import { append, handlersOf } from "./dom.js";

/**
 * Attributes that the person changes. `morph` does not change them; a view that needs another value must set the
 * attribute itself.
 */
const OWN = new Set(["open", "value"]);

/** Gives an element these children. If an existing child corresponds to a new one, it is updated and not replaced. */
export function refill(element, ...children) {
  const wanted = append(document.createDocumentFragment(), children);
  return morphChildren(element, [...wanted.childNodes]);
}

/** Makes exactly these nodes the children of an element. Nodes that are already in place are not moved. */
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

/** Returns a key by which a child is recognized even if its content has changed. */
function keyOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return null;
  if (node.dataset.key) return node.dataset.key;
  return node.localName === "option" ? `option ${node.value}` : null;
}

function alike(before, after) {
  return before.nodeType === after.nodeType && before.nodeName === after.nodeName
    && (before.nodeType !== Node.ELEMENT_NODE || before.type === after.type);
}

/** Gives an existing node the attributes, the handlers and the content of another node. */
export function morph(before, after) {
  if (before.nodeType === Node.TEXT_NODE) {
    if (before.data !== after.data) before.data = after.data;
    return before;
  }
  for (const { name } of [...before.attributes]) {
    if (!after.hasAttribute(name) && !OWN.has(name)) before.removeAttribute(name);
  }
  for (const { name, value } of after.attributes) {
    // The content security policy forbids `style` attributes, but a script may set `cssText`.
    if (name === "style") before.style.cssText = value;
    else if (before.getAttribute(name) !== value && !OWN.has(name)) before.setAttribute(name, value);
  }
  handlersOf(before, handlersOf(after));
  morphChildren(before, [...after.childNodes]);
  return before;
}
