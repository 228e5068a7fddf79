set positional-arguments

# What is done every day; `just` alone lists it.

[private]
default:
    @just --list

# Does it compile?
check:
    cargo check --workspace --all-targets

# All tests, or those whose name contains a word: just test introductions
test *args:
    cargo test --workspace {{args}}

# Has the process die at least 1,000 times (or as often as is said) at its failure points, and prints what came of it.
crash-matrix kills="1000":
    POLITY_CRASH_KILLS={{kills}} cargo test --package polity-tests --test daemon -- \
        crash::matrix::crash_matrix --exact --ignored --nocapture

# Plays a society whose models answer badly, with 50 seeds or as many as are said; `just chaos 1 17` plays seed 17 again.
chaos seeds="50" first="1":
    POLITY_CHAOS_SEEDS={{seeds}} POLITY_CHAOS_FIRST={{first}} cargo test --package polity-tests --test daemon -- \
        chaos::chaos_with_many_seeds --exact --ignored --nocapture

# Plays societies of models that are clumsy with tools, 500 or as many as are said; `just clumsy 1 17` plays seed 17 again.
clumsy societies="500" first="1":
    POLITY_CLUMSY_SOCIETIES={{societies}} POLITY_CLUMSY_FIRST={{first}} cargo test --package polity-tests --test daemon -- \
        clumsy::clumsy_models_with_many_seeds --exact --ignored --nocapture

# Plays ten thousand societies that keep the rules of answering well or badly, or as many as are said; a seed that failed is
# played again by `just answering 1 17`.
answering societies="10000" first="1":
    POLITY_ANSWERING_SOCIETIES={{societies}} POLITY_ANSWERING_FIRST={{first}} cargo test --package polity-runtime --lib -- \
        no_result_is_lost_however_models_keep_the_rules --nocapture

# What media in requests cost, in memory and time (docs/performance.md).
bench:
    cargo bench -p polity-llm --bench media

# A hundred thousand messages, in one mailbox and in a thousand (docs/performance.md).
load:
    cargo test -p polity-tests --test daemon load::a_hundred -- --ignored --nocapture --test-threads 1

# The live view in a browser; needs node and Chromium.
web:
    cargo build --package polity
    tests/web/run.sh

# The official clients against a daemon; needs Python and node.
clients:
    cargo build --package polity
    tests/clients/run.sh

# Twelve prompts in two languages to a small model of yours: just small-model http://127.0.0.1:11434/v1 qwen3:0.6b
small-model *args:
    python3 tests/small-model/run.py "$@"

# Codex, unmodified, through /v1/responses; needs node, and fetches half a gigabyte once.
codex:
    cargo build --package polity
    tests/clients/codex.sh

lint:
    cargo clippy --workspace --all-targets -- -D warnings

fmt:
    cargo fmt --all

# Licences, banned crates and sources; needs cargo-deny.
deny:
    cargo deny check licenses bans sources

# Run the society: just run "看看这张图片" --attach examples/picture.png
run *args:
    cargo run --release -- run "$@"

# All that must hold before a change goes in.
ci:
    .ci/run
