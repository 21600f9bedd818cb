//! The server's own codec beside tungstenite's: the same bytes, the same messages, the same refusals.

use std::io::{self, Cursor, Read, Write};

use svc::http::websocket::frame::{Decoder, Event};
use svc_tests::Numbers;
use tokio_tungstenite::tungstenite::error::{CapacityError, Error};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, WebSocket};

const MOST: usize = 64;

/// Outcome of decoding some bytes: the texts, and whether they were refused.
type Outcome = (Vec<String>, Option<&'static str>);

/// A client that has sent these bytes and no more.
struct Sent(Cursor<Vec<u8>>);

impl Read for Sent {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            read => Ok(read),
        }
    }
}

impl Write for Sent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn theirs(bytes: &[u8]) -> Outcome {
    let config = WebSocketConfig::default()
        .max_message_size(Some(MOST))
        .max_frame_size(Some(MOST));
    let sent = Sent(Cursor::new(bytes.to_vec()));
    let mut socket = WebSocket::from_raw_socket(sent, Role::Server, Some(config));
    let mut texts = Vec::new();
    loop {
        match socket.read() {
            Ok(Message::Text(text)) => texts.push(text.to_string()),
            Ok(Message::Binary(_)) => return (texts, Some("binary")),
            Ok(Message::Close(_)) => return (texts, None),
            Ok(_) => {}
            Err(Error::Io(_) | Error::ConnectionClosed) => return (texts, None),
            Err(Error::Capacity(CapacityError::MessageTooLong { .. })) => {
                return (texts, Some("large"));
            }
            Err(Error::Utf8(_)) => return (texts, Some("text")),
            Err(_) => return (texts, Some("protocol")),
        }
    }
}

fn ours(bytes: &[u8], step: usize) -> Outcome {
    let mut decoder = Decoder::new(MOST);
    let mut texts = Vec::new();
    for piece in bytes.chunks(step) {
        let fed = decoder.feed(&mut piece.to_vec(), &mut |event| {
            if let Event::Text(text) = event {
                texts.push(text.to_owned());
            }
            Ok(())
        });
        if let Err(close) = fed {
            let why = match close.code {
                1003 => "binary",
                1007 => "text",
                1009 => "large",
                _ => "protocol",
            };
            return (texts, Some(why));
        }
    }
    (texts, None)
}

/// A frame of a client, mostly a good one.
fn some_frame(numbers: &mut Numbers, out: &mut Vec<u8>) {
    let mut one_of = |n: u64| numbers.draw() % n;
    let opcode = [1, 1, 1, 0, 0, 9, 10, 2, 3, 8][usize::try_from(one_of(10)).unwrap()];
    let last = if one_of(3) == 0 { 0 } else { 0x80 };
    let reserved = if one_of(40) == 0 { 0x40 } else { 0 };
    let mask = if one_of(40) == 0 { 0 } else { 0x80 };
    let longest = if one_of(12) == 0 { 150 } else { 40 };
    // What a close frame says is told apart by the decoder's own tests: tungstenite answers a bad one as if it were good.
    // A frame that is too large is so to tungstenite if it is a ping, too.
    let longest = match opcode {
        8 => 1,
        9 | 10 => longest.min(40),
        _ => longest,
    };
    let length = usize::try_from(one_of(longest)).unwrap();
    out.push(last | reserved | opcode);
    match length {
        short @ ..=125 => out.push(mask | u8::try_from(short).unwrap()),
        long => {
            out.push(mask | 126);
            out.extend(u16::try_from(long).unwrap().to_be_bytes());
        }
    }
    let key = [0x5a, 0xa5, 0x0f, 0xf0];
    if mask != 0 {
        out.extend(key);
    }
    let odd = one_of(15) == 0;
    for at in 0..length {
        let byte = if odd && at == length / 2 {
            0xc3
        } else {
            b'a' + u8::try_from(at % 26).unwrap()
        };
        out.push(if mask == 0 { byte } else { byte ^ key[at % 4] });
    }
}

#[test]
fn both_read_the_same() {
    let mut numbers = Numbers::new(2026);
    let mut refused = std::collections::BTreeMap::new();
    for round in 0..20_000 {
        let mut bytes = Vec::new();
        for _ in 0..=numbers.draw() % 6 {
            some_frame(&mut numbers, &mut bytes);
        }
        let (theirs, whole) = (theirs(&bytes), ours(&bytes, bytes.len()));
        let step = usize::try_from(1 + numbers.draw() % 9).unwrap();
        assert_eq!(whole, ours(&bytes, step), "round {round}: {bytes:02x?}");
        assert_eq!(whole.0, theirs.0, "round {round}: {bytes:02x?}");
        // Binary is refused by its first frame, for which theirs waits for the last.
        let early = whole.1 == Some("binary") && theirs.1.is_none();
        // What is no UTF-8 they refuse in the middle of a message, ours at its end.
        let late = theirs.1 == Some("text") && whole.1.is_none();
        assert_eq!(
            whole.1.is_some() || late,
            early || theirs.1.is_some(),
            "round {round}: {whole:?} {theirs:?} {bytes:02x?}"
        );
        *refused.entry(whole.1).or_insert(0) += 1;
    }
    // The mixture has some of everything.
    for why in [
        None,
        Some("binary"),
        Some("text"),
        Some("large"),
        Some("protocol"),
    ] {
        assert!(
            refused.get(&why).is_some_and(|count| *count > 100),
            "{refused:?}"
        );
    }
}
