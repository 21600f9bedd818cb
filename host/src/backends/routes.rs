//! The routes of backends that their owners use.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::{Value, json};

use super::database::RunError;
use super::model::{BackendError, Detail};
use super::requests::{Change, CreateBackend, DefineActions, HowToChange, UpdateBackend};
use super::views::{ActionList, BackendView, DryRunView, MigrationView};
use crate::app::SharedApp;
use crate::config::Config;
use crate::http::extract::{NoQuery, UnreadBody, invalid};
use crate::http::idempotency::Repeatable;
use crate::http::problem::{Code, Problem};
use crate::http::serve::to_the_end;
use crate::projects::scope::ProjectScope;
use crate::sandbox::Refusal;

fn body_of(detail: &Detail, config: &Config) -> String {
    // Plain data always has a JSON form.
    serde_json::to_string(&BackendView::new(detail, config)).unwrap_or_default()
}

/// Make a backend
///
/// One SQLite database, which starts with this script. The project's frontends that never had a backend are bound to it.
#[utoipa::path(
    operation_id = "create_backend",
    post, path = "/api/v1/projects/{id}/backend", tag = "backend",
    params(
        ("id" = String, Path, description = "The project."),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request answer what the first did, for 24 hours.")
    ),
    request_body = CreateBackend,
    responses((status = 201, description = "Made, and durable.", body = BackendView)),
    extensions(("x-problems" = json!("owner body idempotency_conflict forbidden not_found ddl_refused query_timeout constraint_violation backend_exists database_full database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn create(
    State(app): State<SharedApp>,
    request: Repeatable,
    scope: ProjectScope,
    body: UnreadBody,
) -> Result<Response, Problem> {
    let body = body.json::<CreateBackend>().await?;
    let (by, parent) = (Some(&scope.principal), scope.project.id.to_string());
    let (project, new) = (scope.project, body.value.checked());
    let work = |key| async move {
        let detail = app.backends.create(&project, new, key, body_of).await?;
        let view = BackendView::new(&detail, &app.config);
        Ok((StatusCode::CREATED, axum::Json(view)).into_response())
    };
    request.once(by, "backend", &parent, &body.raw, work).await
}

/// Get the backend
///
/// With its schema as it is in the file, its ledger, its actions, and how much is in it.
#[utoipa::path(
    operation_id = "get_backend",
    get, path = "/api/v1/projects/{id}/backend", tag = "backend",
    params(("id" = String, Path, description = "The project.")),
    responses((status = 200, description = "The backend.", body = BackendView)),
    extensions(("x-problems" = json!("owner forbidden not_found database_busy"))),
    security(("bearer" = []))
)]
pub async fn get(
    State(app): State<SharedApp>,
    scope: ProjectScope,
    query: Result<NoQuery, Problem>,
) -> Result<axum::Json<BackendView>, Problem> {
    let detail = app.backends.detail(scope.project.id).await?;
    query?;
    Ok(axum::Json(BackendView::new(&detail, &app.config)))
}

/// Migrate the backend, or switch its rooms
///
/// Either one additive migration or the realtime flag. A migration that was applied before changes nothing, so that a
/// request whose answer was lost can be sent again.
#[utoipa::path(
    operation_id = "update_backend",
    patch, path = "/api/v1/projects/{id}/backend", tag = "backend",
    params(
        ("id" = String, Path, description = "The project."),
        ("dry_run" = Option<bool>, Query, description = "An extension. Whether the migration is only tried, on a copy that is thrown away.")
    ),
    request_body = UpdateBackend,
    responses(
        (status = 200, description = "What became of the migration, or would have; after a switch, the backend.", body = Updated)
    ),
    extensions(("x-problems" = json!("owner body forbidden not_found nothing_to_update ddl_refused query_timeout constraint_violation migration_not_recorded database_full database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn update(
    State(app): State<SharedApp>,
    scope: ProjectScope,
    body: UnreadBody,
) -> Result<axum::Json<Updated>, Problem> {
    let project = scope.project.id;
    if app.backends.of_project(project).await?.is_none() {
        return Err(BackendError::NotFound.into());
    }
    let (body, how) = body.json_and_query::<UpdateBackend, HowToChange>().await?;
    let change = body.value.checked(how)?;
    let backends = Arc::clone(&app.backends);
    let updated = match change {
        Change::Try(ddl) => {
            let tried = async move { backends.try_migration(project, ddl).await };
            Updated::Tried(to_the_end(tried).await??.into())
        }
        Change::Migrate { ddl, note } => {
            let result = to_the_end(async move { backends.migrate(project, ddl, note).await });
            Updated::Migrated(result.await??.into())
        }
        Change::Switch(realtime) => {
            let result = to_the_end(async move { backends.set_realtime(project, realtime).await });
            let view = BackendView::new(&result.await??, &app.config);
            Updated::Switched(Box::new(view))
        }
    };
    Ok(axum::Json(updated))
}

/// What a change of a backend answers.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum Updated {
    /// Of a migration that was only tried.
    Tried(DryRunView),
    /// Of a migration.
    Migrated(MigrationView),
    /// Of a switch: the backend as it is now.
    Switched(Box<BackendView>),
}

/// Delete the backend
///
/// With all its rows. The project's frontends go on serving; their calls answer 404 until there is a new backend and
/// they are published again.
#[utoipa::path(
    operation_id = "delete_backend",
    delete, path = "/api/v1/projects/{id}/backend", tag = "backend",
    params(("id" = String, Path, description = "The project.")),
    responses((status = 204, description = "Gone.")),
    extensions(("x-problems" = json!("owner forbidden not_found"))),
    security(("bearer" = []))
)]
pub async fn delete(
    State(app): State<SharedApp>,
    scope: ProjectScope,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    let backends = Arc::clone(&app.backends);
    to_the_end(async move { backends.delete(scope.project.id).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// Define actions
///
/// All or none. An unchanged body is a no-op, a changed one is the action's next version; an action that is left out stays.
#[utoipa::path(
    operation_id = "define_actions",
    put, path = "/api/v1/projects/{id}/backend/actions", tag = "backend",
    params(
        ("id" = String, Path, description = "The project."),
        ("dry_run" = Option<bool>, Query, description = "An extension. Whether the batch is only tried.")
    ),
    request_body = DefineActions,
    responses((status = 200, description = "The newest version of every action; of a trial, what would become of them.", body = Defined)),
    extensions(("x-problems" = json!("owner body forbidden not_found statement_refused database_busy capacity_reached"))),
    security(("bearer" = []))
)]
pub async fn define(
    State(app): State<SharedApp>,
    scope: ProjectScope,
    body: UnreadBody,
) -> Result<axum::Json<Defined>, Problem> {
    let project = scope.project.id;
    if app.backends.of_project(project).await?.is_none() {
        return Err(BackendError::NotFound.into());
    }
    let (body, how) = body.json_and_query::<DefineActions, HowToChange>().await?;
    let batch = body.value.checked();
    let backends = Arc::clone(&app.backends);
    let defined = if how.dry_run {
        let tried = async move { backends.try_actions(project, batch).await };
        Defined::Tried(to_the_end(tried).await??.into())
    } else {
        let defined = async move { backends.define(project, batch).await };
        Defined::Actions(ActionList::new(&to_the_end(defined).await??))
    };
    Ok(axum::Json(defined))
}

/// What a batch of actions answers.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum Defined {
    /// The newest version of every action.
    Actions(ActionList),
    /// Of a batch that was only tried.
    Tried(DryRunView),
}

fn refused(code: Code, refusal: &Refusal) -> Problem {
    let position = refusal.position;
    Problem::new(
        code,
        format!(
            "Statement {}, line {}, column {}: {}",
            refusal.statement, position.line, position.column, refusal.reason
        ),
    )
    .with("reason", refusal.reason.clone())
    .with("statement", refusal.statement)
    .with(
        "position",
        json!({ "line": position.line, "column": position.column, "offset": position.offset }),
    )
}

impl From<BackendError> for Problem {
    fn from(error: BackendError) -> Self {
        let detail = error.to_string();
        match error {
            BackendError::NotFound => Self::new(
                Code::NotFound,
                "There is no backend here: the project has none, or the page was published without it. Make one, then publish the page again.",
            ),
            BackendError::NoAction(name) => Self::new(
                Code::NotFound,
                format!("The backend has no action `{name}`: its owner defines them."),
            ),
            BackendError::Exists => Self::new(
                Code::BackendExists,
                "The project has a backend already, with its data. Change it by a migration instead of making another.",
            ),
            BackendError::NoProject => Self::new(
                Code::NotFound,
                "There is no such project: it was deleted, has expired, or never was.",
            ),
            BackendError::Invalid(detail) | BackendError::TooMuchToJudge(detail) => invalid(detail),
            BackendError::ScriptRefused(refusal) => refused(Code::DdlRefused, &refusal),
            BackendError::Refused(refusal) => refused(Code::StatementRefused, &refusal),
            BackendError::Batch(bad) => {
                let problems: Vec<(String, Self)> = bad
                    .into_iter()
                    .map(|entry| (entry.name, Self::from(entry.error)))
                    .collect();
                let code = problems
                    .first()
                    .map_or(Code::InvalidRequest, |(_, p)| p.code);
                let entries: Vec<Value> = problems
                    .iter()
                    .map(|(name, p)| json!({ "name": name, "code": p.code.as_str(), "detail": p.detail }))
                    .collect();
                let mut whole = problems.into_iter().next().map_or_else(
                    || Self::new(code, detail),
                    |(name, first)| Self {
                        detail: format!("Action `{name}`: {}", first.detail),
                        ..first
                    },
                );
                whole = whole.with("errors", entries);
                whole
            }
            BackendError::Op { index, error } => {
                let problem = Self::from(*error);
                let detail = format!("Op {index}: {}", problem.detail);
                Self { detail, ..problem }.with("index", index)
            }
            BackendError::Mismatch { missing, extra } => Self::new(
                Code::ParamsMismatch,
                "`params` must name exactly what the statement does: see `missing` and `extra`.",
            )
            .with("missing", missing)
            .with("extra", extra),
            BackendError::Reserved(name) => Self::new(
                Code::ReservedParam,
                format!(
                    "`{name}`: params that begin with svc_ are given by the platform. Leave it out."
                ),
            ),
            BackendError::IdentityRequired => Self::new(
                Code::IdentityRequired,
                "The action is for signed-in visitors. Send the visitor to the page's sign-in first.",
            ),
            BackendError::NotRecorded => Self::new(
                Code::MigrationNotRecorded,
                "The migration was applied but could not be recorded. Send the same one again: it is recorded then, and not applied twice.",
            ),
            BackendError::NoMoment(oldest) => Self::new(
                Code::NotFound,
                match oldest {
                    Some(oldest) => format!(
                        "The history does not reach back so far: the oldest moment that can be restored is {oldest}."
                    ),
                    None => "Nothing is kept that could be restored.".to_owned(),
                },
            ),
            BackendError::Migration { version, error } => {
                let why = Self::from(*error);
                let detail = format!(
                    "Nothing was restored: migration {version} of the ledger cannot be applied to the rows of then. {}",
                    why.detail
                );
                Self { detail, ..why }.with("migration", version)
            }
            BackendError::Capacity(why) => Self::new(Code::CapacityReached, why),
            BackendError::GateBusy => Self::new(
                Code::CapacityReached,
                "No worker was free to judge the SQL. Try again in a minute.",
            ),
            BackendError::Run(error) => error.into(),
            BackendError::Store(error) => error.into(),
            BackendError::Internal(error) => Self::internal(&format!("{error:#}")),
        }
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Refused { reason, .. } => Self::new(Code::StatementRefused, reason),
            RunError::Constraint(constraint) => Self::new(Code::ConstraintViolation, constraint),
            RunError::DatabaseFull => Self::new(
                Code::DatabaseFull,
                "The database is as large as it may be, so nothing was written. Delete rows first.",
            ),
            RunError::DiskFull => Self::new(
                Code::CapacityReached,
                "The server's disk is full, so nothing was written. Try again later.",
            ),
            RunError::Timeout => Self::new(
                Code::QueryTimeout,
                "The statement ran for too long and was undone. Add an index, a LIMIT, or do less at once.",
            ),
            RunError::TooMuchSpace => Self::new(
                Code::QueryTimeout,
                "The statement needed more temporary space than one may use, and was undone. Sort or join less at once.",
            ),
            RunError::ResultTooLarge => Self::new(
                Code::PayloadTooLarge,
                "The result is larger than a result may be. Select fewer columns or rows; if it was a write, it was undone.",
            ),
            RunError::Busy | RunError::Elsewhere => Self::new(
                Code::DatabaseBusy,
                "The database was busy for too long, and nothing was done. Try again.",
            ),
            RunError::Closed => BackendError::NotFound.into(),
            RunError::Internal(cause) => Self::internal(&cause),
        }
    }
}
