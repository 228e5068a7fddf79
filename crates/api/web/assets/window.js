// The part of the events that the timeline holds: a stretch without gaps that grows at both ends by pages, at the new
// end by what happens, and never beyond a bound. Pure.

/** How many events are held at most, and how many are read at a time. */
export const BOUND = 3000;
export const PAGE = 250;

/**
 * Nothing yet. `tail`: whether it reaches up to now; `head`: whether it reaches back to the oldest there is. `heard`: the
 * newest event known to exist that may lie behind the stretch.
 */
export function empty() {
  return { entries: [], head: false, tail: true, missed: 0, heard: 0, loading: true, meanwhile: [] };
}

/** The newest page was read. */
export function newest(window, page) {
  const { kept, cut } = bounded([...page, ...cameAfter(window, page)], "old");
  const heard = Math.max(window.heard, seqOf(kept));
  return { ...empty(), loading: false, head: page.length < PAGE && !cut, tail: seqOf(kept) >= heard, heard, entries: kept };
}

/** The oldest page was read. */
export function oldest(window, page) {
  const came = cameAfter(window, page);
  const { kept } = bounded(page.length < PAGE ? [...page, ...came] : page, "new");
  const heard = Math.max(window.heard, seqOf(kept));
  const tail = page.length < PAGE && seqOf(kept) >= heard;
  return { ...empty(), loading: false, head: true, tail, heard, entries: kept, missed: tail ? 0 : came.length };
}

/** The page before the oldest that is held was read. What no longer fits goes at the new end. */
export function older(window, page) {
  const first = window.entries[0]?.seq ?? Infinity;
  const { kept, cut } = bounded([...page.filter((entry) => entry.seq < first), ...window.entries], "new");
  return {
    ...window, entries: kept, head: page.length < PAGE, tail: window.tail && !cut,
    heard: Math.max(window.heard, seqOf(window.entries)),
  };
}

/**
 * The page after the newest that is held was read; `asked` is what was heard of when it was asked for. A short page has
 * all there was then, but not what was heard of since: only without such does the stretch reach up to now. What no longer
 * fits goes at the old end.
 */
export function newer(window, page, asked) {
  const last = seqOf(window.entries);
  const fresh = page.filter((entry) => entry.seq > last);
  const { kept, cut } = bounded([...window.entries, ...fresh], "old");
  const tail = page.length < PAGE && Math.max(asked, seqOf(kept)) >= window.heard;
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
    const heard = Math.max(window.heard, seqOf(entries));
    return { ...window, heard, meanwhile: window.meanwhile.concat(entries).slice(0, BOUND) };
  }
  const last = Math.max(window.heard, seqOf(window.entries));
  const fresh = entries.filter((entry) => entry.seq > last);
  if (fresh.length === 0) return window;
  const heard = seqOf(fresh);
  if (!window.tail) return { ...window, heard, missed: window.missed + fresh.length };
  const all = [...window.entries, ...fresh];
  if (watching === "end") {
    const { kept, cut } = bounded(all, "old");
    return { ...window, entries: kept, heard, head: window.head && !cut };
  }
  const { kept, cut } = bounded(all, "new");
  return { ...window, entries: kept, heard, tail: !cut, missed: window.missed + all.length - kept.length };
}

/** What happened while a page was read, and is not in it. */
function cameAfter(window, page) {
  return window.meanwhile.filter((entry) => entry.seq > seqOf(page));
}

/** The number of the last of some events. */
function seqOf(entries) {
  return entries.at(-1)?.seq ?? 0;
}

function bounded(entries, end) {
  const cut = entries.length > BOUND;
  if (!cut) return { kept: entries, cut };
  return { kept: end === "old" ? entries.slice(-BOUND) : entries.slice(0, BOUND), cut };
}
