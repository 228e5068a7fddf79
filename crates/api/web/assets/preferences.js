// The person's preferences in this browser: theme, language, and whether letters are shortcuts. The browser's local
// storage keeps them, if the browser allows it.

const NAME = "polity-preferences";

/** Reads the preferences. If the person has not chosen, the theme is `auto` and the language is empty. */
export function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(NAME) ?? "{}");
    return {
      theme: ["light", "dark"].includes(kept.theme) ? kept.theme : "auto",
      language: typeof kept.language === "string" ? kept.language : "",
      letters: kept.letters !== false,
    };
  } catch {
    return { theme: "auto", language: "", letters: true };
  }
}

/** Stores the preferences. If the browser has no storage, they are lost when the page is closed. */
export function keep(preferences) {
  try {
    localStorage.setItem(NAME, JSON.stringify(preferences));
  } catch {
    // The page works without stored preferences.
  }
}
