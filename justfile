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

# What media in requests cost, in memory and time (docs/performance.md).
bench:
    cargo bench -p polity-llm --bench media

# A hundred thousand messages, in one mailbox and in a thousand (docs/performance.md).
load:
    cargo test -p polity-tests --test daemon load::a_hundred -- --ignored --nocapture --test-threads 1

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
