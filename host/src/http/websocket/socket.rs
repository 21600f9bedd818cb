//! A socket at work: read by one task, which waits for the client and for the kernel at once.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;

use super::Outbox;
use super::reader::{Event, ReadResult, Reader};
use super::wire::Wire;

/// Bytes that are read at once; on the stack.
const READ_BYTES: usize = 4 * 1024;
/// How long a client may take nothing of what is left for it, once its socket is closed.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may take to close its side.
const LINGER_TIMEOUT: Duration = Duration::from_secs(5);

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
    reader: Reader,
}

impl Socket {
    pub(super) fn new(wire: Wire, early: Bytes, most: usize) -> Self {
        Self {
            wire,
            early,
            reader: Reader::new(most),
        }
    }

    /// Splits the socket into its two halves: the outbox, of at most `queue` pieces, and the reader.
    pub fn open(self, queue: usize) -> (Arc<Outbox>, SocketTask) {
        let outbox = Arc::new(Outbox::new(self.wire, queue));
        let running = SocketTask {
            outbox: Arc::clone(&outbox),
            early: self.early,
            reader: self.reader,
            drained_at: 0,
        };
        (outbox, running)
    }
}

/// The half of a socket that its task has.
#[derive(Debug)]
pub struct SocketTask {
    outbox: Arc<Outbox>,
    early: Bytes,
    reader: Reader,
    /// Bytes that the kernel had taken when the owner was last told that all were.
    drained_at: u64,
}

/// Receiver of what a client sends.
type MessageHandler<'a> = dyn FnMut(Incoming<'_>) -> ReadResult + Send + 'a;

impl SocketTask {
    /// Reads and writes until either side closes or the connection breaks. What the client sends is read once it was
    /// sent something: a socket begins with the server's first word.
    pub async fn run(&mut self, handler: &mut MessageHandler<'_>) {
        if let Err(close) = poll_fn(|context| self.poll(context, handler)).await {
            self.outbox.close(close);
        }
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
        handler: &mut MessageHandler<'_>,
    ) -> Poll<ReadResult> {
        loop {
            let progress = self.outbox.advance(context.waker());
            if progress.is_over {
                return Poll::Ready(Ok(()));
            }
            if progress.written != self.drained_at && !progress.waits {
                self.drained_at = progress.written;
                handler(Incoming::Drained)?;
                continue;
            }
            if progress.waits {
                match self.outbox.wire().poll_writable(context) {
                    Poll::Ready(Ok(())) => continue,
                    Poll::Ready(Err(_)) => return Poll::Ready(Ok(())),
                    Poll::Pending => {}
                }
            }
            if progress.used && !self.early.is_empty() {
                let early = std::mem::take(&mut self.early);
                self.feed(&early, handler)?;
                continue;
            }
            // What comes before the server's first word is kept for later, once.
            if !self.early.is_empty() {
                return Poll::Pending;
            }
            if ready!(self.outbox.wire().poll_readable(context)).is_err() {
                return Poll::Ready(Ok(()));
            }
            let mut buffer = [0; READ_BYTES];
            match self.outbox.wire().try_read(&mut buffer) {
                Ok(0) => return Poll::Ready(Ok(())),
                Ok(length) if progress.used => self.feed(&buffer[..length], handler)?,
                Ok(length) => self.early = Bytes::copy_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Poll::Ready(Ok(())),
            }
        }
    }

    fn feed(&mut self, arrived: &[u8], handler: &mut MessageHandler<'_>) -> ReadResult {
        let outbox = &self.outbox;
        self.reader.feed(arrived, &mut |event| match event {
            Event::Text(text) => handler(Incoming::Text(text)),
            Event::Ping => handler(Incoming::Ping),
            Event::Pong => handler(Incoming::Pong),
            Event::Answer(frame) => {
                // A closed socket answers nothing.
                let _ = outbox.push(frame);
                Ok(())
            }
            Event::Close(frame) => {
                outbox.close_with(frame);
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
        let written = poll_fn(|context| self.poll_written(context));
        if !matches!(tokio::time::timeout(FLUSH_TIMEOUT, written).await, Ok(true)) {
            return;
        }
        self.outbox.wire().shut_down();
        // A client that has not closed by then is cut off.
        let discarded = poll_fn(|context| self.poll_discarded(context));
        let _ = tokio::time::timeout(LINGER_TIMEOUT, discarded).await;
    }

    /// Ready once everything is written, or nothing can be any more; returns whether it is written.
    fn poll_written(&self, context: &mut Context<'_>) -> Poll<bool> {
        loop {
            let progress = self.outbox.advance(context.waker());
            if self.outbox.is_broken() || !progress.waits {
                return Poll::Ready(!progress.waits);
            }
            if ready!(self.outbox.wire().poll_writable(context)).is_err() {
                return Poll::Ready(false);
            }
        }
    }

    /// Ready once the client has closed its side; what it sends until then is forgotten.
    fn poll_discarded(&self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut buffer = [0; READ_BYTES];
            if ready!(self.outbox.wire().poll_readable(context)).is_err() {
                return Poll::Ready(());
            }
            match self.outbox.wire().try_read(&mut buffer) {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => return Poll::Ready(()),
            }
        }
    }
}
