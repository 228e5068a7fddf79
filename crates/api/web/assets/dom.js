// Creates elements by function calls. Text from models becomes text nodes, never markup: this file parses no HTML.

import { visible } from "./visible.js";

/** The attributes whose values people see, or hear from a screen reader. */
const READ = new Set(["title", "alt", "aria-label", "placeholder"]);

const SVG = "http://www.w3.org/2000/svg";

/** Creates an element: `h("p.note", {title: "…", onclick: f}, "text", child, [more])`. */
export function h(selector, properties, ...children) {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length > 0) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(properties ?? {})) set(element, name, value);
  append(element, children);
  return element;
}

function set(element, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name.startsWith("on")) listen(element, name.slice(2), value);
  else if (name === "class") for (const one of value.split(" ").filter(Boolean)) element.classList.add(one);
  else if (name === "value" || name === "checked" || name === "selected") element[name] = value;
  else element.setAttribute(name, value === true ? "" : READ.has(name) ? visible(String(value)) : String(value));
}

// The current event handlers of each element. The listener of an element looks up its handler here, so `morph` can
// replace the handler of an existing element.
const HANDLERS = new WeakMap();

function listen(element, type, handler) {
  if (!HANDLERS.has(element)) HANDLERS.set(element, {});
  const known = HANDLERS.get(element);
  if (!(type in known)) element.addEventListener(type, (event) => known[type]?.(event));
  known[type] = handler;
}

/**
 * Returns the handlers of an element that `h` made, by event type. If `handlers` is given, the handlers in `handlers`
 * first replace the old handlers of the element.
 */
export function handlersOf(element, handlers) {
  if (handlers) {
    for (const type of Object.keys(HANDLERS.get(element) ?? {})) if (!handlers[type]) HANDLERS.get(element)[type] = null;
    for (const [type, handler] of Object.entries(handlers)) listen(element, type, handler);
  }
  return HANDLERS.get(element) ?? {};
}

/**
 * Appends children to an element. Skips `null`, `undefined` and `false`, and flattens arrays. Makes control characters
 * in texts visible.
 */
export function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(typeof child === "string" ? visible(child) : child);
  }
  return element;
}

/** Replaces the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

/** Creates an icon from the shapes below. The icon is only decoration, so it is hidden from screen readers. */
export function icon(name) {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", "0 0 16 16");
  drawing.setAttribute("aria-hidden", "true");
  drawing.classList.add("icon", `icon-${name}`);
  for (const path of SHAPES[name] ?? []) {
    const shape = document.createElementNS(SVG, "path");
    shape.setAttribute("d", path.replace(/^!/, ""));
    if (path.startsWith("!")) shape.classList.add("solid");
    drawing.append(shape);
  }
  return drawing;
}

// SVG paths on a grid of 16 by 16. A path that begins with `!` is filled; all other paths are strokes.
const SHAPES = {
  // States of agents. All shapes differ, so that a person can recognize a state without its colour.
  thinking: ["M8 2a6 6 0 1 1-6 6", "!M8 6.3a1.7 1.7 0 1 1 0 3.4a1.7 1.7 0 1 1 0-3.4"],
  asking: ["M2 3h12v8H8.5L5 14v-3H2z", "M8 4.8v2.6M8 9v.1"],
  running: ["M2 3h12v10H2z", "M4.5 6l2 2-2 2M8 10.5h3.5"],
  retrying: ["M13 8a5 5 0 1 1-1.6-3.7", "M13.5 2v3h-3", "M8 5.5V8l1.5 1.5"],
  ready: ["!M6 4.5l5 3.5-5 3.5z", "M8 2a6 6 0 1 1 0 12a6 6 0 1 1 0-12"],
  queued: ["M2 4h12v8.5H2z", "M2.3 4.5L8 9l5.7-4.5"],
  waiting: ["M4.5 2h7M4.5 14h7", "M5.5 2v2.5L8 8l2.5-3.5V2M5.5 14v-2.5L8 8l2.5 3.5V14"],
  parked: ["M8 2.2L14.5 13.5H1.5z", "M8 6.5v3.2M8 11.5v.1"],
  paused: ["!M4 3h2.8v10H4zM9.2 3H12v10H9.2z"],
  idle: ["M8 4.5a3.5 3.5 0 1 1 0 7a3.5 3.5 0 1 1 0-7"],
  ended: ["M4.5 4.5l7 7M11.5 4.5l-7 7"],
  // Kinds of content.
  text: ["M3.5 2h6l3 3v9h-9z", "M5.5 7.5h5M5.5 10.5h5"],
  image: ["M2 3h12v10H2z", "M2.5 12l3.5-4 2.5 2.5L11 8l2.8 3.5", "!M5 5a1 1 0 1 1 0 2a1 1 0 1 1 0-2"],
  audio: ["M6 12V3.5l6.5-1.5v8.5", "!M4.5 10.2a1.8 1.8 0 1 1 0 3.6a1.8 1.8 0 1 1 0-3.6", "!M11 8.7a1.8 1.8 0 1 1 0 3.6a1.8 1.8 0 1 1 0-3.6"],
  video: ["M2 4h8.5v8H2z", "M10.5 7l3.5-2v6l-3.5-2"],
  document: ["M3.5 2h6l3 3v9h-9z", "M9 2.5V6h3"],
  other: ["M8 2l5.5 3v6L8 14l-5.5-3V5z", "M2.7 5.2L8 8l5.3-2.8M8 8v5.7"],
  described: ["M2 3h12v7.5H7.5L4.5 13.5v-3H2z", "M5 6.7h6"],
  // Actions.
  send: ["M2 8l12-5.5-4 11-2.7-4.2z", "M7.3 9.3L14 2.5"],
  attach: ["M11 5L6.2 9.8a1.5 1.5 0 0 0 2.1 2.1l4.5-4.5a3 3 0 0 0-4.2-4.2L4 7.7a4.3 4.3 0 0 0 6.1 6.1l2.7-2.7"],
  close: ["M4 4l8 8M12 4l-8 8"],
  open: ["M6 3.5L10.5 8 6 12.5"],
  stop: ["!M4 4h8v8H4z"],
  pause: ["!M4 3h2.8v10H4zM9.2 3H12v10H9.2z"],
  resume: ["!M4.5 2.8L12.5 8l-8 5.2z"],
  reload: ["M13 8a5 5 0 1 1-1.6-3.7", "M13.5 2v3h-3"],
  up: ["M8 13V4M4.5 7.5L8 4l3.5 3.5M3.5 2h9"],
  down: ["M8 3v9M4.5 8.5L8 12l3.5-3.5M3.5 14h9"],
  wide: ["M9.5 2.5h4v4M13.5 2.5L9 7M6.5 13.5h-4v-4M2.5 13.5L7 9"],
  moon: ["M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z"],
  sun: ["M8 5.2a2.8 2.8 0 1 1 0 5.6a2.8 2.8 0 1 1 0-5.6", "M8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1"],
  auto: ["M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 1 1 0-11", "!M8 2.5a5.5 5.5 0 0 1 0 11z"],
  question: ["M5.5 6a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1.8-1.1 1.8M8 12.3v.1"],
  key: ["M10.5 2.5a3 3 0 1 1 0 6a3 3 0 1 1 0-6", "M8.3 7.7L2.5 13.5M4 12l1.7 1.7"],
  // Pages.
  search: ["M7 2.5a4.5 4.5 0 1 1 0 9a4.5 4.5 0 1 1 0-9", "M10.3 10.3L14 14"],
  now: ["M8 2a6 6 0 1 1 0 12a6 6 0 1 1 0-12", "M8 5v3.2l2.2 1.6"],
  society: ["M8 5.5v2.5M8 8H4v2.5M8 8h4v2.5", "M8 2a1.7 1.7 0 1 1 0 3.4a1.7 1.7 0 1 1 0-3.4", "M4 10.6a1.7 1.7 0 1 1 0 3.4a1.7 1.7 0 1 1 0-3.4", "M12 10.6a1.7 1.7 0 1 1 0 3.4a1.7 1.7 0 1 1 0-3.4"],
  conversation: ["M2 3h12v8H8l-3 3v-3H2z"],
  timeline: ["M4 2v12", "M7 4h7M7 8h5M7 12h6", "!M4 3a1 1 0 1 1 0 2a1 1 0 1 1 0-2M4 7a1 1 0 1 1 0 2a1 1 0 1 1 0-2M4 11a1 1 0 1 1 0 2a1 1 0 1 1 0-2"],
  tasks: ["M2.5 4l1.2 1.2L6 2.8M2.5 9l1.2 1.2L6 7.8", "M8.5 4.2H14M8.5 9.2H14M8.5 13.5H14M3 13.5h2"],
  artifacts: ["M2 3h5v4.5H2zM9 3h5v4.5H9zM2 9.5h5V14H2zM9 9.5h5V14H9z"],
  approvals: ["M8 1.8l5 2v4c0 3-2 5.2-5 6.4-3-1.2-5-3.4-5-6.4v-4z", "M5.5 7.8l1.8 1.8 3.2-3.4"],
  services: ["M2.5 3h11v4h-11zM2.5 9h11v4h-11z", "M5 5h.1M5 11h.1"],
};
