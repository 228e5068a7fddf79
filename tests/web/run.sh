#!/usr/bin/env bash
# The tests of the live view: without a browser, then in Chromium on a real daemon. POLITY_BIN names the program. Says
# SKIPPED where node, playwright-core or Chromium is not here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if ! command -v node >/dev/null; then
    echo "SKIPPED: node is not here; the live view was not looked at"
    exit 0
fi
node --test unit/*.test.mjs
if [[ ! -d node_modules/playwright-core ]]; then
    if ! npm ci --no-audit --no-fund; then
        echo "SKIPPED: playwright-core could not be installed; the live view was not looked at in a browser"
        exit 0
    fi
fi
node run.mjs
