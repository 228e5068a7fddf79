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

/** Follows from the event `last` on, until `signal` says to stop. */
export async function follow({ last, page, leave, onentries, onstate, signal }) {
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

  while (!signal.aborted) {
    try {
      const silent = new AbortController();
      let timer = 0;
      const heard = () => {
        clearTimeout(timer);
        timer = setTimeout(() => silent.abort(), SILENCE_MS);
      };
      heard();
      try {
        const response = await fetch(address("/api/events", { after: at }), {
          headers: { Accept: "text/event-stream", "Last-Event-ID": String(at) },
          signal: AbortSignal.any([signal, silent.signal]),
          cache: "no-store",
        });
        if (!response.ok) throw await refusal(response, leave);
        onstate("live");
        pause = FIRST_PAUSE_MS;
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = "";
        for (;;) {
          const { value, done } = await reader.read();
          if (done) break;
          heard();
          const read = parse(rest, value);
          rest = read.rest;
          const { taken, asks } = arrange(at, read.blocks.map((block) => JSON.parse(block.data)));
          take(taken);
          // What arrived with the hole is in the page too.
          if (asks) await catchUp();
        }
      } finally {
        clearTimeout(timer);
      }
      onstate("lost");
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status === 401) return;
      onstate("lost");
    }
    await new Promise((resolve) => { setTimeout(resolve, pause); });
    pause = Math.min(LONGEST_PAUSE_MS, pause * 2);
  }
}
