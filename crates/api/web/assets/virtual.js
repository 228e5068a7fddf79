// Lists of any length with few elements: only the visible rows, and some rows above and below the visible area, have
// elements.

import { h } from "./dom.js";
import { morph } from "./morph.js";

/** Rows up to this many pixels above and below the visible area get elements, too. */
const MARGIN = 400;

/** Returns the vertical positions of all rows, followed by the position of the end of the list. */
export function offsets(rows, heightOf) {
  const starts = new Float64Array(rows.length + 1);
  for (let at = 0; at < rows.length; at += 1) starts[at + 1] = starts[at] + heightOf(rows[at]);
  return starts;
}

/** Returns the index of the row at a vertical position. */
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

/**
 * Returns two indexes: `first` is the index of the first visible row, and `end` is the index after the last visible
 * row. Rows within `margin` of the visible area count as visible.
 */
export function inSight(starts, top, height, margin = MARGIN) {
  const count = starts.length - 1;
  if (count === 0) return { first: 0, end: 0 };
  const first = rowAt(starts, Math.max(0, top - margin));
  const end = Math.min(count, rowAt(starts, top + height + margin) + 1);
  return { first, end };
}

/**
 * A scrolling list. `keyOf(row)` returns the row's key, `heightOf(row)` computes its height without measuring,
 * `draw(row, at)` creates its element, and `same(before, after)` tells whether the element can stay unchanged.
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

  /** Whether the end of the list is visible, or, for a hidden list, will be visible when the list is shown. */
  atEnd() {
    if (this.element.clientHeight === 0) return this.stuck;
    return this.element.scrollTop + this.element.clientHeight >= this.starts[this.rows.length] - 24;
  }

  toEnd() {
    this.element.scrollTop = this.starts[this.rows.length];
  }

  /**
   * Replaces the rows. `hold` selects what stays in place on the screen: the pixel offset (`top`), the first visible
   * row (`row`), or the end of the list (`end`).
   */
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

  /** Scrolls as little as needed to make a row visible. */
  reveal(at) {
    if (at < 0 || at >= this.rows.length) return;
    const { element } = this;
    if (this.starts[at] < element.scrollTop) element.scrollTop = this.starts[at];
    const below = this.starts[at + 1] - element.clientHeight;
    if (below > element.scrollTop) element.scrollTop = below;
    this.paint();
  }

  /** Creates elements for the visible rows that have none, and removes the elements of all other rows. */
  paint() {
    const { first, end } = inSight(this.starts, this.element.scrollTop, this.element.clientHeight);
    const kept = new Map();
    let before = null;
    for (let at = first; at < end; at += 1) {
      const row = this.rows[at];
      const key = this.keyOf(row);
      let drawn = this.shown.get(key);
      if (!drawn || !this.same(drawn.row, row)) {
        // Change the existing element and do not replace it. If the person has pressed the mouse button on the
        // element, releasing the button then still causes a click.
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

  /** Creates the element of a row. If this fails, returns an empty element, so that the other rows still appear. */
  drawn(row, at) {
    try {
      return this.draw(row, at);
    } catch (error) {
      console.error(error);
      return h("div.row");
    }
  }

  /** Creates all elements again, because data outside the rows has changed. */
  redraw() {
    for (const { element } of this.shown.values()) element.remove();
    this.shown = new Map();
    this.paint();
  }
}
