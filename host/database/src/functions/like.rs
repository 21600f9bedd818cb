//! `LIKE` and `GLOB`, with the same steps as SQLite's own. A pattern can take quadratic time, so each step counts as work.
//!
//! The price: SQLite uses an index for patterns that begin with text only with its own functions. Such a search can be written as
//! a comparison (`a >= 'x' AND a < 'y'`).

use rusqlite::functions::Context;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};

use super::text::{PlainSqliteConnection, is_continuation, is_lead, read_character, until_nul};
use super::{DETERMINISTIC_FLAGS, sqlite_error};
use crate::limits::PATTERN_BYTES;
use crate::meter::{FunctionWorkMeter, StatementDeadline};

/// Replaces SQLite's `like` and `glob`.
pub(super) fn register(
    connection: &Connection,
    deadline: &StatementDeadline,
    sqlite: &PlainSqliteConnection,
) -> Result<()> {
    for (name, arguments, kind) in [("like", 2, LIKE), ("like", 3, LIKE), ("glob", 2, GLOB)] {
        let (deadline, sqlite) = (deadline.clone(), sqlite.clone());
        connection.create_scalar_function(name, arguments, DETERMINISTIC_FLAGS, move |c| {
            match_pattern(c, &sqlite, kind, deadline.begin_work()?)
        })?;
    }
    Ok(())
}

/// Special characters of a pattern. Zero means none, since no text contains it.
#[derive(Clone, Copy)]
struct PatternSyntax {
    any_sequence: u32,
    any_character: u32,
    /// Character that starts a set in `GLOB`, or that escapes the next character in `LIKE`.
    set_or_escape: u32,
    has_sets: bool,
    ignores_case: bool,
}

const LIKE: PatternSyntax = PatternSyntax {
    any_sequence: '%' as u32,
    any_character: '_' as u32,
    set_or_escape: 0,
    has_sets: false,
    ignores_case: true,
};

const GLOB: PatternSyntax = PatternSyntax {
    any_sequence: '*' as u32,
    any_character: '?' as u32,
    set_or_escape: '[' as u32,
    has_sets: true,
    ignores_case: false,
};

fn match_pattern(
    context: &Context<'_>,
    sqlite: &PlainSqliteConnection,
    mut kind: PatternSyntax,
    work: FunctionWorkMeter<'_>,
) -> Result<Option<bool>> {
    let pattern = sqlite.text(context.get_raw(0))?;
    let long =
        |pattern: &[u8]| pattern.len() > usize::try_from(PATTERN_BYTES).unwrap_or(usize::MAX);
    if pattern.as_deref().is_some_and(long) {
        return Err(sqlite_error("LIKE or GLOB pattern too complex"));
    }
    if context.len() > 2 {
        let Some(escape) = escape_character(context.get_raw(2), sqlite)? else {
            return Ok(None);
        };
        kind.set_or_escape = escape;
        if escape == kind.any_sequence {
            kind.any_sequence = 0;
        }
        if escape == kind.any_character {
            kind.any_character = 0;
        }
    }
    let (Some(pattern), Some(text)) = (pattern, sqlite.text(context.get_raw(1))?) else {
        return Ok(None);
    };
    let mut matching = PatternMatcher {
        pattern: until_nul(&pattern),
        text: until_nul(&text),
        kind,
        work,
    };
    Ok(Some(matching.matches(0, 0)? == MatchOutcome::Match))
}

/// Reads the escape character.
fn escape_character(value: ValueRef<'_>, sqlite: &PlainSqliteConnection) -> Result<Option<u32>> {
    let Some(text) = sqlite.text(value)? else {
        return Ok(None);
    };
    let (text, mut at) = (until_nul(&text), 0);
    let character = read_character(text, &mut at);
    if text.is_empty() || at < text.len() {
        return Err(sqlite_error("ESCAPE expression must be a single character"));
    }
    Ok(Some(character))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchOutcome {
    Match,
    NoMatch,
    /// No match, and none with any shorter rest of the text.
    Never,
}

struct PatternMatcher<'t, 'd> {
    pattern: &'t [u8],
    text: &'t [u8],
    kind: PatternSyntax,
    work: FunctionWorkMeter<'d>,
}

impl PatternMatcher<'_, '_> {
    /// Matches the text from `t` on against the pattern from `p` on.
    fn matches(&mut self, mut p: usize, mut t: usize) -> Result<MatchOutcome> {
        let kind = self.kind;
        // Position in the pattern after an escaped character.
        let mut literal = None;
        loop {
            self.work.spend(8)?;
            let mut wanted = read_character(self.pattern, &mut p);
            if wanted == 0 {
                let ended = t >= self.text.len();
                return Ok(if ended {
                    MatchOutcome::Match
                } else {
                    MatchOutcome::NoMatch
                });
            }
            if wanted == kind.any_sequence {
                return self.matches_all(p, t);
            }
            if wanted == kind.set_or_escape {
                if kind.has_sets {
                    let character = read_character(self.text, &mut t);
                    if character == 0 || !self.is_in_set(&mut p, character)? {
                        return Ok(MatchOutcome::NoMatch);
                    }
                    continue;
                }
                wanted = read_character(self.pattern, &mut p);
                if wanted == 0 {
                    return Ok(MatchOutcome::NoMatch);
                }
                literal = Some(p);
            }
            let character = read_character(self.text, &mut t);
            let one = wanted == kind.any_character && literal != Some(p) && character != 0;
            if !(wanted == character
                || one
                || (kind.ignores_case && equal_ignoring_case(wanted, character)))
            {
                return Ok(MatchOutcome::NoMatch);
            }
        }
    }

    /// Matches what follows a `%` or `*`, at any later position of the text.
    fn matches_all(&mut self, mut p: usize, mut t: usize) -> Result<MatchOutcome> {
        let kind = self.kind;
        let wanted = loop {
            self.work.spend(8)?;
            let next = read_character(self.pattern, &mut p);
            if next == kind.any_character && next != 0 && next != kind.any_sequence {
                if read_character(self.text, &mut t) == 0 {
                    return Ok(MatchOutcome::Never);
                }
            } else if next == 0 || next != kind.any_sequence {
                break next;
            }
        };
        if wanted == 0 {
            return Ok(MatchOutcome::Match);
        }
        if wanted != kind.set_or_escape {
            return self.matches_from(wanted, p, t);
        }
        if !kind.has_sets {
            return match read_character(self.pattern, &mut p) {
                0 => Ok(MatchOutcome::Never),
                wanted => self.matches_from(wanted, p, t),
            };
        }
        while t < self.text.len() {
            let found = self.matches(p - 1, t)?;
            if found != MatchOutcome::NoMatch {
                return Ok(found);
            }
            t = self.next_character(t);
        }
        Ok(MatchOutcome::Never)
    }

    /// Matches the pattern from `p` on after each occurrence of the character `wanted`.
    fn matches_from(&mut self, wanted: u32, p: usize, mut t: usize) -> Result<MatchOutcome> {
        loop {
            let Some(rest) = self.text.get(t..) else {
                return Ok(MatchOutcome::Never);
            };
            match u8::try_from(wanted) {
                Ok(byte) if byte < 0x80 => {
                    let place = if self.kind.ignores_case {
                        memchr::memchr2(byte.to_ascii_lowercase(), byte.to_ascii_uppercase(), rest)
                    } else {
                        memchr::memchr(byte, rest)
                    };
                    let Some(place) = place else {
                        return Ok(MatchOutcome::Never);
                    };
                    self.work.spend(place)?;
                    t += place + 1;
                }
                _ => {
                    self.work.spend(4)?;
                    match read_character(self.text, &mut t) {
                        0 => return Ok(MatchOutcome::Never),
                        character if character == wanted => {}
                        _ => continue,
                    }
                }
            }
            let found = self.matches(p, t)?;
            if found != MatchOutcome::NoMatch {
                return Ok(found);
            }
        }
    }

    /// Whether a character is in the set that starts at `p`; moves `p` behind the set. An unclosed set contains nothing.
    fn is_in_set(&mut self, p: &mut usize, character: u32) -> Result<bool> {
        let (mut before, mut seen) = (0, false);
        let mut next = read_character(self.pattern, p);
        let inverted = next == '^' as u32;
        if inverted {
            next = read_character(self.pattern, p);
        }
        if next == ']' as u32 {
            seen = character == next;
            next = read_character(self.pattern, p);
        }
        while next != 0 && next != ']' as u32 {
            self.work.spend(4)?;
            let peeked = self.pattern.get(*p).copied();
            if next == '-' as u32 && before > 0 && peeked.is_some_and(|byte| byte != b']') {
                next = read_character(self.pattern, p);
                seen |= (before..=next).contains(&character);
                before = 0;
            } else {
                seen |= character == next;
                before = next;
            }
            next = read_character(self.pattern, p);
        }
        Ok(next != 0 && seen != inverted)
    }

    /// Position after the character at `t`.
    fn next_character(&self, t: usize) -> usize {
        let more = match self.text.get(t) {
            Some(first) if is_lead(*first) => {
                let rest = self.text[t + 1..].iter();
                rest.take_while(|byte| is_continuation(**byte)).count()
            }
            _ => 0,
        };
        t + 1 + more
    }
}

/// Whether two characters are equal, ignoring the case of ASCII letters.
fn equal_ignoring_case(a: u32, b: u32) -> bool {
    match (u8::try_from(a), u8::try_from(b)) {
        (Ok(a), Ok(b)) => a < 0x80 && b < 0x80 && a.eq_ignore_ascii_case(&b),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_like_sqlite, compare_with_sqlite, text};
    use proptest::prelude::*;

    #[test]
    fn they_match_as_sqlite_does() {
        assert_like_sqlite(&[
            "'abc' LIKE 'A%c'",
            "'abc' LIKE 'a_c'",
            "'abc' LIKE '%'",
            "'' LIKE ''",
            "'' LIKE '_'",
            "NULL LIKE 'a'",
            "'a' LIKE NULL",
            "'a' LIKE 'a' ESCAPE NULL",
            "'é' LIKE 'É'",
            "'é' LIKE '_'",
            "'100%' LIKE '100\\%' ESCAPE '\\'",
            "'a_b' LIKE 'a%_b' ESCAPE '%'",
            "'a_b' LIKE 'a__b' ESCAPE '_'",
            "'ab' LIKE '%\\' ESCAPE '\\'",
            "'ab' LIKE 'a\\' ESCAPE '\\'",
            "'ab' LIKE '%\\b' ESCAPE '\\'",
            "'aXb' LIKE 'aéXb' ESCAPE 'é'",
            "12.5 LIKE '12%'",
            "x'6162' LIKE 'ab'",
            "('a' || char(0) || 'b') LIKE 'a'",
            "'a' LIKE ('a' || char(0) || 'b')",
            "'abc' GLOB 'a*'",
            "'ABC' GLOB 'a*'",
            "'a' GLOB '?'",
            "'b' GLOB '[a-c]'",
            "'b' GLOB '[^a-c]'",
            "']' GLOB '[]]'",
            "'-' GLOB '[a-]'",
            "'a' GLOB '[a'",
            "'xb' GLOB '*[a-c]'",
            "'xb' GLOB '*[^a-c]'",
            "glob('a*', NULL)",
            "like('%', 1, '!')",
        ]);
    }

    #[test]
    fn the_longest_pattern_is_matched() {
        let pattern = "%a".repeat(499);
        let text = "a".repeat(1000);
        assert_like_sqlite(&[
            &format!("'{text}' LIKE '{pattern}'"),
            &format!("'{text}' LIKE '{pattern}%'"),
            &format!("'{text}' LIKE '{pattern}b'"),
            &format!("'{text}' LIKE '{pattern}aa'"),
        ]);
    }

    proptest! {
        #[test]
        fn they_match_any_bytes_as_sqlite_does(
            text in text(b"abAB\xC3\xA9\xFF\0"),
            like in text(b"abA%%_!\xC3\xA9\xFF\0"),
            glob in text(b"ab*?[]-^\xC3\xA9\xFF\0"),
        ) {
            compare_with_sqlite(
                &["?1 LIKE ?2", "?1 LIKE ?2 ESCAPE '!'", "?1 LIKE ?2 ESCAPE '%'", "?1 LIKE ?2 ESCAPE '_'", "?1 GLOB ?3", "?1 LIKE ?3 ESCAPE '['"],
                &[text, like, glob],
            )?;
        }
    }
}
