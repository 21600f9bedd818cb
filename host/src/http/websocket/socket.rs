//! A socket at work: read and written by one task, which holds no buffer while nothing comes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::Interest;

use super::frame::{self, Decoder, Event, Flow};
use super::wire::Wire;
use super::{Close, Outbox};

/// Bytes that are read at once; on the stack.
const READ: usize = 8 * 1024;
/// How long a client may take nothing of what is left for it, once its socket is closed.
const FLUSH: Duration = Duration::from_secs(30);
/// How long a client may take to close its side.
const LINGER: Duration = Duration::from_secs(5);

/// Message of a client for the owner of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// A message.
    Text(&'a str),
    /// A ping, which is answered already.
    Ping,
    /// A pong.
    Pong,
    /// Nothing, but everything that it was sent is on its way.
    Drained,
}

/// A WebSocket, from the upgrade to its end.
#[derive(Debug)]
pub struct Socket {
    wire: Wire,
    /// Bytes that came with the handshake.
    early: Bytes,
    decoder: Decoder,
}

impl Socket {
    pub(super) fn new(wire: Wire, early: Bytes, most: usize) -> Self {
        Self {
            wire,
            early,
            decoder: Decoder::new(most),
        }
    }

    /// Splits the socket into its two halves: the outbox, of at most `queue` pieces, and the reader.
    pub fn open(self, queue: usize) -> (Arc<Outbox>, Running) {
        let outbox = Arc::new(Outbox::new(self.wire, queue));
        let running = Running {
            outbox: Arc::clone(&outbox),
            early: self.early,
            decoder: self.decoder,
        };
        (outbox, running)
    }
}

/// The half of a socket that its task has.
#[derive(Debug)]
pub struct Running {
    outbox: Arc<Outbox>,
    early: Bytes,
    decoder: Decoder,
}

/// How a read went.
enum Read {
    Some,
    Nothing,
    End,
}

impl Running {
    /// Reads and writes until either side closes or the connection breaks. What the client sends is read once it was
    /// sent something: a socket begins with the server's first word.
    pub async fn run(&mut self, on: &mut (dyn FnMut(Incoming<'_>) -> Flow + Send)) {
        if let Err(close) = self.talk(on).await {
            self.outbox.close(close);
        }
    }

    async fn talk(&mut self, on: &mut (dyn FnMut(Incoming<'_>) -> Flow + Send)) -> Flow {
        let mut told = 0;
        loop {
            if self.outbox.flush().is_err() || self.outbox.is_closed() {
                return Ok(());
            }
            let (written, more) = self.outbox.progress();
            if written != told && !more {
                told = written;
                on(Incoming::Drained)?;
                continue;
            }
            let outbox = Arc::clone(&self.outbox);
            if !outbox.is_used() {
                // What has come is kept for later; that nothing comes any more is the end.
                tokio::select! {
                    () = outbox.filled() => {}
                    ready = outbox.wire().ready(Interest::READABLE), if self.early.is_empty() => {
                        if ready.is_err() || self.keep_some() {
                            return Ok(());
                        }
                    }
                }
                continue;
            }
            if !self.early.is_empty() {
                let mut early = std::mem::take(&mut self.early).to_vec();
                self.feed(&mut early, on)?;
                continue;
            }
            let waiting = self.outbox.is_waiting();
            let interest = if waiting {
                Interest::READABLE | Interest::WRITABLE
            } else {
                Interest::READABLE
            };
            tokio::select! {
                ready = outbox.wire().ready(interest) => match ready {
                    Ok(ready) if ready.is_readable() => match self.read(on)? {
                        Read::End => return Ok(()),
                        Read::Some | Read::Nothing => {}
                    },
                    Ok(_) => {}
                    Err(_) => return Ok(()),
                },
                () = outbox.filled(), if !waiting => {}
            }
        }
    }

    /// Reads once, for later; returns whether the client has ended.
    fn keep_some(&mut self) -> bool {
        let mut buffer = [0; READ];
        match self.outbox.wire().try_read(&mut buffer) {
            Ok(length) => {
                self.early = Bytes::copy_from_slice(&buffer[..length]);
                length == 0
            }
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    fn read(&mut self, on: &mut (dyn FnMut(Incoming<'_>) -> Flow + Send)) -> Result<Read, Close> {
        let mut buffer = [0; READ];
        match self.outbox.wire().try_read(&mut buffer) {
            Ok(0) => Ok(Read::End),
            Ok(length) => {
                self.feed(&mut buffer[..length], on)?;
                Ok(Read::Some)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Read::Nothing),
            Err(_) => Ok(Read::End),
        }
    }

    fn feed(
        &mut self,
        arrived: &mut [u8],
        on: &mut (dyn FnMut(Incoming<'_>) -> Flow + Send),
    ) -> Flow {
        let outbox = &self.outbox;
        self.decoder.feed(arrived, &mut |event| match event {
            Event::Text(text) => on(Incoming::Text(text)),
            Event::Pong => on(Incoming::Pong),
            Event::Ping(payload) => {
                // One that is closed answers nothing.
                let _ = outbox.push(frame::pong(payload));
                on(Incoming::Ping)
            }
            Event::Close(code) => {
                outbox.close_with(frame::close_answer(code));
                Ok(())
            }
        })
    }

    /// Ends a socket in good order: what waits is written, the client gets to read why, and its bytes are read on for a while,
    /// because a connection that is closed on unread bytes is reset and takes what was sent with it.
    pub async fn end(self) {
        if !self.outbox.is_closed() {
            return;
        }
        let written = async {
            while self.outbox.flush().is_ok() && self.outbox.is_waiting() {
                if self.outbox.wire().ready(Interest::WRITABLE).await.is_err() {
                    return false;
                }
            }
            !self.outbox.is_waiting()
        };
        if !matches!(tokio::time::timeout(FLUSH, written).await, Ok(true)) {
            return;
        }
        self.outbox.wire().end();
        // Whoever has not closed by then is cut off.
        let _ = tokio::time::timeout(LINGER, self.discard()).await;
    }

    async fn discard(&self) {
        loop {
            if self.outbox.wire().ready(Interest::READABLE).await.is_err() || self.discard_some() {
                return;
            }
        }
    }

    /// Reads and forgets; returns whether that was the end.
    fn discard_some(&self) -> bool {
        let mut buffer = [0; READ];
        match self.outbox.wire().try_read(&mut buffer) {
            Ok(length) => length == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }
}
