//! Files of the console: embedded, addressed by their digests, and compressed at their first request.

use std::io;

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::OnceCell;

use super::headers::{file_headers, icon_headers};
use crate::content::Digest;
use crate::http::document::EncodedDocument;

/// Paths below `host/assets/console`, and bytes, as the build script lists them.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/console_files.rs"));
const ICON_SVG: &[u8] = include_bytes!("../../assets/favicon.svg");
const ICON_ICO: &[u8] = include_bytes!("../../assets/favicon.ico");
/// Folder of the addresses of files.
const ADDRESSES: &str = "/_svc/console/";
/// Characters of a file's digest in its address.
const DIGEST_CHARS: usize = 32;

/// Embedded file, which is compressed at its first request.
#[derive(Debug)]
pub(super) struct EmbeddedFile {
    bytes: &'static [u8],
    headers: HeaderMap,
    document: OnceCell<EncodedDocument>,
}

impl EmbeddedFile {
    fn new(bytes: &'static [u8], headers: HeaderMap) -> Self {
        Self {
            bytes,
            headers,
            document: OnceCell::new(),
        }
    }

    /// Returns the file in all encodings, which are made at the first call.
    ///
    /// # Errors
    /// Only when a compressor fails, or the process ends meanwhile.
    pub(super) async fn document(&self) -> io::Result<&EncodedDocument> {
        let make = async || {
            let (bytes, headers) = (Bytes::from_static(self.bytes), self.headers.clone());
            // Densely: a browser fetches the file once for as long as it is the same.
            let made = tokio::task::spawn_blocking(move || {
                EncodedDocument::compressed_densely(bytes, &headers)
            });
            made.await.map_err(io::Error::other)?
        };
        self.document.get_or_try_init(make).await
    }
}

/// Script or style of the console.
#[derive(Debug)]
pub(super) struct ConsoleFile {
    /// Path below `host/assets/console`.
    pub(super) path: &'static str,
    /// Name below [`ADDRESSES`].
    name: String,
    pub(super) embedded: EmbeddedFile,
}

impl ConsoleFile {
    fn new(path: &'static str, bytes: &'static [u8]) -> Self {
        let (extension, kind) = match path.ends_with(".css") {
            true => ("css", "text/css; charset=utf-8"),
            false => ("js", "text/javascript; charset=utf-8"),
        };
        let digest = Digest::of(bytes).to_string();
        Self {
            path,
            name: format!("{}.{extension}", &digest[..DIGEST_CHARS]),
            embedded: EmbeddedFile::new(bytes, file_headers(kind)),
        }
    }

    /// Returns the path of the file's address.
    pub(super) fn address(&self) -> String {
        format!("{ADDRESSES}{}", self.name)
    }

    /// Whether this is a module that others import.
    pub(super) fn is_module(&self) -> bool {
        !self.path.ends_with(".css")
    }
}

/// All files of the console.
#[derive(Debug)]
pub(super) struct ConsoleFiles {
    files: Vec<ConsoleFile>,
    /// The icon, as lines.
    pub(super) icon_svg: EmbeddedFile,
    /// The icon, as dots.
    pub(super) icon_ico: EmbeddedFile,
}

impl Default for ConsoleFiles {
    fn default() -> Self {
        let files = FILES.iter();
        let files = files.map(|&(path, bytes)| ConsoleFile::new(path, bytes));
        Self {
            files: files.collect(),
            icon_svg: EmbeddedFile::new(ICON_SVG, icon_headers("image/svg+xml")),
            icon_ico: EmbeddedFile::new(ICON_ICO, icon_headers("image/x-icon")),
        }
    }
}

impl ConsoleFiles {
    /// Returns the scripts and styles.
    pub(super) fn all(&self) -> &[ConsoleFile] {
        &self.files
    }

    /// Finds the file of an address, by its name below [`ADDRESSES`].
    pub(super) fn find(&self, name: &str) -> Option<&EmbeddedFile> {
        let file = self.files.iter().find(|file| file.name == name);
        file.map(|file| &file.embedded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_its_digest_alone() {
        let files = ConsoleFiles::default();
        for file in files.all() {
            let name = file.address();
            let name = name.strip_prefix(ADDRESSES).unwrap();
            let found = files.find(name).unwrap();
            assert_eq!(found.bytes, file.embedded.bytes, "{}", file.path);
            assert!(files.find(file.path).is_none(), "{}", file.path);
        }
        for path in ["app/main.js", "styles.css"] {
            assert!(files.all().iter().any(|file| file.path == path), "{path}");
        }
    }
}
