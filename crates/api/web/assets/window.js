// The window of events that the timeline keeps in memory. The window has no gaps and a limited length. Pages of older
// or newer events extend it at both ends. Live events extend it only at the end with the newest events. Pure functions.

/** Maximum number of events to hold. */
export const BOUND = 3000;
/** Number of events that one read returns. */
export const PAGE = 250;

/**
 * Returns an empty window. `tail`: whether the window reaches up to the newest event. `head`: whether it reaches back
 * to the oldest event. `heard`: the newest event known to exist, which may be newer than the window.
 */
export function empty() {
  return { entries: [], head: false, tail: true, missed: 0, heard: 0, loading: true, meanwhile: [] };
}

/** Returns the window after a read of the newest page. */
export function newest(window, page) {
  const { kept, cut } = bounded([...page, ...cameAfter(window, page)], "old");
  const heard = Math.max(window.heard, seqOf(kept));
  return { ...empty(), loading: false, head: page.length < PAGE && !cut, tail: seqOf(kept) >= heard, heard, entries: kept };
}

/** Returns the window after a read of the oldest page. */
export function oldest(window, page) {
  const came = cameAfter(window, page);
  const { kept } = bounded(page.length < PAGE ? [...page, ...came] : page, "new");
  const heard = Math.max(window.heard, seqOf(kept));
  const tail = page.length < PAGE && seqOf(kept) >= heard;
  return { ...empty(), loading: false, head: true, tail, heard, entries: kept, missed: tail ? 0 : came.length };
}

/** Adds the page before the oldest held event. If the window gets too long, the newest events are dropped. */
export function older(window, page) {
  const first = window.entries[0]?.seq ?? Infinity;
  const { kept, cut } = bounded([...page.filter((entry) => entry.seq < first), ...window.entries], "new");
  return {
    ...window, entries: kept, head: page.length < PAGE, tail: window.tail && !cut,
    heard: Math.max(window.heard, seqOf(window.entries)),
  };
}

/**
 * Adds the page after the newest held event. A page with fewer than `PAGE` events is the last page. The window then
 * reaches up to the newest event, unless the browser learned of a newer event after it requested the page. `asked` is
 * the value of `heard` at the time of the request. If the window gets too long, the oldest events are dropped.
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
 * Adds live events if the window reaches up to the newest event. Otherwise only counts the live events, because the
 * page reads them later. While a read is running (`loading`), keeps the live events in `meanwhile`. If the window gets
 * too long, `watching` decides which events are dropped. If it is `end`, the person sees the newest events, and the
 * oldest events are dropped. If it is `middle`, the newest events are dropped.
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

/** Returns the live events that arrived during a read and are not in its page. */
function cameAfter(window, page) {
  return window.meanwhile.filter((entry) => entry.seq > seqOf(page));
}

/** Returns the number of the last event in a list, or 0 for an empty list. */
function seqOf(entries) {
  return entries.at(-1)?.seq ?? 0;
}

function bounded(entries, end) {
  const cut = entries.length > BOUND;
  if (!cut) return { kept: entries, cut };
  return { kept: end === "old" ? entries.slice(-BOUND) : entries.slice(0, BOUND), cut };
}
