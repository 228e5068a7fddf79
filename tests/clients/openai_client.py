"""Tests the unmodified OpenAI client for Python with a society: chat, streaming, a picture, a file, errors."""

import base64
import json
import os
import pathlib
import urllib.request
import uuid

import openai

url, token = os.environ["POLITY_URL"], os.environ["POLITY_TOKEN"]
client = openai.OpenAI(base_url=f"{url}/v1", api_key=token, timeout=120)
# The daemon recognises a repeated conversation as the same task. So each run of this script makes its texts unique.
run = uuid.uuid4().hex[:8]
user = lambda content: {"role": "user", "content": content}


def fails(kind, call, code=None):
    try:
        call()
    except kind as error:
        assert code is None or error.code == code, (error.code, error)
        return error
    raise AssertionError(f"the call did not raise {kind.__name__}")


# Models.
models = {model.id: model for model in client.models.list()}
assert "polity" in models, models
assert client.models.retrieve("polity").id == "polity"
fails(openai.NotFoundError, lambda: client.models.retrieve("polity/nobody"), "model_not_found")

# Chat. The second request of a conversation continues the same task.
question = user(f"介绍一下你自己 {run}")
raw = client.chat.completions.with_raw_response.create(model="polity", messages=[question])
task, first = raw.headers["x-polity-task"], raw.parse()
choice = first.choices[0]
assert choice.finish_reason == "stop" and choice.logprobs is None and choice.message.refusal is None
assert choice.message.content, first
assert first.usage.prompt_tokens > 0 and first.usage.completion_tokens > 0, first.usage
assert first.usage.total_tokens == first.usage.prompt_tokens + first.usage.completion_tokens
more = [question, choice.message.model_dump(), user("再说一遍")]
second = client.chat.completions.with_raw_response.create(model="polity", messages=more)
assert second.headers["x-polity-task"] == task, "the conversation has not continued its task"
assert second.parse().choices[0].message.content

# The field `user` separates conversations: the same messages from another user begin another task.
other = client.chat.completions.with_raw_response.create(model="polity", messages=more, user=f"other-{run}")
assert other.headers["x-polity-task"] != task
# A request can name the task that it continues.
named = client.chat.completions.with_raw_response.create(
    model="polity", messages=[user(f"接着做 {run}")], metadata={"polity_task": task}
)
assert named.headers["x-polity-task"] == task

# Streaming. First the events arrive, in the form of reasoning. Then the answer arrives, and then the usage.
stream = client.chat.completions.create(
    model="polity", messages=[user(f"流式 {run}")], stream=True, stream_options={"include_usage": True}
)
text, reasoning, usage, finish = "", "", None, None
for chunk in stream:
    usage = chunk.usage or usage
    for choice in chunk.choices:
        text += choice.delta.content or ""
        reasoning += getattr(choice.delta, "reasoning_content", None) or ""
        finish = choice.finish_reason or finish
assert text and finish == "stop", (text, finish)
assert "root" in reasoning, reasoning
assert usage.total_tokens > 0, usage

# A conversation can also continue after a streamed answer.
again = client.chat.completions.create(
    model="polity",
    messages=[user(f"流式 {run}"), {"role": "assistant", "content": text}, user("谢谢")],
)
assert again.choices[0].message.content

# A picture. Its bytes must reach a model with vision.
picture = base64.b64encode(pathlib.Path(os.environ["POLITY_PICTURE"]).read_bytes()).decode()
shown = client.chat.completions.create(
    model="polity",
    messages=[
        user(
            [
                {"type": "text", "text": f"看看这张图片 {run}"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}},
            ]
        )
    ],
)
assert "480 × 270" in shown.choices[0].message.content, shown.choices[0].message.content

# A file.
text = base64.b64encode("a,b\n1,2\n".encode()).decode()
filed = client.chat.completions.create(
    model="polity",
    messages=[
        user(
            [
                {"type": "text", "text": f"读这个文件 {run}"},
                {"type": "file", "file": {"filename": "t.csv", "file_data": f"data:text/csv;base64,{text}"}},
            ]
        )
    ],
)
assert filed.choices[0].message.content

# A client can address each living agent as a model. But the list of models contains only the agents that are at work.
assert {"polity", "polity-direct"} <= set(models), models
request = urllib.request.Request(f"{url}/api/agents", headers={"Authorization": f"Bearer {token}"})
agents = [agent["id"] for agent in json.load(urllib.request.urlopen(request))["agents"]]
hired = next(agent for agent in agents if agent not in ("root", "user"))
answer = client.chat.completions.create(model=f"polity/{hired}", messages=[user(f"你在做什么？ {run}")])
assert answer.choices[0].message.content

# Errors.
chat = lambda **fields: client.chat.completions.create(
    **{"model": "polity", "messages": [user(f"x {run}")], **fields}
)
fails(openai.NotFoundError, lambda: chat(model="gpt-4o"), "model_not_found")
fails(openai.BadRequestError, lambda: chat(n=2), "unsupported_parameter")
fails(openai.BadRequestError, lambda: chat(messages=[]), "invalid_value")
error = fails(
    openai.BadRequestError,
    lambda: chat(
        messages=[user([{"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}])]
    ),
    "invalid_value",
)
assert error.param == "messages[0].content[0].image_url.url", error.param
fails(openai.NotFoundError, lambda: chat(metadata={"polity_task": "t-nothing"}), "unknown_task")
stranger = openai.OpenAI(base_url=f"{url}/v1", api_key="wrong", max_retries=0)
fails(openai.AuthenticationError, lambda: stranger.models.list(), "unauthorized")

# A client disconnects and repeats its request. The client gets the answer, and no second task begins.
headers = {"Idempotency-Key": f"key-{run}"}
ask = lambda: client.chat.completions.with_raw_response.create(
    model="polity", messages=[user(f"一次 {run}")], extra_headers=headers
)
with client.chat.completions.with_streaming_response.create(
    model="polity", messages=[user(f"一次 {run}")], stream=True, extra_headers=headers
) as gone:
    task = gone.headers["x-polity-task"]
one, two = ask(), ask()
assert one.headers["x-polity-task"] == two.headers["x-polity-task"] == task
assert one.parse().choices[0].message.content == two.parse().choices[0].message.content
print("ok")
