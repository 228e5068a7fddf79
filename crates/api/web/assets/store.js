// Holds the model and the state of the user interface. Notifies the views of changes, at most once per frame.

import { fresh } from "./draft.js";
import { initial, reduce } from "./state.js";

/**
 * Longest wait for a frame, in milliseconds. Browsers draw no frames for a hidden page, so the store cannot rely on
 * frames.
 */
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

  /** Applies an action to the model. */
  dispatch(action) {
    // After a reset of the event stream, the page reads all data again. So the queued events from before the reset are
    // outdated.
    if (action.type === "reset") this.waiting = [];
    this.model = reduce(this.model, action);
    this.ask();
  }

  /** Queues events; the next frame applies them together. */
  events(entries) {
    for (const entry of entries) this.waiting.push(entry);
    this.ask();
  }

  /** Changes the state of the user interface. */
  look(change) {
    this.ui = { ...this.ui, ...change };
    this.ask();
  }

  /** Stores the draft of the person's message here, so that it is not lost when the views are rebuilt. */
  write(draft) {
    this.draft = draft;
    this.ask();
  }

  /** Calls a view now and after every change. Returns a function that ends the subscription. */
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

/** Calls a view. If the view fails, logs the error, so that the other views are still called. */
function call(view, ...what) {
  try {
    view(...what);
  } catch (error) {
    console.error(error);
  }
}
