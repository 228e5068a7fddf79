#!/usr/bin/env bash
# Runs the tests of the live view: first those without a browser, then those in Chromium with a real daemon.
# POLITY_BIN names the polity program. Prints SKIPPED and the part that was skipped if node, playwright-core, Chromium,
# a sandbox or git is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if ! command -v node >/dev/null; then
    echo "SKIPPED: node is not installed, so the live view was not tested"
    exit 0
fi
node --test unit/*.test.mjs
if [[ ! -d node_modules/playwright-core ]]; then
    if ! npm ci --no-audit --no-fund; then
        echo "SKIPPED: playwright-core could not be installed, so the live view was not tested in a browser"
        exit 0
    fi
fi
node run.mjs
