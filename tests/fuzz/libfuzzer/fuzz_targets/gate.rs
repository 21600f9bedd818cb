//! `targets/gate.rs` for libFuzzer.
#![no_main]

#[path = "../../targets/gate.rs"]
mod gate;

libfuzzer_sys::fuzz_target!(|data: &[u8]| gate::judge(data));
