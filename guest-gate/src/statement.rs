//! Judging of SQL: the kind of each statement, or the reason for a refusal.

use sqlite3_parser::Bump;

use crate::position::{LocatedRefusalReason, Position, to_u32};
use crate::token::{self, Token};
use crate::{class, params, parse, walk};

/// Purpose for which SQL is judged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SqlPurpose {
    /// The one statement of a named action.
    Action,
    /// The one statement of an owner's query.
    Query,
    /// The script that creates a backend, with at least one table.
    Schema,
    /// A script of additive statements for an existing backend.
    Migration,
}

/// Effect of a statement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StatementKind {
    /// Answers rows and changes nothing.
    Read,
    /// Changes rows.
    Write,
    /// Changes the schema.
    Migration,
}

/// A table or view that a statement names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NamedTable {
    /// Name in lower case.
    pub name: String,
    /// Number of references, with every common table expression expanded.
    pub times: u32,
}

/// An allowed statement.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AllowedStatement {
    /// Effect of the statement.
    pub kind: StatementKind,
    /// Named binds in order of first appearance, without the colon, each once.
    pub binds: Vec<String>,
    /// Whether running it answers rows.
    pub returns_rows: bool,
    /// The tables and views that it names, each once.
    pub tables: Vec<NamedTable>,
    /// The view that it creates, in lower case.
    pub view: Option<String>,
    /// Size of the statement: expressions, selects and tables read, with every common table expression expanded.
    pub parts: u32,
    /// Start of the statement, in bytes.
    pub start: u32,
    /// End of the statement, in bytes, without the closing semicolon.
    pub end: u32,
}

/// Reason why SQL is refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SqlRefusal {
    /// One sentence for the author.
    pub reason: String,
    /// Number of the statement in the script, from 1.
    pub statement: u32,
    /// Position of the fault.
    pub position: Position,
}

/// Judges SQL; returns its statements in order.
///
/// # Errors
///
/// The first part that the purpose does not allow, with its position.
pub fn check(sql: &str, purpose: SqlPurpose) -> Result<Vec<AllowedStatement>, SqlRefusal> {
    let tokens = token::tokenize(sql);
    let pieces: Vec<&[Token]> = tokens
        .split(|token| token.kind == token::TokenKind::Semicolon)
        .filter(|piece| !piece.is_empty())
        .collect();
    let refusal = |statement: usize, fault: LocatedRefusalReason| SqlRefusal {
        reason: fault.reason,
        statement: to_u32(statement + 1),
        position: Position::at_offset(sql, fault.offset),
    };
    if let Some(offset) = sql.find('\0') {
        let before =
            pieces.partition_point(|piece| piece.last().is_some_and(|last| last.end <= offset));
        let reason = "The SQL holds a NUL byte, where SQLite would stop reading: take it out.";
        return Err(refusal(before, LocatedRefusalReason::new(offset, reason)));
    }
    let mut statements = Vec::with_capacity(pieces.len());
    let mut makes_table = false;
    for (index, piece) in pieces.iter().enumerate() {
        let at_start = |reason: &str| {
            let start = piece.first().map_or(0, |token| token.start);
            Err(refusal(index, LocatedRefusalReason::new(start, reason)))
        };
        if index > 0 && matches!(purpose, SqlPurpose::Action | SqlPurpose::Query) {
            return at_start(
                "Only one statement is allowed here: take out what follows the first.",
            );
        }
        let (statement, table) =
            judge_statement(sql, piece, purpose).map_err(|fault| refusal(index, fault))?;
        makes_table |= table;
        statements.push(statement);
    }
    let missing = match purpose {
        _ if statements.is_empty() => "There is no statement.",
        SqlPurpose::Schema if !makes_table => {
            "A schema makes at least one table: write a CREATE TABLE."
        }
        _ => return Ok(statements),
    };
    let offset = tokens.first().map_or(sql.len(), |token| token.start);
    Err(refusal(0, LocatedRefusalReason::new(offset, missing)))
}

/// Judges one statement; returns also whether it creates a table.
fn judge_statement(
    sql: &str,
    tokens: &[Token],
    purpose: SqlPurpose,
) -> Result<(AllowedStatement, bool), LocatedRefusalReason> {
    class::check_class(sql, tokens, purpose)?;
    if let Some(Token {
        kind: token::TokenKind::Illegal(reason),
        start,
        ..
    }) = tokens.last()
    {
        return Err(LocatedRefusalReason::new(*start, *reason));
    }
    let binds = params::check_binds(sql, tokens, purpose)?;
    let arena = Bump::new();
    let tree = parse::parse(&arena, sql, tokens)?;
    let found = walk::walk(sql, tokens, purpose, tree)?;
    params::check_file_binds(sql, tokens, &binds, found.kind == StatementKind::Write)?;
    let statement = AllowedStatement {
        kind: found.kind,
        binds,
        returns_rows: found.returns_rows,
        tables: found.tables,
        view: found.view,
        parts: found.parts,
        start: to_u32(tokens.first().map_or(0, |token| token.start)),
        end: to_u32(tokens.last().map_or(0, |token| token.end)),
    };
    Ok((statement, found.makes_table))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(sql: &str) -> AllowedStatement {
        let mut statements = check(sql, SqlPurpose::Action).unwrap();
        assert_eq!(statements.len(), 1);
        statements.remove(0)
    }

    fn names(statement: &AllowedStatement) -> Vec<&str> {
        let tables = statement.tables.iter();
        tables.map(|table| table.name.as_str()).collect()
    }

    #[test]
    fn the_kind_and_whether_rows_come_back() {
        for (sql, kind, returns_rows) in [
            ("SELECT 1", StatementKind::Read, true),
            ("VALUES (1)", StatementKind::Read, true),
            (
                "WITH a AS (SELECT 1) SELECT * FROM a",
                StatementKind::Read,
                true,
            ),
            ("INSERT INTO t VALUES (1)", StatementKind::Write, false),
            (
                "INSERT INTO t DEFAULT VALUES RETURNING *",
                StatementKind::Write,
                true,
            ),
            (
                "REPLACE INTO t VALUES (1) RETURNING a",
                StatementKind::Write,
                true,
            ),
            ("UPDATE t SET a = 1", StatementKind::Write, false),
            ("UPDATE t SET a = 1 RETURNING a", StatementKind::Write, true),
            (
                "WITH a AS (SELECT 1) DELETE FROM t",
                StatementKind::Write,
                false,
            ),
            ("DELETE FROM t RETURNING a", StatementKind::Write, true),
        ] {
            let statement = one(sql);
            assert_eq!(
                (statement.kind, statement.returns_rows),
                (kind, returns_rows),
                "{sql}"
            );
        }
    }

    #[test]
    fn binds_come_once_each_in_order_of_appearance() {
        let sql = "SELECT ':no', :b, :a /* :no */, :b, :B, :svc_user_name FROM t WHERE x = :svc_user_id AND y = :svc_user_email";
        let binds = [
            "b",
            "a",
            "B",
            "svc_user_name",
            "svc_user_id",
            "svc_user_email",
        ];
        assert_eq!(one(sql).binds, binds);
    }

    #[test]
    fn tables_come_once_each_in_lower_case() {
        for (sql, tables) in [
            ("SELECT 1", vec![]),
            (
                "SELECT * FROM B, a AS x, main.\"b\", [C d], json_each(x.y)",
                vec!["b", "a", "c d"],
            ),
            (
                "SELECT (SELECT 1 FROM inner_one) FROM outer_one",
                vec!["inner_one", "outer_one"],
            ),
            (
                "WITH c AS (SELECT * FROM t) SELECT * FROM c JOIN main.c",
                vec!["t", "c"],
            ),
            (
                "WITH c AS (SELECT 1) SELECT * FROM (SELECT * FROM c)",
                vec![],
            ),
            (
                "SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c), c",
                vec!["c"],
            ),
            (
                "SELECT 1 IN (WITH c AS (SELECT 1) SELECT * FROM c), 2 IN c",
                vec!["c"],
            ),
            (
                "WITH c AS (SELECT 1) INSERT INTO c SELECT * FROM c",
                vec!["c"],
            ),
            (
                "UPDATE t SET a = 1 FROM u WHERE b IN v",
                vec!["t", "u", "v"],
            ),
            ("SELECT * FROM svc_payments", vec!["svc_payments"]),
            ("SELECT * FROM svc_files", vec!["svc_files"]),
            (
                "DELETE FROM svc_files WHERE id = :id RETURNING id",
                vec!["svc_files"],
            ),
            ("SELECT * FROM key, \"key\"", vec!["key"]),
        ] {
            assert_eq!(names(&one(sql)), tables, "{sql}");
        }
    }

    #[test]
    fn a_statement_begins_and_ends_with_its_tokens() {
        for (sql, text) in [
            ("SELECT 1", "SELECT 1"),
            (" /* a */ SELECT 1 -- b\n ; -- c", "SELECT 1"),
            (";;SELECT 'é';;", "SELECT 'é'"),
            ("\u{feff}SELECT 1 /* ;", "SELECT 1"),
        ] {
            let statement = one(sql);
            assert_eq!(&sql[statement.start as usize..statement.end as usize], text);
        }
    }

    #[test]
    fn a_script_is_judged_statement_by_statement() {
        let sql = "CREATE TABLE a (b); -- one\nINSERT INTO a VALUES (';');\nCREATE VIEW v AS SELECT * FROM a;";
        let statements = check(sql, SqlPurpose::Schema).unwrap();
        let kinds: Vec<StatementKind> = statements.iter().map(|statement| statement.kind).collect();
        assert_eq!(
            kinds,
            [
                StatementKind::Migration,
                StatementKind::Write,
                StatementKind::Migration
            ]
        );
        assert_eq!(names(&statements[2]), ["v", "a"]);
        assert_eq!(statements[2].view.as_deref(), Some("v"));
        assert_eq!(statements[0].view, None);
        let texts: Vec<&str> = statements
            .iter()
            .map(|statement| &sql[statement.start as usize..statement.end as usize])
            .collect();
        assert_eq!(texts[1], "INSERT INTO a VALUES (';')");

        let refusal = check(&sql.replace("VIEW v", "VIEW svc_v"), SqlPurpose::Schema).unwrap_err();
        assert_eq!(refusal.statement, 3);
        assert_eq!((refusal.position.line, refusal.position.column), (3, 13));
    }

    #[test]
    fn of_several_faults_the_first_in_the_text_is_named() {
        let refusal = check("SELECT f(1), g(2) FROM svc_x", SqlPurpose::Query).unwrap_err();
        assert!(refusal.reason.contains("`f`"), "{}", refusal.reason);
        assert_eq!(refusal.position.column, 8);
    }

    #[test]
    fn what_a_purpose_takes() {
        use SqlPurpose::{Action, Migration, Query, Schema};
        for (sql, purposes) in [
            ("SELECT 1", vec![Action, Query]),
            ("SELECT :svc_user_id", vec![Action]),
            ("SELECT :a", vec![Action, Query]),
            ("DELETE FROM t", vec![Action, Query]),
            ("INSERT INTO t VALUES (1)", vec![Action, Query, Migration]),
            ("INSERT INTO t VALUES (1) RETURNING a", vec![Action, Query]),
            ("INSERT OR REPLACE INTO t VALUES (1)", vec![Action, Query]),
            (
                "INSERT OR ROLLBACK INTO t VALUES (1)",
                vec![Action, Query, Migration],
            ),
            (
                "CREATE TABLE t (a UNIQUE ON CONFLICT ROLLBACK)",
                vec![Schema, Migration],
            ),
            ("CREATE INDEX i ON t (a)", vec![Migration]),
            ("ALTER TABLE t ADD COLUMN a", vec![Migration]),
            (
                "CREATE TABLE t (a); ALTER TABLE t ADD COLUMN b",
                vec![Migration],
            ),
            ("DROP TABLE t", vec![]),
            ("", vec![]),
        ] {
            for purpose in [Action, Query, Schema, Migration] {
                let allowed = check(sql, purpose).is_ok();
                assert_eq!(allowed, purposes.contains(&purpose), "{sql} as {purpose:?}");
            }
        }
    }
}
