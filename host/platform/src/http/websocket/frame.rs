//! Encoding of the server's frames: once, into bytes that all receivers share.

use std::io::Cursor;

use bytes::buf::Writer;
use bytes::{BufMut, Bytes, BytesMut};
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::{Data, OpCode};
use tungstenite::protocol::frame::{Frame, FrameHeader};

use super::CloseReason;

/// Longest header of an unmasked frame, in bytes.
const LONGEST_HEADER: usize = 10;

/// Appends a text message.
pub fn append_text(out: &mut BytesMut, text: &str) {
    out.reserve(LONGEST_HEADER + text.len());
    append_text_header(out, text.len());
    out.put_slice(text.as_bytes());
}

/// Encodes a text message.
pub fn text_frame(text: &str) -> Bytes {
    let mut out = BytesMut::new();
    append_text(&mut out, text);
    out.freeze()
}

/// Encodes a text message in three parts, so that the one in the middle is shared and not copied.
pub fn text_frame_parts(before: &str, shared: &Bytes, behind: &'static str) -> [Bytes; 3] {
    let length = before.len() + shared.len() + behind.len();
    let mut head = BytesMut::with_capacity(LONGEST_HEADER + before.len());
    append_text_header(&mut head, length);
    head.put_slice(before.as_bytes());
    let behind = Bytes::from_static(behind.as_bytes());
    [head.freeze(), shared.clone(), behind]
}

/// Encodes a ping without a payload.
pub fn ping_frame() -> Bytes {
    encode_frame(Frame::ping(Bytes::new()))
}

/// Encodes a close frame.
pub fn close_frame(close: CloseReason) -> Bytes {
    encode_frame(Frame::close(Some(CloseFrame {
        code: close.code.into(),
        reason: close.reason.into(),
    })))
}

/// Encodes the answer to a client's close frame, with the same code.
pub(super) fn close_reply_frame(close: Option<CloseFrame>) -> Bytes {
    encode_frame(Frame::close(close))
}

/// Length of the frame that some bytes begin with, its header included.
pub(super) fn length(bytes: &[u8]) -> usize {
    let mut cursor = Cursor::new(bytes);
    let length = match FrameHeader::parse(&mut cursor) {
        Ok(Some((_, payload))) => cursor.position().saturating_add(payload),
        // Only whole frames are queued, so other bytes have no end.
        _ => u64::MAX,
    };
    usize::try_from(length).unwrap_or(usize::MAX)
}

fn append_text_header(out: &mut BytesMut, length: usize) {
    let header = FrameHeader {
        opcode: OpCode::Data(Data::Text),
        ..FrameHeader::default()
    };
    // Writing to memory does not fail.
    let _ = header.format(length as u64, &mut out.writer());
}

fn encode_frame(frame: Frame) -> Bytes {
    let mut out: Writer<BytesMut> = BytesMut::with_capacity(frame.len()).writer();
    // Writing to memory does not fail.
    let _ = frame.format(&mut out);
    out.into_inner().freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_in_the_shortest_form() {
        assert_eq!(&text_frame("hi")[..], [0x81, 2, b'h', b'i']);
        assert_eq!(&text_frame(&"x".repeat(125))[..2], [0x81, 125]);
        assert_eq!(&text_frame(&"x".repeat(126))[..4], [0x81, 126, 0, 126]);
        assert_eq!(
            &text_frame(&"x".repeat(65_535))[..4],
            [0x81, 126, 0xff, 0xff]
        );
        assert_eq!(
            &text_frame(&"x".repeat(65_536))[..10],
            [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]
        );
    }

    #[test]
    fn lengths_are_read_as_they_were_written() {
        for payload in [0, 2, 125, 126, 65_535, 65_536] {
            let one = text_frame(&"x".repeat(payload));
            let two = [&one[..], &ping_frame()[..]].concat();
            assert_eq!(length(&two), one.len(), "{payload}");
        }
        assert_eq!(length(&[0x81]), usize::MAX);
    }

    #[test]
    fn control_frames_have_their_codes() {
        assert_eq!(&ping_frame()[..], [0x89, 0]);
        assert_eq!(&close_reply_frame(None)[..], [0x88, 0]);
        assert_eq!(close_frame(CloseReason::SLOW)[2..4], 1013_u16.to_be_bytes());
    }

    #[test]
    fn reasons_fit_into_a_close_frame() {
        for close in [
            CloseReason::STOPPED,
            CloseReason::ENDED,
            CloseReason::SILENT,
            CloseReason::PROTOCOL,
            CloseReason::BINARY,
            CloseReason::TEXT,
            CloseReason::FLOOD,
            CloseReason::DISABLED,
            CloseReason::SIGNED_OUT,
            CloseReason::LARGE,
            CloseReason::SLOW,
        ] {
            // A control frame has 125 bytes at most, two of which are the code.
            assert!(close.reason.len() <= 123, "{close:?}");
        }
    }
}
