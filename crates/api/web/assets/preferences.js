// What the person has chosen for this browser: light or dark, the language, whether letters are shortcuts. Kept where the browser keeps such things, if
// it does.

const NAME = "polity-preferences";

/** The preferences; what is not chosen is `auto` or empty. */
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

/** Keeps them; a browser that keeps nothing forgets them with the page. */
export function keep(preferences) {
  try {
    localStorage.setItem(NAME, JSON.stringify(preferences));
  } catch {
    // Nothing depends on it.
  }
}
