//! One statement's tokens, parsed by a port of SQLite's own grammar.
//!
//! The parser is shown a spelling of ours: one space between tokens, and for every name, text and bind a placeholder that says which
//! token it was. So it cannot cut the text in another way than [`token`](crate::token) did, every name in the tree leads back to its
//! exact place, and the walk can prove that it has seen each of them.

use std::fmt::Write as _;

use sqlite3_parser::ast::{Cmd, Stmt};
use sqlite3_parser::dialect::TokenType;
use sqlite3_parser::lexer::sql::{Error, Parser, ParserError};
use sqlite3_parser::{Bump, FallibleIterator as _};

use crate::place::{Fault, quoted};
use crate::token::{Kind, Token};

/// How deep parentheses and CASE may be nested.
pub const NESTING: usize = 250;

/// How many signs and NOTs may stand before one value.
const PREFIXES: usize = 250;

/// How many names may stand side by side: more than the words of any type. The parser's work for them grows by their square.
const NAMES_IN_A_ROW: usize = 32;

/// How many names a list in parentheses may begin its elements with: SQLite's bound of columns. The parser compares each with each.
const NAMES_IN_A_LIST: usize = 2_000;

/// The statement's tree, in the arena.
pub(crate) fn parse<'b>(
    arena: &'b Bump,
    sql: &str,
    tokens: &[Token],
) -> Result<&'b Stmt<'b>, Fault> {
    bounded(sql, tokens)?;
    let (spelling, starts) = spelling(sql, tokens);
    let spelling = arena.alloc_str(&spelling);
    let mut parser = Parser::new(arena, spelling.as_bytes());
    let first = tokens.first().map_or(0, |token| token.start);
    match parser.next() {
        Ok(Some(Cmd::Stmt(statement))) => Ok(arena.alloc(statement)),
        Ok(Some(Cmd::Explain(_) | Cmd::ExplainQueryPlan(_))) => {
            Err(Fault::new(first, "EXPLAIN is not allowed here."))
        }
        Ok(None) => Err(Fault::new(first, "There is no statement.")),
        Err(error) => Err(syntax_fault(&error, sql, tokens, &starts)),
    }
}

/// What the parser reads, and where in it each token begins.
fn spelling(sql: &str, tokens: &[Token]) -> (String, Vec<usize>) {
    let mut spelling = String::with_capacity(tokens.len() * 8);
    let mut starts = Vec::with_capacity(tokens.len());
    for (index, token) in tokens.iter().enumerate() {
        starts.push(spelling.len());
        // A String takes whatever is written to it.
        let _ = match token.kind {
            _ if is_option(token, sql) => write!(spelling, "{} ", token.text(sql)),
            Kind::Word | Kind::Quoted => write!(spelling, "_{index} "),
            Kind::Text => write!(spelling, "'{index}' "),
            Kind::Bind => write!(spelling, ":_{index} "),
            Kind::Number => write!(spelling, "1 "),
            Kind::Blob => write!(spelling, "x'' "),
            Kind::Keyword(_)
            | Kind::Open
            | Kind::Close
            | Kind::Semicolon
            | Kind::Sign
            | Kind::Illegal(_) => write!(spelling, "{} ", token.text(sql)),
        };
    }
    spelling.push(';');
    (spelling, starts)
}

/// The words that the grammar knows and that are no keywords: they stay as they are.
fn is_option(token: &Token, sql: &str) -> bool {
    token.kind == Kind::Word
        && ["rowid", "strict", "stored"]
            .iter()
            .any(|option| token.text(sql).eq_ignore_ascii_case(option))
}

/// Whether the token has a placeholder, which the walk must come across.
pub(crate) fn has_placeholder(token: &Token, sql: &str) -> bool {
    matches!(
        token.kind,
        Kind::Word | Kind::Quoted | Kind::Text | Kind::Bind
    ) && !is_option(token, sql)
}

/// Which token a name, a text or a bind of the tree was; `None` for a keyword that serves as a name.
pub(crate) fn token_of(name: &str) -> Option<usize> {
    name.trim_start_matches(':')
        .strip_prefix('_')
        .or_else(|| name.strip_prefix('\'')?.strip_suffix('\''))
        .and_then(|index| index.parse().ok())
}

fn syntax_fault(error: &Error, sql: &str, tokens: &[Token], starts: &[usize]) -> Fault {
    let place = match error {
        Error::ParserError(_, place) | Error::UnrecognizedToken(place) => place.as_ref(),
        _ => None,
    };
    // The spelling is one line.
    let column = place.map_or(0, |place| place.column.saturating_sub(1));
    let index = starts.partition_point(|start| *start <= column);
    let after = starts.last().is_none_or(|last| {
        let length = tokens.last().map_or(0, |token| token.end - token.start);
        column > last + length.max(12)
    });
    let near = tokens.get(index.saturating_sub(1)).copied();
    let end = tokens.last().map_or(0, |token| token.end);
    match (near, error) {
        (_, Error::ParserError(ParserError::UnexpectedEof, _)) | (None, _) => {
            Fault::new(end, "The statement ends too early.")
        }
        (Some(_), Error::ParserError(ParserError::SyntaxError(text), _))
            if text == ";" || text.is_empty() || after =>
        {
            Fault::new(end, "The statement ends too early.")
        }
        (Some(near), Error::ParserError(ParserError::Custom(_), _)) => Fault::new(
            near.start,
            format!(
                "SQLite does not accept what stands before {}.",
                quoted(near.text(sql))
            ),
        ),
        (Some(near), _) => Fault::new(
            near.start,
            format!("Syntax error near {}.", quoted(near.text(sql))),
        ),
    }
}

/// What would cost the parser more than it is worth is refused before.
fn bounded(sql: &str, tokens: &[Token]) -> Result<(), Fault> {
    let mut nested: Vec<usize> = vec![0];
    let mut cases = 0_usize;
    let mut prefixes = 0;
    let mut names = 0;
    let mut element_begins = false;
    for token in tokens {
        let text = token.text(sql);
        let is_name = is_name(token);
        match token.kind {
            Kind::Open => nested.push(0),
            Kind::Close if nested.len() > 1 => drop(nested.pop()),
            Kind::Keyword(TokenType::TK_CASE) => cases += 1,
            Kind::Keyword(TokenType::TK_END) => cases = cases.saturating_sub(1),
            _ => {}
        }
        if nested.len() + cases > NESTING + 1 {
            let reason = format!("This is nested deeper than {NESTING} levels: simplify it.");
            return Err(Fault::new(token.start, reason));
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
        if prefixes > PREFIXES || names > NAMES_IN_A_ROW || list > NAMES_IN_A_LIST {
            let reason = format!("There is too much of the same before {}.", quoted(text));
            return Err(Fault::new(token.start, reason));
        }
        element_begins = token.kind == Kind::Open || text == ",";
    }
    Ok(())
}

/// Whether the token can be a name: identifiers, texts, and the keywords that SQLite takes for names where nothing else fits.
fn is_name(token: &Token) -> bool {
    use TokenType::*;
    match token.kind {
        Kind::Word | Kind::Quoted | Kind::Text => true,
        Kind::Keyword(keyword) => matches!(
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
        Kind::Number
        | Kind::Blob
        | Kind::Bind
        | Kind::Open
        | Kind::Close
        | Kind::Semicolon
        | Kind::Sign
        | Kind::Illegal(_) => false,
    }
}
