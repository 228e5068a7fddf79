"""A chat model that follows a script: it plays root and the translator that root hires.

`serve` is the whole server: the part of OpenAI's API that polity needs. `play` is the script. It gets the messages of a
request and returns the answer of the model, and it keeps nothing between two requests, like a real model."""

import http.server
import json


def play(messages):
    system, last = messages[0]["content"], messages[-1]
    # polity tells each model, at the end of the system message, which agent it speaks for.
    if "roleName=translator" in system:
        return {"content": "Guten Morgen"}
    if last["role"] == "tool":
        return {"content": "I have hired a translator and wait for the answer."}
    if "【Message from translator" in last["content"]:
        answer = last["content"].splitlines()
        return {"content": "The translator says: " + next(line for line in answer if "Guten" in line)}
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


def serve(play):
    class Model(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            message = {"role": "assistant", **play(request["messages"])}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
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
