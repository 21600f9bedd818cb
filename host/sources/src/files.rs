//! Files as sources of pages: the content type by the file's name, and program code as Markdown.

use crate::ContentType;
use crate::languages::language_by_name;

/// The bytes of a file are not text, so no page can be made of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The file is not text in UTF-8. Pages are made of text: {}, or code.", ContentType::ALL.map(ContentType::label).join(", "))]
pub struct NotTextError;

/// Decodes a file as UTF-8, without a byte order mark.
///
/// # Errors
/// The bytes are not UTF-8, or hold a NUL.
pub fn decode_text(bytes: &[u8]) -> Result<&str, NotTextError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(NotTextError),
    }
}

/// Makes the source of a page: of the type `wanted`, else of the type that the file's name says, else as a block of code.
pub fn source_from_file(
    file: &str,
    wanted: Option<ContentType>,
    text: &str,
) -> (ContentType, String) {
    match wanted.or_else(|| type_by_name(file)) {
        Some(content_type) => (content_type, text.to_owned()),
        None => (
            ContentType::Markdown,
            fence_code(text, &language_by_name(file)),
        ),
    }
}

/// Returns the content type for the extension of a file's name.
fn type_by_name(file: &str) -> Option<ContentType> {
    let (_, extension) = file.rsplit_once('.')?;
    ContentType::from_extension(extension)
}

/// Wraps a text in a fenced block of Markdown. The fence is longer than every run of backticks in the text.
fn fence_code(text: &str, language: &str) -> String {
    let runs = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0).max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_wishes_decide() {
        use ContentType::{Csv, Html, Json, Markdown, Mermaid};
        for (file, wanted, expected) in [
            ("a.html", None, Html),
            ("A.HTM", None, Html),
            ("a.md", None, Markdown),
            ("a.markdown", None, Markdown),
            ("a.json", None, Json),
            ("a.csv", None, Csv),
            ("a.tsv", None, Csv),
            ("a.mmd", None, Mermaid),
            ("a.mermaid", None, Mermaid),
            ("a.md", Some(Html), Html),
            ("", Some(Json), Json),
        ] {
            let found = source_from_file(file, wanted, "x");
            assert_eq!(found, (expected, "x".to_owned()), "{file}");
        }
    }

    #[test]
    fn code_stays_in_its_fence() {
        for (text, expected) in [
            ("a", "```rust\na\n```\n"),
            ("a\n", "```rust\na\n```\n"),
            ("```\n", "````rust\n```\n````\n"),
            ("`````", "``````rust\n`````\n``````\n"),
        ] {
            let found = source_from_file("a.rs", None, text);
            assert_eq!(found, (ContentType::Markdown, expected.to_owned()));
        }
    }

    #[test]
    fn what_is_no_text_is_refused() {
        assert_eq!(decode_text(b"\xef\xbb\xbfa").unwrap(), "a");
        for bytes in [&b"\x89PNG\r\n"[..], b"a\0b", b"\xff\xfea\0"] {
            assert!(decode_text(bytes).is_err(), "{bytes:?}");
        }
    }
}
