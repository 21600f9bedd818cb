//! Whether a request comes from a page of the very origin that it asks.

use http::{HeaderMap, header};

/// Whether the `Origin` of a request, if it has one, is what it asks: a client that is no browser sends none, and `null` is foreign.
pub fn is_own(scheme: &str, authority: &str, headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return true;
    };
    let ours = format!("{scheme}://{authority}");
    origin.as_bytes().eq_ignore_ascii_case(ours.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_origin_is_own() {
        for (origin, own) in [
            (None, true),
            (Some("https://a.example"), true),
            (Some("HTTPS://A.example"), true),
            (Some("http://a.example"), false),
            (Some("https://a.example:444"), false),
            (Some("https://b.example"), false),
            (Some("https://a.example.b.example"), false),
            (Some("null"), false),
            (Some(""), false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(is_own("https", "a.example", &headers), own, "{origin:?}");
        }
    }
}
