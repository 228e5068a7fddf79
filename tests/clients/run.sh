#!/usr/bin/env bash
# Tests the official clients, unmodified, against a real daemon: OpenAI's and MCP's for Python and JavaScript, the
# Agents SDK, LangChain and the AI SDK. The program schemathesis also sends requests that it generates from the
# OpenAPI document. POLITY_BIN names the polity program [default: target/debug/polity]. Packages are installed into
# CLIENTS_CACHE [default: target/clients]. If Python, Node or their registries are missing, the script reports that
# and skips the part that needs them; with CLIENTS=required it fails instead.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
polity="${POLITY_BIN:-$root/target/debug/polity}"
cache="${CLIENTS_CACHE:-$root/target/clients}"
work="$(mktemp -d)"
daemon=

say() { printf 'clients: %s\n' "$*"; }

end() {
    if [ -n "$daemon" ]; then
        kill "$daemon" 2>/dev/null || true
        wait "$daemon" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap end EXIT

left_out=
missing() {
    say "left out: $*"
    left_out="${left_out:+$left_out; }$*"
    if [ "${CLIENTS:-}" = required ]; then exit 1; fi
}

[ -x "$polity" ] || { say "there is no program $polity; build it: cargo build"; exit 2; }
mkdir -p "$cache"
cache="$(cd "$cache" && pwd)"

# When a list of pinned versions changes, its packages get a new directory. So packages of two lists are never mixed.
python=
if ! command -v python3 >/dev/null; then
    missing "the clients for Python, because there is no python3"
else
    venv="$cache/python-$(cksum <"$here/requirements.txt" | tr -d ' ')"
    if [ ! -e "$venv/ready" ]; then
        rm -rf "$venv"
        if python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --no-deps -r "$here/requirements.txt"; then
            touch "$venv/ready"
        fi
    fi
    if [ -e "$venv/ready" ]; then python="$venv/bin/python"; else
        missing "the clients for Python, because they could not be installed"
    fi
fi
node=
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    missing "the clients for JavaScript, because there is no node or no npm"
else
    modules="$cache/node-$(cat "$here/package.json" "$here/package-lock.json" | cksum | tr -d ' ')"
    if [ ! -e "$modules/ready" ]; then
        rm -rf "$modules"
        mkdir -p "$modules"
        cp "$here/package.json" "$here/package-lock.json" "$modules"
        if (cd "$modules" && npm ci --no-fund --no-audit --loglevel=error >&2); then touch "$modules/ready"; fi
    fi
    if [ -e "$modules/ready" ]; then node=node; else
        missing "the clients for JavaScript, because they could not be installed"
    fi
fi

export POLITY_BIN="$polity" POLITY_CONFIG="$work/config" POLITY_DATA="$work/data"
export POLITY_PICTURE="$root/examples/picture.png" NO_COLOR=1
unset OPENAI_API_KEY OPENAI_BASE_URL OPENAI_MODEL
mkdir -p "$POLITY_CONFIG"
echo '{"discover": false}' >"$POLITY_CONFIG/app.json"

# Maximum wait for a condition, in seconds. After that, the step fails. No step waits for a fixed time.
patience=120

serve() {
    "$polity" serve --listen 127.0.0.1:0 --config "$POLITY_CONFIG" --data "$POLITY_DATA" 2>"$work/log" &
    daemon=$!
    local deadline=$((SECONDS + patience))
    # When the daemon is ready to answer, it writes this file in one step.
    until [ -s "$POLITY_DATA/daemon.json" ]; do
        if ! kill -0 "$daemon" 2>/dev/null || [ "$SECONDS" -gt "$deadline" ]; then
            say "polity serve did not become ready:"
            cat "$work/log"
            exit 1
        fi
        sleep 0.1
    done
    POLITY_URL="$(sed -n 's/.*"url": "\([^"]*\)".*/\1/p' "$POLITY_DATA/daemon.json")"
    POLITY_TOKEN="$(cat "$POLITY_DATA/token")"
    export POLITY_URL POLITY_TOKEN
}

step() {
    say "$1"
    shift
    "$@" || {
        say "FAILED; the log of the daemon:"
        cat "$work/log"
        exit 1
    }
}

serve
if [ -n "$python" ]; then
    step "OpenAI's client for Python" "$python" "$here/openai_client.py"
    step "structured output and responses: OpenAI's client for Python, the Agents SDK" "$python" "$here/structured.py"
    step "MCP's client for Python, /mcp" "$python" "$here/mcp_client.py" http
    step "MCP's client for Python, polity mcp beside the daemon" "$python" "$here/mcp_client.py" stdio
fi
if [ -n "$node" ]; then
    # Node searches for modules in the directory of the script.
    cp "$here"/*.mjs "$modules"
    step "OpenAI's client for JavaScript" node "$modules/openai_client.mjs"
    step "structured output and responses: OpenAI's client, LangChain, the AI SDK" node "$modules/structured.mjs"
    step "MCP's client for JavaScript, /mcp" node "$modules/mcp_client.mjs" http
    step "MCP's client for JavaScript, polity mcp beside the daemon" node "$modules/mcp_client.mjs" stdio
fi
if [ -n "$python" ]; then
    # With more than one worker, CPython 3.11 sometimes fails: its parser counts the recursion depth of all threads
    # together (python/cpython#106905).
    # schemathesis writes a cache into its working directory, so run it in a temporary directory. It sends no requests
    # to the path that shuts the daemon down.
    cd "$work"
    step "requests generated from the OpenAPI document" "$python" -m schemathesis.cli run \
        "$POLITY_URL/api/openapi.json" --header "Authorization: Bearer $POLITY_TOKEN" \
        --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
        --max-examples "${EXAMPLES:-20}" --seed "${SEED:-1}" --workers 1 --request-timeout "$patience" \
        --generation-database none --no-color --exclude-path /api/shutdown
    cd "$root"
fi
kill "$daemon"
wait "$daemon" || { say "polity serve did not end with exit code 0"; cat "$work/log"; exit 1; }
daemon=
# If there is no daemon, `polity mcp` runs the society itself. This society gets a new data directory, because the old
# one cannot be used any more: the generated requests have paused, stopped and limited its agents, even root.
POLITY_DATA="$work/alone"
if [ -n "$python" ]; then
    step "MCP's client for Python, polity mcp alone" "$python" "$here/mcp_client.py" stdio
fi
if [ -n "$node" ]; then
    step "MCP's client for JavaScript, polity mcp alone" node "$modules/mcp_client.mjs" stdio
fi
say "all checks passed${left_out:+ but those that were left out: $left_out}"
