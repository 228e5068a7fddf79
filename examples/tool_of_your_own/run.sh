#!/usr/bin/env bash
# Runs the program main.rs, an example of the package polity. A newcomer runs it with
# `cargo run --example tool_of_your_own`.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v cargo >/dev/null || { echo "skipped: there is no cargo"; exit 77; }
cargo run --locked --quiet --package polity --example tool_of_your_own
