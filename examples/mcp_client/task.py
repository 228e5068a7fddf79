"""Gives polity a task with the official MCP client, follows it, and reads what the agents have made.

The client starts `polity mcp`, as an editor or an assistant does. If a daemon serves the data directory, `polity mcp`
forwards everything to it; here there is none, so the society runs in `polity mcp` itself."""

import asyncio
import base64
import os
import pathlib
import sys

from mcp import Client, StdioServerParameters

config, data, picture = sys.argv[1:]
server = StdioServerParameters(
    command=os.environ["POLITY_BIN"], args=["mcp", "--config", config, "--data", data], env=dict(os.environ)
)


async def main():
    async with Client(server) as client:

        async def call(tool, arguments, progress=None):
            result = await client.call_tool(tool, arguments, progress_callback=progress)
            assert not result.is_error, result.content
            return result

        tools = [tool.name for tool in (await client.list_tools()).tools]
        print(f"The tools of polity: {', '.join(tools)}\n")

        attachment = {
            "base64": base64.b64encode(pathlib.Path(picture).read_bytes()).decode(),
            "filename": "picture.png",
            "mimeType": "image/png",
        }
        prompt = {"prompt": "What is in this picture?", "attachments": [attachment]}
        task = (await call("give_task", prompt)).structured_content["task"]
        print(f"give_task has returned at once: the task is {task}. The events that follow_task sends meanwhile:")

        async def progress(_done, _total, event):
            print(f"  {event}")

        # Each call returns when there is a message to the user, when the task is over, or after 20 seconds.
        messages, after, finished = [], 0, False
        while not finished:
            followed = await call("follow_task", {"task": task, "after": after, "waitSeconds": 20}, progress)
            after, finished = followed.structured_content["next"], followed.structured_content["finished"]
            messages += followed.structured_content["messages"]
        answer = messages[-1]["text"]
        print(f"\nThe answer:\n{answer}\n")

        # The answer names a report. The report is an artifact, because it is too long for a message.
        artifacts = (await call("list_artifacts", {"task": task})).structured_content["artifacts"]
        report = next(artifact for artifact in artifacts if artifact["filename"] == "report.md")
        text = (await call("read_artifact", {"ref": report["reference"]})).content[0].text
        print(f"The report, {report['reference']}:\n{text}")

        assert "480 × 270" in answer, "the answer does not describe the picture"
        assert "480 × 270" in text, "the report does not describe the picture"


asyncio.run(asyncio.wait_for(main(), 120))
