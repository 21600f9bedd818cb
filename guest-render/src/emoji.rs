//! Emoji shortcodes: `:tada:` in a text becomes the emoji of that name, as GitHub's readers are used to.

use std::fmt;

/// GitHub's names (gemoji), one a line with its emoji, sorted by the bytes of the names.
const EMOJI_TABLE: &str = include_str!("../assets/emoji.txt");
/// The longest name that is looked up, in bytes.
const MAX_NAME_BYTES: usize = 48;

/// Writes a text, escaped, with its shortcodes as emoji. What is no name stays as it is.
pub(crate) fn write_escaped(out: &mut dyn fmt::Write, text: &str) -> fmt::Result {
    write_replaced(text, out, comrak::html::escape)
}

/// Returns a text with its shortcodes as emoji, not escaped.
pub(crate) fn replace_shortcodes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // Writing to a string cannot fail.
    let _ = write_replaced(text, &mut plain, |out, text| out.write_str(text));
    plain
}

/// Writes a text with its shortcodes as emoji, and what stands between them as `between` does.
fn write_replaced(
    text: &str,
    out: &mut dyn fmt::Write,
    between: impl Fn(&mut dyn fmt::Write, &str) -> fmt::Result,
) -> fmt::Result {
    let mut written = 0;
    let mut from = 0;
    while let Some(open) = text[from..].find(':').map(|at| from + at) {
        let name_from = open + 1;
        let name = text[name_from..].bytes().take(MAX_NAME_BYTES + 1);
        let length = name.take_while(|byte| is_name_byte(*byte)).count();
        let end = name_from + length;
        let found = (length > 0 && text.as_bytes().get(end) == Some(&b':'))
            .then(|| find_emoji(&text[name_from..end]))
            .flatten();
        match found {
            Some(emoji) => {
                between(out, &text[written..open])?;
                out.write_str(emoji)?;
                written = end + 1;
                from = written;
            }
            None => from = end,
        }
    }
    between(out, &text[written..])
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'+' | b'-')
}

/// The emoji of a name: a search by halves over the lines of the table.
fn find_emoji(name: &str) -> Option<&'static str> {
    let (mut low, mut high) = (0, EMOJI_TABLE.len());
    while low < high {
        let middle = EMOJI_TABLE.floor_char_boundary((low + high) / 2);
        let start = EMOJI_TABLE[..middle].rfind('\n').map_or(0, |at| at + 1);
        let line = EMOJI_TABLE[start..].split('\n').next().unwrap_or_default();
        let (known, emoji) = line.split_once(' ')?;
        match known.cmp(name) {
            std::cmp::Ordering::Equal => return Some(emoji),
            std::cmp::Ordering::Less => low = start + line.len() + 1,
            std::cmp::Ordering::Greater => high = start,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut out = String::new();
        write_escaped(&mut out, text).unwrap();
        out
    }

    #[test]
    fn names_become_emoji_and_nothing_else_does() {
        for (text, expected) in [
            ("", ""),
            (":tada:", "🎉"),
            ("a :+1: b :-1: c", "a 👍 b 👎 c"),
            (":tada::tada:", "🎉🎉"),
            ("10:30:45", "10:30:45"),
            (":nothing_of_the_kind:", ":nothing_of_the_kind:"),
            (":tada", ":tada"),
            ("::tada:", ":🎉"),
            (":Tada: <b> :", ":Tada: &lt;b&gt; :"),
            ("ü:warning:ü", "ü⚠️ü"),
            ("a::b", "a::b"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        assert_eq!(shown(&":".repeat(9)), ":".repeat(9));
    }

    #[test]
    fn every_name_of_the_table_is_found() {
        let mut before = "";
        for line in EMOJI_TABLE.lines() {
            let (name, emoji) = line.split_once(' ').unwrap();
            assert!(before < name && name.len() <= MAX_NAME_BYTES, "{name}");
            assert!(
                name.bytes().all(is_name_byte) && !emoji.contains(['<', '&', '"']),
                "{name}"
            );
            assert_eq!(find_emoji(name), Some(emoji));
            before = name;
        }
    }
}
