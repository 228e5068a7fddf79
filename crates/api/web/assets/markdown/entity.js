// The few HTML entities that models write in Markdown. A decoded character is always plain text, even if it is a mark
// of Markdown.

const NAMED = { amp: "&", lt: "<", gt: ">", quot: "\"", apos: "'", nbsp: "\u00a0", mdash: "—", ndash: "–", hellip: "…", times: "×", middot: "·" };

/** Reads an entity such as `&amp;` or `&#8212;`. Returns its text and its end, or `null`. */
export function entityAt(text, at) {
  const found = /^&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-z]{2,6}));/.exec(text.slice(at, at + 12));
  if (!found) return null;
  const end = at + found[0].length;
  if (found[3]) return Object.hasOwn(NAMED, found[3]) ? { text: NAMED[found[3]], end } : null;
  const number = found[1] ? Number.parseInt(found[1], 10) : Number.parseInt(found[2], 16);
  const isCharacter = number > 0 && number <= 0x10ffff && !(number >= 0xd800 && number < 0xe000);
  return { text: isCharacter ? String.fromCodePoint(number) : "\ufffd", end };
}
