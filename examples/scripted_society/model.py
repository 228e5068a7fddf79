"""A chat model that follows a script: it plays root and the translator that root hires.

`serve` is the server; it has the part of OpenAI's API that polity needs. `play` is the script: it gets the messages of
a request and returns the answer of the model. Like a real model, it keeps nothing from one request to the next."""

import http.server
import json
import os
import threading


def play(messages):
    system, last = messages[0]["content"], messages[-1]
    # The role name in the system message tells which agent asks. A message from an agent begins with its sender.
    if "roleName=translator" in system:
        return {"content": "Guten Morgen"}
    if last["role"] == "tool":
        return {"content": "I have hired a translator and wait for the answer."}
    if "【Message from translator" in last["content"]:
        answer = next(line for line in last["content"].splitlines() if "Guten" in line)
        return {"content": f"The translator says: {answer}"}
    brief = {
        "objective": "Translate the text into German.",
        "constraints": ["German"],
        "inputs": "Good morning",
        "outputs": "the translation alone",
        "completion_criteria": "one line of German",
    }
    role = {"name": "translator", "rolePrompt": "You translate texts."}
    hire = {"name": "spawn_agent_with_task", "arguments": json.dumps({"role": role, "taskBrief": brief})}
    return {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": hire}]}


def show(messages):
    """Returns the newest message as text; with WHOLE=1 in the environment, all messages."""
    lines = []
    for message in messages if os.environ.get("WHOLE") else messages[-1:]:
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        lines += [f"{message['role']}: {part.get('text', part['type'])}" for part in parts]
    return "\n".join(lines)


# Several agents may call the model at the same time; the lock keeps their lines apart.
printing = threading.Lock()


def tell(text):
    with printing:
        print(text, flush=True)


def serve(play):
    class Model(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
            agent = messages[0]["content"].split("agentId=")[-1].split()[0]
            tell(f"--> {agent} is asked, with {len(messages)} messages\n{show(messages)}")
            message = {"role": "assistant", **play(messages)}
            tell(f"<-- {agent} answers: {message['content'] or message['tool_calls']}")
            reason = "tool_calls" if "tool_calls" in message else "stop"
            choice = {"index": 0, "message": message, "finish_reason": reason}
            answer = json.dumps({"object": "chat.completion", "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(play)
