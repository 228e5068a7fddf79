// Decides which link targets become links on the page. All other targets stay text.

/** The schemes of links to other pages. A link to an artifact has the scheme `artifact:`. */
const OUTSIDE = new Set(["http:", "https:", "mailto:"]);
const LONGEST = 2000;

/**
 * Control characters, spaces, and characters that change the writing direction. A target that contains one of them does
 * not become a link.
 */
const HIDDEN = /[\u0000-\u0020\u007f-\u00a0\u00ad\u061c\u115f\u1160\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufeff\uffa0]/;

/**
 * Parses the target of a link. Returns `{ kind: "outside", href }`, `{ kind: "artifact", id }`, or `null` if the target
 * must not become a link. `href` is the address that the browser would open, so a domain name in another script appears
 * in ASCII.
 */
export function targetOf(text) {
  if (text.length > LONGEST || HIDDEN.test(text)) return null;
  const artifact = /^artifact:([A-Za-z0-9_-]{1,64})$/.exec(text);
  if (artifact) return { kind: "artifact", id: artifact[1] };
  if (!/^(?:https?:\/\/[^/\\?#]|mailto:[^/])/i.test(text) || !URL.canParse(text)) return null;
  const url = new URL(text);
  // The text before an `@` may look like the name of the server, as in `example.com@evil.org`. So a target with a user
  // name or a password does not become a link.
  if (!OUTSIDE.has(url.protocol) || url.username !== "" || url.password !== "") return null;
  return { kind: "outside", href: url.href };
}
