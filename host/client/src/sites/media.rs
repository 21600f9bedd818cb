//! Files that people paste, and that are no pages: pictures, sounds, films and documents. Each is a site of its own.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::folder::{LocalFile, SiteFolder};
use super::paths::{path_fault, to_nfc};
use crate::error::{CliFailure, Result};
use crate::source;
use svc_sources::media::{MediaKind, media_by_name};

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;

fn kind_of(path: &Path) -> Option<MediaKind> {
    let (_, kind) = media_by_name(path.file_name()?.to_str()?)?;
    Some(kind)
}

/// Whether a file is published as a site of its own, by its name.
pub(crate) fn is_media(path: &Path) -> bool {
    kind_of(path).is_some()
}

/// Reads a file that is published as a site of its own; returns its name in an address, and its bytes.
///
/// # Errors
/// When it cannot be read, is far too large, or has a name that no address has.
pub(crate) fn read_media(path: &Path) -> Result<(String, Vec<u8>)> {
    let name = path.file_name().unwrap_or_default().to_str().map(to_nfc);
    let fault = match name.as_deref().map(path_fault) {
        Some(fault) => fault,
        None => Some("has a name that is no text in UTF-8"),
    };
    let (Some(name), None) = (name, fault) else {
        return Err(CliFailure::local(format!(
            "{} {}. Rename it. Nothing was sent.",
            path.display(),
            fault.unwrap_or_default()
        )));
    };
    let failed = |error: std::io::Error| CliFailure::file_system("Reading", path, &error);
    let (file, _) = source::open_regular(path)?;
    let mut bytes = Vec::new();
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    match read.map_err(failed)? as u64 <= MAX_BYTES {
        true => Ok((name, bytes)),
        false => Err(CliFailure::local(format!(
            "{} has more than {} MB, and so much is not sent in one file. Nothing was sent.",
            path.display(),
            MAX_BYTES >> 20
        ))),
    }
}

/// Makes a site of a file, with a page that shows it.
///
/// # Errors
/// As of [`read_media`].
pub(crate) fn media_site(path: &Path) -> Result<SiteFolder> {
    let (name, bytes) = read_media(path)?;
    let kind = kind_of(path).unwrap_or(MediaKind::Paper);
    let page = LocalFile::of_bytes(page_of(&name, kind).as_bytes());
    let file = LocalFile::of_bytes(&bytes);
    let files = BTreeMap::from([("index.html".to_owned(), page), (name, file)]);
    Ok(SiteFolder::of_files(path, files))
}

/// Page that shows a file.
fn page_of(name: &str, kind: MediaKind) -> String {
    let address = utf8_percent_encode(name, NON_ALPHANUMERIC);
    let name = escape_html(name);
    let shown = match kind {
        MediaKind::Picture => format!("<img src=\"{address}\" alt=\"{name}\">"),
        MediaKind::Sound => format!("<audio controls src=\"{address}\"></audio>"),
        MediaKind::Video => format!("<video controls src=\"{address}\"></video>"),
        MediaKind::Paper => format!("<a href=\"{address}\">{name}</a>"),
    };
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{name}</title>\n\
         <style>:root{{color-scheme:light dark;font:1rem system-ui}}body{{margin:0;min-height:100vh;display:grid;place-items:center}}img,video{{max-width:100%;max-height:100vh}}</style>\n\
         {shown}\n"
    )
}

fn escape_html(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        c => c.to_string(),
    });
    escaped.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_the_file_and_runs_nothing_of_its_name() {
        let page = page_of("a\"><script>.png", MediaKind::Picture);
        assert!(!page.contains("<script>"), "{page}");
        assert!(page.contains("src=\"a%22%3E%3Cscript%3E%2Epng\""), "{page}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my film.mp4");
        std::fs::write(&path, b"\0\0").unwrap();
        let site = media_site(&path).unwrap();
        let paths: Vec<_> = site.files.keys().map(String::as_str).collect();
        assert_eq!(paths, ["index.html", "my film.mp4"]);
        assert_eq!(site.read_file("my film.mp4").unwrap(), b"\0\0");
        let hidden = folder.path().join(".a.png");
        std::fs::write(&hidden, b"x").unwrap();
        assert!(media_site(&hidden).is_err());
    }
}
