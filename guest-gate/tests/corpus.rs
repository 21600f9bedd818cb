//! The corpus: what an author may write is accepted, by the gate and by SQLite; what nobody may run is refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "this is a test")]

mod support;

use guest_gate::statement::{AllowedStatement, SqlPurpose, StatementKind, check};
use rusqlite::Connection;
use sqlite3_parser::FallibleIterator as _;
use support::{Piece, empty, example, pieces, text};

/// Asks SQLite itself about a piece: every statement prepares, and is one; scripts also run.
fn sqlite_accepts(database: &Connection, sql: &str, purpose: SqlPurpose) -> Result<(), String> {
    match purpose {
        SqlPurpose::Action | SqlPurpose::Query => {
            database.prepare(sql).map_err(|error| error.to_string())?;
        }
        SqlPurpose::Schema => empty()
            .execute_batch(sql)
            .map_err(|error| error.to_string())?,
        SqlPurpose::Migration => example()
            .execute_batch(sql)
            .map_err(|error| error.to_string())?,
    }
    Ok(())
}

fn agrees_with_sqlite(database: &Connection, sql: &str, statement: &AllowedStatement) {
    let prepared = database.prepare(text(sql, statement)).unwrap();
    assert_eq!(
        prepared.readonly(),
        statement.kind == StatementKind::Read,
        "{sql}: readonly"
    );
    assert_eq!(
        prepared.column_count() > 0,
        statement.returns_rows,
        "{sql}: rows"
    );
    let binds: Vec<String> = (1..=prepared.parameter_count())
        .map(|index| {
            let name = prepared.parameter_name(index);
            let name = name.unwrap_or_else(|| panic!("{sql}: a bind without a name"));
            name.strip_prefix(':').unwrap().to_owned()
        })
        .collect();
    assert_eq!(binds, statement.binds, "{sql}: binds");
}

#[test]
fn what_an_author_may_write_is_accepted() {
    let database = example();
    let accepted = pieces("accepted");
    assert!(accepted.len() >= 400, "{} pieces", accepted.len());
    let mut faults = Vec::new();
    for piece in &accepted {
        if let Err(error) = sqlite_accepts(&database, &piece.sql, piece.purpose) {
            faults.push(format!("{}: SQLite: {error}: {}", piece.file, piece.sql));
            continue;
        }
        match check(&piece.sql, piece.purpose) {
            Err(refusal) => {
                let Piece { file, sql, .. } = piece;
                faults.push(format!("{file}: {}: {sql}", refusal.reason));
            }
            Ok(statements) if matches!(piece.purpose, SqlPurpose::Action | SqlPurpose::Query) => {
                assert_eq!(statements.len(), 1, "{}", piece.sql);
                agrees_with_sqlite(&database, &piece.sql, &statements[0]);
            }
            Ok(statements) => {
                for statement in &statements {
                    assert_ne!(statement.kind, StatementKind::Read, "{}", piece.sql);
                    assert!(!statement.returns_rows, "{}", piece.sql);
                    assert!(statement.binds.is_empty(), "{}", piece.sql);
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn what_nobody_may_run_is_refused() {
    let refused = pieces("refused");
    assert!(refused.len() >= 250, "{} pieces", refused.len());
    let mut faults = Vec::new();
    for Piece {
        file,
        purpose,
        sql,
        at,
        says,
    } in &refused
    {
        let Err(refusal) = check(sql, *purpose) else {
            faults.push(format!("{file}: accepted: {sql}"));
            continue;
        };
        let place = refusal.position;
        if at.is_some_and(|at| at != (place.line, place.column)) {
            let reason = &refusal.reason;
            faults.push(format!("{file}: at {place:?}, {reason}: {sql}"));
        }
        if let Some(says) = says
            && !refusal.reason.contains(says)
        {
            faults.push(format!("{file}: says {}: {sql}", refusal.reason));
        }
        assert!(sql.is_char_boundary(place.offset as usize), "{sql}");
    }
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// How much of the accepted corpus the parsers themselves take: why the gate uses the one that it uses. With `--nocapture`
/// it says the figures and what each parser does not take.
#[test]
fn the_parser_that_follows_sqlites_grammar_takes_more() {
    let accepted = pieces("accepted");
    let mut missed = [Vec::new(), Vec::new()];
    for piece in &accepted {
        let sql = &piece.sql;
        if sqlparser::parser::Parser::parse_sql(&sqlparser::dialect::SQLiteDialect {}, sql).is_err()
        {
            missed[0].push(sql);
        }
        let arena = sqlite3_parser::Bump::new();
        let mut parser = sqlite3_parser::lexer::sql::Parser::new(&arena, sql.as_bytes());
        loop {
            match parser.next() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => {
                    missed[1].push(sql);
                    break;
                }
            }
        }
    }
    let total = accepted.len();
    for (name, missed) in ["sqlparser", "sqlite3-parser"].into_iter().zip(&missed) {
        let taken = total - missed.len();
        let percent = 100.0 * taken as f64 / total as f64;
        println!("{name} takes {taken} of {total} ({percent:.1} %), but not:");
        for sql in missed {
            println!("    {}", sql.chars().take(160).collect::<String>());
        }
    }
    assert!(missed[1].len() < missed[0].len());
    assert!(missed[1].len() * 100 <= total * 2);
}
