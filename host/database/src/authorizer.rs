//! The second wall: what a connection to a tenant's database may do, whatever the gate let through.
//!
//! Everything here allows by list. A statement passes only if each of its actions is on the list of the role that
//! the connection plays at the moment; the platform's own statements are prepared in a role of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, Result};

use super::changed_tables::{StatementTables, TableRecorder};
use super::cost;
use super::functions;
use super::limits::{PATTERN_BYTES, VALUE_BYTES};
use super::meter::Deadline;
use svc_base::clock::Clock;

/// The longest text of SQL: a statement's listing has a word more.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "a word"
)]
const SQL_BYTES: i32 = VALUE_BYTES + cost::EXPLAIN_PREFIX.len() as i32;

/// For whom a statement is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum StatementRole {
    /// The platform itself.
    Platform = 0,
    /// A tenant's read.
    Read = 1,
    /// A tenant's write.
    Write = 2,
    /// A tenant's migration.
    Migrate = 3,
}

/// Switches the role of a connection.
#[derive(Debug)]
pub(super) struct Authorizer {
    role: Arc<AtomicU8>,
    /// The tables that SQLite asks about, while somebody wants to know.
    recorder: TableRecorder,
}

impl Authorizer {
    /// Builds the walls around a connection.
    pub(super) fn install(
        connection: &mut Connection,
        deadline: &Deadline,
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
        let role = Arc::new(AtomicU8::new(StatementRole::Platform as u8));
        let current_role = Arc::clone(&role);
        let recorder = TableRecorder::default();
        let recording = recorder.clone();
        connection.authorizer(Some(move |context: AuthContext<'_>| {
            let role = match current_role.load(Ordering::Relaxed) {
                1 => StatementRole::Read,
                2 => StatementRole::Write,
                3 => StatementRole::Migrate,
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

    /// Plays a role until told otherwise.
    pub(super) fn set_role(&self, role: StatementRole) {
        self.role.store(role as u8, Ordering::Relaxed);
    }

    /// Does something that prepares a tenant's statement; returns the tables that SQLite asks about, too.
    pub(super) fn record_tables<T>(&self, work: impl FnOnce() -> T) -> (T, StatementTables) {
        self.recorder.start();
        let done = work();
        (done, self.recorder.finish())
    }

    /// Does something as the platform, in the middle of what is a tenant's.
    pub(super) fn as_platform<T>(&self, work: impl FnOnce() -> T) -> T {
        let role = self
            .role
            .swap(StatementRole::Platform as u8, Ordering::Relaxed);
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

fn allows(role: StatementRole, context: &AuthContext<'_>, forbidden_modules: &[String]) -> bool {
    // Where a name is resolved within a statement there is no database; everywhere else it must be the tenant's own.
    if context.database_name.is_some_and(|name| name != "main") {
        return false;
    }
    let writes = role == StatementRole::Write;
    let migrates = role == StatementRole::Migrate;
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
        AuthAction::Delete { table_name } => writes && is_own(table_name),
        AuthAction::Update { table_name, .. } => {
            (writes && is_own(table_name)) || (migrates && is_schema(table_name))
        }
        // The second is SQLite's own, which it makes for the first AUTOINCREMENT.
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
        // What SQLite runs itself to see whether old rows satisfy a new column's constraints.
        AuthAction::Pragma { pragma_name, .. } => migrates && pragma_name == "quick_check",
        _ => false,
    }
}

fn has_prefix(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// A name that a tenant's own table, view or index may have.
fn is_own(name: &str) -> bool {
    !has_prefix(name, "svc_") && !has_prefix(name, "sqlite_")
}

/// The table by which SQLite tries a new column, before it refuses one that would need an index.
fn is_altertab(name: &str) -> bool {
    has_prefix(name, "sqlite_altertab_")
}

/// Indexes that SQLite makes for constraints have names of its own.
fn is_index(name: &str) -> bool {
    is_own(name) || has_prefix(name, "sqlite_autoindex_")
}

fn is_readable(table: &str, forbidden_modules: &[String]) -> bool {
    (is_own(table) || table.eq_ignore_ascii_case("svc_payments"))
        && !has_prefix(table, "pragma_")
        && !forbidden_modules
            .iter()
            .any(|module| module.eq_ignore_ascii_case(table))
}

/// The schema's own table, which SQLite itself reads and writes under a migration; defensive mode keeps it from
/// everybody else.
fn is_schema(table: &str) -> bool {
    table.eq_ignore_ascii_case("sqlite_master") || table.eq_ignore_ascii_case("pragma_quick_check")
}

/// Tells the functions that SQLite itself calls to alter a table.
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
