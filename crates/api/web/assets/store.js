// Holds the model and what the person looks at; tells the views once per frame, however much has happened.

import { initial, reduce } from "./state.js";

export class Store {
  constructor(ui) {
    this.model = initial();
    this.ui = ui;
    this.views = new Set();
    this.waiting = [];
    this.asked = false;
  }

  /** Something has happened to the model. */
  dispatch(action) {
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

  /** Calls a view now, and whenever something has changed; gives what ends that. */
  subscribe(view) {
    this.views.add(view);
    view(this.model, this.ui, []);
    return () => this.views.delete(view);
  }

  ask() {
    if (this.asked) return;
    this.asked = true;
    const flush = () => {
      this.asked = false;
      const entries = this.waiting;
      this.waiting = [];
      if (entries.length > 0) this.model = reduce(this.model, { type: "events", entries });
      for (const view of this.views) view(this.model, this.ui, entries);
    };
    // A page that nobody sees gets no frames.
    if (document.hidden) setTimeout(flush, 250);
    else requestAnimationFrame(flush);
  }
}
