// The texts of the page in the person's language. Each language has one file; a test checks that the files have the
// same keys.

import en from "./i18n/en.js";
import zh from "./i18n/zh.js";

/** The available languages, by language tag. */
export const LANGUAGES = { en, zh };

/**
 * Returns the first available language from the languages that the browser prefers, or English if none is available.
 */
export function preferred(tags) {
  for (const tag of tags) {
    const language = tag.toLowerCase().split("-")[0];
    if (language in LANGUAGES) return language;
  }
  return "en";
}

/**
 * Splits a text into pieces: strings, and for each `{name}` the value from `values`. In a text `one|many`, the number
 * `values.n` selects the singular or the plural form. In languages without plurals, texts have a single form.
 */
export function pieces(text, values = {}) {
  const forms = text.split("|");
  const form = forms.length > 1 && values.n !== 1 ? forms[1] : forms[0];
  return form.split(/\{(\w+)\}/).map((part, at) => (at % 2 === 1 ? values[part] ?? "" : part));
}

/** Returns the texts of a language: `t(key, values)` returns a string, `t.parts` a list that may contain elements. */
export function texts(language) {
  const table = LANGUAGES[language];
  // If a key has no text, the page shows the key instead of failing.
  const find = (key) => (Object.hasOwn(table, key) ? table[key] : key);
  const t = (key, values) => pieces(find(key), values).join("");
  t.parts = (key, values) => pieces(find(key), values).filter((part) => part !== "");
  t.has = (key) => Object.hasOwn(table, key);
  t.language = language;
  return t;
}
