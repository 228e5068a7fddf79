import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../../crates/api/web/assets/api.js";
import { keepFresh } from "../../../crates/api/web/assets/refresh.js";
import { initial, reduce } from "../../../crates/api/web/assets/state.js";

const agent = (id, more = {}) => ({ id, role: id, depth: 0, state: "idle", waiting: 0, waitsFor: [], createdAt: 0, asOf: 10, ...more });

test("of a large society, the page asks again only for agents that may have changed, and keeps the others", async () => {
  const ids = ["user", "root", ...Array.from({ length: 2000 }, (_, number) => `a${number}`)];
  const actions = [{ type: "agents", agents: ids.map((id) => agent(id)) }, { type: "ready", seq: 10 }, { type: "connection", state: "live" }];
  let look = null;
  const store = {
    model: actions.reduce(reduce, initial()),
    subscribe: (run) => { look = run; },
    dispatch: (action) => { store.model = reduce(store.model, action); },
  };
  const asked = [];
  const api = { agents: async (some) => {
    asked.push(some);
    return { agents: (some ?? ids).map((id) => agent(id, { asOf: store.model.seq })), asOf: store.model.seq };
  } };
  const planned = [];
  const timers = globalThis.setTimeout;
  globalThis.setTimeout = (run) => planned.push(run);
  try {
    keepFresh(store, api);
    for (const [seq, to] of [[11, "a1"], [12, "a7"]]) {
      store.dispatch({ type: "events", entries: [{ seq, event: "message_accepted", task: "t", from: "root", to, text: "" }] });
      look(store.model);
      while (planned.length > 0) await planned.shift()();
    }
  } finally {
    globalThis.setTimeout = timers;
  }
  assert.deepEqual(asked, [undefined, ["user", "root", "a7"]]);
  assert.equal(store.model.agents.size, ids.length);
});

test("the ids of many agents are asked for in parts, so that no address becomes too long", async () => {
  const native = globalThis.fetch;
  const asked = [];
  globalThis.fetch = async (target) => {
    const ids = new URL(target, "http://localhost").searchParams.get("ids").split(",");
    asked.push(ids.length);
    return Response.json({ agents: ids.map((id) => ({ id })), asOf: 20 - asked.length });
  };
  try {
    const ids = Array.from({ length: 450 }, (_, number) => `a${number}`);
    const read = await connect(() => {}).agents(ids);
    assert.deepEqual(asked, [200, 200, 50]);
    assert.deepEqual(read.agents.map((one) => one.id), ids);
    assert.deepEqual([read.asOf, read.agents[0].asOf, read.agents[449].asOf], [17, 19, 17]);
  } finally {
    globalThis.fetch = native;
  }
});
