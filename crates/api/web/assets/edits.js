// Groups what the tools for files wrote. Pure functions.

/**
 * Groups edits by agent and turn. `edits` has the latest edit first, and so have the groups: `{ key, agent, turn, at, edits }`.
 * Inside a group, the oldest edit is first, so that the differences read in the order in which they were made. `at` is
 * the time of the latest edit.
 */
export function byTurn(edits) {
  const groups = new Map();
  for (const edit of edits) {
    const key = `${edit.agent} ${edit.turn}`;
    if (!groups.has(key)) groups.set(key, { key, agent: edit.agent, turn: edit.turn, at: edit.at, edits: [] });
    groups.get(key).edits.unshift(edit);
  }
  return [...groups.values()];
}
