# The shell examples source this file. It finds the program polity, creates directories for an empty society, and at
# the end stops everything that the example has started.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

fail() {
    printf 'FAILED: %s\n' "$*"
    exit 1
}

# Ends the example with exit code 77, because this machine lacks a program or a package that it needs.
skip() {
    printf 'skipped: %s\n' "$*"
    exit 77
}

if [ -z "${POLITY_BIN:-}" ]; then
    POLITY_BIN="$root/target/release/polity"
    [ -x "$POLITY_BIN" ] || POLITY_BIN="$root/target/debug/polity"
fi
[ -x "$POLITY_BIN" ] || fail "there is no program $POLITY_BIN; build it with cargo build, or set POLITY_BIN"
polity() { "$POLITY_BIN" "$@"; }

# A society needs a directory for its configuration and another for its data. Because of "discover": false, polity does
# not look for a model server on this machine. So if an example writes no llmservices.json, the built-in rehearsal
# models answer.
work="$(mktemp -d)"
config="$work/config" data="$work/data"
mkdir "$config"
echo '{"language": "en", "discover": false}' >"$config/app.json"
export NO_COLOR=1 PYTHONDONTWRITEBYTECODE=1
unset OPENAI_API_KEY OPENAI_BASE_URL OPENAI_MODEL

end() {
    local code=$?
    jobs -p | xargs kill 2>/dev/null || true
    wait
    rm -rf "$work"
    exit "$code"
}
trap end EXIT

# Repeats a command until it succeeds. Fails after a minute.
until_true() {
    local deadline=$((SECONDS + 60))
    until "$@"; do
        [ "$SECONDS" -lt "$deadline" ] || fail "waited in vain for: $*"
        sleep 0.05
    done
}

# Starts the daemon on a free port. When the daemon is ready, it writes the file daemon.json in one step.
serve() {
    # Start the program directly. With the function polity, $! would be the id of a subshell and not of the daemon.
    "$POLITY_BIN" serve --listen 127.0.0.1:0 --config "$config" --data "$data" &
    daemon=$!
    until_true test -s "$data/daemon.json"
    url="$(sed -n 's/.*"url": "\([^"]*\)".*/\1/p' "$data/daemon.json")"
}

# Starts a scripted model. The model is a Python program whose first line of output is its address. Everything that it
# prints later goes to the file $transcript.
scripted_model() {
    command -v python3 >/dev/null || skip "there is no python3, which runs the scripted model"
    transcript="$work/transcript"
    PYTHONPATH="$root/examples/scripted_society" python3 "$@" >"$transcript" &
    until_true test -s "$transcript"
    model_url="$(head -n 1 "$transcript")"
}
