//! `targets/render.rs` for libFuzzer.
#![no_main]

#[path = "../../targets/page.rs"]
mod page;
#[path = "../../targets/render.rs"]
mod render;

libfuzzer_sys::fuzz_target!(|data: &[u8]| render::render_all(data));
