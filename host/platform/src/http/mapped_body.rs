//! A body with a function on the way of its frames.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

/// Answer of a body that is asked for its next frame.
pub type PolledFrame = Poll<Option<Result<Frame<Bytes>, axum::Error>>>;

/// A body whose every answer passes a function. The function and what it has captured live as long as the body; its length is known as
/// the inner body's is, which `http_body_util`'s `map_frame` forgets.
pub struct MappedBody<F> {
    body: Body,
    map: F,
}

impl<F: FnMut(PolledFrame) -> PolledFrame + Unpin> MappedBody<F> {
    /// Wraps a body. The function keeps the number of bytes.
    pub fn new(body: Body, map: F) -> Self {
        Self { body, map }
    }
}

impl<F> fmt::Debug for MappedBody<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedBody")
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}

impl<F: FnMut(PolledFrame) -> PolledFrame + Unpin> HttpBody for MappedBody<F> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> PolledFrame {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        (self.map)(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn the_function_sees_every_frame_and_the_length_stays_known() {
        let mut bytes = 0;
        let body = MappedBody::new(Body::from("three"), |polled: PolledFrame| {
            if let Poll::Ready(Some(Ok(frame))) = &polled {
                bytes += frame.data_ref().map_or(0, Bytes::len);
            }
            polled
        });
        assert_eq!(body.size_hint().exact(), Some(5));
        let read = body.collect().await.unwrap().to_bytes();
        assert_eq!((&read[..], bytes), (&b"three"[..], 5));
    }
}
