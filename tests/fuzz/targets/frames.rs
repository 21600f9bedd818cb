//! The decoder of WebSocket frames: the same events and the same end however the bytes are cut, and nothing past its bounds.

use super::websocket::frame::{Decoder, Event, text_frame};

/// The most bytes of a message.
const MOST: usize = 300;
/// The longest payload of a ping.
const PING: usize = 125;

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
    let mut decoder = Decoder::new(MOST);
    let mut seen = Vec::new();
    for piece in bytes.chunks(step) {
        let was_closed = decoder.is_closed();
        let fed = decoder.feed(&mut piece.to_vec(), &mut |event| {
            assert!(!was_closed, "something comes behind a close frame");
            seen.push(match event {
                Event::Text(text) => {
                    assert!(text.len() <= MOST, "{} bytes of text", text.len());
                    assert!(text_frame(text).ends_with(text.as_bytes()));
                    format!("text {text}")
                }
                Event::Ping(payload) => {
                    assert!(payload.len() <= PING, "a ping of {}", payload.len());
                    format!("ping {payload:?}")
                }
                Event::Pong => "pong".to_owned(),
                Event::Close(code) => {
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
