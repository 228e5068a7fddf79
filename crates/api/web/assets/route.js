// The current page and the open detail, as the address contains them: `#/timeline`, `#/timeline/agent/reader-7k2f`.

/**
 * The pages of the main column; the first is the home page. The page `society` shows the tree of agents on narrow
 * screens. Wide screens show the tree in a separate column.
 */
export const PAGES = ["now", "conversation", "timeline", "tasks", "artifacts", "services", "approvals", "society", "search"];

const DETAILS = ["agent", "message", "artifact", "task", "sent", "why"];

/** Parses the part of an address after the `#`. An unknown page becomes the first page. */
export function parse(hash) {
  const parts = hash.replace(/^#?\/?/, "").split("/");
  const page = PAGES.includes(parts[0]) ? parts[0] : PAGES[0];
  if (!DETAILS.includes(parts[1]) || !parts[2]) return { page, detail: null };
  return { page, detail: { kind: parts[1], id: decoded(parts[2]) } };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Formats a page and its detail for the address; the reverse of `parse`. */
export function write({ page, detail }) {
  return detail ? `#/${page}/${detail.kind}/${encodeURIComponent(detail.id)}` : `#/${page}`;
}
