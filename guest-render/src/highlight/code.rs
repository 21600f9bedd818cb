//! Words, strings, comments and numbers of programming and configuration languages.

use std::collections::HashMap;
use std::fmt;

use super::languages::{Language, LanguageFeature};
use super::{SpanWriter, TokenClass};

/// Length limit of a regular expression, in bytes.
const MAX_REGEX_BYTES: usize = 200;

/// Highlights a whole block. Every step takes at least one character and looks ahead a bounded distance.
pub(super) fn scan(language: &Language, pieces: &mut SpanWriter<'_>) -> fmt::Result {
    let mut scanner = CodeScanner {
        language,
        words: word_classes(language),
        code: pieces.code,
        at: 0,
        before: b'\n',
        starts_line: true,
    };
    while scanner.at < scanner.code.len() {
        let start = scanner.at;
        let (end, kind) = scanner.next_token();
        pieces.take(end, kind)?;
        let taken = &scanner.code[start..end];
        let last = taken.bytes().rev().find(|byte| !byte.is_ascii_whitespace());
        if let Some(last) = last.filter(|_| kind != TokenClass::Comment) {
            scanner.before = last;
            scanner.starts_line = false;
        }
        // In YAML, a key may follow a list's dash.
        if taken.ends_with('\n') || (taken == "-" && language.has(LanguageFeature::ColonKeys)) {
            scanner.starts_line = true;
        }
        scanner.at = end;
    }
    Ok(())
}

/// Returns the classes of a language's special words.
fn word_classes(language: &Language) -> HashMap<&'static str, TokenClass> {
    let kinds = [
        (language.types, TokenClass::Type),
        (language.literals, TokenClass::Literal),
        (language.keywords, TokenClass::Keyword),
    ];
    kinds
        .into_iter()
        .flat_map(|(words, kind)| words.split(' ').map(move |word| (word, kind)))
        .collect()
}

struct CodeScanner<'a> {
    language: &'a Language,
    words: HashMap<&'static str, TokenClass>,
    code: &'a str,
    at: usize,
    /// The last byte taken that is not white space.
    before: u8,
    /// Whether only white space stands before on this line.
    starts_line: bool,
}

impl CodeScanner<'_> {
    fn rest(&self) -> &str {
        &self.code[self.at..]
    }

    /// Returns the end and the class of the next token.
    fn next_token(&self) -> (usize, TokenClass) {
        let first = self.code.as_bytes()[self.at];
        if first.is_ascii_whitespace() {
            let space = self
                .rest()
                .bytes()
                .take_while(u8::is_ascii_whitespace)
                .count();
            return (self.end_of_space(space), TokenClass::Plain);
        }
        self.scan_comment()
            .or_else(|| self.scan_meta(first))
            .or_else(|| self.scan_string(first))
            .or_else(|| self.scan_regex(first))
            .or_else(|| self.scan_variable(first))
            .or_else(|| {
                first
                    .is_ascii_digit()
                    .then(|| (self.number_end(), TokenClass::Number))
            })
            .or_else(|| self.scan_word())
            .unwrap_or_else(|| {
                (
                    self.at + self.rest().chars().next().map_or(1, char::len_utf8),
                    TokenClass::Plain,
                )
            })
    }

    /// Returns the end of the white space, at its last line break: the next token then starts a line.
    fn end_of_space(&self, space: usize) -> usize {
        let text = &self.rest()[..space];
        match text.rfind('\n') {
            Some(newline) => self.at + newline + 1,
            None => self.at + space,
        }
    }

    fn scan_comment(&self) -> Option<(usize, TokenClass)> {
        let rest = self.rest();
        for (open, close) in self.language.block_comments {
            if rest.starts_with(open) {
                return Some((self.block_end(open, close), TokenClass::Comment));
            }
        }
        let before = self.code[..self.at].chars().next_back();
        let is_comment = self.language.line_comments.iter().any(|mark| {
            rest.starts_with(mark)
                && match *mark {
                    // In a shell, `#` opens a comment only where a word could begin: `a#b` and `$#` do not.
                    "#" => {
                        self.language.has(LanguageFeature::HashCommentsAnywhere)
                            || before.is_none_or(char::is_whitespace)
                    }
                    // The `//` of a URL does not.
                    "//" => before != Some(':'),
                    _ => true,
                }
        });
        is_comment.then(|| (self.line_end(), TokenClass::Comment))
    }

    fn block_end(&self, open: &str, close: &str) -> usize {
        let nests = self.language.has(LanguageFeature::NestedComments);
        let mut depth = 0_usize;
        let mut at = self.at;
        while at < self.code.len() {
            let rest = &self.code[at..];
            if rest.starts_with(open) && (nests || depth == 0) {
                depth += 1;
                at += open.len();
            } else if rest.starts_with(close) {
                depth -= 1;
                at += close.len();
                if depth == 0 {
                    return at;
                }
            } else {
                at += rest.chars().next().map_or(1, char::len_utf8);
            }
        }
        at
    }

    fn line_end(&self) -> usize {
        self.at + self.rest().find('\n').unwrap_or(self.rest().len())
    }

    fn scan_meta(&self, first: u8) -> Option<(usize, TokenClass)> {
        let rest = self.rest();
        let is_line =
            self.starts_line && first == b'#' && self.language.has(LanguageFeature::Preprocessor);
        if is_line {
            return Some((self.line_end(), TokenClass::Meta));
        }
        if self.language.has(LanguageFeature::HashAttributes)
            && (rest.starts_with("#[") || rest.starts_with("#!["))
        {
            let line = &self.code[self.at..self.line_end()];
            let end = line.find(']').map_or(line.len(), |bracket| bracket + 1);
            return Some((self.at + end, TokenClass::Meta));
        }
        if first == b'\\' && self.language.has(LanguageFeature::BackslashCommands) {
            let name = name_len(&rest[1..], &['@', '*']);
            // An escaped character is plain, and opens no comment.
            let sign = rest[1..].chars().next().map_or(0, char::len_utf8);
            return Some(match name {
                0 => (self.at + 1 + sign, TokenClass::Plain),
                name => (self.at + 1 + name, TokenClass::Keyword),
            });
        }
        if first == b'@' && self.language.has(LanguageFeature::AtAttributes) {
            let name = name_len(&rest[1..], &['.', '-']);
            return (name > 0).then_some((self.at + 1 + name, TokenClass::Meta));
        }
        None
    }

    fn scan_string(&self, first: u8) -> Option<(usize, TokenClass)> {
        let rest = self.rest();
        if self.language.has(LanguageFeature::RawStrings) && matches!(first, b'r' | b'b') {
            let prefix = if rest.starts_with("br") { 2 } else { 1 };
            let hashes = rest[prefix..]
                .bytes()
                .take_while(|byte| *byte == b'#')
                .count();
            let is_raw = rest[..prefix].ends_with('r') && rest[prefix + hashes..].starts_with('"');
            if is_raw && !self.follows_word() {
                let open = prefix + hashes + 1;
                let close = format!("\"{}", "#".repeat(hashes));
                let end = rest[open..]
                    .find(&close)
                    .map_or(rest.len(), |at| open + at + close.len());
                return Some((self.at + end, TokenClass::String));
            }
        }
        if first == b'\'' && self.language.has(LanguageFeature::Lifetimes) && !is_char_literal(rest)
        {
            return None;
        }
        let quote = self
            .language
            .quotes
            .iter()
            .find(|quote| rest.starts_with(quote.mark))?;
        let end = self.string_end(quote.mark, quote.escapes, quote.lines);
        let is_key = self.language.has(LanguageFeature::StringKeys)
            && self.code[end..].trim_start().starts_with(':');
        Some((
            end,
            if is_key {
                TokenClass::Name
            } else {
                TokenClass::String
            },
        ))
    }

    fn string_end(&self, mark: &str, escapes: bool, lines: bool) -> usize {
        let bytes = self.code.as_bytes();
        let mut at = self.at + mark.len();
        while let Some(byte) = bytes.get(at) {
            if bytes[at..].starts_with(mark.as_bytes()) {
                return at + mark.len();
            }
            match byte {
                b'\\' if escapes => at += 2,
                b'\n' if !lines => return at,
                _ => at += 1,
            }
        }
        self.code.len()
    }

    /// Takes a regular expression: a slash opens one where no value stands before it that could be divided.
    fn scan_regex(&self, first: u8) -> Option<(usize, TokenClass)> {
        if first != b'/'
            || !self.language.has(LanguageFeature::Regexes)
            || !b"\n(,=:[!&|?{};+~".contains(&self.before)
        {
            return None;
        }
        let mut in_class = false;
        let mut is_escaped = false;
        for (offset, byte) in self
            .rest()
            .bytes()
            .enumerate()
            .take(MAX_REGEX_BYTES)
            .skip(1)
        {
            match byte {
                b'\n' => return None,
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => {
                    let flags = self.rest()[offset + 1..]
                        .bytes()
                        .take_while(u8::is_ascii_lowercase)
                        .count();
                    return Some((self.at + offset + 1 + flags, TokenClass::String));
                }
                _ => {}
            }
        }
        None
    }

    fn scan_variable(&self, first: u8) -> Option<(usize, TokenClass)> {
        if first != b'$' || !self.language.has(LanguageFeature::DollarVariables) {
            return None;
        }
        let rest = &self.rest()[1..];
        let name = if rest.starts_with('{') {
            rest[..rest.floor_char_boundary(MAX_REGEX_BYTES)]
                .find(['}', '\n'])
                .map_or(0, |end| end + 1)
        } else {
            name_len(rest, &[])
        };
        Some((self.at + 1 + name, TokenClass::Name))
    }

    fn number_end(&self) -> usize {
        let bytes = self.rest().as_bytes();
        let mut end = 0;
        while let Some(byte) = bytes.get(end) {
            let goes_on = match byte {
                b'.' => bytes.get(end + 1).is_some_and(u8::is_ascii_digit),
                b'+' | b'-' => matches!(bytes[end - 1], b'e' | b'E') && !bytes.starts_with(b"0x"),
                byte => byte.is_ascii_alphanumeric() || *byte == b'_',
            };
            if !goes_on {
                break;
            }
            end += 1;
        }
        self.at + end
    }

    fn scan_word(&self) -> Option<(usize, TokenClass)> {
        let rest = self.rest();
        let joins: &[char] = if self.language.has(LanguageFeature::HyphenatedNames) {
            &['-']
        } else {
            &[]
        };
        let len = match name_len(rest, joins) {
            0 => return None,
            len => len,
        };
        let (word, after) = rest.split_at(len);
        Some((self.at + len, self.word_kind(word, after)))
    }

    fn word_kind(&self, word: &str, after: &str) -> TokenClass {
        let language = self.language;
        let known = if language.has(LanguageFeature::CaseInsensitive) {
            self.words.get(word.to_ascii_lowercase().as_str())
        } else {
            self.words.get(word)
        };
        let after_spaces = after.trim_start_matches(' ');
        let is_key = (self.starts_line
            && language.has(LanguageFeature::ColonKeys)
            && after.starts_with(':'))
            || (language.has(LanguageFeature::EqualsKeys)
                && ((self.starts_line && after_spaces.starts_with('='))
                    || (self.before == b'[' && after.starts_with(['.', ']']))))
            || (language.has(LanguageFeature::ColonProperties)
                && after.starts_with(':')
                && !after.starts_with("::")
                && !after.starts_with("://"));
        if is_key {
            TokenClass::Name
        } else if let Some(kind) = known.filter(|_| self.before != b'.') {
            *kind
        } else if after.starts_with('(')
            || (after.starts_with("!(") && language.has(LanguageFeature::HashAttributes))
        {
            TokenClass::Function
        } else if language.has(LanguageFeature::CapitalizedTypes)
            && word.starts_with(char::is_uppercase)
        {
            TokenClass::Type
        } else {
            TokenClass::Plain
        }
    }

    fn follows_word(&self) -> bool {
        self.code[..self.at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
    }
}

/// Returns the length of the name at the start of `text`, in bytes.
fn name_len(text: &str, joins: &[char]) -> usize {
    let opens = text.starts_with(|first: char| first.is_alphanumeric() || first == '_');
    if !opens {
        return 0;
    }
    let end =
        text.find(|next: char| !(next.is_alphanumeric() || next == '_' || joins.contains(&next)));
    end.unwrap_or(text.len())
}

/// Tells `'x'` from the lifetime `'x`.
fn is_char_literal(text: &str) -> bool {
    let mut chars = text.chars().skip(1);
    matches!(
        (chars.next(), chars.next()),
        (Some('\\'), _) | (_, Some('\''))
    )
}
