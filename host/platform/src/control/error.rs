//! Errors of the control database, classified once.

use svc_base::sqlite::{StorageFailure, storage_failure};
use svc_database::ReplicaError;

use super::migrations::SCHEMA_VERSION;

/// An error of the control database.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk is full: nothing was written.
    #[error("the disk is full")]
    Full,
    /// Another process kept the database locked for longer than the busy timeout.
    #[error("the control database is busy")]
    Busy,
    /// Too many reads of one client's network are under way.
    #[error("too many reads of one client are under way")]
    TooManyReads,
    /// Another machine writes the database: nothing was done here.
    #[error("another machine writes the control database")]
    Elsewhere,
    /// The machine that writes the database has not answered: an errand may be done, and what was to follow it is not.
    #[error("the machine that writes the control database has not answered")]
    Unanswered,
    /// This machine follows another one, and may lack what was answered there.
    #[error("this machine may lack the newest commits of the control database")]
    Stale,
    /// Commits of another machine do not fit to the replica of the database, which must be loaded anew.
    #[error("following the control database: {0}")]
    Replica(ReplicaError),
    /// A commit of another machine has noted a change that this program does not know.
    #[error("changes of another machine: {0}")]
    Changes(String),
    /// The writer has stopped, because the server is stopping.
    #[error("the control database is closed")]
    Closed,
    /// A newer version of the program has migrated the database.
    #[error(
        "the control database has the schema {0}, and this program knows schemas up to {known}: use a newer one, or restore a backup that this one has made",
        known = SCHEMA_VERSION
    )]
    Newer(u32),
    /// Other errors, for the log.
    #[error("control database: {0}")]
    Sqlite(rusqlite::Error),
    /// The place of counts that several machines share did not take them, or did not answer.
    #[error("views in the ledger: {0}")]
    Shared(String),
    /// An errand failed on the other machine, or it or its answer could not be written or read as a message.
    #[error("an errand: {0}")]
    Errand(String),
    /// An answer could not be sealed.
    #[error("an answer could not be sealed")]
    SealingFailed,
    /// A job panicked; its changes were undone.
    #[error("a control database job panicked")]
    Panicked,
}

impl Error {
    /// Makes the error of a message that cannot be written or read.
    pub fn from_errand(error: impl std::fmt::Display) -> Self {
        Self::Errand(error.to_string())
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match storage_failure(&error) {
            Some(StorageFailure::Full | StorageFailure::DiskFull) => Self::Full,
            Some(StorageFailure::Busy) => Self::Busy,
            None => Self::Sqlite(error),
        }
    }
}
