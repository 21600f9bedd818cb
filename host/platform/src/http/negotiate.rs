//! Negotiation: accepted encodings, conditional requests and ranges (RFC 9110, sections 12.5, 13 and 14).

use std::ops::Range;

use http::{HeaderMap, header};
use http_range_header::{RangeUnsatisfiableError, StartPosition};

use crate::content::Encoding;

/// Qualities of the encodings by `Accept-Encoding`; without the header, identity alone is accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AcceptedEncodings {
    br: f32,
    zstd: f32,
    gzip: f32,
    identity: f32,
}

impl AcceptedEncodings {
    /// Reads the header.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let (mut br, mut zstd, mut gzip, mut rest) = (None, None, None, 0.0);
        let mut identity = 0.0;
        let lines = headers.get_all(header::ACCEPT_ENCODING).iter();
        for item in lines
            .filter_map(|v| v.to_str().ok())
            .flat_map(|line| line.split(','))
        {
            let mut parts = item.split(';').map(str::trim);
            let coding = parts.next().unwrap_or_default();
            let quality = quality(parts);
            match coding {
                "*" => rest = quality,
                c if c.eq_ignore_ascii_case("br") => br = Some(quality),
                c if c.eq_ignore_ascii_case("zstd") => zstd = Some(quality),
                c if c.eq_ignore_ascii_case("gzip") || c.eq_ignore_ascii_case("x-gzip") => {
                    gzip = Some(quality);
                }
                c if c.eq_ignore_ascii_case("identity") => identity = quality,
                _ => {}
            }
        }
        Self {
            br: br.unwrap_or(rest),
            zstd: zstd.unwrap_or(rest),
            gzip: gzip.unwrap_or(rest),
            // Identity is always acceptable, with the least quality unless it is named.
            identity: f32::max(identity, f32::MIN_POSITIVE),
        }
    }

    /// Returns the quality of an encoding; 0 means not acceptable.
    pub fn quality(self, encoding: Encoding) -> f32 {
        match encoding {
            Encoding::Br => self.br,
            Encoding::Zstd => self.zstd,
            Encoding::Gzip => self.gzip,
            Encoding::Identity => self.identity,
        }
    }
}

/// Whether `If-None-Match` names `etag` (weak comparison).
pub fn if_none_match_has(headers: &HeaderMap, etag: &str) -> bool {
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .any(|line| {
            line.split(',')
                .map(str::trim)
                .any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
        })
}

/// Range that a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum RequestedRange {
    /// The whole body: no range, an unsupported one, several, or one for another version.
    Whole,
    /// These bytes.
    Part(Range<usize>),
    /// A range outside of the body.
    Unsatisfiable,
}

/// Reads `Range` and `If-Range` for a body of `length` bytes with `etag`.
pub fn requested_range(headers: &HeaderMap, etag: &str, length: usize) -> RequestedRange {
    let Some(range) = headers.get(header::RANGE).and_then(|v| v.to_str().ok()) else {
        return RequestedRange::Whole;
    };
    if headers
        .get(header::IF_RANGE)
        .is_some_and(|held| held.as_bytes() != etag.as_bytes())
    {
        return RequestedRange::Whole;
    }
    let parsed = match http_range_header::parse_range_header(range) {
        Ok(parsed) => parsed,
        // A suffix of 0 bytes is valid and never satisfiable (RFC 9110, section 14.1.2).
        Err(RangeUnsatisfiableError::ZeroSuffix) => return RequestedRange::Unsatisfiable,
        Err(_) => return RequestedRange::Whole,
    };
    let [only] = parsed.ranges.as_slice() else {
        return RequestedRange::Whole;
    };
    // Nothing has no first byte.
    if length == 0 {
        return RequestedRange::Unsatisfiable;
    }
    // A suffix longer than the body means the whole body (RFC 9110, section 14.1.2).
    if matches!(only.start, StartPosition::FromLast(last) if last > length as u64) {
        return RequestedRange::Part(0..length);
    }
    match parsed.validate(length as u64).as_deref() {
        Ok([part]) => {
            let bounds = (usize::try_from(*part.start()), usize::try_from(*part.end()));
            let (Ok(start), Ok(end)) = bounds else {
                return RequestedRange::Unsatisfiable;
            };
            RequestedRange::Part(start..end.saturating_add(1).min(length))
        }
        _ => RequestedRange::Unsatisfiable,
    }
}

/// Whether the client is a browser: its `Accept` names `text/html`.
pub fn wants_html(headers: &HeaderMap) -> bool {
    accepts_by_name(headers, "text/html")
}

/// Whether `Accept` names a media type itself, not by a wildcard, and without `q=0`.
pub fn accepts_by_name(headers: &HeaderMap, wanted: &str) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .any(|line| {
            line.split(',').any(|item| {
                let mut parts = item.split(';').map(str::trim);
                let media = parts.next().unwrap_or_default();
                media.eq_ignore_ascii_case(wanted) && quality(parts) > 0.0
            })
        })
}

/// Returns the quality of an item's parameters: 0 if it is not a number, and 1 if there is none.
fn quality<'a>(mut parameters: impl Iterator<Item = &'a str>) -> f32 {
    parameters
        .find_map(|p| p.strip_prefix("q=").or_else(|| p.strip_prefix("Q=")))
        .map_or(1.0, |q| q.trim().parse().unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn encodings_by_quality() {
        let best = |value: &str| {
            let accepted = AcceptedEncodings::from_headers(&with(header::ACCEPT_ENCODING, value));
            let all = [
                Encoding::Br,
                Encoding::Zstd,
                Encoding::Gzip,
                Encoding::Identity,
            ];
            all.into_iter()
                .rev()
                .max_by(|a, b| accepted.quality(*a).total_cmp(&accepted.quality(*b)))
        };
        for (value, expected) in [
            ("gzip, deflate, br, zstd", Encoding::Br),
            ("gzip;q=1.0, br;q=0.5", Encoding::Gzip),
            ("zstd", Encoding::Zstd),
            ("*", Encoding::Br),
            ("*;q=0.5, br;q=0", Encoding::Zstd),
            ("br;q=0", Encoding::Identity),
            ("identity", Encoding::Identity),
            ("GZIP", Encoding::Gzip),
            ("", Encoding::Identity),
        ] {
            assert_eq!(best(value), Some(expected), "{value}");
        }
    }

    #[test]
    fn media_types_that_are_named() {
        for (value, named) in [
            ("text/event-stream", true),
            ("TEXT/Event-Stream", true),
            ("text/html, text/event-stream;q=0.1", true),
            ("text/event-stream; charset=utf-8; q=1", true),
            ("text/event-stream;q=0", false),
            ("text/event-stream; Q=0.000", false),
            ("text/event-stream;q=0, */*", false),
            ("text/event-stream;q=x", false),
            ("text/event-stream;q=0, text/event-stream", true),
            ("text/*", false),
            ("*/*", false),
            ("", false),
        ] {
            let headers = with(header::ACCEPT, value);
            assert_eq!(
                accepts_by_name(&headers, "text/event-stream"),
                named,
                "{value}"
            );
        }
    }

    #[test]
    fn entity_tags() {
        for (value, matches) in [
            ("\"a\"", true),
            ("W/\"a\"", true),
            ("\"b\", \"a\"", true),
            ("*", true),
            ("\"b\"", false),
            ("a", false),
        ] {
            assert_eq!(
                if_none_match_has(&with(header::IF_NONE_MATCH, value), "\"a\""),
                matches,
                "{value}"
            );
        }
    }

    #[test]
    fn ranges() {
        for (value, expected) in [
            ("bytes=0-9", RequestedRange::Part(0..10)),
            ("bytes=90-", RequestedRange::Part(90..100)),
            ("bytes=-5", RequestedRange::Part(95..100)),
            ("bytes=-100", RequestedRange::Part(0..100)),
            ("bytes=-100000", RequestedRange::Part(0..100)),
            ("bytes=0-999", RequestedRange::Part(0..100)),
            ("bytes=100-", RequestedRange::Unsatisfiable),
            ("bytes=0-1,5-6", RequestedRange::Whole),
            ("lines=0-1", RequestedRange::Whole),
            ("bytes=x", RequestedRange::Whole),
        ] {
            assert_eq!(
                requested_range(&with(header::RANGE, value), "\"a\"", 100),
                expected,
                "{value}"
            );
        }
        let mut headers = with(header::RANGE, "bytes=0-9");
        headers.insert(header::IF_RANGE, "\"old\"".parse().unwrap());
        assert_eq!(
            requested_range(&headers, "\"a\"", 100),
            RequestedRange::Whole
        );
    }
}
