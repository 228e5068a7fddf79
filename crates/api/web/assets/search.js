// The decisions of the search page. Pure functions.

/** The kinds of things that a search finds, as the server names them. */
export const KINDS = ["task", "agent", "message", "artifact"];

/** Maximum number of characters of a query. A longer query, percent-encoded, would not fit into an address. */
const QUERY = 5000;

/**
 * Cuts a query to `QUERY` characters, so that it fits into an address. The server would ignore the remaining characters
 * anyway.
 */
export function shorter(query) {
  const characters = [...query];
  return characters.length <= QUERY ? query : characters.slice(0, QUERY).join("");
}

/** Separates the hits of active agents and tasks from the hits of finished ones, which the page folds. */
export function grouped(hits) {
  return { active: hits.filter((hit) => !hit.over), over: hits.filter((hit) => hit.over) };
}
