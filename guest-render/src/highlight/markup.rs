//! Tags, attributes, comments and references of HTML and XML.

use std::fmt;

use super::{SpanWriter, TokenClass};

/// Takes a whole block.
pub(super) fn scan(pieces: &mut SpanWriter<'_>) -> fmt::Result {
    let code = pieces.code;
    let mut at = 0;
    while let Some(found) = code[at..].find(['<', '&']) {
        at += found;
        pieces.take(at, TokenClass::Plain)?;
        let rest = &code[at..];
        let (end, kind) = if rest.starts_with("<!--") {
            (end_after(code, at, "-->"), TokenClass::Comment)
        } else if rest.starts_with("<![CDATA[") {
            (end_after(code, at, "]]>"), TokenClass::String)
        } else if rest.starts_with("<!") || rest.starts_with("<?") {
            (end_after(code, at, ">"), TokenClass::Meta)
        } else if let Some(reference) = rest.strip_prefix('&') {
            let name = reference
                .bytes()
                .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'#')
                .count();
            match rest.as_bytes().get(1 + name) {
                Some(b';') if name > 0 => (at + name + 2, TokenClass::Literal),
                _ => (at + 1 + name, TokenClass::Plain),
            }
        } else if rest[1..].starts_with(|next: char| next == '/' || next.is_ascii_alphabetic()) {
            at = take_tag(pieces, at)?;
            continue;
        } else {
            (at + 1, TokenClass::Plain)
        };
        pieces.take(end, kind)?;
        at = end;
    }
    Ok(())
}

/// Takes a tag and answers where it ends.
fn take_tag(pieces: &mut SpanWriter<'_>, start: usize) -> Result<usize, fmt::Error> {
    let code = pieces.code;
    let bytes = code.as_bytes();
    let mut at = start
        + 2
        + bytes[start + 2..]
            .iter()
            .take_while(|byte| is_name(**byte))
            .count();
    pieces.take(at, TokenClass::Meta)?;
    while let Some(byte) = bytes.get(at) {
        let (end, kind) = match byte {
            b'>' => {
                pieces.take(at + 1, TokenClass::Meta)?;
                return Ok(at + 1);
            }
            b'/' => (at + 1, TokenClass::Meta),
            b'"' => (end_after(code, at + 1, "\""), TokenClass::String),
            b'\'' => (end_after(code, at + 1, "'"), TokenClass::String),
            b'<' => return Ok(at),
            byte if is_name(*byte) => (
                at + bytes[at..]
                    .iter()
                    .take_while(|byte| is_name(**byte))
                    .count(),
                TokenClass::Name,
            ),
            _ => (at + 1, TokenClass::Plain),
        };
        pieces.take(end, kind)?;
        at = end;
    }
    Ok(at)
}

/// Bytes of names, those of characters beyond ASCII among them.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'_' | b':' | b'@' | b'.' | b'#')
        || byte >= 0x80
}

/// Where the next `end` from `at` ends, or the code.
fn end_after(code: &str, at: usize, end: &str) -> usize {
    code[at..]
        .find(end)
        .map_or(code.len(), |found| at + found + end.len())
}
