//! Protocols of relays: envelopes in texts, or the protocol of NATS in binary messages.

use std::ops::Range;

/// Bytes of a message, as a page would send it.
const LENGTH: usize = 200;
/// Mark before the digits of a message's time.
const MARK: &[u8] = b"\"data\":\"t";

/// Protocol of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayProtocol {
    /// Each text is a message; the address names the room.
    Envelopes,
    /// The protocol of NATS, in binary messages with arbitrary boundaries; a room is a subject.
    Nats,
}

/// Event that a client receives from a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayEvent {
    /// A message; contains its time of sending in nanoseconds of the run, if it has one.
    Message(Option<u64>),
    Ping,
    Closed,
}

impl RelayProtocol {
    /// First frame of a client that joins a room, where its address does not name the room.
    pub(crate) fn join_frame(self, room: usize) -> Option<Vec<u8>> {
        let lines = format!(
            "CONNECT {{\"verbose\":false,\"pedantic\":false,\"echo\":false,\"protocol\":1}}\r\nSUB r{room} 1\r\n"
        );
        (self == Self::Nats).then(|| frame(0x82, lines.as_bytes()))
    }

    /// A message to a room that carries its time.
    pub(crate) fn message_frame(self, room: usize, time: u64) -> Vec<u8> {
        let text = format!(r#"{{"v":1,"type":"move","data":"t{time} "#);
        let text = format!("{text:0<filled$}\"}}", filled = LENGTH - 2);
        match self {
            Self::Envelopes => frame(0x81, text.as_bytes()),
            Self::Nats => {
                let lines = format!("PUB r{room} {}\r\n{text}\r\n", text.len());
                frame(0x82, lines.as_bytes())
            }
        }
    }

    /// The answer to a ping.
    pub(crate) fn pong_frame(self) -> Vec<u8> {
        match self {
            Self::Envelopes => frame(0x8a, b""),
            Self::Nats => frame(0x82, b"PONG\r\n"),
        }
    }
}

/// A client's frame; a mask of zeros is a mask.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match u16::try_from(payload.len()) {
        Ok(short @ ..=125) => frame.push(0x80 | short.to_le_bytes()[0]),
        Ok(long) => {
            frame.push(0xfe);
            frame.extend(long.to_be_bytes());
        }
        Err(_) => frame.clear(),
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// Frames of a server, as they come.
#[derive(Debug, Default)]
pub(crate) struct Frames(Vec<u8>);

impl Frames {
    /// Parses received bytes; `on` gets the opcode and the payload of each complete frame.
    pub(crate) fn take(&mut self, bytes: &[u8], mut on: impl FnMut(u8, &[u8])) {
        self.0.extend_from_slice(bytes);
        let mut at = 0;
        while let Some((opcode, payload)) = head(&self.0[at..]) {
            let end = at + payload.end;
            on(opcode, &self.0[at + payload.start..end]);
            at = end;
        }
        self.0.drain(..at);
    }
}

/// Returns the opcode of a complete frame, and the range of its payload.
fn head(bytes: &[u8]) -> Option<(u8, Range<usize>)> {
    let (start, length) = match *bytes.get(1)? {
        126 => (4, number(bytes.get(2..4)?)),
        127 => (10, number(bytes.get(2..10)?)),
        short => (2, usize::from(short)),
    };
    let end = start + length;
    (bytes.len() >= end).then_some((bytes[0] & 0x0f, start..end))
}

fn number(bytes: &[u8]) -> usize {
    let next = |number: usize, byte: &u8| number << 8 | usize::from(*byte);
    bytes.iter().fold(0, next)
}

/// Listener to the frames of a server.
#[derive(Debug)]
pub(crate) struct RelayReader {
    protocol: RelayProtocol,
    /// Whether to read the times of messages, which costs the client processor time.
    reads_times: bool,
    frames: Frames,
    /// Incomplete lines.
    lines: Vec<u8>,
}

impl RelayReader {
    pub(crate) fn new(protocol: RelayProtocol, reads_times: bool) -> Self {
        Self {
            protocol,
            reads_times,
            frames: Frames::default(),
            lines: Vec::new(),
        }
    }

    /// Parses received bytes; `on` gets each event.
    pub(crate) fn take(&mut self, bytes: &[u8], mut on: impl FnMut(RelayEvent)) {
        let (protocol, lines) = (self.protocol, &mut self.lines);
        let reads_times = self.reads_times;
        self.frames.take(bytes, |opcode, payload| match opcode {
            8 => on(RelayEvent::Closed),
            9 => on(RelayEvent::Ping),
            // Platform events are not messages.
            1 if !payload.starts_with(br#"{"v":1,"type":"svc:"#) => {
                let time = reads_times.then(|| time_of(payload)).flatten();
                on(RelayEvent::Message(time));
            }
            0 | 2 if protocol == RelayProtocol::Nats => {
                lines.extend_from_slice(payload);
                let mut at = 0;
                while let Some((length, heard)) = parse_line(&lines[at..]) {
                    at += length;
                    if let Some(heard) = heard {
                        on(heard);
                    }
                }
                lines.drain(..at);
            }
            _ => {}
        });
    }
}

/// Parses the first line with its payload; returns their length and the event, or `None` if they are incomplete.
fn parse_line(bytes: &[u8]) -> Option<(usize, Option<RelayEvent>)> {
    let end = bytes.iter().position(|byte| *byte == b'\n')? + 1;
    let line = &bytes[..end - 1].trim_ascii_end();
    if line.starts_with(b"MSG ") {
        let digits = line.rsplit(|byte| *byte == b' ').next()?;
        let length = digits.iter().fold(0, |length, digit| {
            length * 10 + usize::from(digit.wrapping_sub(b'0'))
        });
        let message = bytes.get(end..end + length)?;
        bytes.get(end + length + 1)?;
        let heard = RelayEvent::Message(time_of(message));
        return Some((end + length + 2, Some(heard)));
    }
    let heard = match *line {
        b"PING" => Some(RelayEvent::Ping),
        refusal if refusal.starts_with(b"-ERR") => Some(RelayEvent::Closed),
        _ => None,
    };
    Some((end, heard))
}

/// The time that a message carries.
fn time_of(payload: &[u8]) -> Option<u64> {
    let at = payload.windows(MARK.len()).position(|part| part == MARK)?;
    let digits = payload[at + MARK.len()..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |time, digit| time * 10 + u64::from(digit - b'0')))
}
