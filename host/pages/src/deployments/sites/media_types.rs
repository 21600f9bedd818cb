//! Media types of a site's files, by the endings of their paths: nothing is guessed from bytes.

/// Type of files that no table knows.
const UNKNOWN_TYPE: &str = "application/octet-stream";
/// File without an ending whose type Apple prescribes.
const APP_SITE_ASSOCIATION: &str = "apple-app-site-association";
/// Types outside of `text/` whose files are texts that compress well.
const COMPRESSIBLE_TYPES: [&str; 17] = [
    "application/json",
    "application/json5",
    "application/rtf",
    "application/sql",
    "application/toml",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/xml",
    "application/xml-dtd",
    "application/yaml",
    "font/collection",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/vnd.microsoft.icon",
    "model/obj",
    "model/stl",
];
/// Types by endings, where IANA's registry has another one than the table of `mime_guess`, or that has none.
const REGISTERED_TYPES: [(&str, &str); 28] = [
    ("cer", "application/pkix-cert"),
    ("cjs", "text/javascript"),
    ("dtd", "application/xml-dtd"),
    ("ico", "image/vnd.microsoft.icon"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("m4a", "audio/mp4"),
    ("m4b", "audio/mp4"),
    ("m4v", "video/mp4"),
    ("map", "application/json"),
    ("mjs", "text/javascript"),
    ("mka", "audio/matroska"),
    ("mkv", "video/matroska"),
    ("obj", "model/obj"),
    ("otf", "font/otf"),
    ("pem", "application/pem-certificate-chain"),
    ("psd", "image/vnd.adobe.photoshop"),
    ("rar", "application/vnd.rar"),
    ("sql", "application/sql"),
    ("stl", "model/stl"),
    ("swf", "application/vnd.adobe.flash.movie"),
    ("toml", "application/toml"),
    ("ts", "video/mp2t"),
    ("vcf", "text/vcard"),
    ("woff", "font/woff"),
    ("xsl", "application/xslt+xml"),
    ("xslt", "application/xslt+xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
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
    matches!(essence(path), "text/html" | "application/xhtml+xml")
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
    let registered = name.rsplit_once('.').and_then(|(_, ending)| {
        let mut types = REGISTERED_TYPES.iter();
        types.find(|(known, _)| known.eq_ignore_ascii_case(ending))
    });
    match registered {
        Some(&(_, essence)) => essence,
        None => mime_guess::from_path(name)
            .first_raw()
            .unwrap_or(UNKNOWN_TYPE),
    }
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
            ("favicon.ico", "image/vnd.microsoft.icon"),
            ("font.woff2", "font/woff2"),
            ("font.woff", "font/woff"),
            ("font.otf", "font/otf"),
            ("font.TTF", "font/ttf"),
            ("lib.cjs", "text/javascript; charset=utf-8"),
            ("song.m4a", "audio/mp4"),
            ("api.yaml", "application/yaml"),
            ("api.yml", "application/yaml"),
            ("part.ts", "video/mp2t"),
            ("list.m3u8", "application/vnd.apple.mpegurl"),
            ("photo.webp", "image/webp"),
            ("photo.jxl", "image/jxl"),
            ("README.md", "text/markdown; charset=utf-8"),
            ("card.vcf", "text/vcard; charset=utf-8"),
            ("paper.pdf", "application/pdf"),
            (".well-known/apple-app-site-association", "application/json"),
            ("LICENSE", "application/octet-stream"),
            ("data.unknown-ending", "application/octet-stream"),
        ] {
            assert_eq!(media_type(path), expected, "{path}");
        }
        assert!(is_html("a.html") && !is_html("a.svg"));
        let is_encoded = |path, bytes| is_encoded(path, bytes, 1_000);
        for path in [
            "a.svg", "a.otf", "a.ttf", "a.map", "a.wasm", "a.yml", "a.ico",
        ] {
            assert!(is_encoded(path, 256), "{path}");
        }
        assert!(is_encoded("a.js", 1_000) && !is_encoded("a.woff2", 500));
        assert!(
            !is_encoded("a.png", 500) && !is_encoded("a.js", 255) && !is_encoded("a.js", 1_001)
        );
    }
}
