//! Errors of backends and of statements as problems.

use serde_json::{Value, json};

use super::model::BackendError;
use crate::http::extract::invalid;
use crate::http::problem::{Code, Problem};
use svc_database::RunError;
use svc_sandbox::Refusal;

fn refused(code: Code, refusal: &Refusal) -> Problem {
    let Refusal {
        reason,
        statement,
        position,
    } = refusal;
    let told = |place: String| {
        Problem::new(code, format!("Statement {statement}{place}: {reason}"))
            .with("reason", reason.clone())
            .with("statement", *statement)
    };
    match position {
        Some(place) => told(format!(", line {}, column {}", place.line, place.column)).with(
            "position",
            json!({ "line": place.line, "column": place.column, "offset": place.offset }),
        ),
        None => told(String::new()),
    }
}

impl From<BackendError> for Problem {
    fn from(error: BackendError) -> Self {
        let detail = error.to_string();
        match error {
            BackendError::NotFound => Self::new(
                Code::NotFound,
                "The project has no backend. Make one (POST /api/v1/projects/{id}/backend, or manage_backend create).",
            ),
            BackendError::NoAction(name) => Self::new(
                Code::NotFound,
                format!(
                    "The backend has no action `{name}`. Check the name, or define the action (PUT /api/v1/projects/{{id}}/backend/actions, or manage_backend update with `actions`)."
                ),
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
            BackendError::ParamsMismatch { missing, extra } => Self::new(
                Code::ParamsMismatch,
                "`params` must name exactly what the statement does: see `missing` and `extra`.",
            )
            .with("missing", missing)
            .with("extra", extra),
            BackendError::ReservedParam(name) => Self::new(
                Code::ReservedParam,
                format!(
                    "`{name}`: params that begin with svc_ are given by the platform. Leave it out."
                ),
            ),
            BackendError::OnlyReads => Self::new(
                Code::Forbidden,
                "Your role in this workspace is viewer: your queries only read. Ask one of its admins for another role.",
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
            BackendError::Cap(reached) => reached.into(),
            BackendError::GateBusy => Self::new(
                Code::CapacityReached,
                "No worker was free to judge the SQL. Try again in a minute.",
            ),
            BackendError::Abandoned(abandoned) => abandoned.into(),
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
            RunError::Failed(reason) => Self::new(
                Code::StatementFailed,
                format!(
                    "The statement failed as it ran, and nothing was changed: {reason}. Look at the values that it was given."
                ),
            )
            .with("reason", reason),
            RunError::Constraint(constraint) => Self::new(Code::ConstraintViolation, constraint),
            RunError::DatabaseFull => Self::new(
                Code::DatabaseFull,
                "The database is as large as it may be, so nothing was written. Delete rows first.",
            ),
            RunError::DiskFull => Self::new(
                Code::CapacityReached,
                "The server's disk is full, so nothing was written. Try again later.",
            ),
            RunError::HistoryTooSmall => Self::new(
                Code::CapacityReached,
                "Nothing was restored: the server may keep too little history of this database to keep the state of now too, without which there would be no way back. Ask the operator for a larger `history_bytes`.",
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
            RunError::Busy | RunError::NeedsLane => Self::new(
                Code::DatabaseBusy,
                "The database was busy for too long, and nothing was done. Try again.",
            ),
            RunError::Closed => BackendError::NotFound.into(),
            RunError::Internal(cause) => Self::internal(&cause),
        }
    }
}
