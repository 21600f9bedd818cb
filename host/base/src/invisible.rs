//! Characters that nobody sees.

/// Whether a character is invisible: controls, directional marks, invisible operators, tags and supplementary variation selectors. Joiners
/// are not, because scripts need them.
pub fn is_invisible(c: char) -> bool {
    let is_hidden = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    c.is_control() || is_hidden
}
