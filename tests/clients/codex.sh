#!/usr/bin/env bash
# Tests that unmodified Codex can work with a society through /v1/responses. Codex sends a task, and then another prompt
# in the same session. POLITY_BIN names the polity program [default: target/debug/polity]. Codex is installed into
# CLIENTS_CACHE [default: target/clients].
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
polity="${POLITY_BIN:-$root/target/debug/polity}"
cache="${CLIENTS_CACHE:-$root/target/clients}"
version=0.169.0
work="$(mktemp -d)"
daemon=

end() {
    if [ -n "$daemon" ]; then
        kill "$daemon" 2>/dev/null || true
        wait "$daemon" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap end EXIT

[ -x "$polity" ] || { echo "there is no program $polity; build it: cargo build"; exit 2; }
mkdir -p "$cache/codex-$version"
cache="$(cd "$cache/codex-$version" && pwd)"
codex="$cache/node_modules/.bin/codex"
[ -x "$codex" ] || npm install --prefix "$cache" --no-fund --no-audit --loglevel=error "@openai/codex@$version"

mkdir -p "$work/config" "$work/codex" "$work/place"
echo '{"discover": false, "language": "en"}' >"$work/config/app.json"
"$polity" serve --listen 127.0.0.1:0 --config "$work/config" --data "$work/data" 2>"$work/log" &
daemon=$!
until [ -s "$work/data/daemon.json" ]; do
    kill -0 "$daemon" || { cat "$work/log"; exit 1; }
    sleep 0.1
done
url="$(sed -n 's/.*"url": "\([^"]*\)".*/\1/p' "$work/data/daemon.json")"
POLITY_TOKEN="$(cat "$work/data/token")"
export POLITY_TOKEN CODEX_HOME="$work/codex"
cat >"$CODEX_HOME/config.toml" <<TOML
model = "polity"
model_provider = "polity"

[model_providers.polity]
name = "polity"
base_url = "$url/v1"
env_key = "POLITY_TOKEN"
wire_api = "responses"
stream_max_retries = 0
TOML

cd "$work/place"
ask() { "$codex" exec --skip-git-repo-check --output-last-message "$work/answer" "$@" </dev/null >"$work/said" 2>&1; }
check() {
    grep -q "rehearsal" "$work/answer" || { cat "$work/said" "$work/log"; exit 1; }
    echo "codex: $1: $(head -1 "$work/answer")"
}
ask "say hello"
check "asked"
ask resume --last "and once more"
check "resumed"
tasks="$("$polity" tasks --json --config "$work/config" --data "$work/data" | grep -c '"id"')"
[ "$tasks" = 1 ] || { echo "the session became $tasks tasks"; exit 1; }
echo "codex: all checks passed, in one task"
