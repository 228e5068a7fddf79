// The person's preferences in this browser: theme, language, whether letters are shortcuts, the filters of lists, and
// the task to which the views are limited. The local storage of the browser keeps them, if the browser allows it.

import { STATES } from "./state.js";

const NAME = "polity-preferences";

const DEFAULTS = {
  theme: "auto", language: "", letters: true, states: STATES, taskState: "", searchKind: "", showOver: false,
  showFinished: false, groups: [], artifactKind: "", task: null,
};

/**
 * Reads the preferences. The default theme is `auto`. The default language is empty, which means the browser's
 * language.
 */
export function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(NAME) ?? "{}");
    const text = (name) => (typeof kept[name] === "string" ? kept[name] : DEFAULTS[name]);
    return {
      theme: ["light", "dark"].includes(kept.theme) ? kept.theme : "auto",
      language: text("language"),
      letters: kept.letters !== false,
      states: Array.isArray(kept.hidden) ? shown(kept.hidden) : DEFAULTS.states,
      taskState: text("taskState"),
      searchKind: text("searchKind"),
      showOver: kept.showOver === true,
      showFinished: kept.showFinished === true,
      groups: Array.isArray(kept.groups) ? kept.groups.filter((group) => typeof group === "string") : DEFAULTS.groups,
      artifactKind: text("artifactKind"),
      task: text("task"),
    };
  } catch {
    return { ...DEFAULTS };
  }
}

/**
 * Stores the preferences. If the browser has no storage, they are lost when the page is closed. Of the states of agents,
 * the hidden ones are stored and not the shown ones. So if a later version adds a state, the tree shows it.
 */
export function keep(preferences) {
  try {
    const { states, ...others } = preferences;
    const hidden = STATES.filter((state) => !states.includes(state));
    localStorage.setItem(NAME, JSON.stringify({ ...others, hidden }));
  } catch {
    // The page works without stored preferences.
  }
}

/** Returns the states that are not hidden. */
function shown(hidden) {
  return STATES.filter((state) => !hidden.includes(state));
}
