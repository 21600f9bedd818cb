//! Lingering close: unread bodies are read on for a while, so that a client that is still sending gets to read the answer.
//!
//! A connection that is closed with unread bytes is reset, and the answer that was sent is lost.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Version, header};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};

/// Most bytes that are read.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Longest time of reading; less than a stop waits.
const MAX_TIME: Duration = Duration::from_secs(5);
/// Timeout of the next frame.
const FRAME_TIMEOUT: Duration = Duration::from_secs(1);

/// Wraps a request's body so that it can be dropped unread.
pub(super) fn linger_on_drop(request: Request<Incoming>) -> Request<Body> {
    // HTTP/2 can refuse a body without closing the connection, and a client with `Expect` waits before it sends.
    let asks = request.headers().contains_key(header::EXPECT);
    if request.version() == Version::HTTP_2 || asks || request.body().is_end_stream() {
        return request.map(Body::new);
    }
    request.map(|body| Body::new(DrainOnDropBody(Some(body))))
}

/// A body that is read to its end when it is dropped.
struct DrainOnDropBody(Option<Incoming>);

impl HttpBody for DrainOnDropBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.0 {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0
            .as_ref()
            .map_or_else(SizeHint::default, HttpBody::size_hint)
    }
}

impl Drop for DrainOnDropBody {
    fn drop(&mut self) {
        let unread = self.0.take().filter(|body| !body.is_end_stream());
        // Without a runtime the server has stopped.
        if let (Some(body), Ok(runtime)) = (unread, tokio::runtime::Handle::try_current()) {
            // After the timeout the connection is closed all the same.
            runtime.spawn(async { tokio::time::timeout(MAX_TIME, drain_body(body)).await.ok() });
        }
    }
}

async fn drain_body(mut body: Incoming) {
    let mut left = MAX_BYTES;
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(FRAME_TIMEOUT, body.frame()).await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
