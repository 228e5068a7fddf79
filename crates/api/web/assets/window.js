// The part of the events that the timeline holds: a stretch without gaps that grows at both ends by pages, at the new
// end by what happens, and never beyond a bound. Pure.

/** How many events are held at most, and how many are read at a time. */
export const BOUND = 3000;
export const PAGE = 250;

/** Nothing yet. `tail`: whether it reaches up to now; `head`: whether it reaches back to the oldest there is. */
export function empty() {
  return { entries: [], head: false, tail: true, missed: 0, loading: true, meanwhile: [] };
}

/** The newest page was read. */
export function newest(window, page) {
  const last = page.at(-1)?.seq ?? 0;
  const came = window.meanwhile.filter((entry) => entry.seq > last);
  return {
    ...empty(), loading: false, head: page.length < PAGE, entries: bounded([...page, ...came], "old").kept,
  };
}

/** The oldest page was read. */
export function oldest(window, page) {
  const tail = page.length < PAGE;
  const last = page.at(-1)?.seq ?? 0;
  const came = window.meanwhile.filter((entry) => entry.seq > last);
  return {
    ...empty(), loading: false, head: true, tail,
    entries: tail ? bounded([...page, ...came], "new").kept : page, missed: tail ? 0 : came.length,
  };
}

/** The page before the oldest that is held was read. What no longer fits goes at the new end. */
export function older(window, page) {
  const first = window.entries[0]?.seq ?? Infinity;
  const { kept, cut } = bounded([...page.filter((entry) => entry.seq < first), ...window.entries], "new");
  return { ...window, entries: kept, head: page.length < PAGE, tail: window.tail && !cut };
}

/** The page after the newest that is held was read. What no longer fits goes at the old end. */
export function newer(window, page) {
  const last = window.entries.at(-1)?.seq ?? 0;
  const fresh = page.filter((entry) => entry.seq > last);
  const { kept, cut } = bounded([...window.entries, ...fresh], "old");
  const tail = page.length < PAGE;
  return {
    ...window, entries: kept, tail, head: window.head && !cut,
    missed: tail ? 0 : Math.max(0, window.missed - fresh.length),
  };
}

/**
 * Events happened. They belong to the stretch if it reaches up to now; else they are counted, and read later. `watching`
 * says which end may be cut: `end` where one looks at the newest, `middle` where one reads further up.
 */
export function live(window, entries, watching) {
  if (entries.length === 0) return window;
  if (window.loading) {
    return { ...window, meanwhile: window.meanwhile.concat(entries).slice(-BOUND) };
  }
  if (!window.tail) return { ...window, missed: window.missed + entries.length };
  const last = window.entries.at(-1)?.seq ?? 0;
  const fresh = entries.filter((entry) => entry.seq > last);
  if (fresh.length === 0) return window;
  const all = [...window.entries, ...fresh];
  if (watching === "end") {
    const { kept, cut } = bounded(all, "old");
    return { ...window, entries: kept, head: window.head && !cut };
  }
  const { kept, cut } = bounded(all, "new");
  return { ...window, entries: kept, tail: !cut, missed: window.missed + all.length - kept.length };
}

function bounded(entries, end) {
  const cut = entries.length > BOUND;
  if (!cut) return { kept: entries, cut };
  return { kept: end === "old" ? entries.slice(-BOUND) : entries.slice(0, BOUND), cut };
}
