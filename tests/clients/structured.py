"""Tests structured output and responses with the unmodified OpenAI client for Python and the Agents SDK."""

import asyncio
import os
import uuid
from typing import Literal, Optional

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

places = {"base_url": f"{os.environ['POLITY_URL']}/v1", "api_key": os.environ["POLITY_TOKEN"], "timeout": 120}


class Landmark(BaseModel):
    name: str
    kind: Literal["church", "tower"]


class City(BaseModel):
    city: str
    people: int
    river: Optional[str]
    landmarks: list[Landmark]


def question(text):
    """Makes a question unique, because the daemon recognises a repeated conversation."""
    return f"{text} {uuid.uuid4().hex[:8]}"


client = OpenAI(**places)
completion = client.chat.completions.parse(
    model="polity",
    messages=[{"role": "user", "content": question("介绍一座城市")}],
    response_format=City,
)
assert isinstance(completion.choices[0].message.parsed, City), completion
response = client.responses.parse(model="polity", input=question("介绍一座城市"), text_format=City)
assert isinstance(response.output_parsed, City), response
more = client.responses.create(model="polity", input=question("再说一点"), previous_response_id=response.id)
assert more.output_text and more.previous_response_id == response.id
with client.responses.stream(model="polity", input=question("流式")) as stream:
    kinds = {event.type for event in stream}
    assert stream.get_final_response().output_text
assert "response.reasoning_summary_text.delta" in kinds, kinds

# Chat programs ask for the title of a chat with a separate request. This request must not begin a task.
title = client.chat.completions.with_raw_response.create(
    model="polity-direct", messages=[{"role": "user", "content": question("一个标题")}]
)
assert "x-polity-task" not in title.headers and title.parse().choices[0].message.content


async def agents():
    set_tracing_disabled(True)
    for kind in [OpenAIResponsesModel, OpenAIChatCompletionsModel]:
        model = kind(model="polity", openai_client=AsyncOpenAI(**places))
        typed = Agent(name="geographer", instructions="be brief", model=model, output_type=City)
        assert isinstance((await Runner.run(typed, question("介绍一座城市"))).final_output, City)
        streamed = Runner.run_streamed(Agent(name="speaker", model=model), question("流式"))
        async for _ in streamed.stream_events():
            pass
        assert streamed.final_output


asyncio.run(agents())
print("ok")
