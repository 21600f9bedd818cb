//! What requests about backends and their answers look like.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::database::{Inventory, Schema, TableRows};
use super::model::{ActionRow, Detail, LedgerEntry, MigrationResult, MigrationStatus, NewAction};
use super::model::{params, requires_identity};
use crate::clock::Timestamp;
use crate::config::Config;
use crate::ids::BackendId;
use crate::sandbox::StatementKind;

/// The form of backends' descriptions.
const SPEC_VERSION: u32 = 1;
/// The name of every backend's database.
const DATABASE: &str = "default";
/// Its engine.
const ENGINE: &str = "sqlite";

/// A backend to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateBackend {
    /// `CREATE TABLE`, `CREATE INDEX`, `CREATE VIEW` and seed `INSERT`s; at least one `CREATE TABLE`.
    #[schema(
        min_length = 1,
        max_length = 262_144,
        example = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);"
    )]
    pub ddl: String,
    /// Whether its rooms may be joined; false if absent.
    pub realtime: Option<bool>,
}

/// A change of a backend: a migration, or its realtime flag alone.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateBackend {
    /// One additive migration: `CREATE TABLE`, `CREATE INDEX`, `CREATE VIEW`, `ALTER TABLE … ADD COLUMN`, seed `INSERT`s.
    #[schema(min_length = 1, max_length = 262_144)]
    pub ddl: Option<String>,
    /// What the migration is for; kept in the ledger.
    #[schema(max_length = 1000)]
    pub note: Option<String>,
    /// Whether its rooms may be joined; sent alone.
    pub realtime: Option<bool>,
}

/// Actions to define, all or none.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DefineActions {
    /// At least one; one that is left out stays as it is.
    #[schema(min_items = 1, max_items = 200)]
    pub actions: Vec<ActionRequest>,
}

/// An action to define.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionRequest {
    /// What it is called by.
    #[schema(pattern = "^[a-z][a-z0-9_]{0,63}$", example = "add_note")]
    pub name: String,
    /// One `SELECT`, `INSERT`, `UPDATE` or `DELETE`, with `:name` binds.
    #[schema(
        max_length = 65_536,
        example = "INSERT INTO notes (text) VALUES (:text) RETURNING id"
    )]
    pub sql: String,
    /// What it is for.
    #[schema(max_length = 1000)]
    pub note: Option<String>,
}

impl From<ActionRequest> for NewAction {
    fn from(request: ActionRequest) -> Self {
        Self {
            name: request.name,
            sql: request.sql,
            note: request.note,
        }
    }
}

/// A backend with all that is in it.
#[derive(Debug, Serialize, ToSchema)]
pub struct BackendView {
    /// Its identity.
    #[schema(value_type = String, format = "uuid")]
    id: BackendId,
    /// Its one database.
    database: DatabaseView,
    /// What it is.
    spec: SpecView,
    /// What is in its file, read from it.
    schema: Schema,
    /// All that was done to the schema, verbatim, oldest first.
    migrations: Vec<LedgerEntry>,
    /// The actions that it has, by name.
    actions: Vec<ActionView>,
    /// How much is in it.
    inventory: InventoryView,
    /// Its rooms.
    realtime: RealtimeView,
    /// What somebody should look at.
    warnings: Vec<WarningView>,
}

/// A database.
#[derive(Debug, Serialize, ToSchema)]
pub struct DatabaseView {
    /// Its identity.
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

/// What a backend is.
#[derive(Debug, Serialize, ToSchema)]
pub struct SpecView {
    /// The form of this description.
    version: u32,
}

/// How much is in a database.
#[derive(Debug, Serialize, ToSchema)]
pub struct InventoryView {
    /// Its tables and their rows.
    tables: Vec<TableRows>,
    /// What it takes on the disk, its log included.
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

/// What somebody should look at.
#[derive(Debug, Serialize, ToSchema)]
pub struct WarningView {
    /// What it is, as programs tell it apart.
    #[schema(example = "schema_ahead_of_ledger")]
    code: &'static str,
    /// What it means here, and what to do.
    detail: String,
}

/// An action.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActionView {
    /// What it is called by.
    name: String,
    /// From 1; a changed body makes the next.
    version: u32,
    /// Its one statement.
    sql: String,
    /// The values that a call names, in order of first appearance.
    params: Vec<String>,
    /// Whether it changes rows.
    kind: StatementKind,
    /// Whether it answers rows.
    returns_rows: bool,
    /// Whether only a signed-in visitor can call it.
    requires_identity: bool,
    /// What its author says about it.
    note: Option<String>,
    /// SHA-256 of `sql`, in hexadecimal.
    checksum: String,
    /// When this version was made.
    #[schema(value_type = String, format = "date-time")]
    created_at: Timestamp,
}

/// All actions of a backend.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActionList {
    /// By name.
    pub actions: Vec<ActionView>,
}

/// What became of a migration.
#[derive(Debug, Serialize, ToSchema)]
pub struct MigrationView {
    /// Whether it was applied now.
    status: MigrationStatus,
    /// Its version in the ledger.
    version: u32,
    /// SHA-256 of its script, in hexadecimal.
    checksum: String,
}

impl From<MigrationResult> for MigrationView {
    fn from(result: MigrationResult) -> Self {
        Self {
            status: result.status,
            version: result.version,
            checksum: result.checksum,
        }
    }
}

impl From<&ActionRow> for ActionView {
    fn from(action: &ActionRow) -> Self {
        Self {
            name: action.name.clone(),
            version: action.version,
            sql: action.sql.clone(),
            params: params(&action.verdict).cloned().collect(),
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
    /// A backend as it is answered.
    pub fn new(detail: &Detail, config: &Config) -> Self {
        let Inventory {
            schema,
            tables,
            bytes,
            ..
        } = &detail.inventory;
        Self {
            id: detail.backend.id,
            database: DatabaseView {
                id: detail.backend.id,
                name: DATABASE,
                engine: ENGINE,
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
                rooms: 0,
                sockets: 0,
            },
            warnings: warnings(detail),
        }
    }
}

fn warnings(detail: &Detail) -> Vec<WarningView> {
    let recorded = |version| detail.ledger.iter().any(|entry| entry.version == version);
    let ahead = detail.inventory.markers.iter();
    ahead
        .filter(|marker| !recorded(marker.version))
        .map(|marker| WarningView {
            code: "schema_ahead_of_ledger",
            detail: format!(
                "Migration {} (SHA-256 {}) is in the database but not in the ledger: send it again to record it.",
                marker.version, marker.checksum
            ),
        })
        .collect()
}
