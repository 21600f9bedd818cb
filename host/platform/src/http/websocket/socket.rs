//! A WebSocket connection: one task reads it, and writes the queued frames when the kernel accepts more.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;

use super::Outbox;
use super::reader::{EventResult, FrameReader, ReaderEvent};
use super::wire::SocketTransport;

/// Size of the read buffer, which is on the stack.
const READ_BYTES: usize = 4 * 1024;
/// Timeout of writing the queued frames of a closed socket.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of the client's own close.
const LINGER_TIMEOUT: Duration = Duration::from_secs(5);

/// Event of a socket for its handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEvent<'a> {
    /// A message.
    Text(&'a str),
    /// A ping, which is answered already.
    Ping,
    /// A pong.
    Pong,
    /// All queued frames are written.
    Drained,
}

/// An upgraded WebSocket that is not running yet.
#[derive(Debug)]
pub struct UpgradedSocket {
    wire: SocketTransport,
    /// Bytes that arrived with the handshake.
    early: Bytes,
    reader: FrameReader,
}

impl UpgradedSocket {
    pub(super) fn new(wire: SocketTransport, early: Bytes, most: usize) -> Self {
        Self {
            wire,
            early,
            reader: FrameReader::new(most),
        }
    }

    /// Splits the socket into the outbox, with a queue of at most `queue` messages, and the task.
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

/// The reading half of a socket, which its task runs.
#[derive(Debug)]
pub struct SocketTask {
    outbox: Arc<Outbox>,
    early: Bytes,
    reader: FrameReader,
    /// Number of written bytes at the last [`SocketEvent::Drained`].
    drained_at: u64,
}

/// Handler of a client's messages.
type SocketEventHandler<'a> = dyn FnMut(SocketEvent<'_>) -> EventResult + Send + 'a;

impl SocketTask {
    /// Reads and writes until either side closes or the connection breaks. The client's messages are read once the server has sent one.
    pub async fn run(&mut self, handler: &mut SocketEventHandler<'_>) {
        if let Err(close) = poll_fn(|context| self.poll(context, handler)).await {
            self.outbox.close(close);
        }
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
        handler: &mut SocketEventHandler<'_>,
    ) -> Poll<EventResult> {
        loop {
            let progress = self.outbox.advance(context.waker());
            if progress.is_over {
                return Poll::Ready(Ok(()));
            }
            if progress.written != self.drained_at && !progress.waits {
                self.drained_at = progress.written;
                handler(SocketEvent::Drained)?;
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
            // Bytes that arrive before the server's first message are kept, at most one buffer.
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

    fn feed(&mut self, arrived: &[u8], handler: &mut SocketEventHandler<'_>) -> EventResult {
        let outbox = &self.outbox;
        self.reader.feed(arrived, &mut |event| match event {
            ReaderEvent::Text(text) => handler(SocketEvent::Text(text)),
            ReaderEvent::Ping => handler(SocketEvent::Ping),
            ReaderEvent::Pong => handler(SocketEvent::Pong),
            ReaderEvent::Answer(frame) => {
                // Fails if the socket is closed.
                let _ = outbox.push(frame);
                Ok(())
            }
            ReaderEvent::Close(frame) => {
                outbox.close_with(frame);
                Ok(())
            }
        })
    }

    /// Closes the connection gracefully: the queue is written, and the client's bytes are read for a while, because a connection that is
    /// closed with unread bytes is reset, and the sent frames are lost.
    pub async fn end(self) {
        if !self.outbox.is_closed() {
            return;
        }
        let written = poll_fn(|context| self.poll_written(context));
        if !matches!(tokio::time::timeout(FLUSH_TIMEOUT, written).await, Ok(true)) {
            return;
        }
        self.outbox.wire().shut_down();
        // After the timeout the connection is dropped.
        let discarded = poll_fn(|context| self.poll_discarded(context));
        let _ = tokio::time::timeout(LINGER_TIMEOUT, discarded).await;
    }

    /// Ready once the queue is written, or the connection is broken; returns whether all is written.
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

    /// Ready once the client has closed its side; its bytes are discarded until then.
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
