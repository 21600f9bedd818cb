//! Formats of text and numbers.

/// Rounds all numbers in a value to three decimals, which is what a screen can show.
pub(super) fn round_numbers(value: &str) -> String {
    let mut short = String::with_capacity(value.len());
    let mut decimals = None;
    for char in value.chars() {
        decimals = match (decimals, char) {
            (_, '.') => Some(0),
            (Some(count), '0'..='9') => Some(count + 1),
            _ => None,
        };
        if decimals.is_none_or(|count| count <= 3) {
            short.push(char);
        }
    }
    short
}

/// Formats a number of pixels with at most three decimals.
pub(super) fn format_decimal(value: f64) -> String {
    let rounded = format!("{value:.3}");
    rounded
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

/// Writes text, escaped for use in an element or an attribute.
pub(super) fn escape(out: &mut String, text: &str) {
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\0' => out.push('\u{fffd}'),
            char => out.push(char),
        }
    }
}
