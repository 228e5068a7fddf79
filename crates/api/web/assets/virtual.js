// Lists of any length with few elements: only the rows in sight, and some beside them, exist.

import { h } from "./dom.js";
import { morph } from "./morph.js";

/** How far beyond the sight rows are made, in pixels. */
const MARGIN = 400;

/** Where each row begins; one more number than rows, the last is where the list ends. */
export function offsets(rows, heightOf) {
  const starts = new Float64Array(rows.length + 1);
  for (let at = 0; at < rows.length; at += 1) starts[at + 1] = starts[at] + heightOf(rows[at]);
  return starts;
}

/** The row at a height: the last that begins at or above it. */
export function rowAt(starts, top) {
  let low = 0;
  let high = Math.max(0, starts.length - 2);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= top) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The first row in sight and the one after the last. */
export function inSight(starts, top, height, margin = MARGIN) {
  const count = starts.length - 1;
  if (count === 0) return { first: 0, end: 0 };
  const first = rowAt(starts, Math.max(0, top - margin));
  const end = Math.min(count, rowAt(starts, top + height + margin) + 1);
  return { first, end };
}

/**
 * A list that scrolls. `keyOf(row)` names a row, `heightOf(row)` says how high it is without measuring, `draw(row, at)`
 * makes its element, and `same(before, after)` says whether that still shows the row.
 */
export class VirtualList {
  constructor({ keyOf, heightOf, draw, same = Object.is, onscroll = () => {} }) {
    Object.assign(this, { keyOf, heightOf, draw, same });
    this.rows = [];
    this.starts = offsets([], heightOf);
    this.shown = new Map();
    this.space = h("div.virtual-space");
    this.element = h("div.virtual", { onscroll: () => { this.paint(); onscroll(); } }, this.space);
    new ResizeObserver(() => { if (this.stuck) this.toEnd(); this.paint(); }).observe(this.element);
    this.stuck = false;
  }

  /** Whether the end of the list is in sight. */
  atEnd() {
    return this.element.scrollTop + this.element.clientHeight >= this.starts[this.rows.length] - 24;
  }

  toEnd() {
    this.element.scrollTop = this.starts[this.rows.length];
  }

  /** Other rows. `hold` says what stays where it is: `"top"` the number of pixels, `"row"` the row in sight, `"end"` the end. */
  replace(rows, hold = "top") {
    const { element } = this;
    const first = this.rows.length > 0 ? rowAt(this.starts, element.scrollTop) : -1;
    const anchor = first >= 0 ? this.keyOf(this.rows[first]) : null;
    const within = first >= 0 ? element.scrollTop - this.starts[first] : 0;
    this.rows = rows;
    this.starts = offsets(rows, this.heightOf);
    this.space.style.height = `${this.starts[rows.length]}px`;
    this.stuck = hold === "end";
    if (hold === "end") this.toEnd();
    else if (hold === "row" && anchor !== null) {
      const at = rows.findIndex((row) => this.keyOf(row) === anchor);
      if (at >= 0) element.scrollTop = this.starts[at] + within;
    }
    this.paint();
  }

  /** Scrolls as little as needed to have a row in sight. */
  reveal(at) {
    if (at < 0 || at >= this.rows.length) return;
    const { element } = this;
    if (this.starts[at] < element.scrollTop) element.scrollTop = this.starts[at];
    const below = this.starts[at + 1] - element.clientHeight;
    if (below > element.scrollTop) element.scrollTop = below;
    this.paint();
  }

  /** Makes the rows in sight, keeps those that still are, removes the others. */
  paint() {
    const { first, end } = inSight(this.starts, this.element.scrollTop, this.element.clientHeight);
    const kept = new Map();
    let before = null;
    for (let at = first; at < end; at += 1) {
      const row = this.rows[at];
      const key = this.keyOf(row);
      let drawn = this.shown.get(key);
      if (!drawn || !this.same(drawn.row, row)) {
        // The element stays: a press on it that has not been let go yet becomes a click.
        const element = this.drawn(row, at);
        drawn = { row, element: drawn ? morph(drawn.element, element) : element };
      }
      this.shown.delete(key);
      kept.set(key, drawn);
      drawn.element.style.transform = `translateY(${this.starts[at]}px)`;
      drawn.element.style.height = `${this.starts[at + 1] - this.starts[at]}px`;
      const next = before ? before.nextSibling : this.space.firstChild;
      if (next !== drawn.element) this.space.insertBefore(drawn.element, next);
      before = drawn.element;
    }
    for (const { element } of this.shown.values()) element.remove();
    this.shown = kept;
  }

  /** The element of a row; one that cannot be drawn is empty, so that the others are there. */
  drawn(row, at) {
    try {
      return this.draw(row, at);
    } catch (error) {
      console.error(error);
      return h("div.row");
    }
  }

  /** Draws all again, because something that rows show beside themselves has changed. */
  redraw() {
    for (const { element } of this.shown.values()) element.remove();
    this.shown = new Map();
    this.paint();
  }
}
