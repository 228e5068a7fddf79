// Follows the events without a gap and without a double, also when the connection or the daemon goes away meanwhile.
//
// The stream is read with `fetch`, not with `EventSource`: it tells a session that is gone from a daemon that is gone,
// and gives events of every kind. `arrange` decides what arrives in its place and what does not.

import { ApiError, address, refusal } from "./api.js";
import { parse } from "./sse.js";

/** The server says something at least every 15 seconds; what is silent for longer is not there any more. */
const SILENCE_MS = 45_000;
const FIRST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 5_000;
const PAGE = 500;
/** How often a page that nobody looks at asks what has happened: it holds no connection, of which a browser has few. */
const AWAY_MS = 30_000;

/** Whether somebody looks at the page, as far as the browser tells. */
export const presence = {
  away: () => document.hidden,
  watch(listener) {
    document.addEventListener("visibilitychange", listener);
    return () => document.removeEventListener("visibilitychange", listener);
  },
};

/**
 * What arrives after the event `last`: `taken` is next in line; with `asks`, numbers are missing, and a page must say
 * whether they were given to anything; what came before is dropped.
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

/** Resolves when somebody comes back to the page, after a time, or when it is to stop. */
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
 * Follows from the event `last` on, until `signal` says to stop. `onreset` is called where the events do not go on from
 * there: it reads everything, and gives the event from which on to follow, or nothing to end.
 */
export async function follow({ last, page, leave, onentries, onstate, onreset, signal, presence }) {
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

  /** Where nobody looks no stream is held; now and then a page says what has happened. */
  const whileAway = async () => {
    while (presence.away() && !signal.aborted) {
      await comesBack(presence, signal, AWAY_MS);
      if (!presence.away() || signal.aborted) return;
      await catchUp();
      onstate("live");
    }
  };

  /** Takes what a stream brings until it ends; says whether the events begin anew. */
  const listen = async (stop, heard) => {
    const response = await fetch(address("/api/events", { after: at }), {
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
      const { taken, asks } = arrange(at, blocks.map((block) => JSON.parse(block.data)));
      take(taken);
      if (anew >= 0) return true;
      // What arrived with the hole is in the page too.
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
      // Nobody looks: that the stream was let go is no loss.
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
