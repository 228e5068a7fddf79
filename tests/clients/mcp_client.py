"""Tests the unmodified MCP client for Python with a society, over HTTP or over standard input and output.

It does so twice: with the handshake that clients used until 2025, and without it, as clients connect since then."""

import asyncio
import base64
import json
import os
import pathlib
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

environment = os.environ
picture = base64.b64encode(pathlib.Path(environment["POLITY_PICTURE"]).read_bytes()).decode()


async def drive(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    for name in ["give_task", "follow_task", "answer_question", "list_agents", "read_artifact", "stop"]:
        assert tools[name].output_schema, name

    # The tools have output schemas, so the client itself checks each result.
    async def call(name, arguments, progress=None):
        result = await client.call_tool(name, arguments, progress_callback=progress)
        assert not result.is_error, result
        return result

    attachment = {"base64": picture, "filename": "picture.png", "mimeType": "image/png"}
    given = await call("give_task", {"prompt": "看看这张图片", "attachments": [attachment]})
    task = given.structured_content["task"]
    told, said, after, finished = [], [], 0, False

    async def progress(_done, _total, message):
        told.append(message)

    for _ in range(50):
        followed = await call("follow_task", {"task": task, "after": after, "waitSeconds": 20}, progress)
        after, finished = followed.structured_content["next"], followed.structured_content["finished"]
        said += followed.structured_content["messages"]
        if finished:
            break
    assert finished and "480 × 270" in said[-1]["text"], said
    assert any("hired" in line for line in told), told

    agents = (await call("list_agents", {"task": task})).structured_content["agents"]
    assert "root" in [agent["id"] for agent in agents] and len(agents) > 1, agents
    await call("get_agent", {"agent": agents[-1]["id"]})
    artifacts = (await call("list_artifacts", {"task": task})).structured_content["artifacts"]
    image = next(artifact for artifact in artifacts if artifact["mimeType"] == "image/png")
    block = (await call("read_artifact", {"ref": image["reference"]})).content[0]
    assert (block.type, block.data) == ("image", picture)
    uri = f"polity://artifact/{image['id']}"
    assert uri in [str(resource.uri) for resource in (await client.list_resources()).resources]
    assert (await client.read_resource(uri)).contents[0].blob == picture

    refused = await client.call_tool("get_agent", {"agent": "nobody"})
    assert refused.is_error and json.loads(refused.content[0].text)["error"] == "not_found", refused
    await call("pause", {"agent": "root"})
    await call("resume", {"agent": "root"})


def server():
    if sys.argv[1] == "stdio":
        places = ["--config", environment["POLITY_CONFIG"], "--data", environment["POLITY_DATA"]]
        return StdioServerParameters(
            command=environment["POLITY_BIN"], args=["mcp", *places], env=dict(environment)
        )
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {environment['POLITY_TOKEN']}"}, timeout=60)
    return streamable_http_client(f"{environment['POLITY_URL']}/mcp", http_client=http)


async def main():
    for mode in ["legacy", "auto"]:
        async with Client(server(), mode=mode) as client:
            await drive(client)


asyncio.run(asyncio.wait_for(main(), 300))
print("ok")
