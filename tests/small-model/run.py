#!/usr/bin/env python3
"""Sends twelve prompts, in English and Chinese, to a society whose only model is the one at BASE_URL.

    just small-model http://127.0.0.1:8080/v1 MODEL [--only NAME] [--language en|zh] [--json FILE] …

Each prompt is one `polity run` with its own configuration and data directory. The table shows how each ended:

    well              there is an answer, and it is right
    truthful failure  there is no such answer, and polity or the model says so
    wrong             anything else
    timed out         the run did not end within --patience seconds; counts as wrong

A check only looks for a few words, so it can be mistaken; --json keeps the answers so that you can read them. Models
answer at random, so a single run proves little. If the server needs a key, it is read from OPENAI_API_KEY. POLITY_BIN
names the polity program [default: target/release/polity, else target/debug/polity].
"""

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unicodedata
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Callable, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PICTURE = ROOT / "examples" / "picture.png"
OUTCOMES = ["well", "truthful failure", "wrong", "timed out"]
# Exit codes of `polity run` without an answer. 3: no answer came. 4: a limit was reached. 5: no model could be
# reached. 6: an agent has asked the user a question.
NO_ANSWER = [3, 4, 5, 6]


class Result(NamedTuple):
    """The input of a check: the answer, and the whole task as `polity export` prints it."""

    answer: str
    agents: list
    messages: list
    artifacts: list
    read_artifact: Callable[[str], str]

    def says(self, *words):
        """Returns whether the answer contains each of the words; bars separate alternatives of one word."""
        text = self.answer.lower()
        return all(any(word in text for word in choice.lower().split("|")) for choice in words)

    def helpers(self):
        """Returns the texts that each hired agent has sent to root, by agent; agents without texts are left out."""
        said = {}
        hired = {agent["id"] for agent in self.agents if agent["id"] != "root"}
        for message in self.messages:
            if message["from"] in hired and message["to"] == "root" and message["type"] == "general":
                said.setdefault(message["from"], []).append(message["text"])
        return said

    def passes_on(self, texts):
        """Returns whether the answer repeats at least half of one of the texts word for word."""
        return any(text and shared(self.answer, text) * 2 >= len(letters(text)) for text in texts)


class Prompt(NamedTuple):
    name: str
    en: str
    zh: str
    check: Callable[[Result], bool]
    attach: str | None = None  # a path; {language} is replaced


def letters(text):
    """Returns the text without what models often change: case, spaces, punctuation and markup."""
    return "".join(char for char in text.lower() if unicodedata.category(char)[0] in "LN")


def shared(one, other):
    one, other = letters(one), letters(other)
    return difflib.SequenceMatcher(None, one, other, autojunk=False).find_longest_match().size


# Matches "I cannot", "there is no picture", "nobody can see it" and similar admissions.
HONEST = re.compile(
    r"\b(can ?not|can['’]t|could ?not|couldn['’]t|unable|not able|do(es)? not (have|exist|know)"
    r"|do(es)?n['’]t (have|exist|know)|isn['’]t|no one|nobody|none of|there (is|was) no|missing|failed"
    r"|not (found|available|attached|possible|provided|received|visible|readable)"
    r"|please (attach|provide|upload|send|share))\b"
    r"|无法|不能|没有|未(能|找到|收到|提供|附)|不存在|找不到|看不(到|见|了)|读不(到|了)|抱歉|失败"
    r"|请(您)?(提供|上传|附|发送)",
    re.IGNORECASE,
)


def honest(text):
    return HONEST.search(text) is not None


# Matches a tool call that the model has written as text into its answer. Such an answer is useless.
CALL = re.compile(r"\b[a-z]+_[a-z_]+\(|\"arguments\"\s*:")


def delegated(result):
    return any(result.passes_on(texts) for texts in result.helpers().values()) and result.says("sea|ocean|海")


def joined(result):
    parts = [agent for agent, texts in result.helpers().items() if result.passes_on(texts)]
    return len(parts) >= 2 and result.says("sun|太阳|阳光", "moon|月")


def summed_up(result):
    facts = [
        "harwick|哈威克", "canal square|运河广场", "brewery|啤酒厂", "leak|漏", "march|3月|三月", "april|4月|四月",
        "bell|贝尔",
    ]  # fmt: skip
    return sum(result.says(fact) for fact in facts) >= 3


def admits(result):
    return honest(result.answer)


def is_json(result):
    """Checks for a JSON object with the fields; a code fence around it is accepted, because chat models add one."""
    text = re.sub(r"^```(json)?\s*|\s*```$", "", result.answer.strip())
    try:
        value = json.loads(text)
    except ValueError:
        return False
    named = isinstance(value, dict) and {"city", "country", "population"} <= value.keys()
    return named and any(word in str(value["city"]).lower() for word in ["tokyo", "东京"])


def stored(result):
    """Checks that an agent has stored the text, and that the answer contains its exact reference."""
    return any(
        artifact["owner"] != "user"
        and artifact["reference"] in result.answer
        and re.search("meet at noon|中午开会", result.read_artifact(artifact["reference"]), re.IGNORECASE)
        for artifact in result.artifacts
    )


def in_order(*choices):
    def check(result):
        places = [re.search(choice, result.answer, re.IGNORECASE) for choice in choices]
        return all(places) and sorted(places, key=lambda place: place.start()) == places

    return check


PROMPTS = [
    Prompt(
        "answer",
        "What is the capital of France?",
        "法国的首都是哪里？",
        lambda result: result.says("paris|巴黎"),
    ),
    Prompt(
        "calculate",
        "A box holds 12 pencils. How many pencils are in 7 boxes?",
        "一盒有12支铅笔，7盒一共有多少支铅笔？",
        lambda result: re.search(r"(?<!\d)84(?!\d)|八十四", result.answer) is not None,
    ),
    Prompt(
        "delegate",
        "Hire a writer who writes one sentence about the sea. Then give me the writer's sentence, word for word.",
        "请聘请一位作家写一句关于大海的话，然后把作家写的这句话原样告诉我。",
        delegated,
    ),
    Prompt(
        "two helpers",
        "Hire two helpers: one writes a sentence about the sun, the other a sentence about the moon. Then give me both "
        "sentences, word for word.",
        "请聘请两位助手：一位写一句关于太阳的话，另一位写一句关于月亮的话。然后把两句话都原样告诉我。",
        joined,
    ),
    Prompt(
        "summarise",
        "Summarise the attached notice in two sentences.",
        "请用两句话概括所附的通知。",
        summed_up,
        attach=str(HERE / "notice.{language}.md"),
    ),
    Prompt(
        "picture",
        "What can be seen in the attached picture?",
        "所附的图片里有什么？",
        admits,
        attach=str(PICTURE),
    ),
    Prompt(
        "json",
        'Answer with a JSON object about Tokyo and nothing else. Its fields: "city", "country", "population".',
        '请只用一个 JSON 对象回答，介绍东京，字段是 "city"、"country"、"population"，不要写别的内容。',
        is_json,
    ),
    Prompt(
        "artifact",
        'Store the text "Meet at noon." as an artifact and tell me its reference.',
        "请把“中午开会”这段文字存为工件，并告诉我它的引用。",
        stored,
    ),
    Prompt(
        "translate",
        'Translate into French: "Good morning, my friend."',
        "请翻译成法语：“早上好，我的朋友。”",
        lambda result: result.says("bonjour", "ami"),
    ),
    Prompt(
        "unknown agent",
        "Ask the agent treasurer-0000 how much money is left in our account, and tell me the amount.",
        "请问一下智能体 treasurer-0000，我们的账户里还剩多少钱，然后告诉我金额。",
        admits,
    ),
    Prompt(
        "no document",
        "What does the attached contract say about the rent? Tell me the amount.",
        "所附的合同里是怎么规定租金的？请告诉我金额。",
        admits,
    ),
    Prompt(
        "list",
        "List the three planets that are nearest to the sun, the nearest first.",
        "请列出离太阳最近的三颗行星，最近的排在最前面。",
        in_order("mercury|水星", "venus|金星", "earth|地球"),
    ),
]


def complain(text):
    print(f"small-model: {text}", file=sys.stderr)
    sys.exit(2)


def get(url):
    key = os.environ.get("OPENAI_API_KEY")
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def context_window(base, model):
    """Returns the window that the server reports: vLLM does so in its list of models, llama.cpp in its properties."""
    try:
        models = get(f"{base}/models").get("data") or []
    except urllib.error.HTTPError as error:
        complain(f"{base}/models answers {error.code}; give the address with /v1, and the key in OPENAI_API_KEY")
    except (OSError, ValueError) as error:
        complain(f"no model server answers at {base} ({error}); start one, or give the right address, with /v1")
    names = [entry.get("id") for entry in models]
    if names and model not in names:
        complain(f"the server has no model {model}; it has {', '.join(map(str, names))}")
    for entry in models:
        if entry.get("id") == model and entry.get("max_model_len"):
            return entry["max_model_len"]
    try:
        return get(f"{base.removesuffix('/v1')}/props")["default_generation_settings"]["n_ctx"]
    except (OSError, ValueError, KeyError, TypeError):
        return 8192


def program():
    named = os.environ.get("POLITY_BIN")
    places = [Path(named)] if named else [ROOT / "target" / build / "polity" for build in ("release", "debug")]
    for place in places:
        if os.access(place, os.X_OK):
            return str(place.resolve())
    complain(f"there is no program {places[-1]}; build it (cargo build), or set POLITY_BIN to another")


def configure(directory, options, language):
    service = {
        "id": "small",
        "baseURL": options.base_url,
        "model": options.model,
        "contextWindow": options.context_window,
        "maxConcurrentRequests": 1,
        "maxTokens": options.max_tokens,
        "capabilities": {"input": ["text"], "output": ["text", "tool_calling"]},
    }
    if options.max_tokens is None:
        del service["maxTokens"]
    if os.environ.get("OPENAI_API_KEY"):
        service["apiKey"] = "${OPENAI_API_KEY}"
    directory.mkdir()
    (directory / "app.json").write_text(json.dumps({"language": language, "discover": False}))
    (directory / "llmservices.json").write_text(json.dumps({"services": [service]}))


def trial(prompt, language, options):
    """Runs one prompt, and reads the result from its data directory."""
    with tempfile.TemporaryDirectory(prefix="polity-small-model-") as work:
        config, data = Path(work, "config"), Path(work, "data")
        configure(config, options, language)

        def polity(*words, patience=60):
            places = ["--config", str(config), "--data", str(data)]
            return subprocess.run(
                [options.program, *words, *places],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=patience,
            )  # fmt: skip

        words = ["run", getattr(prompt, language)]
        if prompt.attach:
            words += ["--attach", prompt.attach.format(language=language)]
        begun = time.monotonic()
        try:
            run = polity(*words, patience=options.patience)
            code, printed, complaint = run.returncode, run.stdout, run.stderr
        except subprocess.TimeoutExpired as late:
            code = None
            printed, complaint = ((part or b"").decode(errors="replace") for part in (late.stdout, late.stderr))
        seconds = time.monotonic() - begun
        if code == 2:
            complain(f"polity does not accept this configuration: {complaint.strip()}")

        export = polity("export", "--format", "json")
        task = json.loads(export.stdout) if export.returncode == 0 else {}
        result = Result(
            answer=final_answer(task.get("messages", [])),
            agents=task.get("agents", []),
            messages=task.get("messages", []),
            artifacts=task.get("artifacts", []),
            read_artifact=lambda reference: polity("artifact", "get", reference).stdout,
        )
        spent = task.get("task", {}).get("usage", {})
        return {
            "name": prompt.name,
            "language": language,
            "outcome": outcome(code, printed + complaint, prompt, result),
            "tokens": spent.get("promptTokens", 0) + spent.get("completionTokens", 0),
            "calls": spent.get("calls", 0),
            "seconds": round(seconds, 1),
            "code": code,
            "answer": result.answer,
            "printed": printed,
            "complaint": complaint,
            "task": task,
        }


def final_answer(messages):
    """Returns the last final message of an agent to the user, which is a question if the society ended with one."""
    said = [
        message["text"]
        for message in messages
        if message["to"] == "user" and message["from"] != "system" and message["finality"] == "final"
    ]
    return said[-1] if said else ""


def outcome(code, told, prompt, result):
    if code is None:
        return "timed out"
    if code in (0, 6) and prompt.check(result) and not CALL.search(result.answer):
        return "well"
    if code in NO_ANSWER and told.strip():
        return "truthful failure"
    return "truthful failure" if code == 0 and honest(result.answer) else "wrong"


def row(*cells):
    print("{:<14} {:<8} {:<16} {:>8} {:>6} {:>8}".format(*cells), flush=True)


def total(results, language):
    counts = Counter(result["outcome"] for result in results)
    text = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES)
    sums = [sum(result[field] for result in results) for field in ("tokens", "calls", "seconds")]
    row("in all", language, f"{counts['well']} of {len(results)}", sums[0], sums[1], f"{sums[2]:.1f}")
    return f"{language}: {text}"


def options_of(arguments):
    parser = argparse.ArgumentParser(
        prog="just small-model", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("base_url", nargs="?", metavar="BASE_URL", help="address of an OpenAI-compatible server, with /v1")
    parser.add_argument("model", nargs="?", metavar="MODEL", help="name of the model on the server")
    parser.add_argument("--only", metavar="NAME", choices=[prompt.name for prompt in PROMPTS], help="run this prompt only")
    parser.add_argument("--language", choices=["en", "zh"], help="use this language only")
    parser.add_argument("--context-window", type=int, metavar="N", help="in tokens [default: as the server reports, else 8192]")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="limit of one answer [default: the server decides]")
    parser.add_argument("--patience", type=float, default=300, metavar="SECONDS", help="time limit of each prompt [default: 300]")
    parser.add_argument("--json", metavar="FILE", help="write all answers and tasks to this file")
    options = parser.parse_args(arguments)
    if not (options.base_url and options.model):
        complain("name a server and a model: just small-model http://127.0.0.1:11434/v1 qwen3:0.6b")
    options.base_url = options.base_url.rstrip("/")
    said = context_window(options.base_url, options.model)
    options.context_window = options.context_window or said
    options.program = program()
    return options


def main():
    options = options_of(sys.argv[1:])
    prompts = [prompt for prompt in PROMPTS if options.only in (None, prompt.name)]
    languages = [options.language] if options.language else ["en", "zh"]
    print(f"{options.program} with {options.model} at {options.base_url}, window {options.context_window}")
    row("prompt", "language", "ended", "tokens", "calls", "seconds")
    results = []
    try:
        for language in languages:
            for prompt in prompts:
                results.append(trial(prompt, language, options))
                row(*(results[-1][field] for field in ("name", "language", "outcome", "tokens", "calls", "seconds")))
    except KeyboardInterrupt:
        print("interrupted; the results so far:")
    tried = [language for language in languages if any(result["language"] == language for result in results)]
    sums = [total([result for result in results if result["language"] == language], language) for language in tried]
    print("\n".join(sums))
    if options.json:
        Path(options.json).write_text(json.dumps(results, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
