//! Positions in SQL, as authors count them.

/// Position in the SQL: `line` and `column` from 1, `column` in characters, `offset` in bytes from 0.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Offset in bytes, from 0.
    pub offset: u32,
}

impl Position {
    /// Returns the position of a byte, which is the first of a character or the end of the text.
    pub(crate) fn at_offset(sql: &str, offset: usize) -> Self {
        let before = sql.get(..offset).unwrap_or(sql);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: to_u32(before.matches('\n').count()).saturating_add(1),
            column: to_u32(before[line_start..].chars().count()).saturating_add(1),
            offset: to_u32(offset),
        }
    }
}

/// Converts a count for the host; SQL is far shorter than 4 GiB.
pub(crate) fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A reason for a refusal, with the offset of the text that it refers to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct LocatedRefusalReason {
    pub(crate) offset: usize,
    pub(crate) reason: String,
}

impl LocatedRefusalReason {
    pub(crate) fn new(offset: usize, reason: impl Into<String>) -> Self {
        Self {
            offset,
            reason: reason.into(),
        }
    }
}

/// Quotes a part of an author's SQL in a reason: one line, shortened.
pub(crate) fn quote_excerpt(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown: String = text
        .chars()
        .take(LONGEST)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_offsets_bytes() {
        let sql = "é\nßx";
        for (offset, line, column) in [(0, 1, 1), (2, 1, 2), (3, 2, 1), (5, 2, 2), (6, 2, 3)] {
            let position = Position::at_offset(sql, offset);
            assert_eq!((position.line, position.column), (line, column), "{offset}");
            assert_eq!(position.offset, to_u32(offset));
        }
    }

    #[test]
    fn a_quotation_is_one_short_line() {
        assert_eq!(quote_excerpt("a\nb"), "`a b`");
        assert_eq!(quote_excerpt(&"x".repeat(100)).chars().count(), 63);
    }
}
