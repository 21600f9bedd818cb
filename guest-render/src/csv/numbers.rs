//! Numbers as people write them in tables.

/// Whether a cell holds one number as people write it in tables: with a sign, a currency or a percentage, and with points,
/// commas, apostrophes or spaces between its groups.
pub(crate) fn is_number(cell: &str) -> bool {
    const SIGNS: [char; 12] = ['+', '-', '−', '$', '€', '£', '¥', '₹', '%', '‰', '(', ')'];
    const CURRENCIES: [&str; 8] = ["EUR", "USD", "CHF", "GBP", "SEK", "NOK", "DKK", "PLN"];
    let is_around = |char: char| SIGNS.contains(&char) || char.is_whitespace();
    let mut digits = cell.trim_matches(is_around);
    for currency in CURRENCIES {
        let bare = digits
            .strip_suffix(currency)
            .or_else(|| digits.strip_prefix(currency));
        digits = bare.unwrap_or(digits).trim_matches(is_around);
    }
    let is_separator = |char: char| {
        matches!(
            char,
            '.' | ',' | '_' | '\'' | '’' | ' ' | '\u{a0}' | '\u{202f}'
        )
    };
    if digits.len() > 40
        || !digits.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '.' | ','))
    {
        return false;
    }
    let is_spaced = digits.contains([' ', '\u{a0}', '\u{202f}', '\'', '’']);
    let mut groups = digits.split([' ', '\u{a0}', '\u{202f}', '\'', '’']).skip(1);
    if is_spaced && !groups.all(|group| group.bytes().take_while(u8::is_ascii_digit).count() == 3) {
        return false;
    }
    // Times, dates, addresses and versions are not numbers.
    let points = digits.matches('.').count();
    let is_grouped = points < 2
        || digits.split('.').skip(1).all(|group| {
            group
                .split(',')
                .next()
                .is_some_and(|group| group.len() == 3)
        });
    let mut chars = digits.chars().peekable();
    is_grouped
        && std::iter::from_fn(|| chars.next().map(|char| (char, chars.peek().copied()))).all(
            |(char, next)| {
                char.is_ascii_digit()
                    || is_separator(char)
                    || (matches!(char, 'e' | 'E')
                        && next
                            .is_some_and(|next| next.is_ascii_digit() || matches!(next, '+' | '-')))
                    || matches!(char, '+' | '-') && digits.contains(['e', 'E'])
            },
        )
}
