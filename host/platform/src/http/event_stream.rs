//! Answers that are streams of server-sent events (HTML, section 9.2).

use axum::body::Body;
use axum::response::Response;
use http::{HeaderName, HeaderValue, header};

/// Media type of streams.
pub const EVENT_STREAM: &str = "text/event-stream";
/// Header that stops proxies such as nginx from buffering events.
const BUFFERING_HEADER: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Returns the answer that is a stream.
pub fn event_response(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, EVENT_STREAM),
        (header::CACHE_CONTROL, "no-store"),
        (BUFFERING_HEADER, "no"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
