//! `targets/cleaner.rs` for libFuzzer.
#![no_main]

#[path = "../../targets/cleaner.rs"]
mod cleaner;

libfuzzer_sys::fuzz_target!(|data: &[u8]| cleaner::clean_all(data));
