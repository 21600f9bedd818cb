//! The route at which pages of `svc dev` hear of their versions.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderValue, header};
use serde::Deserialize;

use super::events;
use crate::config::PageVersionsReceiver;
use crate::http::extract::UnparsedQuery;
use crate::http::problem::Problem;

/// Query of a page that listens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReloadQuery {
    slug: String,
}

/// Answers a stream of events, each with the version of a page.
///
/// # Errors
/// `invalid_request` without a slug.
pub async fn listen(
    State(versions): State<PageVersionsReceiver>,
    query: UnparsedQuery,
) -> Result<Response, Problem> {
    let ReloadQuery { slug } = query.read()?;
    let mut response = Response::new(Body::from_stream(events(versions, slug)));
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}
