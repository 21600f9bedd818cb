//! The source of a page as an answer: what no browser runs, in the encoding that a client likes.

use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};

use super::Deployments;
use super::pages::{self, Page};
use super::publish::PublishError;
use super::serve::RawSource;
use crate::content::{Encoding, encoded_quickly};
use crate::http::document;
use crate::http::problem::Problem;
use crate::sandbox::ContentType;

/// A smaller source is sent as it is: it fits into a packet or two.
const WORTH: usize = 1024;

impl Deployments {
    /// The source of a page, encoded as the request likes it, by a worker. Sources are kept as they were published and asked for
    /// rarely, so their encodings are not kept.
    ///
    /// # Errors
    /// `range_not_satisfiable`, `capacity_reached`.
    pub(super) async fn answer_raw(
        &self,
        page: &Page,
        source: RawSource,
        request: &HeaderMap,
    ) -> Result<Response, Problem> {
        let mut headers = pages::headers(&page.kind, page.is_protected(), self.page_policy().origins);
        let kind = HeaderValue::from_static(media_type(page.content_type));
        headers.insert(header::CONTENT_TYPE, kind);
        let encodings = [Encoding::Gzip, Encoding::Identity];
        let liked = document::preferred(&encodings, request, |encoding| *encoding).copied();
        let encoding = liked
            .filter(|_| source.bytes.len() >= WORTH)
            .unwrap_or(Encoding::Identity);
        let bytes = match encoding {
            Encoding::Identity => source.bytes,
            _ => {
                let encoding = self.sandbox.workers().run(move || encoded_quickly(&source.bytes));
                let encoded = encoding.await.map_err(PublishError::from)?;
                encoded.map_err(|error| Problem::internal(&error))?
            }
        };
        let etag = document::etag(&source.digest, encoding);
        document::describe(&mut headers, &etag, encoding);
        document::respond(headers, &etag, &bytes, request)
    }
}

/// What a source is sent as: never HTML.
fn media_type(content_type: ContentType) -> &'static str {
    match content_type {
        ContentType::Html | ContentType::Markdown | ContentType::Mermaid => {
            "text/plain; charset=utf-8"
        }
        ContentType::Json => "application/json",
        ContentType::Csv => "text/csv; charset=utf-8",
    }
}
