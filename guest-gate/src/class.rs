//! Class of a statement, by its first words: a statement outside the allowed classes is refused by name, whatever follows.

use sqlite3_parser::dialect::TokenType::*;

use crate::hints;
use crate::position::{LocatedRefusalReason, quote_excerpt};
use crate::statement::SqlPurpose;
use crate::token::Token;

/// Refuses SQL that does not begin like an allowed statement.
pub(crate) fn check_class(
    sql: &str,
    tokens: &[Token],
    purpose: SqlPurpose,
) -> Result<(), LocatedRefusalReason> {
    let Some(first) = tokens.first() else {
        return Ok(());
    };
    match purpose {
        SqlPurpose::Action | SqlPurpose::Query => {
            let begins = [
                TK_SELECT, TK_INSERT, TK_REPLACE, TK_UPDATE, TK_DELETE, TK_VALUES, TK_WITH,
            ];
            if begins.iter().any(|keyword| first.is(*keyword)) {
                return Ok(());
            }
            let what = match purpose {
                SqlPurpose::Action => "an action",
                _ => "a query",
            };
            let elsewhere = if [TK_CREATE, TK_ALTER].iter().any(|k| first.is(*k)) {
                "; a migration changes the schema"
            } else {
                ""
            };
            Err(LocatedRefusalReason::new(
                first.start,
                format!(
                    "{} is not allowed: {what} is one SELECT, INSERT, UPDATE or DELETE, with WITH before it if need be{elsewhere}.",
                    quote_excerpt(&uppercase(first, sql)),
                ),
            ))
        }
        SqlPurpose::Schema | SqlPurpose::Migration => check_script(sql, tokens, first, purpose),
    }
}

fn check_script(
    sql: &str,
    tokens: &[Token],
    first: &Token,
    purpose: SqlPurpose,
) -> Result<(), LocatedRefusalReason> {
    if first.is(TK_INSERT) || first.is(TK_WITH) {
        return Ok(());
    }
    let (what, instead) = match purpose {
        SqlPurpose::Schema => (
            "a schema",
            "CREATE TABLE, CREATE INDEX, CREATE VIEW and seeds by INSERT",
        ),
        _ => (
            "a migration",
            "CREATE TABLE, CREATE INDEX, CREATE VIEW, ALTER TABLE … ADD COLUMN and seeds by INSERT",
        ),
    };
    let refused = |token: &Token, words: &str| {
        Err(LocatedRefusalReason::new(
            token.start,
            format!(
                "{} is not allowed: {what} holds {instead}.",
                quote_excerpt(words)
            ),
        ))
    };
    if first.is(TK_ALTER) && purpose == SqlPurpose::Migration {
        return Ok(());
    }
    if !first.is(TK_CREATE) {
        return refused(first, &uppercase(first, sql));
    }
    let Some(second) = tokens.get(1) else {
        return Ok(());
    };
    if second.is(TK_TABLE) || second.is(TK_INDEX) || second.is(TK_VIEW) || second.is(TK_UNIQUE) {
        return Ok(());
    }
    let word = uppercase(second, sql);
    let what_made = match word.as_str() {
        // Temporary objects are never allowed; the reason names the word behind TEMP.
        "TEMP" | "TEMPORARY" => tokens.get(2).map(|third| uppercase(third, sql)),
        _ => None,
    };
    if let Some(instead) = hints::creation_hint(what_made.as_ref().unwrap_or(&word)) {
        return Err(LocatedRefusalReason::new(
            second.start,
            format!(
                "{} is not allowed: {instead}.",
                quote_excerpt(&format!("CREATE {word}"))
            ),
        ));
    }
    refused(second, &format!("CREATE {word}"))
}

fn uppercase(token: &Token, sql: &str) -> String {
    token.text(sql).to_ascii_uppercase()
}
