import assert from "node:assert/strict";
import { test } from "node:test";
import { BOUND, PAGE, empty, live, newer, newest, older, oldest } from "../../../crates/api/web/assets/window.js";

const range = (first, last) => Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => ({ seq: first + at }));
const ends = (window) => [window.entries[0]?.seq, window.entries.at(-1)?.seq];

/** Checks the rules for every window: no gaps, no duplicates, and at most `BOUND` events. */
function check(window) {
  assert.ok(window.entries.length <= BOUND);
  window.entries.forEach((entry, at) => {
    if (at > 0) assert.equal(entry.seq, window.entries[at - 1].seq + 1, "the window has a gap or a duplicate");
  });
}

test("events that come while the newest page is read are neither lost nor doubled", () => {
  let window = live(empty(), range(95, 103), "end");
  assert.equal(window.entries.length, 0);
  window = newest(window, range(1, 100));
  assert.deepEqual(ends(window), [1, 103]);
  check(window);
  assert.equal(window.head, true);
});

test("following the end forgets the beginning, reading further up does not move what one reads", () => {
  const full = newest(empty(), range(1, PAGE));
  const followed = live(full, range(PAGE + 1, BOUND + 500), "end");
  assert.deepEqual(ends(followed), [501, BOUND + 500]);
  assert.deepEqual([followed.head, followed.tail], [false, true]);
  const read = live(full, range(PAGE + 1, BOUND + 500), "middle");
  assert.deepEqual(ends(read), [1, BOUND]);
  assert.deepEqual([read.tail, read.missed], [false, 500]);
});

test("what is missed is counted, and read later", () => {
  let window = { ...newest(empty(), range(1, 100)), tail: false };
  window = live(window, range(101, 130), "middle");
  assert.equal(window.missed, 30);
  window = newer(window, range(101, 130), window.heard);
  assert.deepEqual([window.missed, window.tail, ...ends(window)], [0, true, 1, 130]);
});

test("the oldest page does not reach up to now, unless that is all there is", () => {
  assert.deepEqual([oldest(empty(), range(1, PAGE)).tail, oldest(empty(), range(1, PAGE)).head], [false, true]);
  const all = oldest(live(empty(), range(10, 12), "end"), range(1, 11));
  assert.deepEqual([all.tail, ...ends(all)], [true, 1, 12]);
});

test("invariant: whatever one does in 100,000 events, there is no gap, no double, and never more than the bound", () => {
  let total = 100_000;
  let random = 7;
  const next = (below) => {
    random = (random * 1103515245 + 12345) % 2147483648;
    return random % below;
  };
  let window = newest(empty(), range(total - PAGE + 1, total));
  for (let step = 0; step < 5000; step += 1) {
    const [first, last] = ends(window);
    const does = next(5);
    if (does === 0 || (does === 4 && step % 7)) window = older(window, range(Math.max(1, first - PAGE), first - 1));
    else if (does === 1) window = newer(window, range(last + 1, Math.min(total, last + PAGE)), window.heard);
    else if (does === 2) {
      const more = 1 + next(40);
      window = live(window, range(total + 1, total + more), next(2) ? "end" : "middle");
      total += more;
    } else if (does === 3 && step % 50 === 0) window = newest(empty(), range(total - PAGE + 1, total));
    else if (does === 4) window = oldest(empty(), range(1, PAGE));
    check(window);
    if (window.tail) assert.equal(ends(window)[1], total, "a window with `tail` must end at the newest event");
    if (window.head) assert.equal(ends(window)[0], 1, "a window with `head` must begin at the first event");
  }
});

test("a page that was asked for before the newest event does not reach up to it", () => {
  let window = { ...newest(empty(), range(1, 2)), tail: false };
  const asked = window.heard;
  window = live(window, range(4, 4), "middle");
  window = newer(window, range(3, 3), asked);
  assert.equal(window.tail, false, "the window does not hold event 4, which the stream has brought");
  window = live(window, range(5, 5), "middle");
  assert.deepEqual(ends(window), [1, 3]);
  window = newer(window, range(4, 5), window.heard);
  assert.deepEqual([window.tail, ...ends(window)], [true, 1, 5]);
  check(window);
});

test("what a filter lets through here and the server does not keeps nobody from the end", () => {
  let window = live({ ...newest(empty(), range(1, 2)), tail: false }, range(3, 3), "middle");
  window = newer(window, [], window.heard);
  assert.equal(window.tail, true);
});

test("invariant: pages and the stream in any order, each as late as it likes: no gap, and a tail reaches what has come", () => {
  for (let seed = 1; seed <= 300; seed += 1) {
    let random = seed;
    const next = (below) => {
      random = (random * 1103515245 + 12345) % 2147483648;
      return (random >> 8) % below;
    };
    let written = next(2 * PAGE);
    let streamed = written;
    let asked = null;
    let window = { ...empty() };
    const ask = () => {
      const heard = window.heard;
      if (window.loading) {
        const oldestFirst = next(2) === 0;
        const page = oldestFirst ? range(1, Math.min(PAGE, written)) : range(Math.max(1, written - PAGE + 1), written);
        return () => { window = oldestFirst ? oldest(window, page) : newest(window, page); };
      }
      if (window.entries.length === 0) return null;
      const [first, last] = ends(window);
      if (next(2) && !window.head) {
        const page = range(Math.max(1, first - PAGE), first - 1);
        return () => { window = older(window, page); };
      }
      if (window.tail) return null;
      const page = range(last + 1, Math.min(written, last + PAGE));
      return () => { window = newer(window, page, heard); };
    };
    for (let step = 0; step < 400; step += 1) {
      const does = next(6);
      if (does === 0) written += 1 + next(step % 40 === 0 ? 2 * PAGE : 5);
      else if (does === 1 && streamed < written) {
        const more = 1 + next(written - streamed);
        window = live(window, range(streamed + 1, streamed + more), next(2) ? "end" : "middle");
        streamed += more;
      } else if (does === 2 && asked) {
        asked();
        asked = null;
      } else if (does === 3 && !asked) asked = ask();
      else if (does === 4 && !asked && next(30) === 0) window = { ...empty() };
      check(window);
      if (window.tail && !window.loading) assert.ok((ends(window)[1] ?? 0) >= streamed, `seed ${seed}, step ${step}`);
      if (window.head) assert.equal(ends(window)[0] ?? 1, 1);
    }
    for (let turn = 0; turn < 100 && !(window.tail && !window.loading); turn += 1) (asked ?? ask())?.(), asked = null;
    assert.ok(window.tail, "reading on must reach the newest event");
  }
});
