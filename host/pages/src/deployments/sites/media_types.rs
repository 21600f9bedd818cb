//! Media types of a site's files, by the endings of their paths: nothing is guessed from bytes.

/// Type of files that no table knows.
const UNKNOWN_TYPE: &str = "application/octet-stream";
/// File without an ending whose type Apple prescribes.
const APP_SITE_ASSOCIATION: &str = "apple-app-site-association";
/// Types outside of `text/` whose files are texts that compress well.
const COMPRESSIBLE_TYPES: [&str; 12] = [
    "application/json",
    "application/javascript",
    "application/manifest+json",
    "application/wasm",
    "application/xml",
    "application/xhtml+xml",
    "application/vnd.ms-fontobject",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/svg+xml",
    "image/x-icon",
];

/// Bytes of the smallest file of which encodings are made: they save less than their headers cost of a smaller one.
const SMALLEST_ENCODED: u64 = 256;

/// Returns the media type of a file, with the encoding of texts.
pub fn media_type(path: &str) -> String {
    let essence = essence(path);
    match essence.starts_with("text/") {
        true => format!("{essence}; charset=utf-8"),
        false => essence.to_owned(),
    }
}

/// Whether a file is an HTML document.
pub fn is_html(path: &str) -> bool {
    essence(path) == "text/html"
}

/// Whether a file is likely to become smaller by compression.
fn is_compressible(path: &str) -> bool {
    let essence = essence(path);
    let is_markup = ["+json", "+xml"]
        .iter()
        .any(|ending| essence.ends_with(ending));
    essence.starts_with("text/") || is_markup || COMPRESSIBLE_TYPES.contains(&essence)
}

/// Whether encodings of a file are made once and kept; `most` is the length of the largest such file.
pub fn is_encoded(path: &str, bytes: u64, most: u64) -> bool {
    (SMALLEST_ENCODED..=most).contains(&bytes) && is_compressible(path)
}

fn essence(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    if name == APP_SITE_ASSOCIATION {
        return "application/json";
    }
    mime_guess::from_path(name)
        .first_raw()
        .unwrap_or(UNKNOWN_TYPE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_web_have_their_types() {
        for (path, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a/b.HTM", "text/html; charset=utf-8"),
            ("app.js", "text/javascript; charset=utf-8"),
            ("app.mjs", "text/javascript; charset=utf-8"),
            ("app.css", "text/css; charset=utf-8"),
            ("notes.txt", "text/plain; charset=utf-8"),
            ("data.json", "application/json"),
            ("app.js.map", "application/json"),
            ("app.wasm", "application/wasm"),
            ("site.webmanifest", "application/manifest+json"),
            ("logo.svg", "image/svg+xml"),
            ("logo.png", "image/png"),
            ("logo.avif", "image/avif"),
            ("favicon.ico", "image/x-icon"),
            ("font.woff2", "font/woff2"),
            ("paper.pdf", "application/pdf"),
            (".well-known/apple-app-site-association", "application/json"),
            ("LICENSE", "application/octet-stream"),
            ("data.unknown-ending", "application/octet-stream"),
        ] {
            assert_eq!(media_type(path), expected, "{path}");
        }
        assert!(is_html("a.html") && !is_html("a.svg"));
        let is_encoded = |path, bytes| is_encoded(path, bytes, 1_000);
        assert!(is_encoded("a.svg", 256) && is_encoded("a.js", 1_000));
        assert!(
            !is_encoded("a.png", 500) && !is_encoded("a.js", 255) && !is_encoded("a.js", 1_001)
        );
    }
}
