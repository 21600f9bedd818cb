//! The second wall: allow-lists that hold for every statement on a tenant's connection, even if the gate let it through.
//!
//! A statement passes only if each of its actions is on the list of the connection's current role. The platform's own statements
//! are prepared in a role of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, Result};

use super::changed_tables::{AuthorizedTableRecorder, StatementTables};
use super::cost;
use super::functions;
use super::limits::{FILES_TABLE, PATTERN_BYTES, VALUE_BYTES};
use super::meter::StatementDeadline;
use svc_base::clock::Clock;

/// The longest SQL text. The listing of a statement has one word more (`EXPLAIN`).
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "a word"
)]
const SQL_BYTES: i32 = VALUE_BYTES + cost::EXPLAIN_PREFIX.len() as i32;

/// Party for which a statement is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum AuthorizerRole {
    /// The platform itself.
    Platform = 0,
    /// A tenant's read.
    Read = 1,
    /// A tenant's write.
    Write = 2,
    /// A tenant's migration.
    Migrate = 3,
}

/// Authorizer of a connection: decides by the current role which actions of a statement SQLite allows.
#[derive(Debug)]
pub(super) struct Authorizer {
    role: Arc<AtomicU8>,
    /// Recorder of the tables that SQLite asks about.
    recorder: AuthorizedTableRecorder,
}

impl Authorizer {
    /// Sets the limits of a connection, registers our functions, and installs the authorizer.
    pub(super) fn install(
        connection: &mut Connection,
        deadline: &StatementDeadline,
        clock: &Clock,
    ) -> Result<Self> {
        for (config, value) in [
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
            (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true),
        ] {
            connection.set_db_config(config, value)?;
        }
        for (limit, value) in [
            (Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES),
            (Limit::SQLITE_LIMIT_SQL_LENGTH, SQL_BYTES),
            (Limit::SQLITE_LIMIT_FUNCTION_ARG, cost::MAX_ARGUMENTS),
            (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, cost::MAX_CASCADE_DEPTH),
            (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_BYTES),
            (Limit::SQLITE_LIMIT_ATTACHED, 0),
            (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
            (Limit::SQLITE_LIMIT_VDBE_OP, 100_000),
        ] {
            connection.set_limit(limit, value)?;
        }
        functions::register(connection, deadline, clock)?;
        let forbidden_modules = forbidden_modules(connection)?;
        let role = Arc::new(AtomicU8::new(AuthorizerRole::Platform as u8));
        let current_role = Arc::clone(&role);
        let recorder = AuthorizedTableRecorder::default();
        let recording = recorder.clone();
        connection.authorizer(Some(move |context: AuthContext<'_>| {
            let role = match current_role.load(Ordering::Relaxed) {
                1 => AuthorizerRole::Read,
                2 => AuthorizerRole::Write,
                3 => AuthorizerRole::Migrate,
                _ => return Authorization::Allow,
            };
            recording.note(&context.action);
            if allows(role, &context, &forbidden_modules) {
                Authorization::Allow
            } else {
                Authorization::Deny
            }
        }))?;
        Ok(Self { role, recorder })
    }

    /// Switches the role of the connection.
    pub(super) fn set_role(&self, role: AuthorizerRole) {
        self.role.store(role as u8, Ordering::Relaxed);
    }

    /// Runs `work`, which prepares a tenant's statement; also returns the tables that SQLite asked about.
    pub(super) fn record_tables<T>(&self, work: impl FnOnce() -> T) -> (T, StatementTables) {
        self.recorder.start();
        let done = work();
        (done, self.recorder.finish())
    }

    /// Runs `work` in the platform's role, then returns to the role before.
    pub(super) fn as_platform<T>(&self, work: impl FnOnce() -> T) -> T {
        let role = self
            .role
            .swap(AuthorizerRole::Platform as u8, Ordering::Relaxed);
        let done = work();
        self.role.store(role, Ordering::Relaxed);
        done
    }
}

/// The table-valued functions that tenants may use.
pub(super) const TABLE_FUNCTIONS: &[&str] = &["json_each", "json_tree", "jsonb_each", "jsonb_tree"];

/// The modules behind table-valued functions that tenants may not use.
fn forbidden_modules(connection: &Connection) -> Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT name FROM pragma_module_list")?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?;
    names
        .map(|name| name.map(|name| name.to_ascii_lowercase()))
        .filter(|name| !matches!(name.as_deref(), Ok(name) if TABLE_FUNCTIONS.contains(&name)))
        .collect()
}

fn allows(role: AuthorizerRole, context: &AuthContext<'_>, forbidden_modules: &[String]) -> bool {
    // SQLite names no database where it resolves a name within a statement. Everywhere else it must be the tenant's database.
    if context.database_name.is_some_and(|name| name != "main") {
        return false;
    }
    let writes = role == AuthorizerRole::Write;
    let migrates = role == AuthorizerRole::Migrate;
    match context.action {
        AuthAction::Select | AuthAction::Recursive => true,
        AuthAction::Read { table_name, .. } => {
            is_readable(table_name, forbidden_modules)
                || (migrates && (is_schema(table_name) || is_altertab(table_name)))
        }
        AuthAction::Function { function_name } => {
            is_function(function_name) || (migrates && is_migration_function(function_name))
        }
        AuthAction::Insert { table_name } => {
            ((writes || migrates) && is_own(table_name)) || (migrates && is_schema(table_name))
        }
        AuthAction::Delete { table_name } => {
            writes && (is_own(table_name) || is_files_table(table_name))
        }
        AuthAction::Update { table_name, .. } => {
            (writes && is_own(table_name)) || (migrates && is_schema(table_name))
        }
        // SQLite itself makes `sqlite_sequence` for the first AUTOINCREMENT.
        AuthAction::CreateTable { table_name } => {
            migrates && (is_own(table_name) || table_name == "sqlite_sequence")
        }
        AuthAction::CreateView { view_name } => migrates && is_own(view_name),
        AuthAction::CreateIndex {
            index_name,
            table_name,
        } => migrates && is_index(index_name) && (is_own(table_name) || is_altertab(table_name)),
        AuthAction::Reindex { index_name } => migrates && is_index(index_name),
        AuthAction::AlterTable {
            database_name,
            table_name,
        } => migrates && database_name == "main" && is_own(table_name),
        // SQLite runs this check itself, to see whether old rows satisfy the constraints of a new column.
        AuthAction::Pragma { pragma_name, .. } => migrates && pragma_name == "quick_check",
        _ => false,
    }
}

fn has_prefix(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Whether a tenant's table, view or index may have this name.
fn is_own(name: &str) -> bool {
    !has_prefix(name, "svc_") && !has_prefix(name, "sqlite_")
}

/// Whether this is the table with which SQLite tests a new column, before it refuses one that would need an index.
fn is_altertab(name: &str) -> bool {
    has_prefix(name, "sqlite_altertab_")
}

/// Whether this is an index of the tenant, or one that SQLite makes for a constraint.
fn is_index(name: &str) -> bool {
    is_own(name) || has_prefix(name, "sqlite_autoindex_")
}

/// Whether this is the table of visitors' files, of which a tenant may read and delete rows.
fn is_files_table(name: &str) -> bool {
    name.eq_ignore_ascii_case(FILES_TABLE)
}

fn is_readable(table: &str, forbidden_modules: &[String]) -> bool {
    (is_own(table) || is_files_table(table) || table.eq_ignore_ascii_case("svc_payments"))
        && !has_prefix(table, "pragma_")
        && !forbidden_modules
            .iter()
            .any(|module| module.eq_ignore_ascii_case(table))
}

/// Whether this is the schema table, which SQLite itself reads and writes during a migration. Defensive mode keeps all others from
/// writing to it.
fn is_schema(table: &str) -> bool {
    table.eq_ignore_ascii_case("sqlite_master") || table.eq_ignore_ascii_case("pragma_quick_check")
}

/// Whether SQLite itself calls this function to alter a table.
fn is_migration_function(name: &str) -> bool {
    [
        "sqlite_rename_column",
        "sqlite_rename_quotefix",
        "sqlite_rename_table",
        "sqlite_rename_test",
        "sqlite_drop_column",
        "sqlite_fail",
        "sqlite_add_constraint",
        "sqlite_find_constraint",
    ]
    .iter()
    .any(|own| own.eq_ignore_ascii_case(name))
}

fn is_function(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let lower = lower.as_str();
    FUNCTIONS.binary_search(&lower).is_ok() || OPERATORS.contains(&lower)
}

/// Functions that SQLite calls by itself, for operators and keywords.
pub(super) const OPERATORS: &[&str] = &[
    "->",
    "->>",
    "current_date",
    "current_time",
    "current_timestamp",
];

/// The functions that tenants may call, sorted.
pub const FUNCTIONS: &[&str] = &[
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "avg",
    "ceil",
    "ceiling",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "cos",
    "cosh",
    "count",
    "cume_dist",
    "date",
    "datetime",
    "degrees",
    "dense_rank",
    "exp",
    "first_value",
    "floor",
    "format",
    "glob",
    "group_concat",
    "hex",
    "if",
    "ifnull",
    "iif",
    "instr",
    "json",
    "json_array",
    "json_array_insert",
    "json_array_length",
    "json_error_position",
    "json_extract",
    "json_group_array",
    "json_group_object",
    "json_insert",
    "json_object",
    "json_patch",
    "json_pretty",
    "json_quote",
    "json_remove",
    "json_replace",
    "json_set",
    "json_type",
    "json_valid",
    "jsonb",
    "jsonb_array",
    "jsonb_array_insert",
    "jsonb_extract",
    "jsonb_group_array",
    "jsonb_group_object",
    "jsonb_insert",
    "jsonb_object",
    "jsonb_patch",
    "jsonb_remove",
    "jsonb_replace",
    "jsonb_set",
    "julianday",
    "lag",
    "last_value",
    "lead",
    "length",
    "like",
    "likelihood",
    "likely",
    "ln",
    "log",
    "log10",
    "log2",
    "lower",
    "ltrim",
    "max",
    "median",
    "min",
    "mod",
    "nth_value",
    "ntile",
    "nullif",
    "octet_length",
    "percent_rank",
    "percentile",
    "percentile_cont",
    "percentile_disc",
    "pi",
    "pow",
    "power",
    "printf",
    "quote",
    "radians",
    "random",
    "randomblob",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtrim",
    "sign",
    "sin",
    "sinh",
    "soundex",
    "sqrt",
    "strftime",
    "string_agg",
    "substr",
    "substring",
    "sum",
    "tan",
    "tanh",
    "time",
    "timediff",
    "total",
    "trim",
    "trunc",
    "typeof",
    "unhex",
    "unicode",
    "unistr",
    "unixepoch",
    "unlikely",
    "upper",
    "uuid",
    "zeroblob",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A build may have the table of a file's pages: its name decides, whatever asks for it.
    #[test]
    fn the_pages_of_the_file_are_refused_by_their_name() {
        let column_name = "data";
        for table_name in ["sqlite_dbpage", "SQLITE_DBPAGE"] {
            let actions = [
                AuthAction::Read {
                    table_name,
                    column_name,
                },
                AuthAction::Insert { table_name },
                AuthAction::Update {
                    table_name,
                    column_name,
                },
                AuthAction::Delete { table_name },
                AuthAction::CreateView {
                    view_name: table_name,
                },
                AuthAction::CreateVtable {
                    table_name: "pages",
                    module_name: table_name,
                },
                AuthAction::Attach { filename: "x.db" },
            ];
            for action in actions {
                assert_refused(action);
            }
        }
    }

    #[test]
    fn files_of_visitors_are_read_and_deleted_alone() {
        let allowed = |role, action| {
            let context = AuthContext {
                action,
                database_name: Some("main"),
                accessor: None,
            };
            allows(role, &context, &[])
        };
        let (table_name, column_name) = ("SVC_Files", "id");
        let delete = AuthAction::Delete { table_name };
        assert!(allowed(AuthorizerRole::Write, delete));
        for role in [AuthorizerRole::Read, AuthorizerRole::Migrate] {
            assert!(!allowed(role, delete), "{role:?}");
        }
        for role in [
            AuthorizerRole::Read,
            AuthorizerRole::Write,
            AuthorizerRole::Migrate,
        ] {
            let read = AuthAction::Read {
                table_name,
                column_name,
            };
            assert!(allowed(role, read), "{role:?}");
            let update = AuthAction::Update {
                table_name,
                column_name,
            };
            for change in [AuthAction::Insert { table_name }, update] {
                assert!(!allowed(role, change), "{role:?}: {change:?}");
            }
        }
    }

    #[track_caller]
    fn assert_refused(action: AuthAction<'_>) {
        for role in [
            AuthorizerRole::Read,
            AuthorizerRole::Write,
            AuthorizerRole::Migrate,
        ] {
            for accessor in [None, Some("view"), Some("trigger")] {
                for database_name in [None, Some("main"), Some("attached")] {
                    let context = AuthContext {
                        action,
                        database_name,
                        accessor,
                    };
                    assert!(!allows(role, &context, &[]), "{role:?}: {context:?}");
                }
            }
        }
    }
}
