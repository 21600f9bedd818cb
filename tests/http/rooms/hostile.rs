//! Bytes that no client library sends, at a live server: the right close code, and nothing left behind.

use std::net::SocketAddr;

use serde_json::json;
use svc_tests::{RawWebSocket, SeededRng, TestServer, masked_frame, wait_until};

use super::{join, start_fixture_with};
use crate::project_fixture::ProjectFixture;

/// Opens a connection to a room.
fn open_raw(address: SocketAddr, first: &[u8]) -> RawWebSocket {
    RawWebSocket::open(address, "/room/ws?room=a", first)
}

async fn start_hostile_fixture() -> ProjectFixture {
    start_fixture_with(TestServer::builder().limits(|limits| limits.sockets_per_backend = 100_000))
        .await
}

/// Runs blocking work on a thread of its own.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// That nobody is left but `sockets`, and that the fixture still serves.
async fn wait_until_only(fixture: &ProjectFixture, sockets: u64) {
    let counted = async || (fixture.detail().await["realtime"]["sockets"] == sockets).then_some(());
    wait_until("the sockets to be gone", counted).await;
    let (mut ada, _) = join(fixture, "after").await;
    let (mut bob, _) = join(fixture, "after").await;
    ada.send_envelope("still", json!(1)).await;
    bob.wait_for_envelope("still").await;
}

#[tokio::test]
async fn what_breaks_the_protocol_is_closed_with_its_code() {
    let fixture = start_hostile_fixture().await;
    let address = fixture.server.address();
    let text = |bytes: &[u8]| masked_frame(0x81, bytes);
    for (name, bytes, code) in [
        ("not masked", vec![0x81, 2, b'{', b'}'], 1002),
        ("compressed", masked_frame(0xc1, b"{}"), 1002),
        ("reserved bits", masked_frame(0xb1, b"{}"), 1002),
        ("a reserved opcode", masked_frame(0x83, b"{}"), 1002),
        ("a long ping", masked_frame(0x89, &[b'x'; 126]), 1002),
        ("half a ping", masked_frame(0x09, b"x"), 1002),
        ("a continuation of nothing", masked_frame(0x80, b"x"), 1002),
        (
            "a message in a message",
            [masked_frame(0x01, b"x"), text(b"x")].concat(),
            1002,
        ),
        ("a close of one byte", masked_frame(0x88, b"x"), 1002),
        (
            "a close with a code of nobody's",
            masked_frame(0x88, &1006_u16.to_be_bytes()),
            1002,
        ),
        ("no UTF-8", text(&[b'"', 0xff, b'"']), 1007),
        ("a surrogate", text(&[0xed, 0xa0, 0x80]), 1007),
        (
            "no UTF-8 in a close",
            masked_frame(0x88, &[0x03, 0xe8, 0xff]),
            1007,
        ),
        ("binary", masked_frame(0x82, b"{}"), 1003),
        ("binary in parts", masked_frame(0x02, b"{}"), 1003),
        (
            "a huge length",
            [&[0x81, 0xff][..], &[0x7f; 8], &[0; 4]].concat(),
            1009,
        ),
        (
            "a length of the top bit",
            [&[0x81, 0xff][..], &[0xff; 8], &[0; 4]].concat(),
            1009,
        ),
        (
            "another protocol",
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
            1002,
        ),
    ] {
        for early in [true, false] {
            let bytes = bytes.clone();
            let found = run_blocking(move || {
                let mut raw = open_raw(address, if early { &bytes } else { &[] });
                if !early {
                    raw.write(&bytes);
                }
                raw.close_code()
            });
            assert_eq!(
                found.await,
                Some(code),
                "{name}, with the handshake: {early}"
            );
        }
    }
    wait_until_only(&fixture, 0).await;
}

#[tokio::test]
async fn frames_arrive_however_slowly() {
    let fixture = start_hostile_fixture().await;
    let (mut ada, _) = join(&fixture, "a").await;
    let address = fixture.server.address();
    let raw = run_blocking(move || {
        let mut raw = open_raw(address, &[]);
        for byte in masked_frame(0x81, br#"{"v":1,"type":"slow","data":1}"#) {
            raw.write(&[byte]);
        }
        raw
    });
    let raw = raw.await;
    assert_eq!(ada.wait_for_envelope("slow").await["data"], 1);
    drop(raw);
}

#[tokio::test]
async fn a_client_that_only_closes_its_half_is_closed() {
    let fixture = start_hostile_fixture().await;
    let address = fixture.server.address();
    let rest = run_blocking(move || {
        let mut raw = open_raw(address, &[]);
        raw.close_half();
        raw.close_code()
    });
    assert_eq!(rest.await, None);
    // In the middle of a frame, too.
    let rest = run_blocking(move || {
        let mut raw = open_raw(address, &[0x81, 0xfe, 0x10]);
        raw.close_half();
        raw.close_code()
    });
    assert_eq!(rest.await, None);
    wait_until_only(&fixture, 0).await;
}

#[tokio::test]
async fn noise_ends_every_connection_and_nothing_else() {
    let fixture = start_hostile_fixture().await;
    let (mut ada, _) = join(&fixture, "a").await;
    let address = fixture.server.address();
    let ended = run_blocking(move || {
        let mut numbers = SeededRng::new(7);
        let mut codes = std::collections::BTreeMap::new();
        for _ in 0..300 {
            let mut raw = open_raw(address, &[]);
            let length = numbers.draw() % 200;
            let mut noise: Vec<u8> = (0..length)
                .map(|_| numbers.draw().to_le_bytes()[0])
                .collect();
            if numbers.draw().is_multiple_of(2) {
                // Something that begins well.
                noise = [masked_frame(0x81, br#"{"v":1,"type":"n"}"#), noise].concat();
            }
            raw.write(&noise);
            // No frame follows.
            raw.close_half();
            *codes.entry(raw.close_code()).or_insert(0) += 1;
        }
        codes
    });
    let codes = ended.await;
    let allowed = [None, Some(1002), Some(1003), Some(1007), Some(1009)];
    assert!(codes.keys().all(|code| allowed.contains(code)), "{codes:?}");
    assert!(codes.contains_key(&Some(1002)), "{codes:?}");
    ada.send_envelope("mine", json!(1)).await;
    wait_until_only(&fixture, 1).await;
}

#[tokio::test]
async fn twenty_megabytes_of_one_frame_take_no_memory_and_no_time() {
    let fixture = start_hostile_fixture().await;
    let address = fixture.server.address();
    let code = run_blocking(move || {
        let mut raw = open_raw(address, &[]);
        raw.write(&[&[0x81, 0xff][..], &20_000_000_u64.to_be_bytes(), &[0; 4]].concat());
        for _ in 0..20 {
            raw.write(&vec![b'x'; 1_000_000]);
        }
        raw.close_code()
    });
    // A client that writes on after it was told may be cut off: then there is no code to read.
    assert!(matches!(code.await, Some(1009) | None));
    wait_until_only(&fixture, 0).await;
}
