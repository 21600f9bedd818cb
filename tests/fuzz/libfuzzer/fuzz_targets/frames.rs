//! `targets/frames.rs` for libFuzzer, with the decoder alone of all the host.
#![no_main]

#[allow(dead_code, reason = "the decoder knows some of the reasons")]
#[path = "../../../../host/src/http/websocket/close.rs"]
mod close;
#[allow(dead_code, reason = "servers send more frames than are looked at here")]
#[path = "../../../../host/src/http/websocket/frame/mod.rs"]
mod frame;
#[path = "../../targets/frames.rs"]
mod frames;

use close::Close;

mod websocket {
    pub(crate) use super::frame;
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| frames::decode(data));
