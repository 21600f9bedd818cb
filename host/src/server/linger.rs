//! Bodies that nobody wants: read on for a while, so that a client who is still sending them gets to read why.
//!
//! A connection that is closed on unread bytes is reset, and takes the answer that was already sent with it.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Version, header};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};

/// How much of an unwanted body is read.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// How long it is read for; less than a stop waits.
const MAX_TIME: Duration = Duration::from_secs(5);
/// How long its next part may take.
const FRAME_TIMEOUT: Duration = Duration::from_secs(1);

/// The request, with a body that may be dropped unread.
pub(super) fn linger_on_drop(request: Request<Incoming>) -> Request<Body> {
    // HTTP/2 refuses one body without ending the connection, and who asks before sending need not be heard out.
    let asks = request.headers().contains_key(header::EXPECT);
    if request.version() == Version::HTTP_2 || asks || request.body().is_end_stream() {
        return request.map(Body::new);
    }
    request.map(|body| Body::new(LingeringBody(Some(body))))
}

/// A body that is read on when it is dropped.
struct LingeringBody(Option<Incoming>);

impl HttpBody for LingeringBody {
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

impl Drop for LingeringBody {
    fn drop(&mut self) {
        let unread = self.0.take().filter(|body| !body.is_end_stream());
        // A runtime that is gone has no clients left.
        if let (Some(body), Ok(runtime)) = (unread, tokio::runtime::Handle::try_current()) {
            // What did not fit into the time is cut off, as is whoever sends it.
            runtime.spawn(async { tokio::time::timeout(MAX_TIME, discard(body)).await.ok() });
        }
    }
}

async fn discard(mut body: Incoming) {
    let mut left = MAX_BYTES;
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(FRAME_TIMEOUT, body.frame()).await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
