//! Positions in a source, as authors count them.

use crate::{Malformed, Place, RenderError};

/// Returns the position of the byte at `offset`: line and column from 1, the column in Unicode scalar values.
///
/// An offset inside a character counts as that character; one past the end as the position after the last character.
pub(crate) fn position_at(text: &str, offset: usize) -> Place {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before[line_start..].chars().count() + 1;
    Place {
        line: to_u32(line),
        column: to_u32(column),
    }
}

/// Makes the error for a source that breaks the rules of its type at `offset`.
pub(crate) fn malformed_error(text: &str, offset: usize, message: String) -> RenderError {
    RenderError::Malformed(Malformed {
        message,
        place: Some(position_at(text, offset)),
    })
}

/// Converts a count for the host.
pub(crate) fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters() {
        for (text, offset, line, column) in [
            ("", 0, 1, 1),
            ("ab", 2, 1, 3),
            ("ab", 99, 1, 3),
            ("a\nb", 1, 1, 2),
            ("a\nb", 2, 2, 1),
            ("a\r\nb", 3, 2, 1),
            ("üñx", 4, 1, 3),
            ("üñx", 3, 1, 2),
            ("😀\n😀!", 9, 2, 2),
        ] {
            assert_eq!(
                position_at(text, offset),
                Place { line, column },
                "{text:?} at {offset}"
            );
        }
    }
}
