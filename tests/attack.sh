#!/usr/bin/env bash
# Runs all tests with hostile clients, servers, models, files and commands, and prints a table of the results. Each row
# of the table is one kind of attack. One run of `cargo test` runs the tests of this kind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# One line for each kind of attack: its name | the test targets of cargo | parts of the names of its tests
attacks='clients without a token|--test api|guard hostile
clients with many connections or large bodies|--test daemon|crowds::
commands with bad input|--test daemon|bad_input:: cli::without
model servers|--test daemon|models:: protocol::wire floods::
model servers, read by the client alone|--test http|
pictures and names of files|--test daemon|fit::a_picture http_routing::the_name http_routing::what_a_text
models|--test daemon|runaways:: protocol::injections chaos::thirty
data directories and configuration files|--test daemon|lost_data::
a database that is locked for a minute|--test daemon|locked_for_a_minute --include-ignored
orders in files, names, commits, pages and MCP servers|--test daemon|orders::
name servers and redirects|--test daemon|rebinding::
MCP servers in a society|--test daemon|servers::
commands in the sandbox|--test sandbox|hostile
commands that use up the machine|--test bombs|bomb
documents in the child that reads them|--test child|hostile
paths, pages, pictures, MCP servers, one by one|--lib|hostile bomb races flood faults panic'

cargo build --quiet --workspace --lib --bins --tests
began=$SECONDS all=0 bad=0
printf '%-58s %7s %7s %8s\n' attack passed failed seconds
while IFS='|' read -r name target parts; do
    since=$SECONDS code=0
    # Run the tests of this row in one process of cargo. Print its output only if a test fails or if there is no test.
    # shellcheck disable=SC2086
    output=$(cargo test --quiet --workspace $target -- --nocapture $parts 2>&1) || code=$?
    passed=$(sed -n 's/^test result: .* \([0-9]*\) passed; \([0-9]*\) failed.*/\1/p' <<<"$output" | awk '{sum += $1} END {print sum + 0}')
    failed=$(sed -n 's/^test result: .* \([0-9]*\) passed; \([0-9]*\) failed.*/\2/p' <<<"$output" | awk '{sum += $1} END {print sum + 0}')
    printf '%-58s %7d %7d %8d\n' "$name" "$passed" "$failed" $((SECONDS - since))
    # What the tests could not check on this machine.
    grep -oE '(skipped|not checked): .*' <<<"$output" | sort -u | sed 's/^/  /' || true
    all=$((all + passed)) bad=$((bad + failed))
    if [ "$code" != 0 ] || [ "$passed" = 0 ]; then
        printf '%s\n' "$output" | tail -n 60
        [ "$failed" != 0 ] || bad=$((bad + 1))
    fi
done <<<"$attacks"
took=$((SECONDS - began))
printf '%-58s %7d %7d %8d\n' 'all' "$all" "$bad" "$took"
if [ "$took" -gt 600 ]; then
    echo "all attacks together took more than 600 seconds" >&2
    exit 1
fi
[ "$bad" = 0 ]
