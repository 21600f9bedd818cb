//! Model of a backend.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use super::occupancy::Occupancy;
use crate::access::ClientGone;
use crate::config::CapReached;
use crate::control;
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, ProjectId};
use svc_database::{Inventory, RunError, Schema, SchemaWarning, StatementTiming};
use svc_sandbox::{GateFailure, Refusal, Statement, StatementKind};

/// The bind that is a signed-in visitor's id.
pub const USER_ID_BIND: &str = "svc_user_id";
/// The bind that is a signed-in visitor's verified address.
pub const USER_EMAIL_BIND: &str = "svc_user_email";
/// The longest note, in characters.
pub const MAX_NOTE_CHARS: usize = 1_000;
/// The most actions in a batch.
pub const MAX_BATCH: usize = 200;

/// A project's backend.
#[derive(Clone, Debug)]
pub struct Backend {
    /// Identifier of the backend.
    pub id: BackendId,
    /// Project that the backend belongs to.
    pub project: ProjectId,
    /// Whether its rooms may be joined.
    pub realtime: bool,
    /// Whether agents of visitors may call its actions as tools.
    pub agents: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

/// An entry of the ledger: what was done to the schema, verbatim.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LedgerEntry {
    /// From 1; the script that made the backend is the first.
    pub version: u32,
    /// SHA-256 of the script, in hexadecimal.
    pub checksum: String,
    /// The script.
    pub sql: String,
    /// Note of the author.
    pub note: Option<String>,
    /// When it was applied.
    #[schema(value_type = String, format = "date-time")]
    pub applied_at: Timestamp,
}

/// A version of an action, as it is stored.
#[derive(Clone, Debug)]
pub struct ActionRow {
    /// Name of the action.
    pub name: String,
    /// From 1; a changed body makes the next.
    pub version: u32,
    /// SQL of the one statement.
    pub sql: String,
    /// SHA-256 of that, in hexadecimal.
    pub checksum: String,
    /// Note of the author.
    pub note: Option<String>,
    /// When this version was made.
    pub created_at: Timestamp,
    /// Verdict of the gate.
    pub verdict: Statement,
    /// Which gate it was.
    pub gate: [u8; 32],
}

/// An action, ready to be called.
#[derive(Debug)]
pub struct Action {
    /// As it is stored.
    pub row: ActionRow,
    /// The statement itself, without what stands around it.
    pub statement: Arc<str>,
    /// How long it takes.
    pub timing: Arc<StatementTiming>,
}

impl From<ActionRow> for Action {
    fn from(row: ActionRow) -> Self {
        let range = row.verdict.start..row.verdict.end;
        let statement = row.sql.get(range).unwrap_or_default();
        Self {
            statement: statement.into(),
            timing: Arc::default(),
            row,
        }
    }
}

/// The values that a call of a statement names.
pub fn params(statement: &Statement) -> impl Iterator<Item = &String> {
    let binds = statement.binds.iter();
    binds.filter(|bind| !is_identity(bind))
}

/// Whether only a signed-in visitor can call a statement.
pub fn requires_identity(statement: &Statement) -> bool {
    statement.binds.iter().any(|bind| is_identity(bind))
}

/// Whether a statement changes rows.
pub fn writes(statement: &Statement) -> bool {
    statement.kind != StatementKind::Read
}

fn is_identity(bind: &str) -> bool {
    matches!(bind, USER_ID_BIND | USER_EMAIL_BIND)
}

/// An action to define.
#[derive(Clone, Debug)]
pub struct NewAction {
    /// Name of the action.
    pub name: String,
    /// SQL of the one statement.
    pub sql: String,
    /// Note of the author.
    pub note: Option<String>,
}

/// All that there is to see of a backend.
#[derive(Debug)]
pub struct BackendDetail {
    /// The backend.
    pub backend: Backend,
    /// Content of the file.
    pub inventory: Inventory,
    /// Members of the rooms.
    pub occupancy: Occupancy,
    /// Why its table of payments is behind, if it is.
    pub behind: Option<String>,
    /// How many bytes it takes on the disk.
    pub bytes_on_disk: u64,
    /// The ledger, oldest first.
    pub ledger: Vec<LedgerEntry>,
    /// Parts of the schema that no migration of the ledger has made.
    pub unrecorded: Vec<String>,
    /// The actions' newest versions, by name.
    pub actions: Vec<ActionRow>,
}

/// Outcome of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MigrationStatus {
    /// It was applied now.
    Applied,
    /// It had been applied and recorded before.
    AlreadyApplied,
    /// It had been applied before, and is recorded now.
    Healed,
}

/// A migration that is in the file and in the ledger.
#[derive(Clone, Debug)]
pub struct MigrationResult {
    /// How it came there.
    pub status: MigrationStatus,
    /// Version of the schema.
    pub version: u32,
    /// SHA-256 of its script, in hexadecimal.
    pub checksum: String,
    /// Warnings about parts that the migration brought.
    pub warnings: Vec<SchemaWarning>,
}

/// Effect that a change would have, had it not been a trial.
#[derive(Clone, Debug)]
pub struct DryRun {
    /// Status that the change would be answered with.
    pub status: MigrationStatus,
    /// The schema as it is.
    pub before: Schema,
    /// The schema as it would be.
    pub after: Schema,
    /// The actions that would not work, and why.
    pub broken: Vec<(String, String)>,
    /// Warnings that the change would bring.
    pub warnings: Vec<SchemaWarning>,
}

/// An entry of a batch of actions that cannot be.
#[derive(Debug)]
pub struct BadAction {
    /// Name of the action.
    pub name: String,
    /// Error of the action.
    pub error: BackendError,
}

/// Why nothing was done to a backend, or by it.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The project has none, or the page is not bound to it.
    #[error("there is no backend")]
    NotFound,
    /// The backend has no action of this name.
    #[error("the backend has no action {0}")]
    NoAction(String),
    /// The project has one.
    #[error("the project has a backend already")]
    Exists,
    /// The project is gone.
    #[error("the project is gone")]
    NoProject,
    /// A field breaks a rule.
    #[error("{0}")]
    Invalid(String),
    /// The gate, or SQLite, refuses a script.
    #[error("{}", .0.reason)]
    ScriptRefused(Refusal),
    /// The gate, or SQLite, refuses a statement.
    #[error("{}", .0.reason)]
    Refused(Refusal),
    /// The SQL takes more to judge than a call may use.
    #[error("{0}")]
    TooMuchToJudge(String),
    /// Entries of a batch that cannot be: at least one.
    #[error("the batch has invalid entries")]
    Batch(Vec<BadAction>),
    /// A call of a batch of calls cannot be, or failed.
    #[error("op {index}: {error}")]
    Op {
        /// Which, from 0.
        index: usize,
        /// Cause of the refusal.
        error: Box<BackendError>,
    },
    /// A call names other values than the statement.
    #[error("the params differ from those of the statement")]
    ParamsMismatch {
        /// Binds that the call does not name.
        missing: Vec<String>,
        /// Names for which there is no bind.
        extra: Vec<String>,
    },
    /// A call names a value that only the platform gives.
    #[error("{0} is given by the platform")]
    ReservedParam(String),
    /// Only a signed-in visitor may call it.
    #[error("the action needs a signed-in visitor")]
    IdentityRequired,
    /// A query that writes, of somebody who only reads.
    #[error("a query that writes takes an editor")]
    OnlyReads,
    /// A migration is in the file but not in the ledger.
    #[error("the migration was applied but not recorded")]
    NotRecorded,
    /// The history does not reach back so far: the first moment that it has.
    #[error("there is no such moment")]
    NoMoment(Option<Timestamp>),
    /// A migration of the ledger cannot be applied to the rows that are to be restored.
    #[error("migration {version}: {error}")]
    Migration {
        /// Version that was applied.
        version: u32,
        /// Cause of the failure.
        error: Box<BackendError>,
    },
    /// There is no room for more.
    #[error("{0}")]
    Capacity(&'static str),
    /// A cap is reached.
    #[error(transparent)]
    Cap(#[from] CapReached),
    /// A statement failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The gate has no thread free.
    #[error("the gate is busy")]
    GateBusy,
    /// Nobody waits for the answer any more, and nothing was changed.
    #[error(transparent)]
    Abandoned(#[from] ClientGone),
    /// The control database's.
    #[error(transparent)]
    Store(#[from] control::Error),
    /// Everything else, for the log.
    #[error(transparent)]
    Internal(#[from] anyhow::Error),
}

impl BackendError {
    /// Wraps the error of a call within a batch.
    pub(super) fn in_op(index: usize, error: Self) -> Self {
        Self::Op {
            index,
            error: Box::new(error),
        }
    }

    /// Refuses definitions that take more than `most` bytes together.
    pub(super) fn definitions_full(most: u64) -> Self {
        Self::Invalid(format!(
            "The migrations and the versions of actions of this backend would take more than {most} bytes, which is the most: define less, or move to a new backend."
        ))
    }
}

impl From<GateFailure> for BackendError {
    fn from(failure: GateFailure) -> Self {
        match failure {
            GateFailure::Refused(refusal) => Self::Refused(refusal),
            GateFailure::Budget(budget) => Self::TooMuchToJudge(format!(
                "Judging the SQL takes more than its budget of {budget}: make it shorter or simpler."
            )),
            GateFailure::Busy | GateFailure::Preparing => Self::GateBusy,
            GateFailure::Broken(error) => Self::Internal(error),
        }
    }
}
