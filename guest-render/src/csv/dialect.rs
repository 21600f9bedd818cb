//! Dialects of CSV: the characters between cells.

/// The rows of a source, with the delimiter of their cells.
#[derive(Clone, Copy)]
pub(super) struct DelimitedRows<'a> {
    pub(super) text: &'a str,
    pub(super) delimiter: u8,
}

impl<'a> DelimitedRows<'a> {
    /// Detects the delimiter: a comma, unless the first line names another (`sep=;`, as spreadsheets write it), or has semicolons
    /// or tabs and no comma. Quoted text is ignored.
    pub(super) fn detect(source: &'a str) -> Self {
        let text = source.strip_prefix('\u{feff}').unwrap_or(source);
        let line_end = text.find(['\n', '\r']).unwrap_or(text.len());
        let (first, rest) = text.split_at(line_end);
        let said = first
            .get(..4)
            .filter(|begin| begin.eq_ignore_ascii_case("sep="));
        if let (Some(_), [delimiter]) = (said, &first.as_bytes()[first.len().min(4)..])
            && is_delimiter(*delimiter)
        {
            let rest = rest.strip_prefix('\r').unwrap_or(rest);
            return Self {
                text: rest.strip_prefix('\n').unwrap_or(rest),
                delimiter: *delimiter,
            };
        }
        let (mut commas, mut semicolons, mut tabs, mut is_quoted) = (0, 0, 0, false);
        for byte in text.bytes() {
            match byte {
                b'"' => is_quoted = !is_quoted,
                b'\n' | b'\r' if !is_quoted => {
                    if commas + semicolons + tabs > 0 {
                        break;
                    }
                    // Blank lines before a table are skipped.
                    if byte == b'\n' && line_end > 0 {
                        break;
                    }
                }
                b',' if !is_quoted => commas += 1,
                b';' if !is_quoted => semicolons += 1,
                b'\t' if !is_quoted => tabs += 1,
                _ => {}
            }
        }
        let delimiter = match (commas, semicolons, tabs) {
            (0, 0, 0) => b',',
            (0, semicolons, tabs) if tabs > semicolons => b'\t',
            (0, ..) => b';',
            _ => b',',
        };
        Self { text, delimiter }
    }
}

/// Whether a byte can be a delimiter.
fn is_delimiter(byte: u8) -> bool {
    byte.is_ascii_punctuation() && byte != b'"' || matches!(byte, b'\t' | b' ')
}
