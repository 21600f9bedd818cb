//! Whether the gate and SQLite agree about a text. Used by the tests and by the fuzz targets.

use std::sync::{Arc, Mutex};

use guest_gate::functions::{
    ADDED_FUNCTIONS, ALLOWED_FUNCTIONS, IMPLICIT_FUNCTIONS, TABLE_VALUED_FUNCTIONS,
};
use guest_gate::statement::{SqlPurpose, StatementKind, check};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

pub(crate) const PURPOSES: [SqlPurpose; 4] = [
    SqlPurpose::Action,
    SqlPurpose::Query,
    SqlPurpose::Schema,
    SqlPurpose::Migration,
];

/// How many rows of a read are looked at.
const ROWS: usize = 20;

/// A database, and what its authorizer has seen that no statement may do.
pub(crate) struct Watched {
    database: Connection,
    /// Content of the database, which nothing may change, as writes are prepared only.
    content: Vec<u8>,
    forbidden: Arc<Mutex<Vec<String>>>,
}

impl Watched {
    /// Watches a database, to which a secret table is added. Long statements are interrupted.
    pub(crate) fn new(mut database: Connection) -> Self {
        database
            .execute_batch("CREATE TABLE svc_secret (id)")
            .unwrap();
        add_functions(&database);
        let content = database.serialize("main").unwrap().to_vec();
        let forbidden = Arc::new(Mutex::new(Vec::new()));
        let seen = forbidden.clone();
        database
            .authorizer(Some(move |context: AuthContext<'_>| {
                if is_forbidden(&context.action) {
                    seen.lock().unwrap().push(format!("{:?}", context.action));
                }
                Authorization::Allow
            }))
            .unwrap();
        database.progress_handler(20_000, Some(|| true)).unwrap();
        Self {
            database,
            content,
            forbidden,
        }
    }

    /// Compares the gate's verdict on a text with SQLite's.
    pub(crate) fn agree(&mut self, sql: &str, purpose: SqlPurpose) -> Result<(), String> {
        self.same(sql, purpose)?;
        self.unchanged(sql)
    }

    fn same(&self, sql: &str, purpose: SqlPurpose) -> Result<(), String> {
        let statements = match check(sql, purpose) {
            Ok(statements) => statements,
            Err(refusal) => {
                let is_place = sql.is_char_boundary(refusal.position.offset as usize);
                let is_refusal = is_place && refusal.statement > 0 && !refusal.reason.is_empty();
                return claim(is_refusal, || format!("{refusal:?} of {sql:?}"));
            }
        };
        if matches!(purpose, SqlPurpose::Schema | SqlPurpose::Migration) {
            return Ok(());
        }
        let [statement] = statements.as_slice() else {
            return Err(format!("{} statements: {sql:?}", statements.len()));
        };
        self.forbidden.lock().unwrap().clear();
        // The whole text, so that a second statement would show.
        let prepared = self.database.prepare(sql);
        let forbidden = self.forbidden.lock().unwrap().clone();
        claim(forbidden.is_empty(), || format!("{forbidden:?}: {sql:?}"))?;
        let mut prepared = match prepared {
            Ok(prepared) => prepared,
            Err(rusqlite::Error::MultipleStatement) => {
                return Err(format!("several statements: {sql:?}"));
            }
            // The gate does not check these: tables, columns, numbers of arguments.
            Err(_) => return Ok(()),
        };
        let reads = statement.kind == StatementKind::Read;
        claim(prepared.readonly() == reads, || {
            format!("{:?}: {sql:?}", statement.kind)
        })?;
        let returns_rows = prepared.column_count() > 0;
        claim(returns_rows == statement.returns_rows, || {
            format!("rows: {sql:?}")
        })?;
        let binds: Option<Vec<&str>> = (1..=prepared.parameter_count())
            .map(|index| prepared.parameter_name(index)?.strip_prefix(':'))
            .collect();
        let said: Vec<&str> = statement.binds.iter().map(String::as_str).collect();
        claim(binds.as_ref() == Some(&said), || {
            format!("{binds:?}, not {said:?}: {sql:?}")
        })?;
        if reads && let Ok(mut rows) = prepared.query(()) {
            let mut left = ROWS;
            while left > 0 && rows.next().is_ok_and(|row| row.is_some()) {
                left -= 1;
            }
        }
        Ok(())
    }

    /// A look at the whole content, which no read may have changed.
    fn unchanged(&mut self, sql: &str) -> Result<(), String> {
        let content = self.database.serialize("main").unwrap();
        claim(*content == self.content, || {
            format!("a read that writes: {sql:?}")
        })
    }
}

/// Has SQLite know the functions that the host adds, by name.
pub(crate) fn add_functions(database: &Connection) {
    for name in ADDED_FUNCTIONS {
        let flags = FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
        let added = database.create_scalar_function(*name, -1, flags, |_| Ok(1));
        added.unwrap();
    }
}

fn claim(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

fn is_forbidden(action: &AuthAction<'_>) -> bool {
    let internal = |table: &str| {
        let table = table.to_ascii_lowercase();
        table.starts_with("svc_") || table.starts_with("sqlite_") || table.starts_with("pragma_")
    };
    match action {
        AuthAction::Select | AuthAction::Recursive => false,
        AuthAction::Read { table_name, .. } => {
            !["svc_payments", "svc_files"].contains(table_name) && internal(table_name)
        }
        AuthAction::Delete {
            table_name: "svc_files",
        } => false,
        AuthAction::Insert { table_name }
        | AuthAction::Delete { table_name }
        | AuthAction::Update { table_name, .. } => {
            internal(table_name) || TABLE_VALUED_FUNCTIONS.contains(table_name)
        }
        AuthAction::Function { function_name } => {
            // SQLite gives the names of keywords as they are written.
            let name = function_name.to_ascii_lowercase();
            !ALLOWED_FUNCTIONS.contains(&name.as_str())
                && !IMPLICIT_FUNCTIONS.contains(&name.as_str())
        }
        _ => true,
    }
}
