//! Maps errors of backends and of statements to problems.

use serde_json::{Value, json};

use super::calls::requests::ParamsError;
use super::model::{ActionConflict, BackendError, ReadOnlyReason};
use crate::http::extract::invalid_request;
use crate::http::problem::{Problem, ProblemCode};
use svc_database::StatementRunError;
use svc_sandbox::SqlRefusal;

fn refusal_problem(code: ProblemCode, refusal: &SqlRefusal) -> Problem {
    let SqlRefusal {
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
        Self::from(&error)
    }
}

impl From<&BackendError> for Problem {
    fn from(error: &BackendError) -> Self {
        let detail = error.to_string();
        match error {
            BackendError::NotFound => Self::new(
                ProblemCode::NotFound,
                "The project has no backend. Make one (POST /api/v1/projects/{id}/backend, or manage_backend create).",
            ),
            BackendError::NoAction(name) => Self::new(
                ProblemCode::NotFound,
                format!(
                    "The backend has no action `{name}`. Check the name, or define the action (PUT /api/v1/projects/{{id}}/backend/actions, or manage_backend update with `actions`)."
                ),
            ),
            BackendError::NoActionVersion { name, version } => Self::new(
                ProblemCode::NotFound,
                format!(
                    "The action `{name}` has no version {version}. List its versions (GET /api/v1/projects/{{id}}/backend/actions/{name}/versions, or manage_backend action_versions)."
                ),
            ),
            BackendError::ActionConflict(conflicts) => conflict_problem(conflicts),
            BackendError::Exists => Self::new(
                ProblemCode::BackendExists,
                "The project has a backend already, with its data. Change it by a migration instead of making another.",
            ),
            BackendError::NoProject => Self::new(
                ProblemCode::NotFound,
                "There is no such project: it was deleted, has expired, or never was.",
            ),
            BackendError::Invalid(detail) | BackendError::TooMuchToJudge(detail) => {
                invalid_request(detail.clone())
            }
            BackendError::ScriptRefused(refusal) => {
                refusal_problem(ProblemCode::DdlRefused, refusal)
            }
            BackendError::Refused(refusal) => {
                refusal_problem(ProblemCode::StatementRefused, refusal)
            }
            BackendError::Batch(bad) => {
                let problems: Vec<(&str, Self)> = bad
                    .iter()
                    .map(|entry| (entry.name.as_str(), Self::from(&entry.error)))
                    .collect();
                let code = problems
                    .first()
                    .map_or(ProblemCode::InvalidRequest, |(_, p)| p.code);
                let entries: Vec<Value> = problems
                    .iter()
                    .map(|(name, p)| json!({ "name": name, "code": p.code.as_str(), "detail": p.detail }))
                    .collect();
                let mut whole = problems.into_iter().next().map_or_else(
                    || Self::new(code, detail),
                    |(name, first)| Self {
                        detail: format!("Action `{name}`: {}", first.detail).into(),
                        ..first
                    },
                );
                whole = whole.with("errors", entries);
                whole
            }
            BackendError::Op { index, error } => {
                let problem = Self::from(&**error);
                let detail = format!("Op {index}: {}", problem.detail).into();
                Self { detail, ..problem }.with("index", *index)
            }
            BackendError::ParamsMismatch { missing, extra } => Self::new(
                ProblemCode::ParamsMismatch,
                "`params` must name exactly what the statement does: see `missing` and `extra`.",
            )
            .with("missing", missing.clone())
            .with("extra", extra.clone()),
            BackendError::FileAction(name) => invalid_request(format!(
                "The action `{name}` has `:svc_file`, so it is called by the routes of files alone: POST or GET /{{slug}}/api/files/{name}."
            )),
            BackendError::ReservedParam(name) => Self::new(
                ProblemCode::ReservedParam,
                format!(
                    "`{name}`: params that begin with svc_ are given by the platform. Leave it out."
                ),
            ),
            BackendError::OnlyReads(ReadOnlyReason::Request) => Self::new(
                ProblemCode::Forbidden,
                "The statement writes, and the request has `read_only`: nothing was changed. Send it without `read_only` if it shall write.",
            ),
            BackendError::OnlyReads(ReadOnlyReason::ViewerRole) => Self::new(
                ProblemCode::Forbidden,
                "Your role in this workspace is viewer: your queries only read. Ask one of its admins for another role.",
            ),
            BackendError::IdentityRequired => Self::new(
                ProblemCode::IdentityRequired,
                "The action is for signed-in visitors. Send the visitor to the page's sign-in first.",
            ),
            BackendError::NotRecorded => Self::new(
                ProblemCode::MigrationNotRecorded,
                "The migration was applied but could not be recorded. Send the same one again: it is recorded then, and not applied twice.",
            ),
            BackendError::NoMoment(oldest) => Self::new(
                ProblemCode::NotFound,
                match oldest {
                    Some(oldest) => format!(
                        "The history does not reach back so far: the oldest moment that can be restored is {oldest}."
                    ),
                    None => "Nothing is kept that could be restored.".to_owned(),
                },
            ),
            BackendError::Migration { version, error } => {
                let why = Self::from(&**error);
                let detail = format!(
                    "Nothing was restored: migration {version} of the ledger cannot be applied to the rows of then. {}",
                    why.detail
                );
                let detail = detail.into();
                Self { detail, ..why }.with("migration", *version)
            }
            BackendError::Capacity(why) => Self::new(ProblemCode::CapacityReached, *why),
            BackendError::Cap(reached) => (*reached).into(),
            BackendError::GateBusy => Self::new(
                ProblemCode::CapacityReached,
                "No worker was free to judge the SQL. Try again in a minute.",
            ),
            BackendError::Abandoned(abandoned) => (*abandoned).into(),
            BackendError::Run(error) => statement_problem(error.clone()),
            BackendError::Store(error) => error.into(),
            BackendError::Internal(error) => Self::internal(&format!("{error:#}")),
        }
    }
}

/// Returns the problem of actions that have other versions than expected: the members of the first one, and all of them.
fn conflict_problem(conflicts: &[ActionConflict]) -> Problem {
    let detail = match conflicts.first() {
        Some(ActionConflict {
            name,
            expected,
            found: 0,
        }) => format!("There is no action `{name}`, and version {expected} of it was expected."),
        Some(ActionConflict {
            name,
            expected: 0,
            found,
        }) => format!("The action `{name}` exists, with version {found}, and was expected not to."),
        Some(ActionConflict {
            name,
            expected,
            found,
        }) => {
            format!("The action `{name}` has version {found}, and version {expected} was expected.")
        }
        None => String::new(),
    };
    let detail = format!(
        "{detail} Nothing was changed: read the action as it is, and send the change with the version that it has."
    );
    let problem = Problem::new(ProblemCode::ActionConflict, detail);
    let problem = match conflicts.first() {
        Some(first) => problem
            .with("name", first.name.clone())
            .with("expected", first.expected)
            .with("found", first.found),
        None => problem,
    };
    let all: Vec<Value> = conflicts.iter().map(ActionConflict::to_json).collect();
    problem.with("conflicts", all)
}

impl From<ParamsError> for Problem {
    fn from(error: ParamsError) -> Self {
        let code = match &error {
            ParamsError::Invalid(_) => ProblemCode::InvalidRequest,
            ParamsError::NotJson(_) => ProblemCode::InvalidJson,
        };
        Self::new(code, error.to_string())
    }
}

/// Returns the problem of a statement that failed.
fn statement_problem(error: StatementRunError) -> Problem {
    match error {
        StatementRunError::Refused { reason, .. } => Problem::new(ProblemCode::StatementRefused, reason),
        StatementRunError::Failed(reason) => Problem::new(
            ProblemCode::StatementFailed,
            format!(
                "The statement failed as it ran, and nothing was changed: {reason}. Look at the values that it was given."
            ),
        )
        .with("reason", reason),
        StatementRunError::Constraint(constraint) => Problem::new(ProblemCode::ConstraintViolation, constraint),
        StatementRunError::DatabaseFull => Problem::new(
            ProblemCode::DatabaseFull,
            "The database is as large as it may be, so nothing was written. Delete rows first.",
        ),
        StatementRunError::DiskFull => Problem::new(
            ProblemCode::CapacityReached,
            "The server's disk is full, so nothing was written. Try again later.",
        ),
        StatementRunError::HistoryTooSmall => Problem::new(
            ProblemCode::CapacityReached,
            "Nothing was restored: the server may keep too little history of this database to keep the state of now too, without which there would be no way back. Ask the operator for a larger `history_bytes`.",
        ),
        StatementRunError::Timeout => Problem::new(
            ProblemCode::QueryTimeout,
            "The statement ran for too long and was undone. Add an index, a LIMIT, or do less at once.",
        ),
        StatementRunError::TooMuchSpace => Problem::new(
            ProblemCode::QueryTimeout,
            "The statement needed more temporary space than one may use, and was undone. Sort or join less at once.",
        ),
        StatementRunError::NothingWritten => Problem::new(
            ProblemCode::UploadRefused,
            "The action wrote no row, so the file is refused, and nothing was kept.",
        ),
        StatementRunError::AlreadyUploaded => Problem::new(
            ProblemCode::IdempotencyConflict,
            "An upload with this Idempotency-Key is under way. Send it again in a moment.",
        ),
        StatementRunError::ResultTooLarge => Problem::new(
            ProblemCode::PayloadTooLarge,
            "The result is larger than a result may be. Select fewer columns or rows; if it was a write, it was undone.",
        ),
        StatementRunError::Busy | StatementRunError::NeedsLane => Problem::new(
            ProblemCode::DatabaseBusy,
            "The database was busy for too long, and nothing was done. Try again.",
        ),
        StatementRunError::Closed => BackendError::NotFound.into(),
        StatementRunError::Internal(cause) => Problem::internal(&cause),
    }
}
