//! Media types of a site's files, by the endings of their paths: nothing is guessed from bytes.

use std::collections::HashMap;
use std::sync::LazyLock;

use http::HeaderValue;

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

/// Endings of most files of sites, beside those of [`REGISTERED_TYPES`].
const USUAL_ENDINGS: [&str; 27] = [
    "avif",
    "css",
    "csv",
    "gif",
    "htm",
    "html",
    "jpeg",
    "jpg",
    "js",
    "json",
    "md",
    "mp3",
    "mp4",
    "ogg",
    "pdf",
    "png",
    "svg",
    "ttf",
    "txt",
    "wasm",
    "wav",
    "webm",
    "webmanifest",
    "webp",
    "woff2",
    "xml",
    "zip",
];

/// Types of usual endings, found once: every view of a file asks for one.
static USUAL_TYPES: LazyLock<HashMap<&str, MediaType>> = LazyLock::new(|| {
    let registered = REGISTERED_TYPES.iter().map(|(ending, _)| *ending);
    let endings = registered.chain(USUAL_ENDINGS);
    let types = endings.map(|ending| (ending, MediaType::new(essence(&format!("file.{ending}")))));
    types.collect()
});

/// Bytes of the smallest file of which encodings are made: they save less than their headers cost of a smaller one.
const SMALLEST_ENCODED: u64 = 256;

/// Media type of a file.
#[derive(Clone, Debug)]
pub struct MediaType {
    /// Type without parameters.
    essence: &'static str,
    /// Value of `Content-Type`, with the encoding of texts.
    header: HeaderValue,
}

impl MediaType {
    fn new(essence: &'static str) -> Self {
        let header = match essence.starts_with("text/") {
            true => HeaderValue::try_from(format!("{essence}; charset=utf-8")).ok(),
            false => None,
        };
        Self {
            essence,
            header: header.unwrap_or(HeaderValue::from_static(essence)),
        }
    }

    /// Finds the type of a file by its path.
    pub fn of(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let ending = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
        match ending.and_then(|(_, ending)| USUAL_TYPES.get(ending)) {
            Some(usual) => usual.clone(),
            None => Self::new(essence(name)),
        }
    }

    /// Returns the type with the encoding of texts.
    pub fn as_str(&self) -> &str {
        self.header.to_str().unwrap_or(self.essence)
    }

    /// Returns the value of `Content-Type`.
    pub fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// Whether this is the type of HTML documents.
    pub fn is_html(&self) -> bool {
        matches!(self.essence, "text/html" | "application/xhtml+xml")
    }

    /// Whether this is the type of documents that browsers show by a plug-in.
    pub fn is_pdf(&self) -> bool {
        self.essence == "application/pdf"
    }

    /// Whether encodings of a file of so many bytes are made once and kept; `most` is the length of the largest such file.
    pub fn is_encoded(&self, bytes: u64, most: u64) -> bool {
        (SMALLEST_ENCODED..=most).contains(&bytes) && self.is_compressible()
    }

    /// Whether a file is likely to become smaller by compression.
    fn is_compressible(&self) -> bool {
        let essence = self.essence;
        let is_markup = || {
            let mut endings = ["+json", "+xml"].iter();
            endings.any(|ending| essence.ends_with(ending))
        };
        essence.starts_with("text/") || is_markup() || COMPRESSIBLE_TYPES.contains(&essence)
    }
}

/// Finds the type of a file by its name.
fn essence(name: &str) -> &'static str {
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
            ("a.html/b", "application/octet-stream"),
            ("lib.MJS", "text/javascript; charset=utf-8"),
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
            let found = MediaType::of(path);
            assert_eq!(found.as_str(), expected, "{path}");
            assert_eq!(found.header(), expected, "{path}");
        }
        let is_html = |path| MediaType::of(path).is_html();
        assert!(is_html("a.html") && is_html("a.XHTML") && !is_html("a.svg"));
        assert!(MediaType::of("a.pdf").is_pdf() && !MediaType::of("pdf").is_pdf());
        let is_encoded = |path, bytes| MediaType::of(path).is_encoded(bytes, 1_000);
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
