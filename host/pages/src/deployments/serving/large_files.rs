//! Large files, which are read as they are sent: of each one object at a time is in memory.

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::PageService;
use crate::content::Encoding;
use crate::deployments::sites::SiteFile;
use crate::http::document;
use crate::http::negotiate;
use crate::http::problem::Problem;

/// Answers a file that is read as it is sent, with what the answer depends on beside its encoding.
pub(super) async fn large_file_response(
    serving: &PageService,
    file: SiteFile,
    (mut headers, vary): (HeaderMap, Vec<HeaderValue>),
    request: &HeaderMap,
) -> Result<Response, Problem> {
    let etag = document::etag(&file.digest, Encoding::Identity);
    document::add_variant_headers(&mut headers, &etag, Encoding::Identity);
    append_vary(&mut headers, vary);
    if request.contains_key(header::IF_NONE_MATCH)
        && negotiate::if_none_match_has(request, etag.to_str().unwrap_or_default())
    {
        headers.remove(header::CONTENT_TYPE);
        headers.remove(header::ACCEPT_RANGES);
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    streamed_response(serving, file, headers, request).await
}

/// Adds what an answer depends on beside its encoding.
pub(super) fn append_vary(headers: &mut HeaderMap, vary: Vec<HeaderValue>) {
    for value in vary {
        headers.append(header::VARY, value);
    }
}

/// Answers a large file, of which one object at a time is in memory.
async fn streamed_response(
    serving: &PageService,
    file: SiteFile,
    mut headers: HeaderMap,
    request: &HeaderMap,
) -> Result<Response, Problem> {
    let length = usize::try_from(file.bytes).map_err(|error| Problem::internal(&error))?;
    let etag = document::etag(&file.digest, Encoding::Identity);
    let (status, range) = document::requested_part(&mut headers, &etag, length, request)?;
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(range.len()));
    let reader = serving.open_file(file).await?;
    let held = serving.hold_stream(reader.bytes_in_memory())?;
    let read = held.attach(reader.read(range.start as u64..range.end as u64));
    Ok((status, headers, Body::from_stream(read)).into_response())
}
