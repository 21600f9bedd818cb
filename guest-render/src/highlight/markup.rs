//! Tags, attributes, comments and character references of HTML and XML.

use std::fmt;

use super::{Kind, Pieces};

/// Highlights a whole block.
pub(super) fn scan(pieces: &mut Pieces<'_>) -> fmt::Result {
    let code = pieces.code;
    let mut at = 0;
    while let Some(found) = code[at..].find(['<', '&']) {
        at += found;
        pieces.take(at, Kind::Plain)?;
        let rest = &code[at..];
        let (end, kind) = if rest.starts_with("<!--") {
            (through(code, at, "-->"), Kind::Comment)
        } else if rest.starts_with("<![CDATA[") {
            (through(code, at, "]]>"), Kind::String)
        } else if rest.starts_with("<!") || rest.starts_with("<?") {
            (through(code, at, ">"), Kind::Meta)
        } else if let Some(reference) = rest.strip_prefix('&') {
            let name = reference
                .bytes()
                .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'#')
                .count();
            match rest.as_bytes().get(1 + name) {
                Some(b';') if name > 0 => (at + name + 2, Kind::Literal),
                _ => (at + 1 + name, Kind::Plain),
            }
        } else if rest[1..].starts_with(|next: char| next == '/' || next.is_ascii_alphabetic()) {
            at = tag(pieces, at)?;
            continue;
        } else {
            (at + 1, Kind::Plain)
        };
        pieces.take(end, kind)?;
        at = end;
    }
    Ok(())
}

/// Takes a tag and returns its end.
fn tag(pieces: &mut Pieces<'_>, start: usize) -> Result<usize, fmt::Error> {
    let code = pieces.code;
    let bytes = code.as_bytes();
    let mut at = start
        + 2
        + bytes[start + 2..]
            .iter()
            .take_while(|byte| is_name(**byte))
            .count();
    pieces.take(at, Kind::Meta)?;
    while let Some(byte) = bytes.get(at) {
        let (end, kind) = match byte {
            b'>' => {
                pieces.take(at + 1, Kind::Meta)?;
                return Ok(at + 1);
            }
            b'/' => (at + 1, Kind::Meta),
            b'"' => (through(code, at + 1, "\""), Kind::String),
            b'\'' => (through(code, at + 1, "'"), Kind::String),
            b'<' => return Ok(at),
            byte if is_name(*byte) => (
                at + bytes[at..]
                    .iter()
                    .take_while(|byte| is_name(**byte))
                    .count(),
                Kind::Name,
            ),
            _ => (at + 1, Kind::Plain),
        };
        pieces.take(end, kind)?;
        at = end;
    }
    Ok(at)
}

/// Whether a byte can be part of a name; all bytes beyond ASCII can.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'_' | b':' | b'@' | b'.' | b'#')
        || byte >= 0x80
}

/// Returns the end of the next `end` after `at`, or of the code.
fn through(code: &str, at: usize, end: &str) -> usize {
    code[at..]
        .find(end)
        .map_or(code.len(), |found| at + found + end.len())
}
