//! Frames, without any I/O: a decoder of what clients send, and the bytes of what the server sends.

use bytes::{BufMut, Bytes, BytesMut};

use super::Close;

/// The longest head of a frame: two bytes, a length of eight, a mask of four.
const HEAD: usize = 14;
/// The longest payload of a control frame.
const CONTROL: usize = 125;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;

/// Complete message or control frame of a client.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A message.
    Text(&'a str),
    /// A ping, which is answered with its payload.
    Ping(&'a [u8]),
    /// A pong.
    Pong,
    /// The client closes; nothing comes after it.
    Close(Option<u16>),
}

/// Decision about the rest of the bytes after an event.
pub type Flow = Result<(), Close>;

/// The client's side of a connection, frame by frame. Between messages it holds no memory.
#[derive(Debug)]
pub struct Decoder {
    /// The most bytes of a message, in however many frames it comes.
    most: usize,
    /// A frame of which more is to come.
    partial: Vec<u8>,
    /// The text of a message of which more frames are to come.
    message: Option<Vec<u8>>,
    /// Whether the client has closed.
    closed: bool,
}

/// The head of a frame.
#[derive(Clone, Copy, Debug)]
struct Head {
    last: bool,
    opcode: u8,
    mask: [u8; 4],
    /// Where the payload begins.
    start: usize,
    /// How long it is.
    length: usize,
}

impl Decoder {
    /// A decoder that takes messages of at most `most` bytes.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            partial: Vec::new(),
            message: None,
            closed: false,
        }
    }

    /// Takes bytes as they arrive, which it unmasks where they lie, and hands every whole message and control frame to `on`.
    ///
    /// # Errors
    /// The reason to close: of a frame that breaks the protocol, or `on`'s own. Nothing may be fed after it.
    pub fn feed(
        &mut self,
        arrived: &mut [u8],
        on: &mut dyn FnMut(Event<'_>) -> Flow,
    ) -> Result<(), Close> {
        if self.partial.is_empty() {
            let used = self.frames(arrived, on)?;
            if let Some(rest) = arrived.get(used..).filter(|rest| !rest.is_empty()) {
                self.partial.extend_from_slice(rest);
            }
            return Ok(());
        }
        let mut bytes = std::mem::take(&mut self.partial);
        bytes.extend_from_slice(arrived);
        let used = self.frames(&mut bytes, on)?;
        if used < bytes.len() {
            bytes.drain(..used);
            self.partial = bytes;
        }
        Ok(())
    }

    /// Whether the client has sent its close frame.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Reads whole frames; returns how many bytes they took.
    fn frames(
        &mut self,
        bytes: &mut [u8],
        on: &mut dyn FnMut(Event<'_>) -> Flow,
    ) -> Result<usize, Close> {
        let mut used = 0;
        while !self.closed {
            let rest = &mut bytes[used..];
            // Refused by its head: what is too large or not allowed is never waited for.
            let Some(head) = self.head(rest)? else {
                return Ok(used);
            };
            let end = head.start + head.length;
            let Some(payload) = rest.get_mut(head.start..end) else {
                return Ok(used);
            };
            unmask(payload, head.mask);
            self.frame(head, payload, on)?;
            used += end;
        }
        // What comes after a close frame is nobody's.
        Ok(bytes.len())
    }

    /// Reads the head of a frame, if enough of it is there.
    fn head(&self, bytes: &[u8]) -> Result<Option<Head>, Close> {
        let &[first, second, ..] = bytes else {
            return Ok(None);
        };
        let (last, opcode) = (first & 0x80 != 0, first & 0x0f);
        let (masked, short) = (second & 0x80 != 0, second & 0x7f);
        // No extension is agreed on, so the reserved bits are zero; a client masks.
        if first & 0x70 != 0 || !masked {
            return Err(Close::PROTOCOL);
        }
        match (opcode, self.message.is_some()) {
            (CONTINUATION, true) | (TEXT, false) => {}
            (BINARY, false) => return Err(Close::BINARY),
            (CLOSE | PING | PONG, _) if last && usize::from(short) <= CONTROL => {}
            _ => return Err(Close::PROTOCOL),
        }
        let (length, at) = match (short, &bytes[2..]) {
            (126, &[a, b, ..]) => (u64::from(u16::from_be_bytes([a, b])), 4),
            (127, &[a, b, c, d, e, f, g, h, ..]) => {
                (u64::from_be_bytes([a, b, c, d, e, f, g, h]), 10)
            }
            (126 | 127, _) => return Ok(None),
            (short, _) => (u64::from(short), 2),
        };
        let before = match opcode {
            CONTINUATION => self.message.as_ref().map_or(0, Vec::len),
            _ => 0,
        };
        let length = usize::try_from(length).map_err(|_| Close::LARGE)?;
        if before.saturating_add(length) > self.most && opcode < CLOSE {
            return Err(Close::LARGE);
        }
        let &[a, b, c, d, ..] = &bytes[at..] else {
            return Ok(None);
        };
        Ok(Some(Head {
            last,
            opcode,
            mask: [a, b, c, d],
            start: at + 4,
            length,
        }))
    }

    /// Takes a frame, unmasked.
    fn frame(&mut self, head: Head, payload: &[u8], on: &mut dyn FnMut(Event<'_>) -> Flow) -> Flow {
        match head.opcode {
            PING => on(Event::Ping(payload)),
            PONG => on(Event::Pong),
            CLOSE => {
                self.closed = true;
                on(Event::Close(close_code(payload)?))
            }
            _ if head.last => match self.message.take() {
                Some(mut message) => {
                    message.extend_from_slice(payload);
                    on(Event::Text(text(&message)?))
                }
                None => on(Event::Text(text(payload)?)),
            },
            _ => {
                let message = self.message.get_or_insert_default();
                message.extend_from_slice(payload);
                Ok(())
            }
        }
    }
}

fn text(payload: &[u8]) -> Result<&str, Close> {
    std::str::from_utf8(payload).map_err(|_| Close::TEXT)
}

fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    for part in payload.chunks_mut(4) {
        for (byte, mask) in part.iter_mut().zip(mask) {
            *byte ^= mask;
        }
    }
}

/// The code of a client's close frame, which must be one that a client may send, with a reason in UTF-8.
fn close_code(payload: &[u8]) -> Result<Option<u16>, Close> {
    let (code, reason) = match payload {
        [] => return Ok(None),
        [a, b, reason @ ..] => (u16::from_be_bytes([*a, *b]), reason),
        [_] => return Err(Close::PROTOCOL),
    };
    text(reason)?;
    match code {
        1000..=1003 | 1007..=1014 | 3000..=4999 => Ok(Some(code)),
        _ => Err(Close::PROTOCOL),
    }
}

/// Appends a frame to `out`, as servers send them: whole, and not masked.
fn append(out: &mut BytesMut, opcode: u8, payload: &[u8]) {
    out.reserve(HEAD + payload.len());
    put_head(out, opcode, payload.len());
    out.put_slice(payload);
}

/// Puts the head of a frame with so long a payload.
fn put_head(out: &mut BytesMut, opcode: u8, length: usize) {
    out.put_u8(0x80 | opcode);
    match length {
        short @ ..=125 => out.put_u8(u8::try_from(short).unwrap_or(0)),
        length => match u16::try_from(length) {
            Ok(length) => {
                out.put_u8(126);
                out.put_u16(length);
            }
            Err(_) => {
                out.put_u8(127);
                out.put_u64(length as u64);
            }
        },
    }
}

/// Appends a message.
pub fn append_text(out: &mut BytesMut, text: &str) {
    append(out, TEXT, text.as_bytes());
}

/// A message.
pub fn text_frame(text: &str) -> Bytes {
    let mut out = BytesMut::new();
    append_text(&mut out, text);
    out.freeze()
}

/// A message whose middle others share, in three parts.
pub fn text_parts(before: &str, shared: &Bytes, behind: &'static str) -> [Bytes; 3] {
    let length = before.len() + shared.len() + behind.len();
    let mut head = BytesMut::with_capacity(HEAD + before.len());
    put_head(&mut head, TEXT, length);
    head.put_slice(before.as_bytes());
    let behind = Bytes::from_static(behind.as_bytes());
    [head.freeze(), shared.clone(), behind]
}

/// A ping without a payload.
pub fn ping() -> Bytes {
    Bytes::from_static(&[0x80 | PING, 0])
}

/// The answer to a ping.
pub fn pong(payload: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    append(&mut out, PONG, payload);
    out.freeze()
}

/// A close frame.
pub fn close(close: Close) -> Bytes {
    let mut payload = BytesMut::with_capacity(CONTROL);
    payload.put_u16(close.code);
    payload.put_slice(close.reason.as_bytes());
    let mut out = BytesMut::new();
    append(&mut out, CLOSE, &payload);
    out.freeze()
}

/// The answer to a client's close frame: its code, if it had one.
pub fn close_answer(code: Option<u16>) -> Bytes {
    let mut out = BytesMut::new();
    let payload = code.map(u16::to_be_bytes);
    append(
        &mut out,
        CLOSE,
        payload.as_ref().map_or(&[], <[u8; 2]>::as_slice),
    );
    out.freeze()
}

#[cfg(test)]
mod tests;
