//! Views of backends.

use serde::Serialize;
use utoipa::ToSchema;

use super::action_files::ActionFiles;
use super::calls::requests::SqlValue;
use super::changes::SchemaDifference;
use super::defaults::ActionDefaults;
use super::model::{
    BackendDetail, DryRunEffect, LedgerEntry, MigrationStatus, RecordedMigration,
    StoredActionVersion,
};
use super::model::{param_names, requires_identity, takes_file};
use crate::config::Config;
use svc_base::clock::Timestamp;
use svc_base::ids::BackendId;
use svc_database::{DatabaseInventory, ResultColumn, Schema, SchemaWarning, TableRows};
use svc_sandbox::StatementKind;

/// Version of the description of backends.
const SPEC_VERSION: u32 = 1;
/// Name of every backend's database.
const DATABASE_NAME: &str = "default";
const DATABASE_ENGINE: &str = "sqlite";
/// Maximum number of names in a sentence.
const MAX_LISTED: usize = 10;

/// A backend with all that is in it.
#[derive(Debug, Serialize, ToSchema)]
pub struct BackendView {
    /// Identifier of the backend.
    #[schema(value_type = String, format = "uuid")]
    id: BackendId,
    /// The one database.
    database: DatabaseView,
    /// Switches of the backend.
    spec: SpecView,
    /// Schema, read from the file.
    schema: Schema,
    /// All that was done to the schema, verbatim, oldest first.
    migrations: Vec<LedgerEntry>,
    /// The actions that it has, by name.
    actions: Vec<ActionView>,
    /// How much is in it.
    inventory: InventoryView,
    /// Rooms of the backend.
    realtime: RealtimeView,
    /// Whether its actions that need no identity are tools for visitors' agents, at `/{slug}/mcp`. An extension.
    agents: bool,
    /// Warnings about the schema.
    warnings: Vec<WarningView>,
}

/// A database.
#[derive(Debug, Serialize, ToSchema)]
pub struct DatabaseView {
    /// Identifier of the backend.
    #[schema(value_type = String, format = "uuid")]
    id: BackendId,
    /// Always `default`.
    name: &'static str,
    /// Always `sqlite`.
    engine: &'static str,
    /// How large it may become.
    max_bytes: u64,
    /// How large it is.
    bytes: u64,
}

/// Switches of a backend.
#[derive(Debug, Serialize, ToSchema)]
pub struct SpecView {
    /// The form of this description.
    version: u32,
}

/// How much is in a database.
#[derive(Debug, Serialize, ToSchema)]
pub struct InventoryView {
    /// Tables and the number of their rows.
    tables: Vec<TableRows>,
    /// Size on the disk, including the log.
    bytes_on_disk: u64,
}

/// A backend's rooms.
#[derive(Debug, Serialize, ToSchema)]
pub struct RealtimeView {
    /// Whether they may be joined.
    enabled: bool,
    /// How many there are.
    rooms: u64,
    /// How many sockets are in them.
    sockets: u64,
}

/// Warning about a schema.
#[derive(Debug, Serialize, ToSchema)]
pub struct WarningView {
    /// Code of the warning, by which programs tell it apart.
    #[schema(example = "schema_ahead_of_ledger")]
    code: &'static str,
    /// Meaning of the warning, and what to do.
    detail: String,
}

/// An action.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActionView {
    /// Name by which the action is called.
    name: String,
    /// From 1; a changed body makes the next.
    version: u32,
    /// SQL of the one statement.
    sql: String,
    /// Values of params that a call may leave out. An extension.
    #[schema(value_type = std::collections::HashMap<String, SqlValue>)]
    defaults: ActionDefaults,
    /// Rules for files of visitors, of an action that takes or gives them. An extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<ActionFiles>,
    /// The values that a call names, in order of first appearance.
    params: Vec<String>,
    /// Whether it changes rows.
    kind: StatementKind,
    /// Whether it answers rows.
    returns_rows: bool,
    /// Whether only a signed-in visitor can call it.
    requires_identity: bool,
    /// Note of the author.
    note: Option<String>,
    /// SHA-256 of `sql`, in hexadecimal.
    checksum: String,
    /// When this version was made.
    #[schema(value_type = String, format = "date-time")]
    created_at: Timestamp,
}

/// A version of an action.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActionVersionView {
    /// From 1.
    version: u32,
    /// SQL of the one statement.
    sql: String,
    /// Values of params that a call may leave out.
    #[schema(value_type = std::collections::HashMap<String, SqlValue>)]
    defaults: ActionDefaults,
    /// Rules for files of visitors, of an action that takes or gives them.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<ActionFiles>,
    /// Note of the author.
    note: Option<String>,
    /// SHA-256 of `sql`, in hexadecimal.
    checksum: String,
    /// When this version was made.
    #[schema(value_type = String, format = "date-time")]
    created_at: Timestamp,
}

/// Versions of an action. An extension.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActionVersionList {
    /// Newest first.
    pub versions: Vec<ActionVersionView>,
    /// Value to send as `cursor` for the versions before; null where there are none.
    pub next_cursor: Option<String>,
}

impl ActionVersionList {
    /// Returns a page of at most `most` versions; one more says that there are others.
    pub fn new(mut versions: Vec<StoredActionVersion>, most: u32) -> Self {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let more = versions.len() > most;
        versions.truncate(most);
        let last = versions.last().map(|version| version.version.to_string());
        Self {
            next_cursor: last.filter(|_| more),
            versions: versions.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<StoredActionVersion> for ActionVersionView {
    fn from(version: StoredActionVersion) -> Self {
        Self {
            version: version.version,
            sql: version.sql,
            defaults: version.defaults,
            files: takes_file(&version.verdict).then_some(version.files),
            note: version.note,
            checksum: version.checksum,
            created_at: version.created_at,
        }
    }
}

/// All actions of a backend.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActionList {
    /// By name.
    pub actions: Vec<ActionView>,
}

/// An action with the columns of its rows.
#[derive(Debug, Serialize, ToSchema)]
pub struct DescribedAction {
    /// The action.
    #[serde(flatten)]
    action: ActionView,
    /// Columns of its rows; null if the statement does not work with the schema as it is.
    columns: Option<Vec<ResultColumn>>,
}

/// All actions of a backend, with the columns of their rows. An extension.
#[derive(Debug, Serialize, ToSchema)]
pub struct DescribedActionList {
    /// By name.
    actions: Vec<DescribedAction>,
}

/// Outcome of a migration.
#[derive(Debug, Serialize, ToSchema)]
pub struct MigrationView {
    /// Whether it was applied now.
    status: MigrationStatus,
    /// Version in the ledger.
    version: u32,
    /// SHA-256 of its script, in hexadecimal.
    checksum: String,
    /// Warnings about parts that the migration brought; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<WarningView>,
}

impl From<SchemaWarning> for WarningView {
    fn from(warning: SchemaWarning) -> Self {
        Self {
            code: warning.code,
            detail: warning.detail,
        }
    }
}

impl From<RecordedMigration> for MigrationView {
    fn from(result: RecordedMigration) -> Self {
        Self {
            status: result.status,
            version: result.version,
            checksum: result.checksum,
            warnings: result.warnings.into_iter().map(Into::into).collect(),
        }
    }
}

/// Effect that a change would have: the answer to `dry_run=true`, for which nothing is kept. An extension.
#[derive(Debug, Serialize, ToSchema)]
pub struct DryRunView {
    /// Outcome that the migration would have. Actions would be `applied`, or are there already.
    pub status: MigrationStatus,
    /// The difference between the two schemas.
    pub changes: SchemaDifference,
    /// The schema before and after.
    pub schema: SchemaChange,
    /// The actions that would not work.
    pub broken_actions: Vec<BrokenAction>,
    /// The names of actions that would end; absent where a migration is tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub removed: Option<Vec<String>>,
    /// Warnings that the change would bring; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub warnings: Vec<WarningView>,
}

/// A schema before and after a change.
#[derive(Debug, Serialize, ToSchema)]
pub struct SchemaChange {
    /// As it is.
    pub before: Schema,
    /// As it would be.
    pub after: Schema,
}

/// An action that would not work.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BrokenAction {
    /// Name of the action.
    pub name: String,
    /// Cause of the refusal.
    pub detail: String,
}

impl From<DryRunEffect> for DryRunView {
    fn from(run: DryRunEffect) -> Self {
        let broken = run.broken.into_iter();
        Self {
            status: run.status,
            changes: SchemaDifference::between(&run.before, &run.after),
            schema: SchemaChange {
                before: run.before,
                after: run.after,
            },
            broken_actions: broken
                .map(|(name, detail)| BrokenAction { name, detail })
                .collect(),
            removed: run.removed,
            warnings: run.warnings.into_iter().map(Into::into).collect(),
        }
    }
}

impl ActionList {
    /// Returns the view of several actions.
    pub fn new(actions: &[StoredActionVersion]) -> Self {
        Self {
            actions: actions.iter().map(ActionView::from).collect(),
        }
    }
}

impl DescribedActionList {
    /// Returns the view of described actions.
    pub fn new(described: Vec<(StoredActionVersion, Option<Vec<ResultColumn>>)>) -> Self {
        let actions = described
            .into_iter()
            .map(|(action, columns)| DescribedAction {
                action: (&action).into(),
                columns,
            });
        Self {
            actions: actions.collect(),
        }
    }
}

impl From<&StoredActionVersion> for ActionView {
    fn from(action: &StoredActionVersion) -> Self {
        Self {
            name: action.name.clone(),
            version: action.version,
            sql: action.sql.clone(),
            defaults: action.defaults.clone(),
            files: takes_file(&action.verdict).then(|| action.files.clone()),
            params: param_names(&action.verdict).cloned().collect(),
            kind: action.verdict.kind,
            returns_rows: action.verdict.returns_rows,
            requires_identity: requires_identity(&action.verdict),
            note: action.note.clone(),
            checksum: action.checksum.clone(),
            created_at: action.created_at,
        }
    }
}

impl BackendView {
    /// Returns the view of a backend.
    pub fn new(detail: &BackendDetail, config: &Config) -> Self {
        let DatabaseInventory {
            schema,
            tables,
            bytes,
            ..
        } = &detail.inventory;
        Self {
            id: detail.backend.id,
            database: DatabaseView {
                id: detail.backend.id,
                name: DATABASE_NAME,
                engine: DATABASE_ENGINE,
                max_bytes: config.limits.database_bytes,
                bytes: *bytes,
            },
            spec: SpecView {
                version: SPEC_VERSION,
            },
            schema: schema.clone(),
            migrations: detail.ledger.clone(),
            actions: detail.actions.iter().map(ActionView::from).collect(),
            inventory: InventoryView {
                tables: tables.clone(),
                bytes_on_disk: detail.bytes_on_disk,
            },
            realtime: RealtimeView {
                enabled: detail.backend.realtime,
                rooms: detail.occupancy.rooms,
                sockets: detail.occupancy.sockets,
            },
            agents: detail.backend.agents,
            warnings: warnings(detail),
        }
    }
}

fn warnings(detail: &BackendDetail) -> Vec<WarningView> {
    let recorded = |version| detail.ledger.iter().any(|entry| entry.version == version);
    let ahead = detail.inventory.markers.iter();
    let unrecorded = (!detail.unrecorded.is_empty()).then(|| WarningView {
        code: "schema_ahead_of_ledger",
        detail: format!(
            "No migration has made {}: another program has changed the database. To record it, send the statement that makes it as a migration, with IF NOT EXISTS.",
            join_names(&detail.unrecorded)
        ),
    });
    let said = detail.inventory.warnings.iter().cloned().map(Into::into);
    ahead
        .filter(|marker| !recorded(marker.version))
        .map(|marker| WarningView {
            code: "schema_ahead_of_ledger",
            detail: format!(
                "Migration {} (SHA-256 {}) is in the database but not in the ledger: send it again to record it.",
                marker.version, marker.checksum
            ),
        })
        .chain(unrecorded)
        .chain(said)
        .chain(detail.behind.as_ref().map(|why| WarningView {
            code: "payments_mirror_behind",
            detail: format!(
                "The table svc_payments does not have the latest payments yet, and catches up by itself: {why}."
            ),
        }))
        .collect()
}

/// Joins names for a sentence, at most the first few.
fn join_names(names: &[String]) -> String {
    let first = names.iter().take(MAX_LISTED).map(String::as_str);
    let mut listed = first.collect::<Vec<_>>().join(", ");
    if names.len() > MAX_LISTED {
        listed.push_str(&format!(" and {} more", names.len() - MAX_LISTED));
    }
    listed
}

/// Answer to a change of a backend.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Updated {
    /// Of a migration that was only tried.
    Tried(Box<DryRunView>),
    /// Of a migration.
    Migrated(MigrationView),
    /// Of a switch: the backend as it is now.
    Switched(Box<BackendView>),
}

/// Answer to a batch of actions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Defined {
    /// The newest version of every action.
    Actions(ActionList),
    /// Of a batch that was only tried.
    Tried(Box<DryRunView>),
}
