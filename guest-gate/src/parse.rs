//! Parsing of one statement's tokens, by a port of SQLite's own grammar.
//!
//! The parser reads a rewritten text: one space between tokens, and a placeholder with the token's index for every name, text and
//! bind. So it cannot tokenize the text differently from [`token`](crate::token), every name in the tree leads back to its exact
//! position, and the walk can prove that it has seen each of them.

use std::fmt::Write as _;

use sqlite3_parser::ast::{Cmd, Stmt};
use sqlite3_parser::dialect::TokenType;
use sqlite3_parser::lexer::sql::{Error, Parser, ParserError};
use sqlite3_parser::{Bump, FallibleIterator as _};

use crate::hints;
use crate::position::{LocatedRefusalReason, quote_excerpt};
use crate::token::{Token, TokenKind};

/// Maximum nesting of parentheses and CASE.
pub const MAX_NESTING: usize = 250;

/// Maximum number of signs and NOTs before one value.
const MAX_PREFIX_OPERATORS: usize = 250;

/// Maximum number of adjacent names: more than any type has. The parser's work for them is quadratic.
const MAX_ADJACENT_NAMES: usize = 32;

/// Maximum number of elements of a list in parentheses that begin with a name: SQLite's limit of columns. The parser compares
/// each with each.
const MAX_NAMED_ELEMENTS: usize = 2_000;

/// Parses a statement into the arena.
pub(crate) fn parse<'b>(
    arena: &'b Bump,
    sql: &str,
    tokens: &[Token],
) -> Result<&'b Stmt<'b>, LocatedRefusalReason> {
    check_bounds(sql, tokens)?;
    let (spelling, starts) = rewrite_tokens(sql, tokens);
    let spelling = arena.alloc_str(&spelling);
    let mut parser = Parser::new(arena, spelling.as_bytes());
    let first = tokens.first().map_or(0, |token| token.start);
    match parser.next() {
        Ok(Some(Cmd::Stmt(statement))) => Ok(arena.alloc(statement)),
        Ok(Some(Cmd::Explain(_) | Cmd::ExplainQueryPlan(_))) => Err(LocatedRefusalReason::new(
            first,
            "EXPLAIN is not allowed here.",
        )),
        Ok(None) => Err(LocatedRefusalReason::new(first, "There is no statement.")),
        Err(error) => Err(syntax_fault(&error, sql, tokens, &starts)),
    }
}

/// Writes the text for the parser, and lists where in it each token begins, the closing semicolon included.
fn rewrite_tokens(sql: &str, tokens: &[Token]) -> (String, Vec<usize>) {
    let mut spelling = String::with_capacity(tokens.len() * 8);
    let mut starts = Vec::with_capacity(tokens.len());
    for (index, token) in tokens.iter().enumerate() {
        starts.push(spelling.len());
        // Writing to a String cannot fail.
        let _ = match token.kind {
            _ if is_soft_keyword(token, sql) => write!(spelling, "{} ", token.text(sql)),
            TokenKind::Word | TokenKind::Quoted => write!(spelling, "_{index} "),
            TokenKind::Text => write!(spelling, "'{index}' "),
            TokenKind::Bind => write!(spelling, ":_{index} "),
            TokenKind::Number => write!(spelling, "1 "),
            TokenKind::Blob => write!(spelling, "x'' "),
            TokenKind::Keyword(_)
            | TokenKind::Open
            | TokenKind::Close
            | TokenKind::Semicolon
            | TokenKind::Sign
            | TokenKind::Illegal(_) => write!(spelling, "{} ", token.text(sql)),
        };
    }
    starts.push(spelling.len());
    spelling.push(';');
    (spelling, starts)
}

/// Whether a token is a word that the grammar knows and that is no keyword: it gets no placeholder.
fn is_soft_keyword(token: &Token, sql: &str) -> bool {
    token.kind == TokenKind::Word
        && ["rowid", "strict", "stored"]
            .iter()
            .any(|option| token.text(sql).eq_ignore_ascii_case(option))
}

/// Whether the token has a placeholder, which the walk must visit.
pub(crate) fn has_placeholder(token: &Token, sql: &str) -> bool {
    matches!(
        token.kind,
        TokenKind::Word | TokenKind::Quoted | TokenKind::Text | TokenKind::Bind
    ) && !is_soft_keyword(token, sql)
}

/// Returns the index of the token that a name, a text or a bind of the tree came from; `None` for a keyword used as a name.
pub(crate) fn token_index(name: &str) -> Option<usize> {
    name.trim_start_matches(':')
        .strip_prefix('_')
        .or_else(|| name.strip_prefix('\'')?.strip_suffix('\''))
        .and_then(|index| index.parse().ok())
}

fn syntax_fault(
    error: &Error,
    sql: &str,
    tokens: &[Token],
    starts: &[usize],
) -> LocatedRefusalReason {
    let (error, place) = match error {
        Error::ParserError(error, place) => (Some(error), place.as_ref()),
        // A tokenizer error cannot come from the author: the tokens are rewritten.
        _ => (None, None),
    };
    // The rewritten text is one line.
    let column = place.map_or(0, |place| place.column.saturating_sub(1));
    let index = starts
        .partition_point(|start| *start <= column)
        .saturating_sub(1);
    if let Some((start, reason)) = hints::syntax_hint(sql, tokens, index) {
        return LocatedRefusalReason::new(start, reason);
    }
    match (error, tokens.get(index)) {
        (Some(ParserError::Custom(message)), _) => {
            // The parser objects to a clause when it reads the token after it.
            let last = tokens.get(index.saturating_sub(1)).or(tokens.last());
            let (start, shown) = last.map_or((0, String::new()), |last| {
                (last.start, quote_excerpt(last.text(sql)))
            });
            // A message with a placeholder would confuse the author.
            let why = if message.contains('_') {
                String::new()
            } else {
                format!(": {message}")
            };
            LocatedRefusalReason::new(
                start,
                format!("SQLite does not take what ends with {shown}{why}."),
            )
        }
        (Some(ParserError::SyntaxError(_)) | None, Some(near)) => LocatedRefusalReason::new(
            near.start,
            format!("Syntax error near {}.", quote_excerpt(near.text(sql))),
        ),
        (Some(ParserError::SyntaxError(_) | ParserError::UnexpectedEof) | None, _) => {
            let end = tokens.last().map_or(0, |token| token.end);
            LocatedRefusalReason::new(end, "The statement ends too early.")
        }
    }
}

/// Refuses input that would cost the parser too much.
fn check_bounds(sql: &str, tokens: &[Token]) -> Result<(), LocatedRefusalReason> {
    let mut nested: Vec<usize> = vec![0];
    let mut cases = 0_usize;
    let mut prefixes = 0;
    let mut names = 0;
    let mut element_begins = false;
    for token in tokens {
        let text = token.text(sql);
        let is_name = is_name(token);
        match token.kind {
            TokenKind::Open => nested.push(0),
            TokenKind::Close if nested.len() > 1 => drop(nested.pop()),
            TokenKind::Keyword(TokenType::TK_CASE) => cases += 1,
            TokenKind::Keyword(TokenType::TK_END) => cases = cases.saturating_sub(1),
            _ => {}
        }
        if nested.len() + cases > MAX_NESTING + 1 {
            let reason = format!("This is nested deeper than {MAX_NESTING} levels: simplify it.");
            return Err(LocatedRefusalReason::new(token.start, reason));
        }
        let is_prefix = token.is(TokenType::TK_NOT) || matches!(text, "-" | "+" | "~");
        prefixes = if is_prefix { prefixes + 1 } else { 0 };
        names = if is_name { names + 1 } else { 0 };
        if element_begins
            && is_name
            && nested.len() > 1
            && let Some(list) = nested.last_mut()
        {
            *list += 1;
        }
        let list = nested.last().copied().unwrap_or(0);
        if prefixes > MAX_PREFIX_OPERATORS
            || names > MAX_ADJACENT_NAMES
            || list > MAX_NAMED_ELEMENTS
        {
            let reason = format!(
                "There is too much of the same before {}.",
                quote_excerpt(text)
            );
            return Err(LocatedRefusalReason::new(token.start, reason));
        }
        element_begins = token.kind == TokenKind::Open || text == ",";
    }
    Ok(())
}

/// Whether the token can be a name: identifiers, texts, and the keywords that SQLite accepts as names.
fn is_name(token: &Token) -> bool {
    use TokenType::*;
    match token.kind {
        TokenKind::Word | TokenKind::Quoted | TokenKind::Text => true,
        TokenKind::Keyword(keyword) => matches!(
            keyword,
            TK_ABORT
                | TK_ACTION
                | TK_AFTER
                | TK_ANALYZE
                | TK_ASC
                | TK_ATTACH
                | TK_BEFORE
                | TK_BEGIN
                | TK_BY
                | TK_CASCADE
                | TK_CAST
                | TK_COLUMNKW
                | TK_CONFLICT
                | TK_DATABASE
                | TK_DEFERRED
                | TK_DESC
                | TK_DETACH
                | TK_DO
                | TK_EACH
                | TK_END
                | TK_EXCLUSIVE
                | TK_EXPLAIN
                | TK_FAIL
                | TK_FOR
                | TK_IGNORE
                | TK_IMMEDIATE
                | TK_INITIALLY
                | TK_INSTEAD
                | TK_LIKE_KW
                | TK_MATCH
                | TK_NO
                | TK_PLAN
                | TK_QUERY
                | TK_KEY
                | TK_OF
                | TK_OFFSET
                | TK_PRAGMA
                | TK_RAISE
                | TK_RECURSIVE
                | TK_RELEASE
                | TK_REPLACE
                | TK_RESTRICT
                | TK_ROW
                | TK_ROWS
                | TK_ROLLBACK
                | TK_SAVEPOINT
                | TK_TEMP
                | TK_TRIGGER
                | TK_VACUUM
                | TK_VIEW
                | TK_VIRTUAL
                | TK_WITH
                | TK_WITHOUT
                | TK_NULLS
                | TK_FIRST
                | TK_LAST
                | TK_CURRENT
                | TK_FOLLOWING
                | TK_PARTITION
                | TK_PRECEDING
                | TK_RANGE
                | TK_UNBOUNDED
                | TK_EXCLUDE
                | TK_GROUPS
                | TK_OTHERS
                | TK_TIES
                | TK_GENERATED
                | TK_ALWAYS
                | TK_MATERIALIZED
                | TK_REINDEX
                | TK_RENAME
                | TK_CTIME_KW
                | TK_IF
                | TK_WINDOW
                | TK_OVER
                | TK_FILTER
                | TK_INDEXED
                | TK_JOIN_KW
        ),
        TokenKind::Number
        | TokenKind::Blob
        | TokenKind::Bind
        | TokenKind::Open
        | TokenKind::Close
        | TokenKind::Semicolon
        | TokenKind::Sign
        | TokenKind::Illegal(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::tokenize;

    fn fault(sql: &str) -> LocatedRefusalReason {
        parse(&Bump::new(), sql, &tokenize(sql)).unwrap_err()
    }

    #[test]
    fn the_parser_reads_placeholders() {
        let sql = "SELECT \"a b\", 'x;y', :c, 1e3, x'00' FROM [t] -- end";
        let tokens = tokenize(sql);
        let (spelling, starts) = rewrite_tokens(sql, &tokens);
        assert_eq!(spelling, "SELECT _1 , '3' , :_5 , 1 , x'' FROM _11 ;");
        assert_eq!(starts.len(), tokens.len() + 1);
        for (name, token) in [("_1", 1), ("'3'", 3), (":_5", 5)] {
            assert_eq!(token_index(name), Some(token));
        }
        for keyword in ["key", "rowid", "replace"] {
            assert_eq!(token_index(keyword), None);
        }
    }

    #[test]
    fn a_syntax_error_has_its_exact_place() {
        for (sql, offset, says) in [
            ("SELECT", 6, "too early"),
            ("SELECT 1 FROM", 13, "too early"),
            ("SELECT * FROM users WHERE", 25, "too early"),
            ("SELECT (1", 9, "too early"),
            ("SELECT 1 FROM 'a very long text' 'b' 'c'", 37, "`'c'`"),
            ("SELECT  FROM t", 8, "`FROM`"),
            ("SELECT 1 1", 9, "`1`"),
            ("SELECT 1)", 8, "`)`"),
            ("SELECT 'é' é é", 15, "`é`"),
            (
                "SELECT * FROM t NATURAL JOIN u ON 1",
                34,
                "a NATURAL join may not have an ON or USING clause",
            ),
            ("SELECT * FROM t OUTER JOIN u", 22, "unknown join type"),
            ("CREATE TABLE t (a) QUICK", 19, "ends with `QUICK`"),
        ] {
            let fault = fault(sql);
            assert!(fault.reason.contains(says), "{sql}: {}", fault.reason);
            assert_eq!(fault.offset, offset, "{sql}: {}", fault.reason);
        }
    }
}
