//! Outbox of a socket: frames that others share, bounded, and written many at once.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use bytes::{Buf, Bytes};

use super::wire::Wire;
use super::{Close, frame};

/// Frames that one write takes.
const WRITE: usize = 64;
/// Bytes that the kernel may hold of what a client has not taken: far less than it would by itself.
const KERNEL: usize = 64 * 1024;

/// The sending half of a socket. Whoever has something for it puts it here, and never waits.
#[derive(Debug)]
pub struct Outbox {
    wire: Wire,
    /// The most frames that wait.
    most: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The first may have been written in part: then it is what is left of it.
    frames: VecDeque<Piece>,
    /// Whether some of the first frame is on its way, so that it must be finished.
    begun: bool,
    /// How many bytes were ever written.
    written: u64,
    /// Whether anything was ever put here.
    used: bool,
    /// Whether the last frame is the last: a close frame.
    closed: bool,
    /// Whether nothing can be written any more.
    broken: bool,
    /// Task that writes what waits.
    writer: Option<Waker>,
}

/// Frames, or a part of one.
#[derive(Debug)]
struct Piece {
    bytes: Bytes,
    /// Whether the next piece goes on with its frame.
    goes_on: bool,
}

/// A frame was not taken, because the socket is closed: before, or just now because too many waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// How many frames were thrown away, this one included; 0 if the socket was closed before.
    pub dropped: usize,
}

impl Outbox {
    pub(super) fn new(wire: Wire, most: usize) -> Self {
        wire.hold_at_most(KERNEL);
        Self {
            wire,
            most,
            waiting: Mutex::default(),
        }
    }

    pub(super) fn wire(&self) -> &Wire {
        &self.wire
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a frame, or several in one piece, written; returns how many pieces wait by then.
    ///
    /// # Errors
    /// [`Full`]: the socket is closed, with 1013 if this was one too many.
    pub fn push(&self, piece: Bytes) -> Result<usize, Full> {
        self.push_parts([piece])
    }

    /// Pushes one frame in several parts, of which nothing else comes in between.
    ///
    /// # Errors
    /// [`Full`], as for [`Outbox::push`].
    pub fn push_parts<const N: usize>(&self, parts: [Bytes; N]) -> Result<usize, Full> {
        let mut waiting = self.lock();
        if waiting.closed || waiting.broken {
            return Err(Full { dropped: 0 });
        }
        if waiting.frames.len() >= self.most {
            // Its own task may only not have had its turn yet: the client is slow if the kernel says so.
            waiting.write(&self.wire);
        }
        waiting.used = true;
        if waiting.frames.len() >= self.most {
            let dropped = waiting.drop_unwritten() + 1;
            waiting.close(frame::close(Close::SLOW));
            return Err(Full { dropped });
        }
        let last = parts.len().saturating_sub(1);
        let pieces = parts.into_iter().enumerate();
        waiting.frames.extend(pieces.map(|(number, bytes)| Piece {
            bytes,
            goes_on: number < last,
        }));
        let length = waiting.frames.len();
        let writer = waiting.writer.take();
        drop(waiting);
        if let Some(writer) = writer {
            writer.wake();
        }
        Ok(length)
    }

    /// Closes the socket behind what waits.
    pub fn close(&self, close: Close) {
        self.close_with(frame::close(close));
    }

    pub(super) fn close_with(&self, last: Bytes) {
        let mut waiting = self.lock();
        if !waiting.closed {
            waiting.close(last);
        }
    }

    /// Closes the socket, and throws away what is not on its way yet.
    pub fn cut(&self, close: Close) {
        let mut waiting = self.lock();
        if !waiting.closed {
            waiting.drop_unwritten();
            waiting.close(frame::close(close));
        }
    }

    /// Gives the client the first word: else a socket begins with the server's.
    pub fn listen(&self) {
        let mut waiting = self.lock();
        waiting.used = true;
        if let Some(writer) = waiting.writer.take() {
            writer.wake();
        }
    }

    /// How many bytes the kernel has ever taken, and whether more wait for it.
    pub fn progress(&self) -> (u64, bool) {
        let waiting = self.lock();
        (waiting.written, waiting.is_some(&self.wire))
    }

    /// Whether nothing is taken any more.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Whether anything was ever put here.
    pub(super) fn is_used(&self) -> bool {
        self.lock().used
    }

    /// Writes as much as the kernel takes.
    ///
    /// # Errors
    /// When the connection is broken.
    pub(super) fn flush(&self) -> io::Result<()> {
        let mut waiting = self.lock();
        waiting.write(&self.wire);
        if waiting.broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }

    /// Whether something waits for the kernel.
    pub(super) fn is_waiting(&self) -> bool {
        self.lock().is_some(&self.wire)
    }

    /// Waits until there is something to write.
    pub(super) async fn filled(&self) {
        std::future::poll_fn(|context| {
            let mut waiting = self.lock();
            if !waiting.frames.is_empty() {
                return Poll::Ready(());
            }
            match &mut waiting.writer {
                Some(writer) => writer.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
            Poll::Pending
        })
        .await;
    }
}

impl Waiting {
    fn close(&mut self, last: Bytes) {
        self.closed = true;
        self.frames.push_back(Piece {
            bytes: last,
            goes_on: false,
        });
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }

    /// Throws away what is not on its way yet; returns how much that was.
    fn drop_unwritten(&mut self) -> usize {
        let before = self.frames.len();
        let mut kept = 0;
        if self.begun {
            let mut frame = self.frames.iter();
            kept = 1 + frame.by_ref().take_while(|piece| piece.goes_on).count();
        }
        self.frames.truncate(kept);
        before - self.frames.len()
    }

    /// Whether something waits for the kernel.
    fn is_some(&self, wire: &Wire) -> bool {
        !self.frames.is_empty() || wire.is_holding()
    }

    fn write(&mut self, wire: &Wire) {
        while !self.frames.is_empty() && !self.broken {
            match self.write_some(wire) {
                Ok(written) => self.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.broken = true,
            }
        }
        match wire.try_flush() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => self.broken = true,
            _ => {}
        }
    }

    fn write_some(&self, wire: &Wire) -> io::Result<usize> {
        if let (Some(only), 1) = (self.frames.front(), self.frames.len()) {
            return wire.try_write(&only.bytes);
        }
        let slices: [IoSlice<'_>; WRITE] =
            std::array::from_fn(|n| IoSlice::new(self.frames.get(n).map_or(&[], |f| &f.bytes)));
        wire.try_write_vectored(&slices[..self.frames.len().min(WRITE)])
    }

    fn advance(&mut self, mut written: usize) {
        self.written += written as u64;
        while let Some(first) = self.frames.front_mut() {
            if written < first.bytes.len() {
                self.begun |= written > 0;
                first.bytes.advance(written);
                return;
            }
            written -= first.bytes.len();
            // What goes on has begun with the piece before it.
            self.begun = first.goes_on;
            self.frames.pop_front();
        }
    }
}
