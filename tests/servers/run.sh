#!/usr/bin/env bash
# Tests polity's MCP client with unmodified official servers. In JavaScript: `filesystem`, `memory`,
# `sequential-thinking` and `everything`. In Python: `git`, `time` and `fetch`. TRY_SERVER names the program that
# connects to a server [default: target/debug/examples/try_server]; this program also kills a server during a call.
# Then agents use the servers (`agents.mjs`); POLITY_BIN names the polity program [default: target/debug/polity].
# Packages are installed into SERVERS_CACHE [default: target/servers]. If Python, Node or their registries are missing,
# the script reports that and skips the part that needs them; with SERVERS=required it fails instead.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
program="${TRY_SERVER:-$root/target/debug/examples/try_server}"
polity="${POLITY_BIN:-$root/target/debug/polity}"
cache="${SERVERS_CACHE:-$root/target/servers}"
work="$(mktemp -d)"
started=
site=

say() { printf 'servers: %s\n' "$*"; }

end() {
    for process in $started $site; do
        kill "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap end EXIT

left_out=
missing() {
    say "left out: $*"
    left_out="${left_out:+$left_out; }$*"
    if [ "${SERVERS:-}" = required ]; then exit 1; fi
}

[ -x "$program" ] || {
    say "there is no program $program; build it: cargo build -p polity-servers --example try_server"
    exit 2
}
[ -x "$polity" ] || { say "there is no program $polity; build it: cargo build"; exit 2; }
mkdir -p "$cache"
cache="$(cd "$cache" && pwd)"
# Wait until no other run is active, because two runs at the same time would install into the same directories.
if command -v flock >/dev/null; then
    exec 9>"$cache/lock"
    flock 9
fi

# When a list of pinned versions changes, its packages get a new directory. So packages of two lists are never mixed.
python=
if ! command -v python3 >/dev/null; then
    missing "the servers for Python, because there is no python3"
else
    venv="$cache/python-$(cksum <"$here/requirements.txt" | tr -d ' ')"
    if [ ! -e "$venv/ready" ]; then
        rm -rf "$venv"
        if python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --no-deps -r "$here/requirements.txt"; then
            touch "$venv/ready"
        fi
    fi
    if [ -e "$venv/ready" ]; then python="$venv/bin"; else
        missing "the servers for Python, because they could not be installed"
    fi
fi
node=
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    missing "the servers for JavaScript, because there is no node or no npm"
else
    modules="$cache/node-$(cat "$here/package.json" "$here/package-lock.json" | cksum | tr -d ' ')"
    if [ ! -e "$modules/ready" ]; then
        rm -rf "$modules"
        mkdir -p "$modules"
        cp "$here/package.json" "$here/package-lock.json" "$modules"
        if (cd "$modules" && npm ci --no-fund --no-audit --loglevel=error >&2); then touch "$modules/ready"; fi
    fi
    if [ -e "$modules/ready" ]; then node="$modules/node_modules/.bin"; else
        missing "the servers for JavaScript, because they could not be installed"
    fi
fi

# Maximum time for the test of one server, in seconds. A test does not wait for a fixed time, but only until it is done.
patience=120

try() {
    say "$1"
    shift
    timeout "$patience" "$program" "$@" || {
        say "FAILED"
        exit 1
    }
}

mkdir "$work/files"
echo "a line of text" >"$work/files/note.txt"
if [ -n "$node" ]; then
    try filesystem \
        --call read_text_file "{\"path\": \"$work/files/note.txt\"}" "a line of text" \
        --call list_directory "{\"path\": \"$work/files\"}" "note.txt" \
        --call read_text_file '{"path": "/etc/passwd"}' "outside allowed directories" \
        "$node/mcp-server-filesystem" "$work/files"
    try memory \
        --call create_entities '{"entities": [{"name": "Ada", "entityType": "person", "observations": ["writes"]}]}' Ada \
        --call search_nodes '{"query": "Ada"}' writes \
        env "MEMORY_FILE_PATH=$work/memory.jsonl" "$node/mcp-server-memory"
    try sequential-thinking \
        --call sequentialthinking \
        '{"thought": "x", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}' totalThoughts \
        "$node/mcp-server-sequential-thinking"
    everything=(
        --call echo '{"message": "hello"}' hello
        --call get-tiny-image '{}' image/png
        --call get-structured-content '{"location": "New York"}' temperature
        --call get-resource-links '{"count": 2}' " bytes)"
        --call get-resource-reference '{"resourceType": "Text", "resourceId": 1}' text/plain
        --call trigger-long-running-operation '{"duration": 1, "steps": 5}' completed
    )
    try "everything, over pipes" "${everything[@]}" "$node/mcp-server-everything"
    try "everything, killed during a call" \
        --kill trigger-long-running-operation '{"duration": 60, "steps": 60}' "the connection ended before the answer" \
        --call echo '{"message": "hello again"}' "hello again" \
        "$node/mcp-server-everything"
    try "everything, hanging" \
        --timeout 3000 \
        --call trigger-long-running-operation '{"duration": 60, "steps": 1}' "no answer within 3000 ms" \
        --call echo '{"message": "hello still"}' "hello still" \
        "$node/mcp-server-everything"
    port="$(node -e 'const s = require("net").createServer().listen(0, () => { console.log(s.address().port); s.close(); });')"
    PORT="$port" "$node/mcp-server-everything" streamableHttp >"$work/log" 2>&1 &
    started=$!
    deadline=$((SECONDS + patience))
    until grep -q "listening on port" "$work/log"; do
        if ! kill -0 "$started" 2>/dev/null || [ "$SECONDS" -gt "$deadline" ]; then
            say "the server for HTTP did not become ready:"
            cat "$work/log"
            exit 1
        fi
        sleep 0.1
    done
    try "everything, over HTTP" "${everything[@]}" --url "http://127.0.0.1:$port/mcp"
fi
if [ -n "$python" ]; then
    try time \
        --call convert_time \
        '{"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}' 21:00 \
        "$python/mcp-server-time"
    try "fetch, of a private address" \
        --call fetch '{"url": "http://127.0.0.1:1/"}' "not a public address" \
        "$python/mcp-server-fetch" --ignore-robots-txt
    mkdir "$work/site"
    echo '<html><title>A page</title><body><article><h1>Heading</h1><p>Some words.</p></article></body></html>' \
        >"$work/site/page.html"
    printf 'User-agent: *\nDisallow: /private\n' >"$work/site/robots.txt"
    python3 -u -m http.server --bind 127.0.0.1 --directory "$work/site" 0 >"$work/site.log" 2>&1 &
    site=$!
    deadline=$((SECONDS + patience))
    until address="$(sed -n 's/.*(\(http:[^)]*\)).*/\1/p' "$work/site.log")" && [ -n "$address" ]; do
        if ! kill -0 "$site" 2>/dev/null || [ "$SECONDS" -gt "$deadline" ]; then
            say "the page was not served:"
            cat "$work/site.log"
            exit 1
        fi
        sleep 0.1
    done
    try "fetch, of a page" \
        --call fetch "{\"url\": \"${address}page.html\"}" "Some words." \
        --call fetch "{\"url\": \"${address}private\"}" "robots.txt" \
        "$python/mcp-server-fetch" --allow-private-ips
    if command -v git >/dev/null; then
        git init --quiet "$work/repository"
        echo "a line" >"$work/repository/new"
        repository="\"repo_path\": \"$work/repository\""
        try git \
            --call git_status "{$repository}" new \
            --call git_add "{$repository, \"files\": [\"new\"]}" staged \
            --call git_diff_staged "{$repository}" "+a line" \
            --call git_commit "{$repository, \"message\": \"Begin\"}" committed \
            --call git_log "{$repository}" Begin \
            --call git_status '{"repo_path": "/"}' "outside" \
            env GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org \
            "$python/mcp-server-git" --repository "$work/repository"
    else
        missing "git's server, because there is no git"
    fi
fi
if [ -n "$node" ]; then
    POLITY_BIN="$polity" SERVERS_NODE="$modules/node_modules" SERVERS_PYTHON="$python" node "$here/agents.mjs" || {
        say "FAILED"
        exit 1
    }
fi
say "all checks passed${left_out:+ but those that were left out: $left_out}"
