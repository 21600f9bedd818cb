//! Bodies of answers that nobody keeps for long: what is not sent by a deadline is given up.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use svc_base::Stopwatch;

/// Most bytes of a piece. The rest waits here, where the deadline ends it, and not in a connection's buffer.
const PIECE_BYTES: usize = 16 << 10;

/// A body that ends with an error, and returns its memory, if its reader still takes pieces of it after the deadline. A reader
/// that takes none is cut off by the connection.
#[derive(Debug)]
pub struct DeadlineBody {
    rest: Bytes,
    longest: Duration,
    clock: Stopwatch,
}

/// Error of a body whose reader has not taken it in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer was not read in time")]
pub struct DeadlinePassed;

impl DeadlineBody {
    /// Makes a body of bytes; its time begins now.
    pub fn new(bytes: Bytes, longest: Duration) -> Self {
        Self {
            rest: bytes,
            longest,
            clock: Stopwatch::start(),
        }
    }
}

impl Body for DeadlineBody {
    type Data = Bytes;
    type Error = DeadlinePassed;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, DeadlinePassed>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        if self.clock.elapsed() >= self.longest {
            self.rest = Bytes::new();
            return Poll::Ready(Some(Err(DeadlinePassed)));
        }
        let length = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_whole_before_its_deadline_and_returns_its_memory_after_it() {
        let bytes = Bytes::from(vec![7; PIECE_BYTES + 1]);
        let body = DeadlineBody::new(bytes.clone(), Duration::MAX);
        assert_eq!(body.size_hint().exact(), Some(bytes.len() as u64));
        let read = axum::body::to_bytes(axum::body::Body::new(body), usize::MAX).await;
        assert_eq!(read.unwrap(), bytes);

        let mut late = DeadlineBody::new(bytes.clone(), Duration::ZERO);
        let mut context = Context::from_waker(std::task::Waker::noop());
        let frame = Pin::new(&mut late).poll_frame(&mut context);
        assert!(matches!(frame, Poll::Ready(Some(Err(DeadlinePassed)))));
        assert!(bytes.is_unique(), "the body holds nothing");
    }
}
