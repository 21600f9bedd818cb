//! Requests about backends, and their checks: for REST and for tools alike.

use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::action_files::FilesRequest;
use super::calls::requests::{NamedParams, SqlValue};
use super::model::{MAX_BATCH, MAX_NOTE_CHARS, NewAction};
use super::service::NewBackend;
use crate::http::bounded_list::list_at_most;
use crate::http::extract::{check_characters, invalid_request};
use crate::http::problem::{Problem, ProblemCode};
use svc_base::numbers::{WholeNumber, optional_whole_number};

/// Default number of versions in a page.
const DEFAULT_VERSIONS: u32 = 50;
/// Largest number of versions in a page.
const MAX_VERSIONS: u32 = 200;

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
    /// At least one; one that is left out stays as it is, without `replace`.
    #[serde(deserialize_with = "list_at_most::<_, _, MAX_BATCH>")]
    #[schema(min_items = 1, max_items = 200)]
    pub actions: Vec<ActionRequest>,
    /// An extension. Whether the actions end that are left out; no, if absent.
    pub replace: Option<bool>,
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
    /// An extension. Values of binds that a call may leave out; none, if absent. Changed ones are a new version.
    #[serde(default)]
    #[schema(value_type = Option<std::collections::HashMap<String, SqlValue>>)]
    pub(super) defaults: NamedParams<Box<RawValue>>,
    /// An extension. Rules for files of visitors, for an action with `:svc_file`. Changed ones are a new version.
    pub files: Option<FilesRequest>,
    /// An extension. Version that the action must have; 0: there is none yet.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 0)]
    pub expected_version: Option<u64>,
}

impl From<ActionRequest> for NewAction {
    fn from(request: ActionRequest) -> Self {
        Self {
            name: request.name,
            sql: request.sql,
            note: request.note,
            defaults: request.defaults.0,
            files: request.files,
            expected_version: request.expected_version,
        }
    }
}

/// Which versions of an action to list.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListActionVersions {
    /// How many: 50, if absent.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[param(minimum = 1, maximum = 200)]
    pub limit: Option<u64>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

impl ListActionVersions {
    /// Returns the version before which the page begins, and the page size.
    ///
    /// # Errors
    /// `invalid_request`.
    pub(super) fn checked(self) -> Result<(Option<u64>, u32), Problem> {
        let most = match self.limit.map(u32::try_from) {
            None => DEFAULT_VERSIONS,
            Some(Ok(limit)) if (1..=MAX_VERSIONS).contains(&limit) => limit,
            Some(_) => {
                return Err(invalid_request(format!(
                    "`limit` must be from 1 to {MAX_VERSIONS}."
                )));
            }
        };
        let before = self.cursor.as_deref().map(str::parse).transpose();
        let before = before.map_err(|_| {
            invalid_request(
                "`cursor` is not valid: send `next_cursor` of the previous page, or leave it out.",
            )
        })?;
        Ok((before, most))
    }
}

/// The return of an action to an earlier version.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackAction {
    /// The version to put back.
    #[schema(value_type = u64, minimum = 1, example = 1)]
    pub(super) version: WholeNumber,
    /// Version that the action must have now.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 0)]
    pub expected_version: Option<u64>,
}

/// Condition of an action's end.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DeleteAction {
    /// Version that the action must have, if it exists.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[param(minimum = 0)]
    pub expected_version: Option<u64>,
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

    /// Returns the requested batch, and whether it replaces all actions.
    pub fn checked(self) -> (Vec<NewAction>, bool) {
        let batch = self.actions.into_iter().map(Into::into).collect();
        (batch, self.replace.unwrap_or(false))
    }
}
