//! A file as a source: what its name says that it is, and code as Markdown.

use crate::ContentType;
use crate::languages::language_by_name;

/// The bytes of a file are no text, so no page can be made of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The file is not text in UTF-8. Pages are made of text: {}, or code.", ContentType::ALL.map(ContentType::label).join(", "))]
pub struct NotText;

/// The text of a file, without the mark that some editors begin it with.
///
/// # Errors
/// When it is none.
pub fn decode_text(bytes: &[u8]) -> Result<&str, NotText> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(NotText),
    }
}

/// Makes a source of a text: of the type that is `wanted`, else of the one that the file's name says, else as code.
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

/// The type that a file's name names.
fn type_by_name(file: &str) -> Option<ContentType> {
    let (_, extension) = file.rsplit_once('.')?;
    ContentType::from_extension(extension)
}

/// One block of Markdown whose fence nothing in the text can close.
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
