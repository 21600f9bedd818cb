//! Answers with files of visitors, which are served as files of sites are.

use std::ops::Range;

use axum::body::Body;
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use http::HeaderMap;

use super::site_answer::streamed_response;
use super::{PageLookupError, PageService};
use crate::deployments::sites::{FileReader, ObjectSource, SiteFile};
use crate::http::document;
use crate::http::problem::Problem;

impl PageService {
    /// Returns a body that reads a stored file as it is sent, of which one object at a time is in memory.
    ///
    /// # Errors
    /// `capacity_reached` where readers hold too much already, and where the store is away.
    pub async fn streamed_file<S>(
        &self,
        reader: FileReader<S>,
        range: Range<u64>,
    ) -> Result<Body, Problem>
    where
        S: ObjectSource<Error: Into<PageLookupError> + Into<axum::BoxError>>,
    {
        let held = self.hold_stream(reader.bytes_in_memory())?;
        let mut bytes = Box::pin(held.attach(reader.read(range)));
        // A failure is said while the answer can say it.
        let first = bytes.next().await.transpose();
        let first = first.map_err(<S::Error as Into<PageLookupError>>::into)?;
        let first = stream::iter(first.map(Ok));
        Ok(Body::from_stream(first.chain(bytes)))
    }

    /// Answers a file of a visitor: all of it, a part of it, or that the client has it. A small one comes from memory.
    ///
    /// # Errors
    /// `disabled`, `range_not_satisfiable`, `capacity_reached`.
    pub async fn visitor_file_response(
        &self,
        file: SiteFile,
        mut headers: HeaderMap,
        request: &HeaderMap,
    ) -> Result<Response, Problem> {
        self.check_file(&file)?;
        document::add_document_headers(&mut headers);
        if file.list.is_none() {
            let served = self.served_file(file, None).await?;
            if let Some(variant) = served.variant(request) {
                document::name_variant(&mut headers, &variant.etag, variant.encoding);
                return document::respond(headers, &variant.etag, &variant.bytes, request);
            }
        }
        streamed_response(self, file, headers, request).await
    }
}
