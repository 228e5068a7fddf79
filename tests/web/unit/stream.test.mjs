import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { parse } from "../../../crates/api/web/assets/sse.js";
import { arrange, follow } from "../../../crates/api/web/assets/stream.js";

const entry = (seq) => ({ seq, at: seq, event: "turn_started", agent: "root" });
const HERE = { away: () => false, watch: () => () => {} };
const seqs = (entries) => entries.map((one) => one.seq);

test("invariant: a stream gives the same blocks however it is cut", () => {
  const text = ": hello\n\nid: 1\nevent: a\ndata: {\"x\":1}\n\nid: 2\r\ndata: one\r\ndata: two\r\n\r\n: beat\n\ndata:三\n\n";
  const expect = [
    { id: "1", event: "a", data: "{\"x\":1}" },
    { id: "2", event: "message", data: "one\ntwo" },
    { id: null, event: "message", data: "三" },
  ];
  for (let first = 0; first <= text.length; first += 1) {
    for (let second = first; second <= text.length; second += 1) {
      let rest = "";
      const blocks = [];
      for (const piece of [text.slice(0, first), text.slice(first, second), text.slice(second)]) {
        const read = parse(rest, piece);
        rest = read.rest;
        blocks.push(...read.blocks);
      }
      assert.deepEqual(blocks, expect, `cut at ${first} and ${second}`);
    }
  }
});

test("what comes twice is dropped, where a number is missing it asks", () => {
  const check = (last, numbers, taken, asks) => {
    const found = arrange(last, numbers.map(entry));
    assert.deepEqual([seqs(found.taken), found.asks], [taken, asks]);
  };
  check(0, [1, 2, 3], [1, 2, 3], false);
  check(2, [1, 2, 3], [3], false);
  check(2, [3, 3, 4], [3, 4], false);
  check(2, [3, 5, 6], [3], true);
  check(2, [5], [], true);
  check(2, [], [], false);
});

/** Starts a server that leaves out some events, repeats others, and often closes its connections. */
function unreliable(total, removed) {
  const exist = (seq) => seq >= 1 && seq <= total && !removed.has(seq);
  let connections = 0;
  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://localhost");
    const after = Number(request.headers["last-event-id"] ?? url.searchParams.get("after"));
    if (!request.headers.accept.includes("event-stream")) {
      const limit = Number(url.searchParams.get("limit"));
      const events = [];
      for (let seq = after + 1; seq <= total && events.length < limit; seq += 1) if (exist(seq)) events.push(entry(seq));
      response.end(JSON.stringify({ events }));
      return;
    }
    connections += 1;
    if (connections % 3 === 2) {
      response.writeHead(503).end("{}");
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    // Begin two events too early, so that the client gets some events twice. Leave out one of the later events.
    for (let seq = Math.max(1, after - 2); seq <= Math.min(total, after + 40); seq += 1) {
      if (exist(seq) && seq !== after + 17) response.write(`id: ${seq}\nevent: turn_started\ndata: ${JSON.stringify(entry(seq))}\n\n`);
    }
    response.end();
  });
  return server;
}

test("a stream that loses, repeats and hangs up is followed without a gap and without a double", async () => {
  const removed = new Set([5, 6, 7, 120]);
  const total = 300;
  const server = unreliable(total, removed);
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  const base = `http://127.0.0.1:${server.address().port}`;
  const native = globalThis.fetch;
  globalThis.fetch = (target, options) => native(base + target, options);
  const timers = globalThis.setTimeout;
  // Shorten the pauses between connections; this test does not check them.
  globalThis.setTimeout = (run, delay, ...rest) => timers(run, delay > 10_000 ? delay : 0, ...rest);
  const stop = new AbortController();
  const got = [];
  try {
    await follow({
      last: 0, leave: () => assert.fail("no session"), onstate: () => {}, onreset: () => assert.fail("no reset"),
      signal: stop.signal, presence: HERE,
      page: async ({ after, limit }) => (await fetch(`/api/events?after=${after}&limit=${limit}`, { headers: { Accept: "application/json" } })).json(),
      onentries: (entries) => {
        got.push(...entries);
        if (got.at(-1).seq === total) stop.abort();
      },
    });
  } finally {
    globalThis.fetch = native;
    globalThis.setTimeout = timers;
    server.closeAllConnections();
    server.close();
  }
  const expect = Array.from({ length: total }, (_, at) => at + 1).filter((seq) => !removed.has(seq));
  assert.deepEqual(seqs(got), expect);
});

test("a session that is gone ends the following and leaves the page", async () => {
  const native = globalThis.fetch;
  let left = 0;
  globalThis.fetch = async () => new Response("{}", { status: 401 });
  try {
    await follow({
      last: 0, page: () => assert.fail("not asked"), leave: () => { left += 1; }, onentries: () => {}, onstate: () => {},
      onreset: () => assert.fail("no reset"), signal: new AbortController().signal, presence: HERE,
    });
  } finally {
    globalThis.fetch = native;
  }
  assert.equal(left, 1);
});

/** Runs `follow` on the responses that `open` returns, without pauses between connections. */
async function following(options, open) {
  const native = { fetch: globalThis.fetch, setTimeout: globalThis.setTimeout };
  globalThis.fetch = async (target, { headers, signal }) => open(Number(headers["Last-Event-ID"]), signal);
  globalThis.setTimeout = (run, delay, ...rest) => native.setTimeout(run, delay > 10_000 ? delay : 0, ...rest);
  try {
    await follow({
      last: 0, page: () => assert.fail("no page"), leave: () => assert.fail("no session"), onstate: () => {},
      onentries: () => {}, onreset: () => assert.fail("no reset"), presence: HERE, ...options,
    });
  } finally {
    Object.assign(globalThis, native);
  }
}

const said = (entries) => entries.map((one) => `id: ${one.seq}\ndata: ${JSON.stringify(one)}\n\n`).join("");

/** Returns a response that sends a text and then stays open until the reader aborts it. */
function endless(text, signal) {
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(text));
      signal.addEventListener("abort", () => controller.error(signal.reason));
    },
  });
  return new Response(body);
}

test("events that begin anew are read anew, also if the numbers go back", async () => {
  for (const reset of ["event: reset\n\n", "event: reset\ndata: {\"oldest\":1}\n\n"]) {
    const stop = new AbortController();
    const asked = [];
    const got = [];
    let resets = 0;
    await following({
      last: 500, signal: stop.signal,
      onreset: async () => {
        resets += 1;
        return 7;
      },
      onentries: (entries) => {
        got.push(...entries);
        if (got.at(-1).seq === 9) stop.abort();
      },
    }, (after, signal) => {
      asked.push(after);
      return endless(after === 500 ? said([entry(501)]) + reset + said([entry(1)]) : said([entry(8), entry(9)]), signal);
    });
    assert.deepEqual([asked, resets, seqs(got)], [[500, 7], 1, [501, 8, 9]]);
  }
});

test("a page that nobody looks at holds no stream, and goes on from where it was", async () => {
  const stop = new AbortController();
  const watchers = new Set();
  let away = false;
  const turn = (now) => {
    away = now;
    for (const watcher of [...watchers]) watcher();
  };
  const presence = {
    away: () => away,
    watch(listener) {
      watchers.add(listener);
      return () => watchers.delete(listener);
    },
  };
  const asked = [];
  const states = [];
  let held = 0;
  await following({
    presence, signal: stop.signal, onstate: (state) => states.push(state),
    onentries: (entries) => {
      const last = entries.at(-1).seq;
      if (last === 2) {
        turn(true);
        // While the page is hidden, no stream may be open.
        setImmediate(() => {
          assert.equal(held, 0);
          turn(false);
        });
      } else stop.abort();
    },
  }, (after, signal) => {
    asked.push(after);
    held += 1;
    signal.addEventListener("abort", () => { held -= 1; });
    return endless(said([entry(after + 1), entry(after + 2)]), signal);
  });
  assert.deepEqual(asked, [0, 2]);
  assert.ok(!states.includes("lost"), "a hidden page must not count as a lost connection");
  assert.equal(watchers.size, 0);
});

test("glimpses are told apart from events, also between them, and are asked for only by who wants them", async () => {
  const glimpse = (agent) => ({ agent, task: "t", doing: { state: "thinking" } });
  const frame = (agent) => `event: glimpse\ndata: ${JSON.stringify(glimpse(agent))}\n\n`;
  for (const wants of [true, false]) {
    const stop = new AbortController();
    const targets = [];
    const [got, seen] = [[], []];
    const native = globalThis.fetch;
    await following({
      signal: stop.signal,
      ...(wants ? { onglimpses: (glimpses) => seen.push(...glimpses) } : {}),
      onentries: (entries) => {
        got.push(...entries);
        if (got.at(-1).seq === 3) stop.abort();
      },
    }, (after, signal) => endless(
      wants ? frame("a") + said([entry(1)]) + frame("b") + said([entry(2), entry(3)]) : said([entry(1), entry(2), entry(3)]), signal,
    ));
    globalThis.fetch = async (target) => {
      targets.push(target);
      return new Response("{}", { status: 401 });
    };
    try {
      await follow({
        last: 0, leave: () => {}, onstate: () => {}, onentries: () => {}, ...(wants ? { onglimpses: () => {} } : {}),
        signal: new AbortController().signal, presence: HERE,
      });
    } finally {
      globalThis.fetch = native;
    }
    assert.deepEqual(seqs(got), [1, 2, 3]);
    assert.deepEqual(seen, wants ? [glimpse("a"), glimpse("b")] : []);
    assert.equal(targets[0].includes("live=true"), wants);
  }
});
