//! Requests about backends, and their checks: for REST and for tools alike.

use serde::Deserialize;
use utoipa::ToSchema;

use super::model::{MAX_NOTE_CHARS, NewAction};
use super::service::NewBackend;
use crate::http::extract::{check_characters, invalid_request};
use crate::http::problem::{Problem, ProblemCode};

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

/// A change of a backend: a migration, or one of its switches alone.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateBackend {
    /// One additive migration: `CREATE TABLE`, `CREATE INDEX`, `CREATE VIEW`, `ALTER TABLE … ADD COLUMN`, seed `INSERT`s.
    #[schema(min_length = 1, max_length = 262_144)]
    pub ddl: Option<String>,
    /// Purpose of the migration; kept in the ledger.
    #[schema(max_length = 1000)]
    pub note: Option<String>,
    /// Whether its rooms may be joined; sent alone.
    pub realtime: Option<bool>,
    /// Whether its actions that need no identity are tools for visitors' agents, at `/{slug}/mcp`; sent alone. An extension.
    pub agents: Option<bool>,
}

/// Mode of a change, from the query.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DryRunQuery {
    /// Whether the change is only tried.
    #[serde(default)]
    pub dry_run: bool,
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
    /// Name by which the action is called.
    #[schema(pattern = "^[a-z][a-z0-9_]{0,63}$", example = "add_note")]
    pub name: String,
    /// One `SELECT`, `INSERT`, `UPDATE` or `DELETE`, with `:name` binds.
    #[schema(
        min_length = 1,
        max_length = 65_536,
        example = "INSERT INTO notes (text) VALUES (:text) RETURNING id"
    )]
    pub sql: String,
    /// Purpose of the action.
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

impl CreateBackend {
    /// Returns the requested backend.
    pub fn checked(self) -> NewBackend {
        NewBackend {
            ddl: self.ddl,
            realtime: self.realtime.unwrap_or(false),
        }
    }
}

/// Change of a backend.
#[derive(Debug)]
pub enum BackendChangeRequest {
    /// Applies a migration.
    Migrate { ddl: String, note: Option<String> },
    /// Tries a migration, by its script.
    Try(String),
    /// Opens or closes the rooms.
    Realtime(bool),
    /// Allows or forbids visitors' agents to call the actions as tools.
    Agents(bool),
}

impl UpdateBackend {
    /// Returns the requested change.
    ///
    /// # Errors
    /// `nothing_to_update` or `invalid_request`.
    pub fn checked(self, how: DryRunQuery) -> Result<BackendChangeRequest, Problem> {
        check_characters("note", self.note.as_deref(), MAX_NOTE_CHARS)?;
        match (self.ddl, self.realtime, self.agents) {
            (Some(ddl), None, None) if how.dry_run => Ok(BackendChangeRequest::Try(ddl)),
            (Some(ddl), None, None) => Ok(BackendChangeRequest::Migrate {
                ddl,
                note: self.note,
            }),
            (None, Some(_), None) | (None, None, Some(_)) if how.dry_run => Err(invalid_request(
                "`dry_run` is for migrations and actions: leave it out to switch `realtime` or `agents`.",
            )),
            (None, Some(realtime), None) if self.note.is_none() => {
                Ok(BackendChangeRequest::Realtime(realtime))
            }
            (None, None, Some(agents)) if self.note.is_none() => {
                Ok(BackendChangeRequest::Agents(agents))
            }
            (None, None, None) => Err(Problem::new(
                ProblemCode::NothingToUpdate,
                "Nothing to update: send `ddl`, `realtime` or `agents`; over the tools also `actions`.",
            )),
            _ => Err(invalid_request(
                "`realtime` and `agents` are each sent alone, without the other, `ddl` and `note`.",
            )),
        }
    }
}

impl DefineActions {
    /// Lists the names of the actions, as they were sent.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.actions.iter().map(|action| action.name.as_str())
    }

    /// Returns the requested batch.
    pub fn checked(self) -> Vec<NewAction> {
        self.actions.into_iter().map(Into::into).collect()
    }
}
