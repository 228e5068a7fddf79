// Keyboard shortcuts that work on every page. While the person types a text, only the Escape key works.

/** All shortcuts, in the order of the help. `does` is the name of the action, and also the key of its text. */
export const SHORTCUTS = [
  { keys: ["1", "…", "7"], does: "page" },
  { keys: ["t"], does: "tree" },
  { keys: ["/"], does: "find" },
  { keys: ["w"], does: "write" },
  { keys: ["p"], does: "pause" },
  { keys: ["x"], does: "stop" },
  { keys: ["q"], does: "question" },
  { keys: ["a"], does: "approval" },
  { keys: ["d"], does: "theme" },
  { keys: ["l"], does: "language" },
  { keys: ["Esc"], does: "close" },
  { keys: ["?"], does: "help" },
  { keys: ["↑", "↓", "←", "→"], does: "move" },
  { keys: ["Enter"], does: "open" },
];

const ACTIONS = { t: "tree", "/": "find", w: "write", p: "pause", x: "stop", q: "question", a: "approval", d: "theme", l: "language", "?": "help" };

/**
 * Returns the action of a key press; for the action `page`, also the number of the page. Returns `null` for the
 * repeated events of a key that stays pressed. While the person types a text, returns `null` for all keys except
 * Escape. If `letters` is false, keys with a single character are no shortcuts.
 */
export function meaning(event, letters = true) {
  if (event.repeat || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return null;
  if (event.key === "Escape") return { does: "close" };
  if (event.writing || !letters) return null;
  if (/^[1-7]$/.test(event.key)) return { does: "page", number: Number(event.key) };
  return Object.hasOwn(ACTIONS, event.key) ? { does: ACTIONS[event.key] } : null;
}

/** Whether the focused element accepts typed letters. */
export function takesLetters(element) {
  return Boolean(element) && (["TEXTAREA", "SELECT"].includes(element.tagName)
    || (element.tagName === "INPUT" && !["checkbox", "radio", "button", "file"].includes(element.type)));
}
