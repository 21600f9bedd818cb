//! Finished documents as answers: content negotiation, validators, ranges (RFC 9110).

use std::ops::Range;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::negotiate::{self, AcceptedEncodings, RequestedRange};
use super::problem::{Problem, ProblemCode};
use crate::content::{Digest, EncodedPage, Encoding};

/// `Cache-Control` that has caches revalidate every time.
pub const REVALIDATE: HeaderValue = HeaderValue::from_static("public, max-age=0, must-revalidate");

/// A document of the platform: made once, in all its encodings.
#[derive(Debug)]
pub struct EncodedDocument {
    /// Variants in the server's order of preference, identity last.
    variants: Vec<DocumentVariant>,
}

#[derive(Debug)]
struct DocumentVariant {
    encoding: Encoding,
    etag: HeaderValue,
    headers: HeaderMap,
    bytes: Bytes,
}

impl EncodedDocument {
    /// Makes a document that is answered with `headers`. Its compression costs milliseconds.
    ///
    /// # Errors
    /// Only when a compressor fails, which has no cause in the document.
    pub fn new(bytes: Bytes, headers: &HeaderMap) -> std::io::Result<Self> {
        let digest = Digest::of(&bytes);
        Ok(Self::from_artifact(
            &digest,
            EncodedPage::compress(bytes, || true)?,
            headers,
        ))
    }

    /// Makes a document with the best compression, which costs tens of milliseconds.
    ///
    /// # Errors
    /// Like [`EncodedDocument::new`].
    pub fn compressed_densely(bytes: Bytes, headers: &HeaderMap) -> std::io::Result<Self> {
        let digest = Digest::of(&bytes);
        let artifact = EncodedPage::compress_densely(bytes)?;
        Ok(Self::from_artifact(&digest, artifact, headers))
    }

    fn from_artifact(digest: &Digest, artifact: EncodedPage, headers: &HeaderMap) -> Self {
        let variants = artifact.variants.into_iter().map(|variant| {
            let etag = etag(digest, variant.encoding);
            let mut headers = headers.clone();
            add_variant_headers(&mut headers, &etag, variant.encoding);
            DocumentVariant {
                encoding: variant.encoding,
                etag,
                headers,
                bytes: variant.bytes,
            }
        });
        Self {
            variants: variants.collect(),
        }
    }

    /// Answers a request for the document.
    ///
    /// # Errors
    /// `range_not_satisfiable`.
    pub fn answer(&self, request: &HeaderMap) -> Result<Response, Problem> {
        let variant = preferred_variant(&self.variants, request, |variant| variant.encoding);
        let variant = variant.ok_or_else(|| Problem::internal(&"a document has no variants"))?;
        respond(
            variant.headers.clone(),
            &variant.etag,
            &variant.bytes,
            request,
        )
    }
}

/// Selects the variant that the client prefers; `variants` are in the server's order of preference, identity last.
pub fn preferred_variant<T>(
    variants: impl IntoIterator<Item = T>,
    request: &HeaderMap,
    encoding: impl Fn(&T) -> Encoding,
) -> Option<T> {
    let accepted = AcceptedEncodings::from_headers(request);
    let mut best: Option<(T, f32)> = None;
    for variant in variants {
        let quality = accepted.quality(encoding(&variant));
        // Among equals, the first is the server's choice.
        if best.as_ref().is_none_or(|(_, held)| quality > *held) {
            best = Some((variant, quality));
        }
    }
    best.map(|(variant, _)| variant)
}

/// Adds the headers of a variant: `Vary`, `Accept-Ranges`, `ETag`, `Content-Encoding`.
pub fn add_variant_headers(headers: &mut HeaderMap, etag: &HeaderValue, encoding: Encoding) {
    add_document_headers(headers);
    name_variant(headers, etag, encoding);
}

/// Adds the headers that all variants of a document have: `Vary`, `Accept-Ranges`.
pub fn add_document_headers(headers: &mut HeaderMap) {
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
}

/// Adds the headers by which variants differ: `ETag`, `Content-Encoding`.
pub fn name_variant(headers: &mut HeaderMap, etag: &HeaderValue, encoding: Encoding) {
    headers.insert(header::ETAG, etag.clone());
    if encoding != Encoding::Identity {
        let coding = HeaderValue::from_static(encoding.as_str());
        headers.insert(header::CONTENT_ENCODING, coding);
    }
}

/// Makes a strong entity tag of half of the digest and the coding.
pub fn etag(digest: &Digest, encoding: Encoding) -> HeaderValue {
    let digest = digest.to_string();
    let tag = format!("\"{}-{}\"", &digest[..32], encoding.as_str());
    HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Answers a variant: 200, 206 for a range, or 304 if the client has it; `headers` are those of the 200.
///
/// # Errors
/// `range_not_satisfiable`.
pub fn respond(
    mut headers: HeaderMap,
    etag: &HeaderValue,
    bytes: &Bytes,
    request: &HeaderMap,
) -> Result<Response, Problem> {
    let tag = etag.to_str().unwrap_or_default();
    if request.contains_key(header::IF_NONE_MATCH) && negotiate::if_none_match_has(request, tag) {
        for name in [
            header::CONTENT_TYPE,
            header::CONTENT_ENCODING,
            header::ACCEPT_RANGES,
        ] {
            headers.remove(name);
        }
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    let (status, part) = requested_part(&mut headers, etag, bytes.len(), request)?;
    let mut response = Response::new(Body::from(bytes.slice(part)));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// Returns the part of a document that a request is answered, with its status; adds the header of a part.
///
/// # Errors
/// `range_not_satisfiable`.
pub fn requested_part(
    headers: &mut HeaderMap,
    etag: &HeaderValue,
    length: usize,
    request: &HeaderMap,
) -> Result<(StatusCode, Range<usize>), Problem> {
    let tag = etag.to_str().unwrap_or_default();
    match negotiate::requested_range(request, tag, length) {
        RequestedRange::Whole => Ok((StatusCode::OK, 0..length)),
        RequestedRange::Part(range) => {
            let part = format!("bytes {}-{}/{length}", range.start, range.end - 1);
            let part = HeaderValue::try_from(part).map_err(|e| Problem::internal(&e))?;
            headers.insert(header::CONTENT_RANGE, part);
            Ok((StatusCode::PARTIAL_CONTENT, range))
        }
        RequestedRange::Unsatisfiable => {
            let all = HeaderValue::try_from(format!("bytes */{length}"));
            Err(Problem::new(
                ProblemCode::RangeNotSatisfiable,
                format!("There are {length} bytes, and none in the range that was asked for."),
            )
            .header(
                header::CONTENT_RANGE,
                all.map_err(|e| Problem::internal(&e))?,
            ))
        }
    }
}
