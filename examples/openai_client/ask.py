"""Asks polity with OpenAI's client for Python, and follows up in the same conversation.

POLITY_URL and POLITY_TOKEN name the daemon. The token is in the file `token` of its data directory."""

import os

import openai

# A society takes longer to answer than a model, so the client gets a long timeout.
client = openai.OpenAI(
    base_url=os.environ["POLITY_URL"] + "/v1", api_key=os.environ["POLITY_TOKEN"], timeout=3600
)

conversation = [{"role": "user", "content": "Introduce yourself."}]
asked = client.chat.completions.with_raw_response.create(model="polity", messages=conversation)
task, first = asked.headers["x-polity-task"], asked.parse()
answer = first.choices[0].message.content
print(f"The answer, from task {task}:\n{answer}")
print(f"All agents together used {first.usage.total_tokens} tokens.\n")

# As with any chat model, the client sends the whole conversation. polity recognises its own answer at the end of the
# conversation, so it gives the society only the new question, in the same task.
conversation += [{"role": "assistant", "content": answer}, {"role": "user", "content": "Say it again, shorter."}]
followed = client.chat.completions.with_raw_response.create(
    model="polity", messages=conversation, stream=True
)
print(f"The follow-up is in task {followed.headers['x-polity-task']}. While the agents work:")
events, shorter = "", ""
for chunk in followed.parse():
    for choice in chunk.choices:
        # The events of the society arrive as reasoning, before the answer.
        events += getattr(choice.delta, "reasoning_content", None) or ""
        shorter += choice.delta.content or ""
print(f"{events}\nThe second answer:\n{shorter}")

assert followed.headers["x-polity-task"] == task, "the follow-up began another task"
assert answer and shorter and "root" in events
