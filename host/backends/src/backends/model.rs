//! Model of backends, actions and the ledger.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::action_files::{ActionFiles, FilesRequest};
use super::defaults::ActionDefaults;
use super::occupancy::RoomOccupancy;
use crate::access::{AuthorizedCaller, ClientDisconnected, Editor, Viewer};
use crate::activity::{ActionActivity, ProjectActivity};
use crate::config::CapReached;
use crate::control;
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, ProjectId};
use svc_database::values::Params;
use svc_database::{DatabaseInventory, Schema, SchemaWarning, StatementRunError, StatementTiming};
use svc_sandbox::{AllowedStatement, GateFailure, SqlRefusal, StatementKind};

/// Reserved bind for the id of the signed-in visitor.
pub const USER_ID_BIND: &str = "svc_user_id";
/// Reserved bind for the verified e-mail address of the signed-in visitor.
pub const USER_EMAIL_BIND: &str = "svc_user_email";
/// Reserved bind for the name of the signed-in visitor.
pub const USER_NAME_BIND: &str = "svc_user_name";
/// Reserved bind for the id of the file that is uploaded or downloaded.
pub const FILE_BIND: &str = "svc_file";
/// Reserved bind for the name of an uploaded file.
pub const FILE_NAME_BIND: &str = "svc_file_name";
/// Reserved bind for the media type of an uploaded file.
pub const FILE_TYPE_BIND: &str = "svc_file_type";
/// Reserved bind for the length of an uploaded file.
pub const FILE_SIZE_BIND: &str = "svc_file_size";
/// Reserved bind for the SHA-256 of an uploaded file.
pub const FILE_SHA256_BIND: &str = "svc_file_sha256";
/// Maximum length of a note, in characters.
pub const MAX_NOTE_CHARS: usize = 1_000;
/// Maximum number of actions in a batch.
pub const MAX_BATCH: usize = 200;

/// Backend of a project.
#[derive(Clone, Debug)]
pub struct Backend {
    pub id: BackendId,
    pub project: ProjectId,
    /// Whether the rooms may be joined.
    pub realtime: bool,
    /// Whether visitors' agents may call the actions as tools.
    pub agents: bool,
    pub created_at: Timestamp,
}

/// An entry of the ledger: what was done to the schema, verbatim.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
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

/// Version of an action, as it is stored.
#[derive(Clone, Debug)]
pub struct StoredActionVersion {
    pub name: String,
    /// Number of the version, from 1; changed SQL or defaults make the next version.
    pub version: u32,
    pub sql: String,
    /// Values of binds that a call may leave out.
    pub defaults: ActionDefaults,
    /// Rules for the files of visitors.
    pub files: ActionFiles,
    /// SHA-256 of the SQL, in hexadecimal.
    pub checksum: String,
    pub note: Option<String>,
    /// When this version was defined.
    pub created_at: Timestamp,
    pub verdict: AllowedStatement,
    /// Digest of the gate that judged it.
    pub gate: [u8; 32],
}

/// Action, ready to be called.
#[derive(Debug)]
pub struct CallableAction {
    /// Stored version.
    pub row: StoredActionVersion,
    /// The statement alone, without surrounding white space and comments.
    pub statement: Arc<str>,
    /// Values of binds that a call may leave out.
    pub defaults: Params,
    /// Measured duration of the statement.
    pub timing: Arc<StatementTiming>,
    /// Counters for the owner, found at the first call.
    activity: OnceLock<Option<Arc<ActionActivity>>>,
}

impl CallableAction {
    /// Returns the counters of the action in its project; `None` if it is not counted apart.
    pub fn activity(&self, project: &ProjectActivity) -> Option<&ActionActivity> {
        let found = self.activity.get_or_init(|| project.action(&self.row.name));
        found.as_deref()
    }

    /// Returns the name of the action, as its counters in the project have it.
    pub fn counted_name(&self, project: &ProjectActivity) -> Arc<str> {
        let counters = self.activity(project);
        counters.map_or_else(|| self.row.name.as_str().into(), |it| Arc::clone(it.name()))
    }
}

impl From<StoredActionVersion> for CallableAction {
    fn from(row: StoredActionVersion) -> Self {
        let range = row.verdict.start..row.verdict.end;
        let statement = row.sql.get(range).unwrap_or_default();
        Self {
            statement: statement.into(),
            defaults: row.defaults.to_params(),
            timing: Arc::default(),
            activity: OnceLock::new(),
            row,
        }
    }
}

/// Lists the params of a call, without the reserved ones.
pub fn param_names(statement: &AllowedStatement) -> impl Iterator<Item = &String> {
    let binds = statement.binds.iter();
    binds.filter(|bind| !is_identity(bind) && !is_file_bind(bind))
}

/// Whether a statement stores or gives a file of a visitor: only the routes of files call it.
pub fn takes_file(statement: &AllowedStatement) -> bool {
    statement.binds.iter().any(|bind| is_file_bind(bind))
}

/// Whether a statement needs a signed-in visitor.
pub fn requires_identity(statement: &AllowedStatement) -> bool {
    statement.binds.iter().any(|bind| is_identity(bind))
}

pub fn is_writing_statement(statement: &AllowedStatement) -> bool {
    statement.kind != StatementKind::Read
}

fn is_file_bind(bind: &str) -> bool {
    matches!(
        bind,
        FILE_BIND | FILE_NAME_BIND | FILE_TYPE_BIND | FILE_SIZE_BIND | FILE_SHA256_BIND
    )
}

fn is_identity(bind: &str) -> bool {
    matches!(bind, USER_ID_BIND | USER_EMAIL_BIND | USER_NAME_BIND)
}

/// Action to define.
#[derive(Clone, Debug, Default)]
pub struct NewAction {
    pub name: String,
    pub sql: String,
    pub note: Option<String>,
    /// Values of binds that a call may leave out, as JSON.
    pub defaults: Vec<(String, Box<RawValue>)>,
    /// Rules for the files of visitors, if there are any.
    pub files: Option<FilesRequest>,
    /// Version that the action must have; 0 for one that must not exist.
    pub expected_version: Option<u64>,
}

/// Action to end.
#[derive(Clone, Debug)]
pub struct ActionRemoval {
    pub name: String,
    /// Version that the action must have, if it exists.
    pub expected_version: Option<u64>,
}

/// An action that has another version than a change expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionConflict {
    pub name: String,
    /// Version that the change expects; 0 for an action that must not exist.
    pub expected: u64,
    /// Version that the action has; 0 if there is none.
    pub found: u32,
}

impl ActionConflict {
    /// Returns the conflict as problems list it.
    pub fn to_json(&self) -> Value {
        json!({ "kind": "action", "name": self.name, "expected": self.expected, "found": self.found })
    }
}

/// Complete description of a backend.
#[derive(Debug)]
pub struct BackendDetail {
    pub backend: Backend,
    /// Content of the database.
    pub inventory: DatabaseInventory,
    /// Numbers of rooms and sockets.
    pub occupancy: RoomOccupancy,
    /// Reason why the table of payments is behind, if it is.
    pub behind: Option<String>,
    /// Size on the disk.
    pub bytes_on_disk: u64,
    /// Ledger, oldest first.
    pub ledger: Vec<LedgerEntry>,
    /// Parts of the schema that no migration of the ledger created.
    pub unrecorded: Vec<String>,
    /// Newest versions of the actions, by name.
    pub actions: Vec<StoredActionVersion>,
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

/// Migration that is in the file and in the ledger.
#[derive(Clone, Debug)]
pub struct RecordedMigration {
    pub status: MigrationStatus,
    pub version: u32,
    /// SHA-256 of the script, in hexadecimal.
    pub checksum: String,
    /// Warnings about parts that the migration added.
    pub warnings: Vec<SchemaWarning>,
}

/// Effect that a change would have.
#[derive(Clone, Debug)]
pub struct DryRunEffect {
    /// Status that the change would have.
    pub status: MigrationStatus,
    /// Current schema.
    pub before: Schema,
    /// Schema after the change.
    pub after: Schema,
    /// Actions that would fail, with the reasons.
    pub broken: Vec<(String, String)>,
    /// Actions that would end, if the change is of actions.
    pub removed: Option<Vec<String>>,
    /// Warnings that the change would add.
    pub warnings: Vec<SchemaWarning>,
}

/// Limit of what an owner's query may do.
#[derive(Clone, Copy, Debug)]
pub enum QueryAccess {
    /// Read and write.
    Write,
    /// Only read.
    Read(ReadOnlyReason),
}

/// Reason why an owner's query may only read.
#[derive(Clone, Copy, Debug)]
pub enum ReadOnlyReason {
    /// The caller is a viewer.
    ViewerRole,
    /// The request says so.
    Request,
}

impl QueryAccess {
    /// Returns what a query may do whose request may be for reading alone.
    pub fn of(caller: AuthorizedCaller<Viewer>, read_only: bool) -> Self {
        match caller.require::<Editor>() {
            Err(_) => Self::Read(ReadOnlyReason::ViewerRole),
            Ok(_) if read_only => Self::Read(ReadOnlyReason::Request),
            Ok(_) => Self::Write,
        }
    }
}

/// Refused entry of a batch of actions.
#[derive(Debug)]
pub struct RefusedActionDefinition {
    pub name: String,
    pub error: BackendError,
}

/// Error of an operation on a backend.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The project has no backend, or the page is not bound to it.
    #[error("there is no backend")]
    NotFound,
    /// The backend has no action of this name.
    #[error("the backend has no action {0}")]
    NoAction(String),
    /// The action has no version of this number.
    #[error("the action {name} has no version {version}")]
    NoActionVersion {
        /// Name of the action.
        name: String,
        /// Number of the version.
        version: u64,
    },
    /// Actions have other versions than expected: at least one.
    #[error("an action has another version than expected")]
    ActionConflict(Vec<ActionConflict>),
    /// The project has a backend already.
    #[error("the project has a backend already")]
    Exists,
    /// The project no longer exists.
    #[error("the project is gone")]
    NoProject,
    /// A field breaks a rule.
    #[error("{0}")]
    Invalid(String),
    /// The gate or SQLite refuses a script.
    #[error("{}", .0.reason)]
    ScriptRefused(SqlRefusal),
    /// The gate or SQLite refuses a statement.
    #[error("{}", .0.reason)]
    Refused(SqlRefusal),
    /// Judging the SQL exceeds the gate's budget.
    #[error("{0}")]
    TooMuchToJudge(String),
    /// Refused entries of a batch of actions: at least one.
    #[error("the batch has invalid entries")]
    Batch(Vec<RefusedActionDefinition>),
    /// A call in a batch was refused or failed.
    #[error("op {index}: {error}")]
    Op {
        /// Index of the call, from 0.
        index: usize,
        /// Cause of the failure.
        error: Box<BackendError>,
    },
    /// The params differ from the binds of the statement.
    #[error("the params differ from those of the statement")]
    ParamsMismatch {
        /// Binds without a param.
        missing: Vec<String>,
        /// Params without a bind.
        extra: Vec<String>,
    },
    /// The action stores or gives files, and is called elsewhere.
    #[error("{0} is called by the routes of files")]
    FileAction(String),
    /// A call sets a reserved param.
    #[error("{0} is given by the platform")]
    ReservedParam(String),
    /// The action needs a signed-in visitor.
    #[error("the action needs a signed-in visitor")]
    IdentityRequired,
    /// A query writes, and may not.
    #[error("the query may only read")]
    OnlyReads(ReadOnlyReason),
    /// A migration is in the file and not in the ledger.
    #[error("the migration was applied but not recorded")]
    NotRecorded,
    /// The history begins later; contains its first moment.
    #[error("there is no such moment")]
    NoMoment(Option<Timestamp>),
    /// A migration of the ledger cannot be applied to the rows to restore.
    #[error("migration {version}: {error}")]
    Migration {
        /// Version of the migration.
        version: u32,
        /// Cause of the failure.
        error: Box<BackendError>,
    },
    /// The disk is full.
    #[error("{0}")]
    Capacity(&'static str),
    /// A cap is reached.
    #[error(transparent)]
    Cap(#[from] CapReached),
    /// A statement failed.
    #[error(transparent)]
    Run(#[from] StatementRunError),
    /// All threads of the gate are busy.
    #[error("the gate is busy")]
    GateBusy,
    /// The client has hung up, and nothing was changed.
    #[error(transparent)]
    Abandoned(#[from] ClientDisconnected),
    /// The control database failed.
    #[error(transparent)]
    Store(#[from] control::Error),
    /// Any other error, for the log.
    #[error(transparent)]
    Internal(#[from] anyhow::Error),
}

impl BackendError {
    /// Wraps the error of a call within a batch.
    pub(super) fn in_batch_call(index: usize, error: Self) -> Self {
        Self::Op {
            index,
            error: Box::new(error),
        }
    }

    /// Returns the error of the one entry of a batch.
    pub(super) fn of_single_action(self) -> Self {
        match self {
            Self::Batch(mut entries) if entries.len() == 1 => entries
                .pop()
                .map_or_else(|| Self::Batch(entries), |entry| entry.error),
            other => other,
        }
    }

    /// Refuses definitions that take more than `most` bytes together.
    pub(super) fn definitions_full(most: u64) -> Self {
        Self::Invalid(format!(
            "The migrations, the versions of actions and the names of ended actions of this backend would take more than {most} bytes, which is the most: define less, or move to a new backend."
        ))
    }
}

impl From<GateFailure> for BackendError {
    fn from(failure: GateFailure) -> Self {
        match failure {
            GateFailure::Refused(refusal) => Self::Refused(refusal),
            GateFailure::Budget(budget) => Self::TooMuchToJudge(format!(
                "Judging the SQL of this request takes more than its budget of {budget}: make it shorter or simpler."
            )),
            GateFailure::Busy | GateFailure::Preparing => Self::GateBusy,
            GateFailure::Broken(error) => Self::Internal(error),
        }
    }
}
