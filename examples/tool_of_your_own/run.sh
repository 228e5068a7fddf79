#!/usr/bin/env bash
# Runs the program main.rs, which is an example of the package polity. You can also run the program with
# `cargo run --example tool_of_your_own`. If the tests have already built it beside the polity program, this script runs
# that build.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ -n "${POLITY_BIN:-}" ] && [ -x "$(dirname "$POLITY_BIN")/examples/tool_of_your_own" ]; then
    exec "$(dirname "$POLITY_BIN")/examples/tool_of_your_own"
fi
command -v cargo >/dev/null || { echo "skipped: there is no cargo"; exit 77; }
cargo run --locked --quiet --package polity --example tool_of_your_own
