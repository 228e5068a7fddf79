// Holds the model and what the person looks at; tells the views once per frame, however much has happened.

import { fresh } from "./draft.js";
import { initial, reduce } from "./state.js";

/** How long a frame is waited for: a page that nobody sees gets none, also if it was asked for before. */
const FRAME_MS = 250;

export class Store {
  constructor(ui) {
    this.model = initial();
    this.ui = ui;
    this.draft = fresh();
    this.views = new Set();
    this.waiting = [];
    this.cancel = null;
  }

  /** Something has happened to the model. */
  dispatch(action) {
    // Events from before a new beginning do not count.
    if (action.type === "reset") this.waiting = [];
    this.model = reduce(this.model, action);
    this.ask();
  }

  /** Events have happened: they are taken together, at the next frame. */
  events(entries) {
    for (const entry of entries) this.waiting.push(entry);
    this.ask();
  }

  /** The person looks at something else. */
  look(change) {
    this.ui = { ...this.ui, ...change };
    this.ask();
  }

  /** The person writes. The draft is kept here, so that no view that is built anew loses it. */
  write(draft) {
    this.draft = draft;
    this.ask();
  }

  /** Calls a view now, and whenever something has changed; gives what ends that. */
  subscribe(view) {
    this.views.add(view);
    call(view, this.model, this.ui, []);
    return () => this.views.delete(view);
  }

  ask() {
    if (this.cancel) return;
    const flush = () => this.flush();
    const timer = setTimeout(flush, FRAME_MS);
    const frame = requestAnimationFrame(flush);
    this.cancel = () => {
      clearTimeout(timer);
      cancelAnimationFrame(frame);
    };
  }

  flush() {
    this.cancel?.();
    this.cancel = null;
    const entries = this.waiting;
    this.waiting = [];
    if (entries.length > 0) this.model = reduce(this.model, { type: "events", entries });
    for (const view of this.views) call(view, this.model, this.ui, entries);
  }
}

/** A view that fails does not keep the others from being told. */
function call(view, ...what) {
  try {
    view(...what);
  } catch (error) {
    console.error(error);
  }
}
