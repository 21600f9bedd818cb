//! Errors of statements in a tenant's database, told apart once.

use rusqlite::ErrorCode;

use super::meter::ExceededLimit;
use super::sql_tokens;
use svc_base::sqlite::{StorageFailure, storage_failure};

/// Why a statement did nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError {
    /// SQLite, or the wall around it, does not take the statement: its author's to change.
    #[error("{reason}")]
    Refused {
        /// SQLite's words.
        reason: String,
        /// Where in the statement, in bytes, if SQLite says so.
        offset: Option<usize>,
    },
    /// The data made it fail as it ran; nothing of it is kept.
    #[error("{0}")]
    Failed(String),
    /// A constraint stands against it; the text names the constraint, never a row.
    #[error("{0}")]
    Constraint(String),
    /// The database is as large as it may be.
    #[error("the database is as large as it may be")]
    DatabaseFull,
    /// The disk is full.
    #[error("the disk is full")]
    DiskFull,
    /// The history may not take what must be in it.
    #[error("the history of the database may not take as much as it would have to")]
    HistoryTooSmall,
    /// It ran for longer than a statement may.
    #[error("the statement ran for too long")]
    Timeout,
    /// It needed more temporary space than a statement may use.
    #[error("the statement needed too much temporary space")]
    TooMuchSpace,
    /// The result is larger than a result may be.
    #[error("the result is too large")]
    ResultTooLarge,
    /// It was not begun in time.
    #[error("the database is busy")]
    Busy,
    /// It is nothing for the thread of a request: it runs again in a lane.
    #[error("the statement runs in a lane")]
    NeedsLane,
    /// The database is gone.
    #[error("the database is closed")]
    Closed,
    /// Everything else, for the log.
    #[error("tenant database: {0}")]
    Internal(String),
}

impl RunError {
    /// Tells an error of SQLite apart. `exceeded` is what the meter stopped the statement for, if it did.
    pub(super) fn from_sqlite(error: rusqlite::Error, exceeded: Option<ExceededLimit>) -> Self {
        match storage_failure(&error) {
            Some(StorageFailure::Full) => return Self::DatabaseFull,
            Some(StorageFailure::DiskFull) => return Self::DiskFull,
            Some(StorageFailure::Busy) => return Self::Busy,
            None => {}
        }
        let (code, message, offset) = match error {
            rusqlite::Error::SqliteFailure(code, message) => {
                (code, message.unwrap_or_else(|| code.to_string()), None)
            }
            rusqlite::Error::SqlInputError {
                error, msg, offset, ..
            } => (error, msg, usize::try_from(offset).ok()),
            other => return Self::Internal(other.to_string()),
        };
        match code.code {
            ErrorCode::OperationInterrupted => match exceeded {
                Some(ExceededLimit::Space) => Self::TooMuchSpace,
                _ => Self::Timeout,
            },
            ErrorCode::ConstraintViolation => Self::Constraint(message),
            ErrorCode::TypeMismatch => Self::Failed(message),
            // What compiles to more than a statement may is told as a lack of memory.
            ErrorCode::OutOfMemory => Self::Refused {
                reason: "the statement takes more memory than one may use: make it simpler"
                    .to_owned(),
                offset: None,
            },
            ErrorCode::Unknown
            | ErrorCode::TooBig
            | ErrorCode::AuthorizationForStatementDenied
            | ErrorCode::ReadOnly
            | ErrorCode::ParameterOutOfRange => Self::Refused {
                reason: message,
                offset,
            },
            _ => Self::Internal(format!("{code}: {message}")),
        }
    }

    /// Classifies an error of a statement that SQLite took and that failed as it ran: its values are to blame then.
    pub(super) fn from_running(error: rusqlite::Error, exceeded: Option<ExceededLimit>) -> Self {
        let by_values = matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::Unknown | ErrorCode::TooBig)
        );
        match Self::from_sqlite(error, exceeded) {
            Self::Refused { reason, .. } if by_values => Self::Failed(reason),
            other => other,
        }
    }

    /// Adds the place in `sql` that SQLite names and does not point to.
    pub(super) fn with_offset(self, sql: &str) -> Self {
        match self {
            Self::Refused {
                reason,
                offset: None,
            } => Self::Refused {
                offset: sql_tokens::find_error_offset(sql, &reason),
                reason,
            },
            other => other,
        }
    }
}

/// An error of the platform's own statements.
pub(super) fn internal(error: rusqlite::Error) -> RunError {
    match RunError::from_sqlite(error, None) {
        RunError::Refused { reason, .. }
        | RunError::Failed(reason)
        | RunError::Constraint(reason) => RunError::Internal(reason),
        other => other,
    }
}

/// An error of the file system.
pub(super) fn disk_error(error: &std::io::Error) -> RunError {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => RunError::DiskFull,
        _ => RunError::Internal(error.to_string()),
    }
}
