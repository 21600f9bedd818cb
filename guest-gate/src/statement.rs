//! What kind of statement a piece of SQL is, or why it is refused.
//!
//! So far one kind is known, `SELECT` of an integer literal: the frame that the real gate grows in.

/// Why the SQL is asked about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// The one statement of a named action.
    Action,
    /// The one statement of an owner's query.
    Query,
    /// A script of additive statements.
    Migration,
}

/// What running a statement does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Answers rows and changes nothing.
    Read,
    /// Changes rows.
    Write,
    /// Changes the schema.
    Migration,
}

/// A place in the SQL: `line` and `column` from 1, `column` in characters, `offset` in bytes from 0.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Place {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Offset in bytes, from 0.
    pub offset: u32,
}

/// An allowed statement.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Statement {
    /// What running it does.
    pub kind: Kind,
    /// Its named binds in order of first appearance, without the colon, each once.
    pub binds: Vec<String>,
    /// Whether running it answers rows.
    pub returns_rows: bool,
    /// The tables and views that it names, in lower case, each once.
    pub tables: Vec<String>,
    /// Where it begins, in bytes.
    pub start: u32,
    /// Where it ends, in bytes; a closing semicolon is not part of it.
    pub end: u32,
}

/// Why the SQL is not allowed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// One sentence for its author.
    pub reason: String,
    /// Which statement of the script, from 1.
    pub statement: u32,
    /// Where.
    pub place: Place,
}

/// Judges SQL: its statements in order, or the first reason to refuse it.
///
/// # Errors
///
/// The first statement that is not a `SELECT` of one integer literal, with its place.
pub fn check(sql: &str, purpose: Purpose) -> Result<Vec<Statement>, Refusal> {
    if purpose == Purpose::Migration {
        return Err(refusal(sql, 0, "Schemas cannot be changed yet."));
    }
    let start = skip_space(sql, 0);
    if start == sql.len() {
        return Err(refusal(sql, start, "There is no statement."));
    }
    let expected = "Write a SELECT of one integer, as in `SELECT 1`.";
    let word = word_end(sql, start);
    if !sql[start..word].eq_ignore_ascii_case("select") {
        return Err(refusal(sql, start, expected));
    }
    let literal = skip_space(sql, word);
    let end = digits_end(sql, literal);
    // The space is part of the rule: `SELECT1` is a name.
    if literal == word || end == literal {
        return Err(refusal(sql, literal, expected));
    }
    let mut rest = skip_space(sql, end);
    if sql[rest..].starts_with(';') {
        rest = skip_space(sql, rest + 1);
    }
    if rest != sql.len() {
        return Err(refusal(
            sql,
            rest,
            "Nothing may follow the statement but one semicolon.",
        ));
    }
    Ok(vec![Statement {
        kind: Kind::Read,
        binds: Vec::new(),
        returns_rows: true,
        tables: Vec::new(),
        start: count(start),
        end: count(end),
    }])
}

/// Where the run of bytes that satisfy `of` ends. Only ASCII may satisfy it, so that the end is a character's boundary.
fn run_end(sql: &str, from: usize, of: impl Fn(u8) -> bool) -> usize {
    sql.as_bytes()[from..]
        .iter()
        .position(|byte| !of(*byte))
        .map_or(sql.len(), |length| from + length)
}

fn skip_space(sql: &str, from: usize) -> usize {
    run_end(sql, from, |byte| byte.is_ascii_whitespace())
}

fn word_end(sql: &str, from: usize) -> usize {
    run_end(sql, from, |byte| {
        byte.is_ascii_alphanumeric() || byte == b'_'
    })
}

fn digits_end(sql: &str, from: usize) -> usize {
    run_end(sql, from, |byte| byte.is_ascii_digit())
}

fn refusal(sql: &str, offset: usize, reason: &str) -> Refusal {
    Refusal {
        reason: reason.to_owned(),
        statement: 1,
        place: place(sql, offset),
    }
}

fn place(sql: &str, offset: usize) -> Place {
    let before = &sql[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Place {
        line: count(before.matches('\n').count()).saturating_add(1),
        column: count(before[line_start..].chars().count()).saturating_add(1),
        offset: count(offset),
    }
}

/// A count as it crosses to the host; SQL is far shorter than 4 GiB.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused_at(sql: &str, line: u32, column: u32, offset: u32) {
        let refusal = check(sql, Purpose::Query).unwrap_err();
        let expected = Place {
            line,
            column,
            offset,
        };
        assert_eq!(refusal.place, expected, "{sql:?}: {}", refusal.reason);
        assert_eq!(refusal.statement, 1);
    }

    #[test]
    fn a_select_of_an_integer_is_one_read() {
        for (sql, start, end) in [
            ("SELECT 1", 0, 8),
            ("select\t42;", 0, 9),
            ("\n SeLeCt\n007 ;\n", 2, 12),
        ] {
            let expected = Statement {
                kind: Kind::Read,
                binds: Vec::new(),
                returns_rows: true,
                tables: Vec::new(),
                start,
                end,
            };
            assert_eq!(check(sql, Purpose::Query), Ok(vec![expected]), "{sql:?}");
        }
    }

    #[test]
    fn anything_else_is_refused_where_it_begins() {
        refused_at("", 1, 1, 0);
        refused_at(" \n", 2, 1, 2);
        refused_at("DELETE FROM t", 1, 1, 0);
        refused_at("SELECT1", 1, 1, 0);
        refused_at("SELECT", 1, 7, 6);
        refused_at("SELECT é", 1, 8, 7);
        refused_at("SELECT 1é, 2", 1, 9, 8);
        refused_at("SELECT 1;;", 1, 10, 9);
        refused_at("SELECT 1;\nSELECT 2", 2, 1, 10);
        refused_at("é", 1, 1, 0);
    }

    #[test]
    fn schemas_are_not_changed_yet() {
        assert!(check("SELECT 1", Purpose::Migration).is_err());
    }
}
