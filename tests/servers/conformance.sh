#!/usr/bin/env bash
# Tests polity's MCP client with the official conformance suite. TRY_SERVER names the program that connects [default:
# target/debug/examples/try_server]. The suite is installed into SERVERS_CACHE [default: target/servers]. If node or its
# registry is missing, the script reports that and skips the tests. With SERVERS=required, the script fails instead.
#
# The version of the suite is the last version that runs with node 20.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
program="${TRY_SERVER:-$root/target/debug/examples/try_server}"
cache="${SERVERS_CACHE:-$root/target/servers}"

say() { printf 'conformance: %s\n' "$*"; }

missing() {
    say "left out: $*"
    if [ "${SERVERS:-}" = required ]; then exit 1; fi
    exit 0
}

[ -x "$program" ] || {
    say "there is no program $program; build it: cargo build -p polity-servers --example try_server"
    exit 2
}
program="$(cd "$(dirname "$program")" && pwd)/$(basename "$program")"
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then missing "there is no node or no npm"; fi
modules="$cache/conformance-$(cat "$here"/conformance/package*.json | cksum | tr -d ' ')"
if [ ! -e "$modules/ready" ]; then
    rm -rf "$modules"
    mkdir -p "$modules"
    cp "$here"/conformance/package*.json "$modules"
    (cd "$modules" && npm ci --no-fund --no-audit --loglevel=error >&2) || missing "the suite could not be installed"
    touch "$modules/ready"
fi
suite="$(cd "$modules" && pwd)/node_modules/.bin/conformance"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# The arguments of the program for each scenario. The suite passes them to a shell. It also adds the address of the
# server that it runs.
arguments() {
    case "$1" in
        initialize) echo "" ;;
        tools_call) echo "--call add_numbers '{\"a\": 5, \"b\": 3}' 'The sum of 5 and 3 is 8'" ;;
        sse-retry) echo "--call test_reconnection '{}' 'completed successfully'" ;;
        *) return 1 ;;
    esac
}

# Some scenarios test features that the client does not have. Skips these scenarios. docs/mcp.md says why the client
# lacks the features.
not_applicable() {
    case "$1" in
        elicitation-*) say "not applicable: $1 (the client offers no elicitation to servers)" ;;
        auth/*) say "not applicable: $1 (the client knows no OAuth)" ;;
        *) return 1 ;;
    esac
}

"$suite" list >"$work/list" 2>&1 || {
    say "the suite does not list its scenarios:"
    cut -c1-200 "$work/list"
    exit 1
}
failed=0
played=0
for scenario in $(sed -n '/^Client scenarios/,$s/^  - //p' "$work/list"); do
    if arguments="$(arguments "$scenario")"; then
        # The suite writes its results into the working directory.
        if (cd "$work" && "$suite" client --command "'$program' $arguments --url" --scenario "$scenario" --timeout 60000) \
            >"$work/log" 2>&1; then
            say "passed: $scenario"
            played=$((played + 1))
        else
            say "FAILED: $scenario"
            cut -c1-400 "$work/log"
            failed=1
        fi
    elif ! not_applicable "$scenario"; then
        say "FAILED: the scenario $scenario is new: play it, or give the reason why not"
        failed=1
    fi
done
[ "$failed" = 0 ] && [ "$played" -gt 0 ] || exit 1
say "all checks passed"
