//! Headers of the console's host.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::http::NOSNIFF;

/// Has browsers show an answer that is no document of ours as inert, should anybody navigate to it.
const INERT: HeaderValue =
    HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox");

/// Adds the headers of every answer of the console's host, whatever answers: no other origin embeds or reads it, and no crawler lists it.
pub fn add_protective_headers(headers: &mut HeaderMap) {
    let same_origin = HeaderValue::from_static("same-origin");
    let resource_policy = HeaderName::from_static("cross-origin-resource-policy");
    headers.insert(resource_policy, same_origin);
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    headers.insert(NOSNIFF.0, NOSNIFF.1);
    headers.insert(
        HeaderName::from_static("x-robots-tag"),
        HeaderValue::from_static("noindex"),
    );
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(INERT);
}

/// Returns the headers of the document of all screens, beside those of every answer.
pub(super) fn document_headers(policy: HeaderValue) -> HeaderMap {
    HeaderMap::from_iter([
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONTENT_SECURITY_POLICY, policy),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            HeaderValue::from_static("same-origin"),
        ),
        (
            HeaderName::from_static("origin-agent-cluster"),
            HeaderValue::from_static("?1"),
        ),
    ])
}

/// Returns the headers of a file whose address is its digest.
pub(super) fn file_headers(kind: &'static str) -> HeaderMap {
    HeaderMap::from_iter([
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=31536000, immutable"),
        ),
    ])
}

/// Returns the headers of an icon, which is at one address whatever it shows.
pub(super) fn icon_headers(kind: &'static str) -> HeaderMap {
    HeaderMap::from_iter([
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=86400"),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_keeps_its_policy_and_all_else_is_inert() {
        let policy = HeaderValue::from_static("default-src 'self'");
        let mut document = document_headers(policy.clone());
        add_protective_headers(&mut document);
        assert_eq!(document[header::CONTENT_SECURITY_POLICY], policy);
        assert_eq!(document["cross-origin-resource-policy"], "same-origin");
        let mut answer = HeaderMap::new();
        add_protective_headers(&mut answer);
        assert_eq!(answer[header::CONTENT_SECURITY_POLICY], INERT);
        assert_eq!(answer[header::REFERRER_POLICY], "no-referrer");
    }
}
