//! Frames thrown at a server: whatever a client may get wrong, in any place and cut anywhere, each with the code that it is
//! closed with.

use std::net::SocketAddr;
use std::thread;

use crate::raw_websocket::{RawWebSocket, masked_frame};
use crate::seeded_rng::SeededRng;

/// End of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpectedEnd {
    /// A close frame with this code, 1005 if it is to have none.
    Code(u16),
    /// Nothing: the client has closed its half, and said no more.
    Silence,
    /// Any of these: what noise happens to be.
    Any,
    /// The client is gone without a word.
    Gone,
}

/// How many connections throw at once.
const CONCURRENT_CONNECTIONS: usize = 8;
/// Bytes that are no UTF-8: one that is in no character, one that is longer than it must be, a surrogate, one beyond the last, and
/// one that is cut off.
const NOT_UTF8: [&[u8]; 5] = [
    &[0xff],
    &[0xc0, 0xaf],
    &[0xed, 0xa0, 0x80],
    &[0xf4, 0x90, 0x80, 0x80],
    &[0xe2, 0x82],
];

/// Throws frames over so many connections, some at a time; `paths` are where, in turns.
///
/// # Panics
/// When a connection ends otherwise than it must.
pub fn send_random_frames(address: SocketAddr, paths: &[&str], connections: usize, seed: u64) {
    thread::scope(|scope| {
        for part in 0..CONCURRENT_CONNECTIONS {
            scope.spawn(move || {
                let mut rng = SeededRng::new(seed * 1_000 + part as u64 + 1);
                for number in (part..connections).step_by(CONCURRENT_CONNECTIONS) {
                    send_on_one_connection(address, paths[number % paths.len()], &mut rng);
                }
            });
        }
    });
}

fn send_on_one_connection(address: SocketAddr, path: &str, rng: &mut SeededRng) {
    let mut bytes = Vec::new();
    for _ in 0..rng.draw() % 5 {
        push_valid_message(rng, &mut bytes);
    }
    let before = bytes.len();
    let (what, end) = push_fatal_frame(rng, &mut bytes);
    let early = match rng.draw() % 3 {
        0 => bytes.len(),
        1 => usize::try_from(rng.draw()).unwrap() % (bytes.len() + 1),
        _ => 0,
    };
    let mut raw = RawWebSocket::open(address, path, &bytes[..early]);
    let step = 1 + usize::try_from(rng.draw()).unwrap() % 3_000;
    for piece in bytes[early..].chunks(step) {
        raw.write(piece);
    }
    if end == ExpectedEnd::Gone {
        return;
    }
    if matches!(end, ExpectedEnd::Silence | ExpectedEnd::Any) {
        raw.close_half();
    }
    let code = raw.close_code();
    let is_right = match end {
        ExpectedEnd::Code(expected) => code == Some(expected),
        ExpectedEnd::Silence => code.is_none(),
        ExpectedEnd::Any | ExpectedEnd::Gone => true,
    };
    assert!(
        is_right,
        "{what} at {path} ended with {code:?}, not {end:?}: {:02x?}",
        &bytes[before..bytes.len().min(before + 40)]
    );
}

/// A message that a server takes or refuses by itself, in one frame or in several, with pings in between.
fn push_valid_message(rng: &mut SeededRng, out: &mut Vec<u8>) {
    let text = match rng.draw() % 4 {
        0 => r#"{"v":1,"type":"say","data":{"a":[1,"ä"]}}"#.to_owned(),
        1 => format!(
            r#"{{"v":1,"type":"subscribe","id":"s{}","action":"total"}}"#,
            rng.draw() % 9
        ),
        2 => r#"{"v":1,"type":"say","data":"#.to_owned(),
        _ => "x".repeat(usize::try_from(rng.draw()).unwrap() % 2_000),
    };
    let parts = 1 + usize::try_from(rng.draw()).unwrap() % 3;
    let size = (text.len() / parts).max(1);
    let pieces: Vec<_> = text.as_bytes().chunks(size).collect();
    if pieces.is_empty() {
        out.extend(masked_frame(0x81, b""));
        return;
    }
    for (number, piece) in pieces.iter().enumerate() {
        let opcode = u8::from(number == 0);
        let last = if number + 1 == pieces.len() { 0x80 } else { 0 };
        out.extend(masked_frame(last | opcode, piece));
        if number == 0 && rng.draw().is_multiple_of(2) {
            out.extend(masked_frame(0x8a, b"nobody asked"));
            out.extend(masked_frame(0x89, b"are you there"));
        }
    }
}

/// Something that ends the connection; answers what, and with which end.
fn push_fatal_frame(rng: &mut SeededRng, out: &mut Vec<u8>) -> (&'static str, ExpectedEnd) {
    let any = usize::try_from(rng.draw()).unwrap();
    let byte = rng.draw().to_le_bytes()[0];
    let text = br#"{"v":1,"type":"n"}"#;
    let (what, bytes, end) = match rng.draw() % 18 {
        0 => ("no mask", [&[0x81, 18], &text[..]].concat(), 1002),
        1 => ("compressed", masked_frame(0xc1, text), 1002),
        2 => (
            "reserved bits",
            masked_frame([0x91, 0xa1, 0xb1, 0xd1, 0xe1, 0xf1][any % 6], text),
            1002,
        ),
        3 => (
            "a reserved opcode",
            masked_frame(0x80 | [3, 4, 5, 6, 7, 11, 12, 13, 14, 15][any % 10], text),
            1002,
        ),
        4 => (
            "a long control frame",
            masked_frame([0x88, 0x89, 0x8a][any % 3], &vec![b'x'; 126 + any % 1_000]),
            1002,
        ),
        5 => (
            "half a control frame",
            masked_frame([0x08, 0x09, 0x0a][any % 3], b"x"),
            1002,
        ),
        6 => (
            "a continuation of nothing",
            masked_frame([0x00, 0x80][any % 2], b"x"),
            1002,
        ),
        7 => (
            "a message in a message",
            [
                masked_frame(0x01, b"x"),
                masked_frame([0x01, 0x81, 0x82][any % 3], b"x"),
            ]
            .concat(),
            1002,
        ),
        8 => return push_close_frame(rng, out),
        9 => ("no UTF-8", invalid_utf8_text(any, byte), 1007),
        10 => ("binary", masked_frame([0x82, 0x02][any % 2], text), 1003),
        11 => ("a large frame", oversized_frame(any), 1009),
        12 => (
            "a large message in parts",
            [
                masked_frame(0x01, &[b'x'; 9_000]),
                masked_frame(0x00, &vec![b'x'; 7_385 + any % 9_000]),
            ]
            .concat(),
            1009,
        ),
        13 | 14 => {
            let frame = masked_frame(0x81, text);
            out.extend_from_slice(&frame[..any % frame.len()]);
            return ("half a connection", ExpectedEnd::Silence);
        }
        15 => {
            let frame = masked_frame(0x81, text);
            out.extend_from_slice(&frame[..any % frame.len()]);
            return ("nobody", ExpectedEnd::Gone);
        }
        _ => {
            out.extend((0..any % 300).map(|_| rng.draw().to_le_bytes()[0]));
            return ("noise", ExpectedEnd::Any);
        }
    };
    out.extend(bytes);
    // What comes behind it is nobody's.
    out.extend((0..any % 50).map(|_| rng.draw().to_le_bytes()[0]));
    (what, ExpectedEnd::Code(end))
}

/// A close frame, good or bad.
fn push_close_frame(rng: &mut SeededRng, out: &mut Vec<u8>) -> (&'static str, ExpectedEnd) {
    let any = u16::from_le_bytes([0, 1].map(|_| rng.draw().to_le_bytes()[0]));
    let good = [
        1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 4999,
    ];
    let bad = [
        0, 999, 1004, 1005, 1006, 1015, 1016, 2000, 2999, 5000, 65_535,
    ];
    let place = usize::from(any);
    let (payload, end): (Vec<u8>, u16) = match rng.draw() % 5 {
        0 => (Vec::new(), 1005),
        1 => (b"x".to_vec(), 1002),
        2 => (u16::to_be_bytes(bad[place % bad.len()]).to_vec(), 1002),
        3 => {
            let broken = NOT_UTF8[place % NOT_UTF8.len()];
            ([&1000_u16.to_be_bytes(), broken].concat(), 1007)
        }
        _ => {
            let code: u16 = good[place % good.len()];
            ([&code.to_be_bytes(), "enough ä".as_bytes()].concat(), code)
        }
    };
    out.extend(masked_frame(0x88, &payload));
    ("a close frame", ExpectedEnd::Code(end))
}

/// A text that is no UTF-8, in one frame or two.
fn invalid_utf8_text(any: usize, byte: u8) -> Vec<u8> {
    let broken = NOT_UTF8[any % NOT_UTF8.len()];
    let text = [b"\"abc", broken].concat();
    if byte.is_multiple_of(2) {
        return masked_frame(0x81, &text);
    }
    let (one, other) = text.split_at(usize::from(byte) % text.len());
    [masked_frame(0x01, one), masked_frame(0x80, other)].concat()
}

/// The head of a frame that is larger than one may be, and some of it.
fn oversized_frame(any: usize) -> Vec<u8> {
    let length = 16_385 + any % 49_000;
    let head = match any % 4 {
        0 => [&[0xfe][..], &u16::try_from(length).unwrap().to_be_bytes()].concat(),
        1 => [&[0xff][..], &(length as u64).to_be_bytes()].concat(),
        2 => [&[0xff][..], &u64::MAX.to_be_bytes()].concat(),
        _ => [&[0xff][..], &(1_u64 << (20 + any % 43)).to_be_bytes()].concat(),
    };
    [&[0x81][..], &head, &[1, 2, 3, 4], &vec![b'x'; any % 20_000]].concat()
}
