//! Reader of a client's messages: tungstenite's protocol, fed with bytes as they arrive.

use std::io::{self, Read, Write};

use bytes::Bytes;
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};
use tungstenite::{Error, Message};

use super::{CloseReason, frame};

/// Buffer of an idle socket, in bytes. A longer frame has a buffer of its own length.
const IDLE_BUFFER_BYTES: usize = 512;

/// A complete message or control frame of a client.
#[derive(Debug, PartialEq, Eq)]
pub enum ReaderEvent<'a> {
    /// A text message.
    Text(&'a str),
    /// A ping; the event with its answer follows.
    Ping,
    /// A pong.
    Pong,
    /// Encoded answers to pings.
    Answer(Bytes),
    /// The client closes: the encoded answer. No event follows.
    Close(Bytes),
}

/// Result of handling an event: an error closes the socket.
pub type EventResult = Result<(), CloseReason>;

/// Protocol state of a connection, without its I/O.
#[derive(Debug)]
pub struct FrameReader {
    protocol: WebSocketContext,
    headers: FrameHeaderTracker,
    closed: bool,
}

impl FrameReader {
    /// Makes a reader of messages of at most `most` bytes, in any number of frames.
    pub fn new(most: usize) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(IDLE_BUFFER_BYTES)
            .write_buffer_size(0)
            .max_message_size(Some(most))
            .max_frame_size(Some(most));
        Self {
            protocol: WebSocketContext::new(Role::Server, Some(config)),
            headers: FrameHeaderTracker::default(),
            closed: false,
        }
    }

    /// Parses arrived bytes, and passes every complete message and control frame to `on`.
    ///
    /// # Errors
    /// The reason to close, of a violation of the protocol or from `on`. Nothing may be fed after it.
    pub fn feed(
        &mut self,
        arrived: &[u8],
        on: &mut dyn FnMut(ReaderEvent<'_>) -> EventResult,
    ) -> EventResult {
        let (taken, is_binary) = self.headers.find_binary(arrived);
        self.read(&arrived[..taken], on)?;
        match is_binary && !self.closed {
            true => Err(CloseReason::BINARY),
            false => Ok(()),
        }
    }

    fn read(
        &mut self,
        arrived: &[u8],
        on: &mut dyn FnMut(ReaderEvent<'_>) -> EventResult,
    ) -> EventResult {
        let mut arrived = ArrivedBytesStream {
            bytes: arrived,
            answers: Vec::new(),
        };
        while !self.closed {
            let read = self.protocol.read(&mut arrived);
            if !arrived.answers.is_empty() {
                on(ReaderEvent::Answer(
                    std::mem::take(&mut arrived.answers).into(),
                ))?;
            }
            match read {
                Ok(Message::Text(text)) => on(ReaderEvent::Text(&text))?,
                Ok(Message::Binary(_)) => return Err(CloseReason::BINARY),
                Ok(Message::Ping(_)) => on(ReaderEvent::Ping)?,
                Ok(Message::Pong(_)) => on(ReaderEvent::Pong)?,
                Ok(Message::Close(close)) => {
                    self.closed = true;
                    on(ReaderEvent::Close(frame::close_reply_frame(close)))?;
                }
                // Reading yields no raw frames.
                Ok(Message::Frame(_)) => {}
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(());
                }
                Err(error) => return Err(close_reason(&error)),
            }
        }
        Ok(())
    }

    /// Whether the client has sent its close frame.
    pub fn is_closed(&self) -> bool {
        self.closed
    }
}

/// Maps a violation of the protocol to its close code.
fn close_reason(error: &Error) -> CloseReason {
    match error {
        Error::Capacity(_) => CloseReason::LARGE,
        Error::Utf8(_) => CloseReason::TEXT,
        _ => CloseReason::PROTOCOL,
    }
}

/// Tracks the headers of frames (RFC 6455, section 5.2), so that a binary message is refused before its payload arrives.
/// tungstenite checks everything else.
#[derive(Debug, Default)]
struct FrameHeaderTracker {
    header: [u8; 14],
    known: usize,
    payload_left: u64,
    /// Whether a fragmented text message has not ended; another message within it violates the protocol.
    is_within_text: bool,
}

impl FrameHeaderTracker {
    /// Returns the number of bytes before a binary message, and whether there is one.
    fn find_binary(&mut self, arrived: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while at < arrived.len() {
            if self.payload_left > 0 {
                let left = usize::try_from(self.payload_left).unwrap_or(usize::MAX);
                let skipped = left.min(arrived.len() - at);
                self.payload_left -= skipped as u64;
                at += skipped;
                continue;
            }
            self.header[self.known] = arrived[at];
            self.known += 1;
            at += 1;
            if self.known < 2 {
                continue;
            }
            let is_masked = self.header[1] & 0x80 != 0;
            if self.known == 2 {
                let is_last = self.header[0] & 0x80 != 0;
                match self.header[0] & 0x7f {
                    0x00 if is_last => self.is_within_text = false,
                    0x01 => self.is_within_text = !is_last,
                    0x02 if is_masked && !self.is_within_text => return (at - 1, true),
                    _ => {}
                }
            }
            let extended = match self.header[1] & 0x7f {
                126 => 2,
                127 => 8,
                _ => 0,
            };
            if self.known == 2 + extended + if is_masked { 4 } else { 0 } {
                self.payload_left = match extended {
                    0 => u64::from(self.header[1] & 0x7f),
                    _ => self.header[2..2 + extended]
                        .iter()
                        .fold(0, |length, byte| length << 8 | u64::from(*byte)),
                };
                self.known = 0;
            }
        }
        (at, false)
    }
}

/// Stream of the arrived bytes, which collects what tungstenite writes.
struct ArrivedBytesStream<'a> {
    bytes: &'a [u8],
    answers: Vec<u8>,
}

impl Read for ArrivedBytesStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.bytes.read(buffer)
    }
}

impl Write for ArrivedBytesStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.answers.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes a client's frame.
    fn client(first: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [0x37, 0xfa, 0x21, 0x3d];
        let mut frame = vec![first];
        match payload.len() {
            short @ ..=125 => frame.push(0x80 | u8::try_from(short).unwrap()),
            long => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(long).unwrap().to_be_bytes());
            }
        }
        frame.extend(mask);
        let masked = payload.iter().zip(mask.iter().cycle());
        frame.extend(masked.map(|(byte, mask)| byte ^ mask));
        frame
    }

    /// Reads bytes in pieces of `step`; returns what they come to, and the code of a refusal.
    fn read(bytes: &[u8], step: usize) -> (Vec<String>, Option<u16>) {
        let mut reader = FrameReader::new(300);
        let mut seen = Vec::new();
        for piece in bytes.chunks(step) {
            let fed = reader.feed(piece, &mut |event| {
                seen.push(match event {
                    ReaderEvent::Text(text) => text.to_owned(),
                    ReaderEvent::Ping => "ping".to_owned(),
                    ReaderEvent::Pong => "pong".to_owned(),
                    ReaderEvent::Answer(frame) => format!("answer {}", frame[2..].escape_ascii()),
                    ReaderEvent::Close(frame) => format!("close {}", frame[2..].escape_ascii()),
                });
                Ok(())
            });
            if let Err(close) = fed {
                return (seen, Some(close.code));
            }
        }
        (seen, None)
    }

    #[track_caller]
    fn check(bytes: &[u8], seen: &[&str], close: Option<u16>) {
        for step in [1, 2, 3, 7, bytes.len().max(1)] {
            let (found, code) = read(bytes, step);
            assert_eq!(
                (found, code),
                (seen.iter().map(|text| (*text).to_owned()).collect(), close),
                "by {step}"
            );
        }
    }

    #[test]
    fn messages_arrive_however_they_are_cut() {
        let long = "x".repeat(300);
        check(&client(0x81, b"hello"), &["hello"], None);
        check(&client(0x81, b""), &[""], None);
        check(&client(0x81, "häß".as_bytes()), &["häß"], None);
        check(&client(0x81, long.as_bytes()), &[&long], None);
        let parts = [client(0x01, b"he"), client(0x00, b""), client(0x80, b"llo")].concat();
        check(&parts, &["hello"], None);
        // Half of a character in each frame.
        let halves = [client(0x01, &[0xc3]), client(0x80, &[0xa4])].concat();
        check(&halves, &["ä"], None);
        let between = [
            client(0x01, b"a"),
            client(0x89, b"p"),
            client(0x8a, b""),
            client(0x80, b"b"),
        ];
        check(&between.concat(), &["ping", "answer p", "pong", "ab"], None);
        let two = [client(0x81, b"a"), client(0x81, b"b")].concat();
        check(&two, &["a", "b"], None);
    }

    #[test]
    fn each_ping_is_answered() {
        let pings = [client(0x89, b"1"), client(0x89, b""), client(0x89, b"3")];
        let seen = ["ping", "answer 1", "ping", "answer ", "ping", "answer 3"];
        check(&pings.concat(), &seen, None);
    }

    #[test]
    fn a_close_frame_is_the_last() {
        let after = [
            client(0x88, &1000_u16.to_be_bytes()),
            client(0x81, b"late"),
            vec![0xff; 9],
        ];
        check(&after.concat(), &[r"close \x03\xe8"], None);
        check(&client(0x88, b""), &["close "], None);
        check(&client(0x88, b"\x0f\xa0bye"), &[r"close \x0f\xa0bye"], None);
        check(&client(0x88, b"\x03"), &[], Some(1002));
        check(&client(0x88, b"\x03\xe8\xff"), &[], Some(1007));
        // Codes that no client may send are answered with 1002.
        for code in [0_u16, 999, 1004, 1005, 1006, 1015, 2999, 5000] {
            let (seen, refused) = read(&client(0x88, &code.to_be_bytes()), 64);
            assert_eq!(refused, None, "{code}");
            assert!(seen[0].starts_with(r"close \x03\xea"), "{code}: {seen:?}");
        }
    }

    #[test]
    fn what_breaks_the_protocol_is_refused() {
        let long = vec![b'x'; 126];
        for (bytes, code) in [
            // Reserved bits; the first is what compression sets.
            (client(0xc1, b"a"), 1002),
            (client(0xa1, b"a"), 1002),
            (client(0x91, b"a"), 1002),
            // Opcodes that nothing has.
            (client(0x83, b"a"), 1002),
            (client(0x8b, b"a"), 1002),
            // Not masked.
            (vec![0x81, 0x01, b'a'], 1002),
            // Control frames in parts, or too long.
            (client(0x09, b""), 1002),
            (client(0x89, &long), 1002),
            // A continuation of nothing, and a message within a message.
            (client(0x80, b"a"), 1002),
            ([client(0x01, b"a"), client(0x81, b"b")].concat(), 1002),
            ([client(0x01, b"a"), client(0x82, b"b")].concat(), 1002),
            // Binary, whole and in parts.
            (client(0x82, b"a"), 1003),
            ([client(0x02, b"a"), client(0x80, b"b")].concat(), 1003),
            // No UTF-8, whole and in parts.
            (client(0x81, &[0xff]), 1007),
            ([client(0x01, &[0xc3]), client(0x80, b"x")].concat(), 1007),
        ] {
            check(&bytes, &[], Some(code));
        }
    }

    #[test]
    fn a_message_has_its_most_however_it_is_cut() {
        let at_most = [client(0x01, &[b'x'; 200]), client(0x80, &[b'x'; 100])].concat();
        assert_eq!(read(&at_most, 64).1, None);
        let above = [client(0x01, &[b'x'; 200]), client(0x80, &[b'x'; 101])].concat();
        check(&above, &[], Some(1009));
        check(&client(0x81, &[b'x'; 301]), &[], Some(1009));
        // Refused before any of it is there.
        let header = |length: &[u8]| [length, &[0; 4]].concat();
        check(&header(&[0x81, 0xfe, 0x01, 0x2d]), &[], Some(1009));
        check(
            &header(&[&[0x81, 0xff][..], &[0xff; 8]].concat()),
            &[],
            Some(1009),
        );
    }
}
