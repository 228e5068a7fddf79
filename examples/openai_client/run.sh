#!/usr/bin/env bash
# Starts a daemon, and asks it questions with OpenAI's official clients: with the client for Python, and with the client
# for JavaScript if it is installed. PYTHON names a Python interpreter that has the package openai [default: python3].
# NODE_MODULES names a directory of npm packages with the package openai [default: the directory that node finds from
# here].
source "$(dirname "$0")/../society.sh"

python="${PYTHON:-python3}"
"$python" -c 'import openai' 2>/dev/null || skip "$python has no package openai (pip install openai)"

serve
export POLITY_URL="$url" POLITY_TOKEN
POLITY_TOKEN="$(cat "$data/token")"

echo "== Python"
"$python" "$here/ask.py" || fail "ask.py failed"

# Node looks for packages in the directory of the script.
script="$here/ask.mjs"
if [ -n "${NODE_MODULES:-}" ]; then
    ln -s "$NODE_MODULES" "$work/node_modules"
    cp "$script" "$work"
    script="$work/ask.mjs"
fi
echo "== JavaScript"
if (cd "$(dirname "$script")" && node --input-type=module -e 'import "openai"') 2>/dev/null; then
    node "$script" || fail "ask.mjs failed"
else
    echo "left out: node or its package openai is missing (npm install openai)"
fi
