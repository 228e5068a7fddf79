#!/usr/bin/env bash
# The tests of the live view: without a browser, then in Chromium on a real daemon. POLITY_BIN names the program. Says
# SKIPPED where node or Chromium is not here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if ! command -v node >/dev/null; then
    echo "SKIPPED: node is not here; the live view was not looked at"
    exit 0
fi
node --test unit/
if [[ ! -d node_modules/playwright-core ]]; then
    npm ci --no-audit --no-fund
fi
node run.mjs
