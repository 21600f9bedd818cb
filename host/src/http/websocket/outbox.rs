//! Outbox of a socket: a bounded queue of frames that others share, written many at once by any thread.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bytes::{Buf, Bytes};

use super::wire::Wire;
use super::{Close, frame};

/// Frames that one write takes.
const WRITE: usize = 64;
/// Bytes that the kernel may hold of what a client has not taken: far less than it would by itself.
const KERNEL: usize = 64 * 1024;

/// Sending half of a socket. Senders put frames here, and never wait.
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
    /// Waker of the socket's task, while that has nothing to do here.
    task: Option<Waker>,
    /// Whether the task waits for the kernel to take more.
    blocked: bool,
}

/// State of an outbox after its task has written what the kernel takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// How many bytes the kernel has ever taken.
    pub(super) written: u64,
    /// Whether more wait for it.
    pub(super) waits: bool,
    /// Whether anything was ever put here.
    pub(super) used: bool,
    /// Whether nothing more is taken: the socket is closed or broken.
    pub(super) is_over: bool,
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

    /// Has the socket's task write a frame, or several in one piece; returns how many pieces wait.
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
        let length = waiting.add(parts, self.most, &self.wire)?;
        let task = waiting.task.take();
        drop(waiting);
        task.into_iter().for_each(Waker::wake);
        Ok(length)
    }

    /// Queues a piece for the next [`Outbox::flush`], and wakes nobody; returns how many pieces wait.
    ///
    /// # Errors
    /// [`Full`], as for [`Outbox::push`].
    pub fn queue(&self, piece: Bytes) -> Result<usize, Full> {
        self.lock().add([piece], self.most, &self.wire)
    }

    /// Writes what the kernel takes. The rest is left to the socket's task, which waits for the kernel.
    pub fn flush(&self) {
        let mut waiting = self.lock();
        if waiting.frames.is_empty() {
            return;
        }
        waiting.write(&self.wire);
        if waiting.broken || !waiting.blocked && waiting.is_some(&self.wire) {
            waiting.wake();
        }
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
        waiting.wake();
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

    /// Writes what the kernel takes, on behalf of the socket's task, which is woken when there is more to do.
    pub(super) fn advance(&self, task: &Waker) -> Progress {
        let mut waiting = self.lock();
        waiting.write(&self.wire);
        match &mut waiting.task {
            Some(known) => known.clone_from(task),
            none => *none = Some(task.clone()),
        }
        waiting.blocked = waiting.is_some(&self.wire);
        Progress {
            written: waiting.written,
            waits: waiting.blocked,
            used: waiting.used,
            is_over: waiting.closed || waiting.broken,
        }
    }

    /// Whether the connection cannot be written to any more.
    pub(super) fn is_broken(&self) -> bool {
        self.lock().broken
    }
}

impl Waiting {
    /// Adds the parts of a frame; returns how many pieces wait.
    fn add<const N: usize>(
        &mut self,
        parts: [Bytes; N],
        most: usize,
        wire: &Wire,
    ) -> Result<usize, Full> {
        if self.closed || self.broken {
            return Err(Full { dropped: 0 });
        }
        if self.frames.len() >= most {
            // Its turn to be written may only not have come yet: the client is slow if the kernel says so.
            self.write(wire);
        }
        self.used = true;
        if self.frames.len() >= most {
            let dropped = self.drop_unwritten() + 1;
            self.close(frame::close(Close::SLOW));
            return Err(Full { dropped });
        }
        let last = parts.len().saturating_sub(1);
        let pieces = parts.into_iter().enumerate();
        self.frames.extend(pieces.map(|(number, bytes)| Piece {
            bytes,
            goes_on: number < last,
        }));
        Ok(self.frames.len())
    }

    /// Wakes the socket's task.
    fn wake(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    fn close(&mut self, last: Bytes) {
        self.closed = true;
        self.frames.push_back(Piece {
            bytes: last,
            goes_on: false,
        });
        self.wake();
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
                Ok(written) => self.consume(written),
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

    /// Removes bytes that the kernel has taken.
    fn consume(&mut self, mut written: usize) {
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
