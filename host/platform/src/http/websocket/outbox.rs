//! Outbox of a socket: a bounded queue of shared frames. Any thread may write it, and one write sends many frames.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bytes::{Buf, Bytes};
use tokio::net::TcpStream;

use super::wire::SocketTransport;
use super::{CloseReason, frame};

/// Most buffers of one vectored write.
const MAX_SLICES: usize = 64;
/// Size of the kernel's send buffer, in bytes: far less than its default.
const SEND_BUFFER_BYTES: usize = 64 * 1024;

/// Sending half of a socket. Senders queue frames and never wait.
#[derive(Debug)]
pub struct Outbox {
    wire: SocketTransport,
    /// Most messages in the queue.
    most: usize,
    waiting: Mutex<OutboxQueue>,
}

#[derive(Debug, Default)]
struct OutboxQueue {
    /// Queued frames; the first one without its bytes that are written already.
    frames: VecDeque<QueuedBytes>,
    /// Number of queued messages.
    messages: usize,
    /// Whether the first frame is partly written, so that it must be finished.
    is_partly_written: bool,
    /// Number of bytes ever written.
    written: u64,
    /// Whether anything was ever queued.
    used: bool,
    /// Whether the last queued frame is a close frame.
    closed: bool,
    /// Whether the connection is broken.
    broken: bool,
    /// Waker of the socket's task, while it is idle.
    task: Option<Waker>,
    /// Whether the task waits until the socket is writable.
    blocked: bool,
}

/// State of an outbox after a write.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutboxWriteState {
    /// Number of bytes ever written.
    pub(super) written: u64,
    /// Whether frames are still queued.
    pub(super) waits: bool,
    /// Whether anything was ever queued.
    pub(super) used: bool,
    /// Whether the socket is closed or broken.
    pub(super) is_over: bool,
}

/// Bytes of one or more frames, or of a part of one.
#[derive(Debug)]
struct QueuedBytes {
    bytes: Bytes,
    /// Number of its messages that are not completely written.
    messages: usize,
    /// End of the first of several messages, once some of the piece is written.
    end: Option<usize>,
    /// Whether the next piece continues its frame.
    continues: bool,
}

/// Counts of a [`Outbox::write_or_close_slow`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxWriteCounts {
    /// Number of queued messages.
    pub waiting: usize,
    /// Number of messages dropped because the queue was too long: the socket is closed then.
    pub dropped: usize,
}

/// Error of queueing a frame: the socket was closed before, or just now because too many messages waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxClosed {
    /// Number of dropped messages, including this one; 0 if the socket was closed before.
    pub dropped: usize,
}

impl Outbox {
    pub(super) fn new(wire: SocketTransport, most: usize) -> Self {
        wire.limit_send_buffer(SEND_BUFFER_BYTES);
        Self {
            wire,
            most,
            waiting: Mutex::default(),
        }
    }

    /// Returns the outbox of a connection without TLS, in which at most `max_messages` wait.
    pub fn over_tcp(stream: TcpStream, max_messages: usize) -> Self {
        Self::new(SocketTransport::Plain(stream), max_messages)
    }

    pub(super) fn wire(&self) -> &SocketTransport {
        &self.wire
    }

    fn lock(&self) -> MutexGuard<'_, OutboxQueue> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message, or several frames in one piece, for the socket's task.
    ///
    /// # Errors
    /// [`OutboxClosed`]: the socket is closed, with 1013 if this message exceeded the limit.
    pub fn push(&self, piece: Bytes) -> Result<(), OutboxClosed> {
        self.push_parts([piece])
    }

    /// Queues one frame in several parts, with nothing in between.
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

    /// Queues messages in one piece for the next [`Outbox::write_or_close_slow`], which checks the limit; wakes no task. Each of several messages has
    /// one frame.
    ///
    /// # Errors
    /// [`OutboxClosed`], as for [`Outbox::push`]: too many earlier messages are still queued.
    pub fn queue(&self, piece: Bytes, messages: usize) -> Result<(), OutboxClosed> {
        let mut waiting = self.lock();
        waiting.check_room(0, self.most, &self.wire)?;
        waiting.add(piece, messages, false);
        Ok(())
    }

    /// Writes as much as the kernel accepts, and leaves the rest to the socket's task. If more messages remain than allowed, the socket
    /// is closed with 1013.
    pub fn write_or_close_slow(&self) -> OutboxWriteCounts {
        let mut waiting = self.lock();
        if waiting.frames.is_empty() {
            return OutboxWriteCounts::default();
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
        OutboxWriteCounts {
            waiting: waiting.messages,
            dropped,
        }
    }

    /// Closes the socket after the queued frames.
    pub fn close(&self, close: CloseReason) {
        self.close_with(frame::close_frame(close));
    }

    pub(super) fn close_with(&self, last: Bytes) {
        let mut waiting = self.lock();
        if !waiting.closed {
            waiting.close(last);
        }
    }

    /// Drops the unwritten frames, and closes the socket.
    pub fn close_now(&self, close: CloseReason) {
        let mut waiting = self.lock();
        if !waiting.closed {
            waiting.drop_unwritten();
            waiting.close(frame::close_frame(close));
        }
    }

    /// Lets the client's messages be read before the server has sent one; by default the server sends first.
    pub fn allow_reading_before_write(&self) {
        let mut waiting = self.lock();
        waiting.used = true;
        waiting.wake();
    }

    /// Returns the number of bytes ever written, and whether frames are still queued.
    pub fn progress(&self) -> (u64, bool) {
        let waiting = self.lock();
        (waiting.written, waiting.has_unwritten(&self.wire))
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Writes as much as the kernel accepts, for the socket's task, and registers its waker.
    pub(super) fn advance(&self, task: &Waker) -> OutboxWriteState {
        let mut waiting = self.lock();
        waiting.write(&self.wire);
        match &mut waiting.task {
            Some(known) => known.clone_from(task),
            none => *none = Some(task.clone()),
        }
        waiting.blocked = waiting.has_unwritten(&self.wire);
        OutboxWriteState {
            written: waiting.written,
            waits: waiting.blocked,
            used: waiting.used,
            is_over: waiting.closed || waiting.broken,
        }
    }

    /// Whether the connection is broken.
    pub(super) fn is_broken(&self) -> bool {
        self.lock().broken
    }
}

impl OutboxQueue {
    /// Checks that `messages` more fit into the queue; closes the socket if not.
    fn check_room(
        &mut self,
        messages: usize,
        most: usize,
        wire: &SocketTransport,
    ) -> Result<(), OutboxClosed> {
        if self.messages + messages > most {
            // The queue may only not have been written yet: the client is slow if the kernel accepts nothing.
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
        self.frames.push_back(QueuedBytes {
            bytes,
            messages,
            end: None,
            continues,
        });
    }

    /// Drops the unwritten frames and closes the socket with 1013; returns the number of dropped messages.
    fn close_slow(&mut self) -> usize {
        let dropped = self.drop_unwritten();
        self.close(frame::close_frame(CloseReason::SLOW));
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

    /// Drops the unwritten frames; returns the number of dropped messages.
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

    /// Whether anything is not written yet.
    fn has_unwritten(&self, wire: &SocketTransport) -> bool {
        !self.frames.is_empty() || wire.has_buffered_records()
    }

    fn write(&mut self, wire: &SocketTransport) {
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

    fn write_some(&self, wire: &SocketTransport) -> io::Result<usize> {
        if let (Some(only), 1) = (self.frames.front(), self.frames.len()) {
            return wire.try_write(&only.bytes);
        }
        let slices: [IoSlice<'_>; MAX_SLICES] =
            std::array::from_fn(|n| IoSlice::new(self.frames.get(n).map_or(&[], |f| &f.bytes)));
        wire.try_write_vectored(&slices[..self.frames.len().min(MAX_SLICES)])
    }

    /// Removes written bytes from the queue.
    fn consume(&mut self, mut written: usize) {
        self.written += written as u64;
        while let Some(first) = self.frames.front_mut() {
            let length = first.bytes.len();
            if written < length {
                self.is_partly_written |= written > 0;
                self.messages -= first.advance(written);
                return;
            }
            written -= length;
            self.messages -= first.messages;
            // A continued frame is partly written.
            self.is_partly_written = first.continues;
            self.frames.pop_front();
        }
    }
}

impl QueuedBytes {
    /// Removes written bytes from the start; returns the number of messages that end in them.
    fn advance(&mut self, written: usize) -> usize {
        let mut ended = 0;
        // A piece of one message may have a part of a frame, or several frames.
        if self.messages > 1 {
            let mut end = self.end.unwrap_or_else(|| frame::length(&self.bytes));
            while end <= written {
                ended += 1;
                end = end.saturating_add(frame::length(&self.bytes[end..]));
            }
            self.end = Some(end - written);
        }
        self.messages -= ended;
        self.bytes.advance(written);
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;

    /// Makes a piece of messages with the given lengths; returns their ends, too.
    fn piece(lengths: &[usize]) -> (Bytes, Vec<usize>) {
        let mut bytes = BytesMut::new();
        let ends = lengths.iter().map(|length| {
            frame::append_text(&mut bytes, &"x".repeat(*length));
            bytes.len()
        });
        let ends = ends.collect();
        (bytes.freeze(), ends)
    }

    #[test]
    fn messages_that_come_together_are_counted_by_their_frames() {
        for lengths in [&[10, 1000][..], &[1000, 10], &[0, 70_000, 1, 200], &[5, 5]] {
            for step in [1, 7, 150, 999] {
                let (bytes, ends) = piece(lengths);
                let all = bytes.len();
                let mut waiting = OutboxQueue::default();
                waiting.add(bytes, lengths.len(), false);
                let mut written = 0;
                while written < all {
                    let step = step.min(all - written);
                    waiting.consume(step);
                    written += step;
                    let left = ends.iter().filter(|end| **end > written).count();
                    assert_eq!(waiting.messages, left, "{written} bytes of {lengths:?}");
                }
                assert!(waiting.frames.is_empty());
            }
        }
    }

    #[test]
    fn a_message_of_several_parts_or_frames_waits_until_its_end() {
        let mut waiting = OutboxQueue::default();
        let [head, shared, behind] = frame::text_frame_parts("[", &Bytes::from_static(b"1,2"), "]");
        waiting.add(head, 0, true);
        waiting.add(shared, 0, true);
        waiting.add(behind, 1, false);
        let (news, ends) = piece(&[3, 3]);
        waiting.add(news, 1, false);
        for (written, left) in [(1, 2), (5, 2), (1, 1), (ends[0], 1), (1, 1), (4, 0)] {
            waiting.consume(written);
            assert_eq!(waiting.messages, left, "{written} bytes more");
        }
    }
}
