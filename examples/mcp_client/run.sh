#!/usr/bin/env bash
# Gives polity a task through the official MCP client for Python, and reads the result. PYTHON names a Python
# interpreter that has the package mcp, version 2 [default: python3].
source "$(dirname "$0")/../society.sh"

python="${PYTHON:-python3}"
"$python" -c 'from mcp import Client' 2>/dev/null || skip "$python has no package mcp of version 2 (pip install mcp)"

export POLITY_BIN
"$python" "$here/task.py" "$config" "$data" "$root/examples/picture.png" || fail "task.py failed"
