//! What each statement of a piece of SQL is, or why it is refused.

use sqlite3_parser::Bump;

use crate::place::{Fault, Place, count};
use crate::token::{self, Token};
use crate::{class, params, parse, walk};

/// Why the SQL is asked about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// The one statement of a named action.
    Action,
    /// The one statement of an owner's query.
    Query,
    /// The script that makes a backend: at least one table.
    Schema,
    /// A script of additive statements for a backend that is there.
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
/// The first thing that the purpose does not allow, with its place.
pub fn check(sql: &str, purpose: Purpose) -> Result<Vec<Statement>, Refusal> {
    let tokens = token::cut(sql);
    let pieces: Vec<&[Token]> = tokens
        .split(|token| token.kind == token::Kind::Semicolon)
        .filter(|piece| !piece.is_empty())
        .collect();
    let refusal = |statement: usize, fault: Fault| Refusal {
        reason: fault.reason,
        statement: count(statement + 1),
        place: Place::of(sql, fault.offset),
    };
    if let Some(offset) = sql.find('\0') {
        let before =
            pieces.partition_point(|piece| piece.last().is_some_and(|last| last.end <= offset));
        let reason = "The SQL holds a NUL byte, where SQLite would stop reading: take it out.";
        return Err(refusal(before, Fault::new(offset, reason)));
    }
    let mut statements = Vec::with_capacity(pieces.len());
    let mut makes_table = false;
    for (index, piece) in pieces.iter().enumerate() {
        let at_start = |reason: &str| {
            let start = piece.first().map_or(0, |token| token.start);
            Err(refusal(index, Fault::new(start, reason)))
        };
        if index > 0 && matches!(purpose, Purpose::Action | Purpose::Query) {
            return at_start(
                "Only one statement is allowed here: take out what follows the first.",
            );
        }
        let (statement, table) =
            judge(sql, piece, purpose).map_err(|fault| refusal(index, fault))?;
        makes_table |= table;
        statements.push(statement);
    }
    let missing = match purpose {
        _ if statements.is_empty() => "There is no statement.",
        Purpose::Schema if !makes_table => {
            "A schema makes at least one table: write a CREATE TABLE."
        }
        _ => return Ok(statements),
    };
    let offset = tokens.first().map_or(sql.len(), |token| token.start);
    Err(refusal(0, Fault::new(offset, missing)))
}

/// One statement, and whether it makes a table.
fn judge(sql: &str, tokens: &[Token], purpose: Purpose) -> Result<(Statement, bool), Fault> {
    class::check(sql, tokens, purpose)?;
    if let Some(Token {
        kind: token::Kind::Illegal(reason),
        start,
        ..
    }) = tokens.last()
    {
        return Err(Fault::new(*start, *reason));
    }
    let binds = params::check(sql, tokens, purpose)?;
    let arena = Bump::new();
    let tree = parse::parse(&arena, sql, tokens)?;
    let found = walk::walk(sql, tokens, purpose, tree)?;
    let statement = Statement {
        kind: found.kind,
        binds,
        returns_rows: found.returns_rows,
        tables: found.tables,
        start: count(tokens.first().map_or(0, |token| token.start)),
        end: count(tokens.last().map_or(0, |token| token.end)),
    };
    Ok((statement, found.makes_table))
}
