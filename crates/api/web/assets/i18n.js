// Texts in the language of the person. One file per language; a test compares their keys.

import en from "./i18n/en.js";
import zh from "./i18n/zh.js";

/** The languages, by their tags. */
export const LANGUAGES = { en, zh };

/** The language for what a browser prefers. */
export function preferred(tags) {
  for (const tag of tags) {
    const language = tag.toLowerCase().split("-")[0];
    if (language in LANGUAGES) return language;
  }
  return "en";
}

/**
 * The pieces of a text: strings, and `{name}` places as what `values` has for them. Of `one|many`, `values.n` says
 * which; a language that makes no difference writes one form.
 */
export function pieces(text, values = {}) {
  const forms = text.split("|");
  const form = forms.length > 1 && values.n !== 1 ? forms[1] : forms[0];
  return form.split(/\{(\w+)\}/).map((part, at) => (at % 2 === 1 ? values[part] ?? "" : part));
}

/** The texts of a language: `t(key, values)` gives a string, `t.parts` what may contain elements. */
export function texts(language) {
  const table = LANGUAGES[language];
  // What has no text is shown by its key: less than a text, but more than nothing at all.
  const find = (key) => (Object.hasOwn(table, key) ? table[key] : key);
  const t = (key, values) => pieces(find(key), values).join("");
  t.parts = (key, values) => pieces(find(key), values).filter((part) => part !== "");
  t.has = (key) => Object.hasOwn(table, key);
  t.language = language;
  return t;
}
