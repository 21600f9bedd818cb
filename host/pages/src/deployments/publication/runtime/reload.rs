//! Pages of `svc dev` that load themselves again after a save: what their script has beside the runtime, and the events that it hears.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use http::{HeaderValue, header};
use serde::Deserialize;
use serde_json::json;

use crate::config::{PageVersions, PageVersionsReceiver};
use crate::http::extract::UnparsedQuery;
use crate::http::problem::Problem;

/// Part of the script, within the scope of the others.
pub(super) const SCRIPT_PART: &str = include_str!("../../../../../assets/runtime/reload.js");
/// First chunk of a stream: a page asks again soon, since `svc dev` is back in a moment.
const FIRST_CHUNK: Bytes = Bytes::from_static(b"retry: 500\n\n");
/// Chunk of a stream that has nothing to say; without it nobody would notice a page that has gone.
const COMMENT: Bytes = Bytes::from_static(b": still here\n\n");
/// Time between two comments.
const COMMENT_INTERVAL: Duration = Duration::from_secs(25);

/// Query of a page that listens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReloadQuery {
    slug: String,
}

/// Returns the route at which pages hear of their versions.
pub fn routes<S: Clone + Send + Sync + 'static>(versions: PageVersionsReceiver) -> Router<S> {
    Router::new()
        .route("/_svc/dev/reload", get(listen))
        .with_state(versions)
}

async fn listen(
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

/// Returns the stream of a page: its version now, and after each change of the folder. It ends with `svc dev`.
fn events(
    mut versions: PageVersionsReceiver,
    slug: String,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    versions.mark_changed();
    let chunks = unfold((versions, slug), |(mut versions, slug)| async move {
        let chunk = match tokio::time::timeout(COMMENT_INTERVAL, versions.changed()).await {
            Ok(Ok(())) => version_event(&versions.borrow_and_update(), &slug).unwrap_or(COMMENT),
            Ok(Err(_)) => return None,
            Err(_) => COMMENT,
        };
        Some((Ok(chunk), (versions, slug)))
    });
    futures_util::StreamExt::chain(futures_util::stream::iter([Ok(FIRST_CHUNK)]), chunks)
}

/// Encodes the version of a page; `None` for one that is not of the folder, or before the folder was first applied.
fn version_event(versions: &PageVersions, slug: &str) -> Option<Bytes> {
    let version = versions.by_slug.get(slug)?;
    let event = json!({ "version": version, "at": versions.told_at.0 });
    Some(format!("data: {event}\n\n").into())
}
