//! Errors of statements in a tenant's database, classified in one place.

use rusqlite::ErrorCode;

use super::meter::ExceededLimit;
use super::sql_tokens;
use svc_base::sqlite::{StorageFailure, storage_failure};

/// Error of a statement, which has changed nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StatementRunError {
    /// SQLite or the authorizer refuses the statement: its author must change it.
    #[error("{reason}")]
    Refused {
        /// Message of SQLite.
        reason: String,
        /// Byte offset of the error in the statement, if it is known.
        offset: Option<usize>,
    },
    /// The data made the statement fail as it ran; its changes are undone.
    #[error("{0}")]
    Failed(String),
    /// A constraint was violated; the text names the constraint, never a row.
    #[error("{0}")]
    Constraint(String),
    /// The database has reached its size limit.
    #[error("the database is as large as it may be")]
    DatabaseFull,
    /// The disk is full.
    #[error("the disk is full")]
    DiskFull,
    /// The history would have to become larger than it may.
    #[error("the history of the database may not take as much as it would have to")]
    HistoryTooSmall,
    /// The statement exceeded its time limit.
    #[error("the statement ran for too long")]
    Timeout,
    /// The statement exceeded its limit of temporary space.
    #[error("the statement needed too much temporary space")]
    TooMuchSpace,
    /// The statement of an upload wrote no row: it refuses the file.
    #[error("the statement wrote no row")]
    NothingWritten,
    /// An upload of this key is committed already.
    #[error("an upload of this key is committed already")]
    AlreadyUploaded,
    /// The result exceeds its size limit.
    #[error("the result is too large")]
    ResultTooLarge,
    /// The work did not start in time.
    #[error("the database is busy")]
    Busy,
    /// The statement is too heavy for the thread of a request: it runs again in a lane.
    #[error("the statement runs in a lane")]
    NeedsLane,
    /// The database is being removed, or does not exist.
    #[error("the database is closed")]
    Closed,
    /// Any other error; the text is for the log.
    #[error("tenant database: {0}")]
    Internal(String),
}

impl StatementRunError {
    /// Classifies an error of SQLite. `exceeded` is the limit for which the meter stopped the statement, if it did.
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
            // SQLite reports a statement that compiles to too many instructions as a lack of memory.
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

    /// Classifies an error that came while a prepared statement ran: its values are the cause then.
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

    /// Finds the byte offset of the error in `sql`, where SQLite gives a name but no position.
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

/// Converts an error of the platform's own statements.
pub(super) fn internal_error(error: rusqlite::Error) -> StatementRunError {
    match StatementRunError::from_sqlite(error, None) {
        StatementRunError::Refused { reason, .. }
        | StatementRunError::Failed(reason)
        | StatementRunError::Constraint(reason) => StatementRunError::Internal(reason),
        other => other,
    }
}

/// Converts an error of the file system.
pub(super) fn disk_error(error: &std::io::Error) -> StatementRunError {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            StatementRunError::DiskFull
        }
        _ => StatementRunError::Internal(error.to_string()),
    }
}
