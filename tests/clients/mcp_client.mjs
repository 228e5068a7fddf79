// Tests the unmodified MCP client for JavaScript with a society, over HTTP or over standard input and output.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { POLITY_BIN, POLITY_CONFIG, POLITY_DATA, POLITY_URL, POLITY_TOKEN, POLITY_PICTURE } = process.env;
const transport =
  process.argv[2] === "http"
    ? new StreamableHTTPClientTransport(new URL(`${POLITY_URL}/mcp`), {
        requestInit: { headers: { Authorization: `Bearer ${POLITY_TOKEN}` } },
      })
    : new StdioClientTransport({
        command: POLITY_BIN,
        args: ["mcp", "--config", POLITY_CONFIG, "--data", POLITY_DATA],
        stderr: "inherit",
      });
const client = new Client({ name: "polity-tests", version: "1" });
await client.connect(transport);

const { tools } = await client.listTools();
const names = tools.map((tool) => tool.name);
for (const name of ["give_task", "follow_task", "answer_question", "list_agents", "read_artifact", "stop"]) {
  assert(names.includes(name), name);
}

// The tools have output schemas, so the client itself checks each result.
const call = async (name, args, options) => {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
  assert(!result.isError, JSON.stringify(result));
  return result;
};
const picture = readFileSync(POLITY_PICTURE).toString("base64");
const given = await call("give_task", {
  prompt: "看看这张图片",
  attachments: [{ base64: picture, filename: "picture.png", mimeType: "image/png" }],
});
const { task } = given.structuredContent;
const progress = [];
let [next, said, finished] = [0, [], false];
for (let round = 0; !finished; round += 1) {
  assert(round < 50, "the task has not ended after 50 calls of follow_task");
  const followed = await call("follow_task", { task, after: next, waitSeconds: 20 }, {
    onprogress: (told) => progress.push(told.message),
  });
  ({ next, finished } = followed.structuredContent);
  said.push(...followed.structuredContent.messages);
}
assert.match(said.at(-1).text, /480 × 270/);
assert(progress.some((line) => line.includes("hired")), progress.join("\n"));

const agents = (await call("list_agents", { task })).structuredContent.agents;
assert(agents.some((agent) => agent.id === "root") && agents.length > 1);
await call("get_agent", { agent: agents.at(-1).id });
const { artifacts } = (await call("list_artifacts", { task })).structuredContent;
const image = artifacts.find((artifact) => artifact.mimeType === "image/png");
const [block] = (await call("read_artifact", { ref: image.reference })).content;
assert.equal(block.type, "image");
assert.equal(block.data, picture);
const { resources } = await client.listResources();
assert(resources.some((resource) => resource.uri === `polity://artifact/${image.id}`));
const { contents } = await client.readResource({ uri: `polity://artifact/${image.id}` });
assert.equal(contents[0].blob, picture);

const refused = await client.callTool({ name: "get_agent", arguments: { agent: "nobody" } });
assert(refused.isError);
assert.equal(JSON.parse(refused.content[0].text).error, "not_found");
await call("pause", { agent: "root" });
await call("resume", { agent: "root" });
await client.close();
console.log("ok");
