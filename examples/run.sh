#!/usr/bin/env bash
# Runs all examples one by one; `examples/run.sh NAME…` runs only the named examples. Fails if an example fails. If a
# program or package that an example needs is missing, the example is skipped. With CLIENTS=required, this counts as a
# failure. POLITY_BIN names the polity program [default: target/release/polity, else target/debug/polity]. The official
# clients are taken from CLIENTS_CACHE, where tests/clients/run.sh installs them [default: target/clients].
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cache="${CLIENTS_CACHE:-$here/../target/clients}"
case "$cache" in /*) ;; *) cache="$PWD/$cache" ;; esac

# tests/clients/run.sh derives the names of these directories in the same way.
clients="$here/../tests/clients"
venv="$cache/python-$(cksum <"$clients/requirements.txt" | tr -d ' ')"
modules="$cache/node-$(cat "$clients/package.json" "$clients/package-lock.json" | cksum | tr -d ' ')"
if [ -e "$venv/ready" ]; then export PYTHON="$venv/bin/python"; fi
if [ -e "$modules/ready" ]; then export NODE_MODULES="$modules/node_modules"; fi

# Runs a command, and kills it after ten minutes if the machine has the program `timeout`.
limited() {
    if command -v timeout >/dev/null; then timeout --kill-after=10 600 "$@"; else "$@"; fi
}

output="$(mktemp)"
trap 'rm -f "$output"' EXIT
failed=0
if [ "$#" -eq 0 ]; then set -- "$here"/*/run.sh; fi
for example in "$@"; do
    name="$(basename "${example%/run.sh}")"
    code=0 began=$SECONDS
    limited "$here/$name/run.sh" >"$output" 2>&1 </dev/null || code=$?
    # If programs or packages are missing, the output of the example names them.
    missing="$(sed -n -e 's/^skipped: //p' -e 's/^left out: //p' "$output")"
    case "$code" in
        0) printf 'ok       %s (%d s)%s\n' "$name" $((SECONDS - began)) "${missing:+, without a part: $missing}" ;;
        77) printf 'skipped  %s: %s\n' "$name" "$missing" ;;
        *)
            printf 'FAILED   %s with exit code %d; its output:\n' "$name" "$code"
            sed 's/^/    /' "$output"
            failed=1
            ;;
    esac
    if [ -n "$missing" ] && [ "${CLIENTS:-}" = required ]; then failed=1; fi
done
exit "$failed"
