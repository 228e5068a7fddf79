// Follows the events without gaps and duplicates, even if the connection or the daemon fails.
//
// This module uses `fetch` instead of `EventSource` for two reasons: `fetch` shows whether the session has ended or the
// daemon has stopped, and `fetch` delivers events of every kind. `arrange` decides which events come next in order.

import { ApiError, address, refusal } from "./api.js";
import { parse } from "./sse.js";

/**
 * If a stream is silent for this long, the page closes it as broken. A live server sends a keep-alive every 15
 * seconds.
 */
const SILENCE_MS = 45_000;
const FIRST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 5_000;
const PAGE = 500;
/**
 * Polling interval of a hidden page. A hidden page opens no stream, because a browser allows few connections per
 * host.
 */
const AWAY_MS = 30_000;

/** Tells whether the page is hidden, according to the browser. */
export const presence = {
  away: () => document.hidden,
  watch(listener) {
    document.addEventListener("visibilitychange", listener);
    return () => document.removeEventListener("visibilitychange", listener);
  },
};

/**
 * Selects the entries that follow the event `last`. In the result, `taken` contains the next entries in order,
 * without entries that are known already. If `asks` is true, event numbers are missing, so the caller must read a
 * page, which may contain the missing events.
 */
export function arrange(last, entries) {
  const taken = [];
  let at = last;
  for (const entry of entries) {
    if (entry.seq <= at) continue;
    if (entry.seq > at + 1) return { taken, asks: true };
    taken.push(entry);
    at = entry.seq;
  }
  return { taken, asks: false };
}

/** Resolves as soon as the page becomes visible, `patience` milliseconds have passed, or `signal` aborts. */
function comesBack(presence, signal, patience) {
  return new Promise((resolve) => {
    const look = () => { if (!presence.away()) done(); };
    const stopWatching = presence.watch(look);
    const timer = setTimeout(done, patience);
    signal.addEventListener("abort", done);
    function done() {
      stopWatching();
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
  });
}

/**
 * Follows the events after `last` until `signal` aborts. If the server cannot continue after `last`, calls `onreset`.
 * `onreset` rereads everything, and returns the number of the event after which `follow` continues, or `null` to stop.
 * If `onglimpses` is given, it is called with glimpses, which tell what agents are doing at this moment.
 */
export async function follow({ last, page, leave, onentries, onglimpses, onstate, onreset, signal, presence }) {
  let at = last;
  let pause = FIRST_PAUSE_MS;
  const take = (entries) => {
    const fresh = entries.filter((entry) => entry.seq > at);
    if (fresh.length === 0) return;
    at = fresh.at(-1).seq;
    onentries(fresh);
  };
  const catchUp = async () => {
    for (;;) {
      const { events } = await page({ after: at, limit: PAGE });
      take(events);
      if (events.length < PAGE) return;
    }
  };

  /** While the page is hidden, reads new events from time to time, without a stream. */
  const whileAway = async () => {
    while (presence.away() && !signal.aborted) {
      await comesBack(presence, signal, AWAY_MS);
      if (!presence.away() || signal.aborted) return;
      await catchUp();
      onstate("live");
    }
  };

  /**
   * Reads a stream until it ends. Returns `true` if the server has sent `reset`, because it cannot continue after
   * `last`.
   */
  const listen = async (stop, heard) => {
    const response = await fetch(address("/api/events", { after: at, live: onglimpses ? true : undefined }), {
      headers: { Accept: "text/event-stream", "Last-Event-ID": String(at) }, signal: stop, cache: "no-store",
    });
    if (!response.ok) throw await refusal(response, leave);
    onstate("live");
    pause = FIRST_PAUSE_MS;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return false;
      heard();
      const read = parse(rest, value);
      rest = read.rest;
      const anew = read.blocks.findIndex((block) => block.event === "reset");
      const blocks = anew < 0 ? read.blocks : read.blocks.slice(0, anew);
      const glimpses = blocks.filter((block) => block.event === "glimpse").map((block) => JSON.parse(block.data));
      if (glimpses.length > 0) onglimpses?.(glimpses);
      const entries = blocks.filter((block) => block.event !== "glimpse").map((block) => JSON.parse(block.data));
      const { taken, asks } = arrange(at, entries);
      take(taken);
      if (anew >= 0) return true;
      // `catchUp` reads all newer events, including the missing events.
      if (asks) await catchUp();
    }
  };

  while (!signal.aborted) {
    const ended = new AbortController();
    let timer = 0;
    let parted = false;
    let stopWatching = () => {};
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(() => ended.abort(), SILENCE_MS);
    };
    try {
      await whileAway();
      if (signal.aborted) return;
      stopWatching = presence.watch(() => {
        if (!presence.away()) return;
        parted = true;
        ended.abort();
      });
      heard();
      if (await listen(AbortSignal.any([signal, ended.signal]), heard)) {
        const begins = await onreset();
        if (begins === null) return;
        at = begins;
      } else {
        onstate("lost");
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status === 401) return;
      // The stream was closed because the page is hidden; this is not a failure.
      if (parted) continue;
      onstate("lost");
    } finally {
      clearTimeout(timer);
      stopWatching();
      ended.abort();
    }
    await new Promise((resolve) => { setTimeout(resolve, pause); });
    pause = Math.min(LONGEST_PAUSE_MS, pause * 2);
  }
}
