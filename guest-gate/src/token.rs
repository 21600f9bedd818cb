//! Tokens of SQL, cut exactly as SQLite 3.54 cuts them.
//!
//! SQLite runs the original text. Where another tokenizer reads it differently (a byte order mark inside a statement, `:a(b)` as
//! one bind, a comment without an end), the judged statement would not be the one that runs. So the parser never reads the
//! original text, but these tokens.

use sqlite3_parser::dialect::{TokenType, keyword_token};

/// Kind of a token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TokenKind {
    /// An unquoted word that is a keyword of SQLite.
    Keyword(TokenType),
    /// An unquoted word that is no keyword.
    Word,
    /// An identifier in `"…"`, `` `…` `` or `[…]`.
    Quoted,
    /// `'…'`: a value, or an identifier where SQLite accepts one.
    Text,
    /// An integer or a floating-point number.
    Number,
    /// Blob: `x'…'`.
    Blob,
    /// A bind of any form.
    Bind,
    /// Opening bracket: `(`
    Open,
    /// Closing bracket: `)`
    Close,
    /// Semicolon: `;`
    Semicolon,
    /// Any other operator or punctuation.
    Sign,
    /// Text that is no token of SQLite, with the reason.
    Illegal(&'static str),
}

/// A token: its kind, and its range in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Token {
    pub(crate) fn text<'s>(&self, sql: &'s str) -> &'s str {
        sql.get(self.start..self.end).unwrap_or("")
    }

    pub(crate) fn is(&self, keyword: TokenType) -> bool {
        self.kind == TokenKind::Keyword(keyword)
    }
}

/// Lengths of keywords, which the parser's table relies on.
const KEYWORD_LENGTHS: std::ops::RangeInclusive<usize> = 2..=17;

/// Cuts SQL into tokens without white space and comments; an illegal token is the last one.
pub(crate) fn tokenize(sql: &str) -> Vec<Token> {
    let bytes = ZeroPaddedBytes(sql.as_bytes());
    let mut tokens = Vec::with_capacity(sql.len() / 4);
    let mut start = 0;
    while start < sql.len() {
        let (kind, end) = next_token(bytes, start);
        if let Some(mut kind) = kind {
            if kind == TokenKind::Word
                && KEYWORD_LENGTHS.contains(&(end - start))
                && let Some(keyword) = keyword_token(&sql.as_bytes()[start..end])
            {
                kind = TokenKind::Keyword(keyword);
            }
            tokens.push(Token { kind, start, end });
            if matches!(kind, TokenKind::Illegal(_)) {
                break;
            }
        }
        start = end;
    }
    tokens
}

/// Bytes of the text; reads beyond the end return zero, as in C.
#[derive(Clone, Copy)]
struct ZeroPaddedBytes<'s>(&'s [u8]);

impl ZeroPaddedBytes<'_> {
    fn byte_at(self, place: usize) -> u8 {
        self.0.get(place).copied().unwrap_or(0)
    }

    /// Returns the end of the run of bytes that satisfy `of`, which must reject zero.
    fn run_end(self, mut place: usize, of: impl Fn(u8) -> bool) -> usize {
        while place < self.0.len() && of(self.byte_at(place)) {
            place += 1;
        }
        place
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0d)
}

/// Whether a byte continues an identifier in SQLite.
fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// Returns the token at `start` and its end; the kind is `None` for white space and comments.
fn next_token(sql: ZeroPaddedBytes<'_>, start: usize) -> (Option<TokenKind>, usize) {
    let second = sql.byte_at(start + 1);
    let sign = |length: usize| (Some(TokenKind::Sign), start + length);
    match sql.byte_at(start) {
        // A vertical tab is white space only after other white space.
        b' ' | b'\t' | b'\n' | 0x0c | b'\r' => (None, sql.run_end(start + 1, is_space)),
        b'-' if second == b'-' => (None, sql.run_end(start + 2, |byte| byte != b'\n')),
        b'-' if second == b'>' => sign(2 + usize::from(sql.byte_at(start + 2) == b'>')),
        b'/' if second == b'*' && start + 2 < sql.0.len() => (None, comment_end(sql, start)),
        b'(' => (Some(TokenKind::Open), start + 1),
        b')' => (Some(TokenKind::Close), start + 1),
        b';' => (Some(TokenKind::Semicolon), start + 1),
        b'=' => sign(1 + usize::from(second == b'=')),
        b'<' => sign(1 + usize::from(matches!(second, b'=' | b'>' | b'<'))),
        b'>' => sign(1 + usize::from(matches!(second, b'=' | b'>'))),
        b'!' if second == b'=' => sign(2),
        b'|' => sign(1 + usize::from(second == b'|')),
        b'.' if second.is_ascii_digit() => scan_number(sql, start),
        b'-' | b'+' | b'*' | b'/' | b'%' | b',' | b'&' | b'~' | b'.' => sign(1),
        b'0'..=b'9' => scan_number(sql, start),
        quote @ (b'\'' | b'"' | b'`') => scan_quoted(sql, start, quote),
        b'[' => {
            let end = sql.run_end(start + 1, |byte| byte != b']');
            if end == sql.0.len() {
                (Some(TokenKind::Illegal("The name in [ ] has no end.")), end)
            } else {
                (Some(TokenKind::Quoted), end + 1)
            }
        }
        b'?' => (
            Some(TokenKind::Bind),
            sql.run_end(start + 1, |byte| byte.is_ascii_digit()),
        ),
        b'$' | b'@' | b'#' | b':' => scan_bind_parameter(sql, start),
        b'x' | b'X' if second == b'\'' => scan_blob(sql, start),
        0xef if second == 0xbb && sql.byte_at(start + 2) == 0xbf => (None, start + 3),
        first if is_word_byte(first) => {
            (Some(TokenKind::Word), sql.run_end(start + 1, is_word_byte))
        }
        0 => (
            Some(TokenKind::Illegal(
                "The SQL holds a NUL byte, where SQLite would stop reading.",
            )),
            start + 1,
        ),
        _ => (
            Some(TokenKind::Illegal("SQLite knows no such sign.")),
            start + 1,
        ),
    }
}

/// Returns the end of a block comment; the end of the text closes one, too.
fn comment_end(sql: ZeroPaddedBytes<'_>, start: usize) -> usize {
    let mut place = start + 3;
    while place < sql.0.len() {
        if sql.byte_at(place - 1) == b'*' && sql.byte_at(place) == b'/' {
            return place + 1;
        }
        place += 1;
    }
    sql.0.len()
}

fn scan_quoted(sql: ZeroPaddedBytes<'_>, start: usize, quote: u8) -> (Option<TokenKind>, usize) {
    let mut place = start + 1;
    while place < sql.0.len() {
        if sql.byte_at(place) == quote {
            if sql.byte_at(place + 1) != quote {
                let kind = match quote {
                    b'\'' => TokenKind::Text,
                    _ => TokenKind::Quoted,
                };
                return (Some(kind), place + 1);
            }
            place += 1;
        }
        place += 1;
    }
    let reason = match quote {
        b'\'' => "The text that begins with ' has no end.",
        _ => "The quoted name has no end.",
    };
    (Some(TokenKind::Illegal(reason)), sql.0.len())
}

fn scan_number(sql: ZeroPaddedBytes<'_>, start: usize) -> (Option<TokenKind>, usize) {
    let digits = |place| sql.run_end(place, |byte| byte.is_ascii_digit() || byte == b'_');
    let mut end;
    if sql.byte_at(start) == b'0'
        && matches!(sql.byte_at(start + 1), b'x' | b'X')
        && sql.byte_at(start + 2).is_ascii_hexdigit()
    {
        end = sql.run_end(start + 3, |byte| byte.is_ascii_hexdigit() || byte == b'_');
    } else {
        end = digits(start);
        if sql.byte_at(end) == b'.' {
            end = digits(end + 1);
        }
        let signed = usize::from(matches!(sql.byte_at(end + 1), b'+' | b'-'));
        if matches!(sql.byte_at(end), b'e' | b'E') && sql.byte_at(end + 1 + signed).is_ascii_digit()
        {
            end = digits(end + 2);
        }
    }
    // A separator must stand between two digits.
    let text = &sql.0[start..end];
    let hexadecimal = text.get(1).is_some_and(|x| matches!(x, b'x' | b'X'));
    let is_digit = |place: Option<&u8>| {
        place.is_some_and(|byte| byte.is_ascii_digit() || (hexadecimal && byte.is_ascii_hexdigit()))
    };
    let separated = text.iter().enumerate().all(|(place, byte)| {
        *byte != b'_'
            || (is_digit(place.checked_sub(1).and_then(|before| text.get(before)))
                && is_digit(text.get(place + 1)))
    });
    if is_word_byte(sql.byte_at(end)) || !separated {
        return (
            Some(TokenKind::Illegal("This is neither a number nor a name.")),
            sql.run_end(end, is_word_byte),
        );
    }
    (Some(TokenKind::Number), end)
}

fn scan_bind_parameter(sql: ZeroPaddedBytes<'_>, start: usize) -> (Option<TokenKind>, usize) {
    const NAMELESS: TokenKind =
        TokenKind::Illegal("A bind has a name behind its colon, as in `:name`.");
    let mut end = start + 1;
    let mut named = false;
    while end < sql.0.len() {
        match sql.byte_at(end) {
            byte if is_word_byte(byte) => named = true,
            b'(' if named => {
                end = sql.run_end(end + 1, |byte| !is_space(byte) && byte != b')');
                if sql.byte_at(end) != b')' {
                    return (Some(NAMELESS), end);
                }
                return (Some(TokenKind::Bind), end + 1);
            }
            b':' if sql.byte_at(end + 1) == b':' => end += 1,
            _ => break,
        }
        end += 1;
    }
    (Some(if named { TokenKind::Bind } else { NAMELESS }), end)
}

fn scan_blob(sql: ZeroPaddedBytes<'_>, start: usize) -> (Option<TokenKind>, usize) {
    let end = sql.run_end(start + 2, |byte| byte.is_ascii_hexdigit());
    if sql.byte_at(end) != b'\'' || !(end - start).is_multiple_of(2) {
        let reason = "A blob is an even number of hexadecimal digits, as in `x'C0FFEE'`.";
        let end = sql.run_end(end, |byte| byte != b'\'');
        return (
            Some(TokenKind::Illegal(reason)),
            end + usize::from(end < sql.0.len()),
        );
    }
    (Some(TokenKind::Blob), end + 1)
}

/// Returns the name that a token means, without its quotes.
pub(crate) fn unquote(text: &str) -> String {
    let inner = |quote: char| {
        text.strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
    };
    for (quote, twice) in [('"', "\"\""), ('`', "``"), ('\'', "''")] {
        if let Some(inner) = inner(quote) {
            return inner.replace(twice, &quote.to_string());
        }
    }
    text.strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(text)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tokens' texts, with `!` before an illegal one.
    fn texts(sql: &str) -> Vec<String> {
        let text = |token: &Token| match token.kind {
            TokenKind::Illegal(_) => format!("!{}", token.text(sql)),
            _ => token.text(sql).to_owned(),
        };
        tokenize(sql).iter().map(text).collect()
    }

    #[test]
    fn tokens_are_cut_as_sqlite_cuts_them() {
        for (sql, expected) in [
            ("a-->b\nc", vec!["a", "c"]),
            (
                "a->b->>c- >d",
                vec!["a", "->", "b", "->>", "c", "-", ">", "d"],
            ),
            ("a/**/b/*/c*/d/*", vec!["a", "b", "d", "/", "*"]),
            ("a/* never closed", vec!["a"]),
            (
                "<=<>< <<>=>>>!=",
                vec!["<=", "<>", "<", "<<", ">=", ">>", ">", "!="],
            ),
            ("===|||", vec!["==", "=", "||", "|"]),
            (
                "'it''s'\"a\"\"b\"[c[d]`e``f`",
                vec!["'it''s'", "\"a\"\"b\"", "[c[d]", "`e``f`"],
            ),
            (
                "1.5e-3.5e1 0x1F_0 1_0",
                vec!["1.5e-3", ".5e1", "0x1F_0", "1_0"],
            ),
            ("1.e1 1..2", vec!["1.e1", "1.", ".2"]),
            ("x'00' x '00'", vec!["x'00'", "x", "'00'"]),
            (":a::b(c)d", vec![":a::b(c)", "d"]),
            (":a?12b@c$d", vec![":a", "?12", "b", "@c$d"]),
            ("a$b é\u{feff}x", vec!["a$b", "é\u{feff}x"]),
            ("\u{feff}a \u{feff}b", vec!["a", "b"]),
            ("a \u{b}b", vec!["a", "b"]),
            ("a\u{b}b", vec!["a", "!\u{b}"]),
            ("1a b", vec!["!1a"]),
            ("1__0", vec!["!1__0"]),
            ("x'0'", vec!["!x'0'"]),
            ("'a", vec!["!'a"]),
            ("[a", vec!["![a"]),
            (":", vec!["!:"]),
            (":a(b c)", vec!["!:a(b"]),
            ("\\", vec!["!\\"]),
        ] {
            assert_eq!(texts(sql), expected, "{sql:?}");
        }
    }

    #[test]
    fn names_lose_their_quotes() {
        for (text, name) in [
            ("a", "a"),
            ("\"a\"\"b\"", "a\"b"),
            ("`a``b`", "a`b"),
            ("'a''b'", "a'b"),
            ("[a\"b]", "a\"b"),
            ("\"\"", ""),
        ] {
            assert_eq!(unquote(text), name);
        }
    }
}
