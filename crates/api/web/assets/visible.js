// Replaces control characters by visible codes. So a name cannot look like another name, and a text cannot change the
// direction of the text beside it. The terminal output of polity shows the same codes.

/** The control characters (but not tabs and line ends), and the characters that change the writing direction. */
const OBEYED = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** Replaces each control character by its code point, such as `<U+202E>`. */
export function visible(text) {
  if (text.search(OBEYED) < 0) return text;
  return text.replace(OBEYED, (character) => `<U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`);
}
