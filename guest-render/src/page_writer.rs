//! A writer into the page under construction that knows where it stands and refuses to pass the page's bound.

use std::cell::Cell;
use std::fmt;

use crate::RenderError;

/// Writes markup and text into a page.
pub(crate) struct PageWriter<'a> {
    buffer: &'a mut String,
    limit: usize,
}

impl<'a> PageWriter<'a> {
    /// Writes at the end of `buffer`, up to `limit` bytes in all.
    pub(crate) fn new(buffer: &'a mut String, limit: usize) -> Self {
        Self { buffer, limit }
    }

    /// Where the next byte will stand.
    pub(crate) fn position(&self) -> usize {
        self.buffer.len()
    }

    /// How many bytes may still follow.
    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.buffer.len())
    }

    /// Writes markup as it is.
    pub(crate) fn markup(&mut self, markup: &str) -> Result<(), RenderError> {
        if markup.len() > self.room() {
            return Err(RenderError::TooLarge);
        }
        self.buffer.push_str(markup);
        Ok(())
    }

    /// Writes text that nothing of can become markup, between tags or inside a quoted attribute.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), RenderError> {
        let mut rest = text;
        while let Some(at) = rest.bytes().position(is_special) {
            let (plain, from_special) = rest.split_at(at);
            self.markup(plain)?;
            self.markup(escape(from_special.as_bytes()[0]))?;
            rest = &from_special[1..];
        }
        self.markup(rest)
    }
}

impl fmt::Write for PageWriter<'_> {
    fn write_str(&mut self, markup: &str) -> fmt::Result {
        self.markup(markup).map_err(|_| fmt::Error)
    }
}

/// Tells a formatter, which cannot see what it writes to, where in the page it stands.
pub(crate) struct PositionTracker<'a, 'page> {
    out: &'a mut PageWriter<'page>,
    position: &'a Cell<usize>,
}

impl<'a, 'page> PositionTracker<'a, 'page> {
    /// Writes to `out` and keeps `position`.
    pub(crate) fn new(out: &'a mut PageWriter<'page>, position: &'a Cell<usize>) -> Self {
        Self { out, position }
    }
}

impl fmt::Write for PositionTracker<'_, '_> {
    fn write_str(&mut self, markup: &str) -> fmt::Result {
        self.out.markup(markup).map_err(|_| fmt::Error)?;
        self.position.set(self.out.position());
        Ok(())
    }
}

/// How many bytes `text` takes in a page.
pub(crate) fn escaped_len(text: &str) -> usize {
    let grown = text.bytes().filter(|byte| is_special(*byte));
    text.len() + grown.map(|byte| escape(byte).len() - 1).sum::<usize>()
}

/// Whether a byte of text cannot stand in markup as it is. All are ASCII, so that splitting there is safe.
fn is_special(byte: u8) -> bool {
    matches!(byte, b'&' | b'<' | b'>' | b'"' | b'\'' | 0)
}

/// Replaces a special byte. A NUL would be a parse error in any reader of HTML: they show U+FFFD.
fn escape(byte: u8) -> &'static str {
    match byte {
        b'&' => "&amp;",
        b'<' => "&lt;",
        b'>' => "&gt;",
        b'"' => "&quot;",
        b'\'' => "&#39;",
        _ => "\u{fffd}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_measured() {
        for (text, expected) in [
            ("", ""),
            ("plain ü", "plain ü"),
            ("<a b='\"'>&amp;", "&lt;a b=&#39;&quot;&#39;&gt;&amp;amp;"),
            ("\0x\0", "\u{fffd}x\u{fffd}"),
        ] {
            let mut buffer = String::new();
            PageWriter::new(&mut buffer, 1_000).text(text).unwrap();
            assert_eq!(buffer, expected);
            assert_eq!(escaped_len(text), expected.len());
        }
    }

    #[test]
    fn the_bound_holds_to_the_byte() {
        let mut buffer = String::from("12");
        let mut out = PageWriter::new(&mut buffer, 5);
        assert_eq!(out.markup("345"), Ok(()));
        assert_eq!(out.markup(""), Ok(()));
        assert_eq!(out.markup("6"), Err(RenderError::TooLarge));
        assert_eq!(out.position(), 5);
    }
}
