//! A WebSocket on which anything may be written: bytes that no client library sends.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use crate::wait::DEADLINE;

/// A connection whose handshake is done.
#[derive(Debug)]
pub struct RawWebSocket {
    stream: TcpStream,
    /// Bytes that have come, and that nobody has asked for yet.
    received: Vec<u8>,
}

impl RawWebSocket {
    /// Opens it, with `first` in the same segment as the handshake.
    ///
    /// # Panics
    /// When the server refuses it.
    pub fn open(address: SocketAddr, path: &str, first: &[u8]) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream
            .write_all(&[request.as_bytes(), first].concat())
            .unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 101"), "{head}");
        assert!(
            head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="),
            "{head}"
        );
        assert!(!head.contains("sec-websocket-extensions"), "{head}");
        Self {
            stream,
            received: Vec::new(),
        }
    }

    /// Writes bytes, as far as the server takes them.
    pub fn write(&mut self, bytes: &[u8]) {
        // A server that closes in the middle of it is right to.
        let _ = self.stream.write_all(bytes);
    }

    /// Closes the client's half.
    pub fn close_half(&self) {
        // A server that has closed already needs no half of it.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The code of the close frame, behind everything else that comes: 1005 for one without, and `None` if the connection
    /// ends without a frame.
    ///
    /// # Panics
    /// When nothing comes.
    pub fn close_code(&mut self) -> Option<u16> {
        loop {
            let (opcode, payload) = self.next_frame()?;
            if opcode == 8 {
                let code = payload.first_chunk().copied();
                return Some(code.map_or(1005, u16::from_be_bytes));
            }
        }
    }

    /// The next text.
    ///
    /// # Panics
    /// When none comes.
    pub fn next_text(&mut self) -> String {
        loop {
            let (opcode, payload) = self.next_frame().expect("a text");
            if opcode == 1 {
                return String::from_utf8(payload).unwrap();
            }
        }
    }

    /// The next frame, its opcode and its payload; `None` at the end.
    fn next_frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut buffer = [0; 4096];
        loop {
            if let Some((opcode, payload, used)) = frame(&self.received) {
                self.received.drain(..used);
                return Some((opcode, payload));
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("nothing came"),
                Err(_) => return None,
            }
        }
    }
}

/// The first frame of a server: its opcode, its payload, and how long it is.
fn frame(bytes: &[u8]) -> Option<(u8, Vec<u8>, usize)> {
    let (start, length) = match *bytes.get(1)? {
        126 => (
            4,
            usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?])),
        ),
        short @ ..=125 => (2, usize::from(short)),
        other => panic!("a length of {other}"),
    };
    let payload = bytes.get(start..start + length)?;
    Some((bytes[0] & 0x0f, payload.to_vec(), start + length))
}

/// A client's frame of at most 65,535 bytes.
///
/// # Panics
/// When it is longer.
pub fn masked_frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match u16::try_from(payload.len()).unwrap() {
        short @ ..=125 => frame.push(0x80 | short.to_le_bytes()[0]),
        long => frame.extend([&[0xfe][..], &long.to_be_bytes()].concat()),
    }
    let mask = [9, 8, 7, 6];
    frame.extend(mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(b, m)| b ^ m));
    frame
}
