//! Outbox of a socket: a bounded queue of frames that others share, written many at once by any thread.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bytes::{Buf, Bytes};

use super::wire::Wire;
use super::{Close, frame};

/// Frames that one write takes.
const MAX_SLICES: usize = 64;
/// Bytes that the kernel may hold of what a client has not taken: far less than it would by itself.
const SEND_BUFFER_BYTES: usize = 64 * 1024;

/// Sending half of a socket. Senders put frames here, and never wait.
#[derive(Debug)]
pub struct Outbox {
    wire: Wire,
    /// The most messages that wait for the kernel.
    most: usize,
    waiting: Mutex<OutboxQueue>,
}

#[derive(Debug, Default)]
struct OutboxQueue {
    /// The first may have been written in part: then it is what is left of it.
    frames: VecDeque<QueuedPiece>,
    /// How many messages they are.
    messages: usize,
    /// Whether some of the first frame is on its way, so that it must be finished.
    is_partly_written: bool,
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
pub(super) struct WriteProgress {
    /// How many bytes the kernel has ever taken.
    pub(super) written: u64,
    /// Whether more wait for it.
    pub(super) waits: bool,
    /// Whether anything was ever put here.
    pub(super) used: bool,
    /// Whether nothing more is taken: the socket is closed or broken.
    pub(super) is_over: bool,
}

/// Frames in one piece, or a part of one.
#[derive(Debug)]
struct QueuedPiece {
    bytes: Bytes,
    /// How many messages are left of it, about, where it was written in part.
    messages: usize,
    /// Whether the next piece goes on with its frame.
    continues: bool,
}

/// Outcome of a [`Outbox::flush`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlushResult {
    /// How many messages wait for the kernel.
    pub waiting: usize,
    /// How many were thrown away, because more waited than may: the socket is closed.
    pub dropped: usize,
}

/// A frame was not taken, because the socket is closed: before, or just now because too many waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxClosed {
    /// How many messages were thrown away, this one included; 0 if the socket was closed before.
    pub dropped: usize,
}

impl Outbox {
    pub(super) fn new(wire: Wire, most: usize) -> Self {
        wire.limit_send_buffer(SEND_BUFFER_BYTES);
        Self {
            wire,
            most,
            waiting: Mutex::default(),
        }
    }

    pub(super) fn wire(&self) -> &Wire {
        &self.wire
    }

    fn lock(&self) -> MutexGuard<'_, OutboxQueue> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the socket's task write a message, or several frames in one piece.
    ///
    /// # Errors
    /// [`OutboxClosed`]: the socket is closed, with 1013 if this was one too many.
    pub fn push(&self, piece: Bytes) -> Result<(), OutboxClosed> {
        self.push_parts([piece])
    }

    /// Pushes one frame in several parts, of which nothing else comes in between.
    ///
    /// # Errors
    /// [`OutboxClosed`], as for [`Outbox::push`].
    pub fn push_parts<const N: usize>(&self, parts: [Bytes; N]) -> Result<(), OutboxClosed> {
        let mut waiting = self.lock();
        waiting.check_room(1, self.most, &self.wire)?;
        let last = parts.len().saturating_sub(1);
        for (number, bytes) in parts.into_iter().enumerate() {
            let is_last = number == last;
            waiting.add(bytes, usize::from(is_last), !is_last);
        }
        let task = waiting.task.take();
        drop(waiting);
        task.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Queues messages in one piece for the next [`Outbox::flush`], by which they must fit, and wakes nobody.
    ///
    /// # Errors
    /// [`OutboxClosed`], as for [`Outbox::push`]: of what was queued before, more waits for the kernel than may.
    pub fn queue(&self, piece: Bytes, messages: usize) -> Result<(), OutboxClosed> {
        let mut waiting = self.lock();
        waiting.check_room(0, self.most, &self.wire)?;
        waiting.add(piece, messages, false);
        Ok(())
    }

    /// Writes what the kernel takes. The rest is left to the socket's task, which waits for the kernel, unless it is too much:
    /// then the socket is closed with 1013.
    pub fn flush(&self) -> FlushResult {
        let mut waiting = self.lock();
        if waiting.frames.is_empty() {
            return FlushResult::default();
        }
        waiting.write(&self.wire);
        let dropped = if waiting.messages > self.most && !waiting.closed {
            waiting.close_slow()
        } else {
            0
        };
        if waiting.broken || !waiting.blocked && waiting.has_unwritten(&self.wire) {
            waiting.wake();
        }
        FlushResult {
            waiting: waiting.messages,
            dropped,
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
    pub fn close_now(&self, close: Close) {
        let mut waiting = self.lock();
        if !waiting.closed {
            waiting.drop_unwritten();
            waiting.close(frame::close(close));
        }
    }

    /// Gives the client the first word: else a socket begins with the server's.
    pub fn let_client_begin(&self) {
        let mut waiting = self.lock();
        waiting.used = true;
        waiting.wake();
    }

    /// How many bytes the kernel has ever taken, and whether more wait for it.
    pub fn progress(&self) -> (u64, bool) {
        let waiting = self.lock();
        (waiting.written, waiting.has_unwritten(&self.wire))
    }

    /// Whether nothing is taken any more.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Writes what the kernel takes, on behalf of the socket's task, which is woken when there is more to do.
    pub(super) fn advance(&self, task: &Waker) -> WriteProgress {
        let mut waiting = self.lock();
        waiting.write(&self.wire);
        match &mut waiting.task {
            Some(known) => known.clone_from(task),
            none => *none = Some(task.clone()),
        }
        waiting.blocked = waiting.has_unwritten(&self.wire);
        WriteProgress {
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

impl OutboxQueue {
    /// Sees that so many messages can be added.
    fn check_room(
        &mut self,
        messages: usize,
        most: usize,
        wire: &Wire,
    ) -> Result<(), OutboxClosed> {
        if self.messages + messages > most {
            // Its turn to be written may only not have come yet: the client is slow if the kernel says so.
            self.write(wire);
        }
        if self.closed || self.broken {
            return Err(OutboxClosed { dropped: 0 });
        }
        self.used = true;
        if self.messages + messages > most {
            let dropped = self.close_slow() + messages.max(1);
            return Err(OutboxClosed { dropped });
        }
        Ok(())
    }

    fn add(&mut self, bytes: Bytes, messages: usize, continues: bool) {
        self.messages += messages;
        self.frames.push_back(QueuedPiece {
            bytes,
            messages,
            continues,
        });
    }

    /// Throws away what is not on its way yet, and closes the socket; returns how many messages were thrown away.
    fn close_slow(&mut self) -> usize {
        let dropped = self.drop_unwritten();
        self.close(frame::close(Close::SLOW));
        dropped
    }

    /// Wakes the socket's task.
    fn wake(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    fn close(&mut self, last: Bytes) {
        self.closed = true;
        self.add(last, 0, false);
        self.wake();
    }

    /// Throws away what is not on its way yet; returns how many messages that was.
    fn drop_unwritten(&mut self) -> usize {
        let before = self.messages;
        let mut kept = 0;
        if self.is_partly_written {
            let mut frame = self.frames.iter();
            kept = 1 + frame.by_ref().take_while(|piece| piece.continues).count();
        }
        self.frames.truncate(kept);
        self.messages = self.frames.iter().map(|piece| piece.messages).sum();
        before - self.messages
    }

    /// Whether something waits for the kernel.
    fn has_unwritten(&self, wire: &Wire) -> bool {
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
        let slices: [IoSlice<'_>; MAX_SLICES] =
            std::array::from_fn(|n| IoSlice::new(self.frames.get(n).map_or(&[], |f| &f.bytes)));
        wire.try_write_vectored(&slices[..self.frames.len().min(MAX_SLICES)])
    }

    /// Removes bytes that the kernel has taken.
    fn consume(&mut self, mut written: usize) {
        self.written += written as u64;
        while let Some(first) = self.frames.front_mut() {
            let length = first.bytes.len();
            if written < length {
                self.is_partly_written |= written > 0;
                first.bytes.advance(written);
                // Messages that come together are of one kind, so that their bytes tell how many are left.
                let left = (first.messages * (length - written)).div_ceil(length);
                self.messages -= first.messages - left;
                first.messages = left;
                return;
            }
            written -= length;
            self.messages -= first.messages;
            // What goes on has begun with the piece before it.
            self.is_partly_written = first.continues;
            self.frames.pop_front();
        }
    }
}
