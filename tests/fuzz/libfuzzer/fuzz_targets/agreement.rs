//! `targets/agreement.rs` for libFuzzer.
#![no_main]

#[path = "../../targets/agreement.rs"]
mod agreement;
#[allow(dead_code, reason = "it is asked for its words alone")]
#[path = "../../targets/gate.rs"]
mod gate;

libfuzzer_sys::fuzz_target!(|data: &[u8]| agreement::compare(data));
