# Shortcuts. Everything here is a plain command: nothing needs `just` to work.

# List the recipes
default:
    @just --list

# Format and lint the host, the tests and the guests
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings
    cargo clippy --package guest-render --package guest-gate --locked --target wasm32-wasip2 --target-dir target/guests --profile guest -- -D warnings

# Run the tests
test *arguments:
    cargo test --locked {{arguments}}

# Run the tests that take minutes, too
slow:
    cargo test --locked
    cargo test --release --locked --package svc-tests --test slow

# Fuzz the gate, alone and against SQLite, for so many seconds each (needs cargo-fuzz and a nightly compiler)
fuzz seconds="300":
    cd guest-gate && mkdir -p fuzz/corpus/check fuzz/corpus/differential
    cd guest-gate && cargo +nightly fuzz run --sanitizer none check fuzz/corpus/check ../tests/corpus/sql/accepted ../tests/corpus/sql/refused -- -max_len=4096 -max_total_time={{seconds}}
    cd guest-gate && cargo +nightly fuzz run --sanitizer none differential fuzz/corpus/differential ../tests/corpus/sql/accepted ../tests/corpus/sql/refused -- -max_len=4096 -max_total_time={{seconds}}

# Measure a release build against minimal servers
bench *arguments:
    cargo build --release --locked --bin svc --bin bench
    target/release/bench {{arguments}}

# Drive the pages in Chromium
browser *arguments:
    cargo build --locked --bin svc
    cd tests/browser && npm ci --no-audit --no-fund && npm test -- {{arguments}}

# Drive the tool endpoint with the official clients (needs Node 20 and Python 3.10 or newer)
mcp *arguments:
    cargo build --locked --bin svc
    python3 -m venv target/mcp-python
    target/mcp-python/bin/pip install --quiet --requirement tests/mcp/requirements.txt
    cd tests/mcp && npm ci --no-audit --no-fund && MCP_PYTHON=../../target/mcp-python/bin/python npm test -- {{arguments}}

# Hold the tool endpoint to the official conformance runner and inspector, which bring the Node that they need
mcp-conformance:
    cargo build --locked --bin svc
    cd tests/mcp/conformance && npm ci --no-audit --no-fund && npm test

# Check dependencies for advisories, licences, bans and sources (needs cargo-deny)
audit:
    cargo deny --locked --all-features check

# Build the guests alone and show how large they are
guests:
    cargo build --locked --profile guest --target wasm32-wasip2 --target-dir target/guests --package guest-render --package guest-gate
    @ls -l target/guests/wasm32-wasip2/guest/*.wasm
