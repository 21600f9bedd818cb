//! The reader of WebSocket frames: the same events and the same end however the bytes are cut, and nothing past its bounds.

use svc::http::websocket::{FrameReader, ReaderEvent};

/// The most bytes of a message.
const LARGEST_MESSAGE: usize = 300;
/// The longest frame that answers a ping.
const ANSWER: usize = 2 + 125;

/// Reads bytes whole and in pieces; the first of them says how large the pieces are.
pub(crate) fn decode(data: &[u8]) {
    let Some((first, bytes)) = data.split_first() else {
        return;
    };
    let whole = read(bytes, bytes.len().max(1));
    assert_eq!(whole, read(bytes, 1 + usize::from(first % 64)));
    assert_eq!(whole, read(bytes, 1));
}

/// Returns what bytes come to: events as texts, and the code of a refusal.
fn read(bytes: &[u8], step: usize) -> (Vec<String>, Option<u16>) {
    let mut reader = FrameReader::new(LARGEST_MESSAGE);
    let mut seen = Vec::new();
    for piece in bytes.chunks(step) {
        let was_closed = reader.is_closed();
        let fed = reader.feed(piece, &mut |event| {
            assert!(!was_closed, "something comes behind a close frame");
            seen.push(match event {
                ReaderEvent::Text(text) => {
                    assert!(
                        text.len() <= LARGEST_MESSAGE,
                        "{} bytes of text",
                        text.len()
                    );
                    format!("text {text}")
                }
                ReaderEvent::Ping => "ping".to_owned(),
                ReaderEvent::Answer(frame) => {
                    assert!(frame.len() <= ANSWER, "an answer of {}", frame.len());
                    format!("answer {frame:?}")
                }
                ReaderEvent::Pong => "pong".to_owned(),
                ReaderEvent::Close(frame) => {
                    let code = frame.get(2..4).map(|code| [code[0], code[1]]);
                    let code = code.map(u16::from_be_bytes);
                    assert!(code.is_none_or(|code| (1000..5000).contains(&code)));
                    format!("close {code:?}")
                }
            });
            Ok(())
        });
        if let Err(close) = fed {
            assert!([1002, 1003, 1007, 1009].contains(&close.code), "{close:?}");
            return (seen, Some(close.code));
        }
    }
    (seen, None)
}
