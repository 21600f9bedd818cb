//! Tests that take minutes: `cargo test -p svc-tests --test slow`.
