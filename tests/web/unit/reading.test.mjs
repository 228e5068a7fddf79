import assert from "node:assert/strict";
import { test } from "node:test";
import { openQuestions } from "../../../crates/api/web/assets/questions.js";
import { kept } from "../../../crates/api/web/assets/reading.js";
import { Store } from "../../../crates/api/web/assets/store.js";
import { BOUND, caughtUp, furtherBack, newestOf, nothingSaid } from "../../../crates/api/web/assets/talk.js";

/** A clock for tests. Its time stands still, except when `tick` runs the next planned call. */
function clockwork() {
  const planned = [];
  return {
    later: (run) => planned.push(run),
    planned,
    async tick() {
      await planned.shift()();
    },
  };
}

test("what could not be read stays wanted until it has been", async () => {
  const { later, planned, tick } = clockwork();
  let fails = 3;
  let read = 0;
  const want = kept(async () => {
    if (fails > 0) {
      fails -= 1;
      throw new Error("no connection");
    }
    read += 1;
  }, { later });
  want();
  for (let turn = 0; turn < 4; turn += 1) {
    assert.equal(planned.length, 1);
    await tick();
  }
  assert.deepEqual([read, planned.length], [1, 0]);
});

test("a burst is read once, and what is wished for while one reads is read again", async () => {
  const { later, planned, tick } = clockwork();
  const stop = new AbortController();
  let read = 0;
  let arrive;
  const want = kept(() => new Promise((resolve) => {
    read += 1;
    arrive = resolve;
  }), { later, signal: stop.signal });
  want();
  want();
  assert.equal(planned.length, 1);
  const first = tick();
  want();
  want();
  assert.equal(planned.length, 0, "two reads were planned at the same time");
  arrive();
  await first;
  const second = tick();
  arrive();
  await second;
  assert.deepEqual([read, planned.length], [2, 0]);
  stop.abort();
  want();
  assert.equal(planned.length, 0);
});

test("a page that gets no frames takes what happens all the same, and a view that fails silences nobody", async () => {
  const frames = globalThis.requestAnimationFrame;
  const cancel = globalThis.cancelAnimationFrame;
  const complain = console.error;
  const complaints = [];
  globalThis.requestAnimationFrame = () => 1;
  globalThis.cancelAnimationFrame = () => {};
  console.error = (error) => complaints.push(error.message);
  try {
    const store = new Store({});
    let told;
    const flushed = new Promise((resolve) => { told = resolve; });
    store.subscribe(() => { throw new Error("broken"); });
    store.subscribe((model, _ui, entries) => { if (entries.length > 0) told([model.seq, entries.length]); });
    for (let seq = 1; seq <= 1000; seq += 1) store.events([{ seq, event: "turn_started", agent: "root" }]);
    assert.deepEqual(await flushed, [1000, 1000]);
    assert.equal(store.waiting.length, 0);
    assert.deepEqual(complaints, ["broken", "broken"]);
  } finally {
    Object.assign(globalThis, { requestAnimationFrame: frames, cancelAnimationFrame: cancel });
    console.error = complain;
  }
});

const said = (first, last) => Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => ({ id: `m${String(first + at).padStart(9, "0")}` }));
const pageTo = (last, size = 40) => {
  const first = Math.max(1, last - size + 1);
  return { messages: said(first, last), ...(first > 1 ? { next: said(first, first)[0].id } : {}) };
};
const ends = (held) => [held.messages[0]?.id, held.messages.at(-1)?.id].map((id) => id && Number(id.slice(1)));

test("who reads far back keeps what is there, and is told of what is new", () => {
  let held = newestOf(pageTo(100));
  held = caughtUp(held, pageTo(200), false);
  assert.deepEqual([held.behind, ...ends(held)], [true, 61, 100]);
  held = caughtUp(held, pageTo(300), true);
  assert.deepEqual([held.behind, ...ends(held)], [false, 261, 300]);
  held = caughtUp(held, pageTo(310), false);
  assert.deepEqual([held.behind, ...ends(held)], [false, 261, 310], "messages that follow without a gap must be added");
});

test("reading further back lets the newest go, and says so", () => {
  let held = newestOf(pageTo(1000));
  for (let turn = 0; turn < 6; turn += 1) held = furtherBack(held, pageTo(Number(held.next.slice(1)) - 1));
  assert.deepEqual([held.messages.length, held.behind, held.next], [BOUND, true, held.messages[0].id]);
  const before = ends(held);
  assert.deepEqual(ends(caughtUp(held, pageTo(1001), false)), before);
});

test("a message that was removed goes", () => {
  const held = newestOf({ messages: said(1, 5) });
  assert.deepEqual(ends(caughtUp(held, { messages: said(4, 6) }, true)), [4, 6]);
  assert.deepEqual(ends(caughtUp(nothingSaid(), { messages: said(1, 2) }, true)), [1, 2]);
});

test("invariant: a conversation has no gap and keeps within its bound, whatever comes and wherever one reads", () => {
  let random = 5;
  const next = (below) => {
    random = (random * 1103515245 + 12345) % 2147483648;
    return (random >> 8) % below;
  };
  let total = 50;
  let held = newestOf(pageTo(total));
  for (let step = 0; step < 5000; step += 1) {
    const does = next(3);
    if (does === 0) total += next(step % 9 === 0 ? 120 : 6);
    else if (does === 1) held = caughtUp(held, pageTo(total), next(3) > 0);
    else if (held.next) held = furtherBack(held, pageTo(Number(held.next.slice(1)) - 1));
    const [first, last] = ends(held);
    assert.ok(held.messages.length <= BOUND);
    assert.equal(held.messages.length, last - first + 1, "the conversation has a gap or a duplicate");
    assert.equal(held.next, first > 1 ? held.messages[0].id : undefined);
    if (does === 1 && !held.behind) assert.equal(last, total);
  }
});

test("an open question is found however much was said since", async () => {
  const messages = Array.from({ length: 1500 }, (_, at) => ({
    id: `m${String(at + 1).padStart(9, "0")}`, task: `t${at % 3}`, to: "user", state: "done",
    expects: [3, 700, 1499].includes(at) ? "answer" : "nothing",
  }));
  let asked = 0;
  const api = {
    messages: async ({ task, before, limit }) => {
      asked += 1;
      const found = messages.filter((one) => (!task || one.task === task) && (!before || one.id < before)).reverse().slice(0, limit);
      return { messages: found, ...(found.length === limit ? { next: found.at(-1).id } : {}) };
    },
    tasks: async (after) => (after
      ? { tasks: [{ id: "t2", waitingForUser: 1 }] }
      : { tasks: [{ id: "t0", waitingForUser: 1 }, { id: "t1", waitingForUser: 1 }], next: 1 }),
  };
  assert.deepEqual((await openQuestions(api)).map((one) => one.id), ["m000001500", "m000000701", "m000000004"]);
  assert.ok(asked < 12, `${asked} pages`);
});
