# Shortcuts. Everything here is a plain command: nothing needs `just` to work.

# List the recipes
default:
    @just --list

# Format and lint the host, the tests and the guests, and look for unused dependencies
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings
    cargo clippy --package guest-render --package guest-gate --locked --target wasm32-wasip2 --target-dir target/guests --profile guest -- -D warnings
    cargo install --quiet --locked --debug --version 0.9.2 --root target/tools cargo-machete
    target/tools/bin/cargo-machete --skip-target-dir .

# Run the tests
test *arguments:
    cargo test --locked {{arguments}}

# Run the tests that take minutes, too
slow:
    cargo test --locked
    SVC_TEST_NODES=2 cargo test --locked --test http
    cargo test --profile dist --locked --package svc-tests --test slow -- --skip cluster:: --skip serving::
    cargo test --profile dist --locked --package svc-tests --test slow -- cluster:: serving:: --test-threads 1 --nocapture
    SVC_NEMESIS_MINUTES=10 cargo test --profile dist --locked --package svc-tests --test cluster nemesis -- --nocapture
    SQL_TIME_ALL=1 cargo test --profile dist --locked --package svc-database --lib no_function_runs -- --nocapture

# Have a server live through four weeks in five minutes, and look at what is left over
soak:
    cargo test --locked --package svc-tests --test soak -- --nocapture

# Fuzz the guests natively for so many seconds each (needs cargo-fuzz and a nightly compiler), and all targets by count with so many texts made of each seed
fuzz seconds="300" rounds="200":
    mkdir -p tests/fuzz/libfuzzer/corpus/gate tests/fuzz/libfuzzer/corpus/agreement tests/fuzz/libfuzzer/corpus/render tests/fuzz/libfuzzer/corpus/cleaner
    cargo +nightly fuzz run --fuzz-dir tests/fuzz/libfuzzer --sanitizer none gate tests/fuzz/libfuzzer/corpus/gate tests/corpus/sql/accepted tests/corpus/sql/refused tests/corpus/fuzz/sql -- -max_len=4096 -max_total_time={{seconds}}
    cargo +nightly fuzz run --fuzz-dir tests/fuzz/libfuzzer --sanitizer none agreement tests/fuzz/libfuzzer/corpus/agreement tests/corpus/sql/accepted tests/corpus/sql/refused tests/corpus/fuzz/sql -- -max_len=4096 -max_total_time={{seconds}}
    cargo +nightly fuzz run --fuzz-dir tests/fuzz/libfuzzer --sanitizer none render tests/fuzz/libfuzzer/corpus/render tests/corpus/fuzz/pages tests/corpus/diagrams/hostile -- -max_len=4096 -max_total_time={{seconds}}
    cargo +nightly fuzz run --fuzz-dir tests/fuzz/libfuzzer --sanitizer none cleaner tests/fuzz/libfuzzer/corpus/cleaner tests/corpus/fuzz/files -- -max_len=65536 -max_total_time={{seconds}}
    FUZZ_ROUNDS={{rounds}} cargo test --release --locked --package svc-tests --test fuzz

# Measure a release build against minimal servers
bench *arguments:
    cargo build --profile dist --locked --bin svc --bin bench
    target/dist/bench {{arguments}}

# Drive the pages in Chromium
browser *arguments:
    cargo build --locked --bin svc
    cd tests/browser && npm ci --no-audit --no-fund && npm test -- {{arguments}}

# Build the guest in JavaScript, and have it serve (needs Node 18.19 or newer)
guest-js:
    cargo build --locked --bin svc
    cd tests/guests/cards && npm ci --no-audit --no-fund && npm test

# Drive the tool endpoint with the official clients (needs Node 20 and Python 3.10 or newer)
mcp *arguments:
    cargo build --locked --bin svc
    python3 -m venv target/mcp-python
    target/mcp-python/bin/pip install --quiet --requirement tests/mcp/requirements.txt
    cd tests/mcp && npm ci --no-audit --no-fund && MCP_PYTHON=../../target/mcp-python/bin/python npm test -- {{arguments}}

# Hold rooms and live queries to RFC 6455 by independent clients, `ws` and `websockets` (needs Node 18.19 and Python 3.10 or newer)
websockets *arguments:
    cargo build --locked --bin svc
    python3 -m venv target/websockets-python
    target/websockets-python/bin/pip install --quiet --requirement tests/websockets/requirements.txt
    cd tests/websockets && npm ci --no-audit --no-fund && WEBSOCKETS_PYTHON=../../target/websockets-python/bin/python npm test -- {{arguments}}

# Hold the codec of WebSockets to the Autobahn suite (needs Python 2.7 with pip, which pyenv builds: `just autobahn ~/.pyenv/versions/2.7.18/bin/python2.7`)
autobahn python="python2.7":
    {{python}} -m pip install --quiet --upgrade --target target/autobahn autobahntestsuite==0.8.2
    AUTOBAHN_PYTHON={{python}} AUTOBAHN_HOME={{justfile_directory()}}/target/autobahn cargo test --locked --package svc-tests --test autobahn -- --nocapture

# Hold the tool endpoint to the official conformance runner and inspector, which bring the Node that they need
mcp-conformance:
    cargo build --locked --bin svc
    cd tests/mcp && npm ci --no-audit --no-fund
    cd tests/mcp/conformance && npm ci --no-audit --no-fund && npm test

# Hold payments to Stripe's own library and to localstripe (needs Node 20 and Python 3.10 or newer)
stripe *arguments:
    cargo build --locked --bin svc
    python3 -m venv target/localstripe
    target/localstripe/bin/pip install --quiet --requirement tests/stripe/requirements.txt
    cd tests/stripe && npm ci --no-audit --no-fund && LOCALSTRIPE_PYTHON=../../target/localstripe/bin/python npm test -- {{arguments}}

# Keep content in a bucket of moto's, which checks every signature, and run the storage part of the suite there (needs Python 3.10 or newer)
s3:
    cargo build --locked --bin svc
    python3 -m venv target/s3-python
    target/s3-python/bin/pip install --quiet --requirement tests/s3/requirements.txt
    target/s3-python/bin/python tests/s3/run.py --suite

# Upload five hundred pictures as phones make them, and read them back by Pillow (needs Python 3.10 or newer)
pictures:
    cargo build --locked --bin svc
    python3 -m venv target/pictures
    target/pictures/bin/pip install --quiet --requirement tests/pictures/requirements.txt
    target/pictures/bin/python tests/pictures/run.py

# Hold the server to its OpenAPI description by schemathesis; SVC_SEED chooses the cases (needs Python 3.10 or newer)
schemathesis *arguments:
    cargo build --locked --bin svc
    python3 -m venv target/schemathesis
    target/schemathesis/bin/pip install --quiet --requirement tests/schemathesis/requirements.txt
    target/schemathesis/bin/python tests/schemathesis/run.py {{arguments}}

# Check dependencies for advisories, licences, bans and sources (needs cargo-deny)
audit:
    cargo deny --locked --all-features check

# Build the guests alone and show how large they are
guests:
    cargo build --locked --profile guest --target wasm32-wasip2 --target-dir target/guests --package guest-render --package guest-gate
    @ls -l target/guests/wasm32-wasip2/guest/*.wasm

# Build the program for any Linux, without libraries of the system (needs musl-tools, and the target that rustup adds)
static:
    rustup target add x86_64-unknown-linux-musl
    cargo build --profile dist --locked --package svc --target x86_64-unknown-linux-musl
    @ls -l target/x86_64-unknown-linux-musl/dist/svc

# Make the Debian package of the static program (needs dpkg-deb)
deb: static
    packaging/deb target/x86_64-unknown-linux-musl/dist/svc target/packages

# Try the Debian package on a clean machine, in a container with systemd (needs root, debootstrap and a mirror of Debian)
try-deb:
    packaging/try-deb target/packages/svc_*.deb

# Try the Debian package over an older one: restarted, healthy, nothing asked, nothing lost, and back (needs the same)
try-upgrade older: guests
    packaging/try-upgrade target/packages/svc_*.deb {{older}} target/guests/wasm32-wasip2/guest/guest_render.wasm

# Try the source on a clean machine: cloned, built, served, published with (needs root, debootstrap, a mirror of Debian and a network)
try-source port="8080":
    packaging/try-source {{port}}

# Start PostgreSQL with two standbys, a bucket and three nodes on this machine, until Ctrl-C (needs Debian's `postgresql`)
try-cluster *arguments:
    cargo build --locked --bin svc
    packaging/try-cluster target/debug/svc {{arguments}}

# Make the container image of the static program, and try it (needs buildah; without root, `buildah unshare just image`)
image name="svc": static
    packaging/image target/x86_64-unknown-linux-musl/dist/svc {{name}}
    packaging/try-image {{name}}

# Measure the owner's console in Chromium, on a machine that does nothing else
console-figures:
    cargo build --profile dist --locked --bin svc
    cd tests/browser && npm ci --no-audit --no-fund && SVC_BIN=../../target/dist/svc node console_figures.mjs

# Take the pictures of the documents and of the landing page anew (needs Node 18 or newer and chromium)
screenshots:
    cargo build --locked --bin svc
    cd tests/browser && npm ci --no-audit --no-fund && node screenshots.mjs && node pictures.mjs

# Make the console's libraries and its editor anew (needs Node 20 or newer); `just console --check` only compares
console *arguments:
    cd host/assets/console/editor && npm ci --no-audit --no-fund && node build.mjs {{arguments}}
