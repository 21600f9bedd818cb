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
    /// The most messages that wait for the kernel.
    most: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The first may have been written in part: then it is what is left of it.
    frames: VecDeque<Piece>,
    /// How many messages they are.
    messages: usize,
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

/// Frames in one piece, or a part of one.
#[derive(Debug)]
struct Piece {
    bytes: Bytes,
    /// How many messages of it are not written yet, the one that is written in part included.
    messages: usize,
    /// Where the first of several messages ends, once some of the piece is written.
    end: Option<usize>,
    /// Whether the next piece goes on with its frame.
    goes_on: bool,
}

/// Outcome of a [`Outbox::flush`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushed {
    /// How many messages wait for the kernel.
    pub waiting: usize,
    /// How many were thrown away, because more waited than may: the socket is closed.
    pub dropped: usize,
}

/// A frame was not taken, because the socket is closed: before, or just now because too many waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// How many messages were thrown away, this one included; 0 if the socket was closed before.
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

    /// Has the socket's task write a message, or several frames in one piece.
    ///
    /// # Errors
    /// [`Full`]: the socket is closed, with 1013 if this was one too many.
    pub fn push(&self, piece: Bytes) -> Result<(), Full> {
        self.push_parts([piece])
    }

    /// Pushes one frame in several parts, of which nothing else comes in between.
    ///
    /// # Errors
    /// [`Full`], as for [`Outbox::push`].
    pub fn push_parts<const N: usize>(&self, parts: [Bytes; N]) -> Result<(), Full> {
        let mut waiting = self.lock();
        waiting.make_room(1, self.most, &self.wire)?;
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

    /// Queues messages in one piece for the next [`Outbox::flush`], by which they must fit, and wakes nobody. Of several each has one frame.
    ///
    /// # Errors
    /// [`Full`], as for [`Outbox::push`]: of what was queued before, more waits for the kernel than may.
    pub fn queue(&self, piece: Bytes, messages: usize) -> Result<(), Full> {
        let mut waiting = self.lock();
        waiting.make_room(0, self.most, &self.wire)?;
        waiting.add(piece, messages, false);
        Ok(())
    }

    /// Writes what the kernel takes. The rest is left to the socket's task, which waits for the kernel, unless it is too much:
    /// then the socket is closed with 1013.
    pub fn flush(&self) -> Flushed {
        let mut waiting = self.lock();
        if waiting.frames.is_empty() {
            return Flushed::default();
        }
        waiting.write(&self.wire);
        let dropped = if waiting.messages > self.most && !waiting.closed {
            waiting.close_slow()
        } else {
            0
        };
        if waiting.broken || !waiting.blocked && waiting.is_some(&self.wire) {
            waiting.wake();
        }
        Flushed {
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
    /// Sees that so many messages can be added.
    fn make_room(&mut self, messages: usize, most: usize, wire: &Wire) -> Result<(), Full> {
        if self.messages + messages > most {
            // Its turn to be written may only not have come yet: the client is slow if the kernel says so.
            self.write(wire);
        }
        if self.closed || self.broken {
            return Err(Full { dropped: 0 });
        }
        self.used = true;
        if self.messages + messages > most {
            let dropped = self.close_slow() + messages.max(1);
            return Err(Full { dropped });
        }
        Ok(())
    }

    fn add(&mut self, bytes: Bytes, messages: usize, goes_on: bool) {
        self.messages += messages;
        self.frames.push_back(Piece {
            bytes,
            messages,
            end: None,
            goes_on,
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
        if self.begun {
            let mut frame = self.frames.iter();
            kept = 1 + frame.by_ref().take_while(|piece| piece.goes_on).count();
        }
        self.frames.truncate(kept);
        self.messages = self.frames.iter().map(|piece| piece.messages).sum();
        before - self.messages
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
            let length = first.bytes.len();
            if written < length {
                self.begun |= written > 0;
                self.messages -= first.advance(written);
                return;
            }
            written -= length;
            self.messages -= first.messages;
            // What goes on has begun with the piece before it.
            self.begun = first.goes_on;
            self.frames.pop_front();
        }
    }
}

impl Piece {
    /// Removes bytes that were written, of more; returns how many messages end in them.
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
impl Outbox {
    /// An outbox of a connection on loopback, with the client's end of it.
    pub(crate) async fn on_loopback(most: usize) -> (Self, tokio::net::TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = tokio::net::TcpStream::connect(address).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        (Self::new(Wire::Plain(server), most), client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;

    /// Messages of such lengths in one piece, and where each of them ends.
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
                let mut waiting = Waiting::default();
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
        let mut waiting = Waiting::default();
        let [head, shared, behind] = frame::text_parts("[", &Bytes::from_static(b"1,2"), "]");
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
