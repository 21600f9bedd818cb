//! Digest of a site's content: the SHA-256 of its files and options in the form of RFC 8785.

use super::SiteOptions;
use svc_base::digest::Digest;

/// Computes the digest of files, given by their paths and digests, and of options. A server has the same for the same site.
pub(crate) fn content_digest<'f>(
    files: impl Iterator<Item = (&'f str, Digest)>,
    options: &SiteOptions,
) -> String {
    let mut files: Vec<_> = files.collect();
    // Members are in the order of their UTF-16 code units.
    files.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
    let members = files.iter().map(|(path, digest)| {
        let path = serde_json::Value::from(*path);
        format!("{path}:\"{digest}\"")
    });
    let members: Vec<_> = members.collect();
    let options = serde_json::to_string(options).unwrap_or_default();
    let form = format!(
        "{{\"files\":{{{}}},\"options\":{options}}}",
        members.join(",")
    );
    Digest::of(form.as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_canonical_form() {
        let digest = Digest::of(b"x");
        // By code units U+1F600 comes before U+FB33, by code points after it.
        let paths = ["\u{fb33}", "\u{1f600}", "a\"b", "é"];
        let files = || paths.into_iter().map(|path| (path, digest));
        let mut options = SiteOptions::default();
        let form = format!(
            "{{\"files\":{{\"a\\\"b\":\"{digest}\",\"é\":\"{digest}\",\"\u{1f600}\":\"{digest}\",\"\u{fb33}\":\"{digest}\"}},\"options\":{{}}}}"
        );
        let expected = Digest::of(form.as_bytes()).to_string();
        assert_eq!(content_digest(files(), &options), expected);
        options.fallback = Some("index.html".to_owned());
        options.immutable = vec!["/assets/*".to_owned()];
        let form = form.replace(
            "\"options\":{}",
            "\"options\":{\"fallback\":\"index.html\",\"immutable\":[\"/assets/*\"]}",
        );
        let expected = Digest::of(form.as_bytes()).to_string();
        assert_eq!(content_digest(files(), &options), expected);
    }
}
