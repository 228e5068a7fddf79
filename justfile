set positional-arguments

# Everyday commands; `just` without arguments lists them.

[private]
default:
    @just --list

# After a small change: format, lints, and the quick tests of the crates that changed, or of those named: just check society
check *crates:
    #!/usr/bin/env bash
    set -euo pipefail
    crates=("$@")
    if [ ${#crates[@]} = 0 ]; then
        mapfile -t crates < <({ git diff --name-only HEAD; git ls-files --others --exclude-standard; } |
            sed -n 's|^crates/\([^/]*\)/.*|\1|p' | sort -u)
    fi
    cargo fmt --all --check
    packages=()
    for crate in "${crates[@]}"; do
        case "$crate" in daemon) packages+=(--package polity) ;; *) packages+=(--package "polity-$crate") ;; esac
    done
    [ ${#packages[@]} = 0 ] && { echo 'no crate has changed'; exit; }
    cargo clippy "${packages[@]}" --all-targets -- -D warnings
    # The skipped tests take from half a minute to five minutes; `just test` runs them.
    cargo test "${packages[@]}" --lib --bins -- \
        --skip society::tests::answering --skip tools::tests::model --skip steer::tests::the_state_stays_whole \
        --skip supervisor::tests::order

# Draws comment lines at random for somebody who has not seen the code: just comments 70 17
comments *args:
    python3 tests/english/draw.py "$@"

# Runs all tests, or those whose name contains a word: just test introductions
test *args:
    cargo test --workspace {{args}}

# Kills the process at its failure points, 1,000 times or as often as given, and prints a table of the results.
crash-matrix kills="1000":
    POLITY_CRASH_KILLS={{kills}} cargo test --package polity-tests --test daemon -- \
        crash::matrix::crash_matrix --exact --ignored --nocapture

# Plays 5,000 random sequences of tool calls, or as many as given, against the reference model of the rules.
model sequences="5000":
    POLITY_MODEL_SEQUENCES={{sequences}} cargo test --package polity-runtime --lib -- whatever_happens_the_contract_holds

# Plays the hostile clients, servers, models, files and commands of the tests, and prints a table; below ten minutes.
attack:
    tests/attack.sh

# Tests the limits that the kernel enforces with control groups (version 2); needs systemd.
groups:
    cargo test --workspace --test sandbox --config \
        "target.'cfg(unix)'.runner = ['systemd-run', '--user', '--scope', '--quiet', '--property=Delegate=yes']" -- groups::

# Replaces the configuration 1,000 times in each way, while messages flow.
swaps times="1000":
    POLITY_SWAPS={{times}} cargo test --package polity-tests --test daemon -- live::

# Asks a daemon to end during 1,000 turns, or as many as given; the next daemon finishes them.
endings turns="1000":
    POLITY_ENDED_TURNS={{turns}} cargo test --package polity-tests --test daemon -- \
        serve::a_daemon_that_ends_during_many_turns serve::many_turns --test-threads 1

# Puts 1,000 agents under load for an hour, or as many minutes as given, and prints what the daemon needs meanwhile.
soak minutes="60":
    POLITY_SOAK_MINUTES={{minutes}} cargo test --package polity-tests --test daemon -- \
        soak::an_hour_of_load_makes_nothing_grow --exact --ignored --nocapture

# Plays a society whose models answer badly, with 50 seeds or as many as given; `just chaos 1 17` repeats seed 17.
chaos seeds="50" first="1":
    POLITY_CHAOS_SEEDS={{seeds}} POLITY_CHAOS_FIRST={{first}} cargo test --package polity-tests --test daemon -- \
        chaos::chaos_with_many_seeds --exact --ignored --nocapture

# Plays 500 societies, or as many as given, of models that are clumsy with tools; `just clumsy 1 17` repeats seed 17.
clumsy societies="500" first="1":
    POLITY_CLUMSY_SOCIETIES={{societies}} POLITY_CLUMSY_FIRST={{first}} cargo test --package polity-tests --test daemon -- \
        clumsy::clumsy_models_with_many_seeds --exact --ignored --nocapture

# Lets three agents mend a repository, and kills the process until 100 kills (or as given) have hit.
job kills="100":
    POLITY_JOB_KILLS={{kills}} cargo test --package polity-tests --test daemon -- \
        job::the_job_under_many_kills --exact --ignored --nocapture

# Plays 10,000 societies (or as given) that keep or break the answering rules; `just answering 1 17` repeats seed 17.
answering societies="10000" first="1":
    POLITY_ANSWERING_SOCIETIES={{societies}} POLITY_ANSWERING_FIRST={{first}} cargo test --package polity-runtime --lib -- \
        no_result_is_lost_however_models_keep_the_rules --nocapture

# Measures what polity costs against the least code that does the same work: just bench --only turn --rounds 3
bench *args:
    cargo build --release -p polity
    cargo run --release -p polity-bench -- --polity "${CARGO_TARGET_DIR:-target}/release/polity" "$@"

# Measures the memory and time that media in requests cost (docs/performance.md).
bench-media:
    cargo bench -p polity-llm --bench media

# Measures how 100,000 waiting messages are handled, in one mailbox and in a thousand (docs/performance.md).
load:
    cargo test -p polity-tests --test daemon load::a_hundred -- --ignored --nocapture --test-threads 1

# Tests the live view in a browser; needs node and Chromium.
web:
    cargo build --package polity
    tests/web/run.sh

# Takes the pictures of the documentation (docs/pictures) again; needs node and Chromium.
pictures:
    cargo build --package polity
    POLITY_BIN="${CARGO_TARGET_DIR:-target}/debug/polity" node tests/web/pictures.mjs

# Tests the official clients against a daemon; needs Python and node.
clients:
    cargo build --package polity
    tests/clients/run.sh

# Tests official MCP servers, alone and with agents, and runs the official conformance suite; needs Python and node.
servers:
    cargo build --package polity
    cargo build --package polity-servers --example try_server
    POLITY_BIN="${CARGO_TARGET_DIR:-target}/debug/polity" \
        TRY_SERVER="${CARGO_TARGET_DIR:-target}/debug/examples/try_server" tests/servers/run.sh
    TRY_SERVER="${CARGO_TARGET_DIR:-target}/debug/examples/try_server" tests/servers/conformance.sh

# Runs the examples; those with the official clients need `just clients` once before.
examples *args:
    cargo build --package polity
    POLITY_BIN="${CARGO_TARGET_DIR:-target}/debug/polity" examples/run.sh "$@"

# Sends twelve prompts in two languages to a small model: just small-model http://127.0.0.1:11434/v1 qwen3:0.6b
small-model *args:
    python3 tests/small-model/run.py "$@"

# Tests unmodified Codex with /v1/responses; needs node, and downloads half a gigabyte once.
codex:
    cargo build --package polity
    tests/clients/codex.sh

lint:
    cargo clippy --workspace --all-targets -- -D warnings

fmt:
    cargo fmt --all

# Checks licences, banned crates and sources; needs cargo-deny.
deny:
    cargo deny check licenses bans sources

# Runs the society: just run "看看这张图片" --attach examples/picture.png
run *args:
    cargo run --release -- run "$@"

# Runs all checks that a change has to pass.
ci:
    .ci/run
