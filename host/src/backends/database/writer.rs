//! The connection that writes, and the history of what it commits: nothing leaves the log before history has it.

use std::sync::Arc;

use rusqlite::wal::CheckpointMode;

use super::error::RunError;
use super::files::Files;
use super::handle::{Handle, Settings};
use super::history::{History, Terms};
use crate::ids::BackendId;

/// The log is copied into the database from this many pages on; where readers keep some of it from being copied, it is
/// tried again after this many more,
const COPY_PAGES: i32 = 1000;
const AGAIN_PAGES: i32 = 250;
/// and from this many on the log is cut, which waits for them.
const CUT_PAGES: i32 = 4000;

/// Where a database's history is, and what it is kept under.
#[derive(Clone, Debug)]
pub(super) struct Keeping {
    pub(super) files: Files,
    pub(super) terms: Arc<Terms>,
}

impl Keeping {
    /// The history of a database whose writer is just being opened.
    pub(super) fn history(&self, id: &BackendId) -> Result<History, RunError> {
        let dir = self.files.directory(id).map_err(|_| RunError::Closed)?;
        Ok(History::open(dir, Arc::clone(&self.terms)))
    }
}

/// A database's one writer.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) handle: Handle,
    pub(super) history: History,
    /// How long the log may become before it is copied, in pages.
    copy_at: i32,
}

impl Writer {
    /// The writer of a database that is there.
    pub(super) fn open(settings: &Settings, history: History) -> Result<Self, RunError> {
        let mut writer = Self::of(Handle::writer(settings)?, history);
        // What a crash left in the log is a moment of its own, before anything is added.
        writer.remember();
        Ok(writer)
    }

    /// The writer of a database that is just being made.
    pub(super) fn create(settings: &Settings, history: History) -> Result<Self, RunError> {
        Ok(Self::of(Handle::create(settings)?, history))
    }

    fn of(handle: Handle, history: History) -> Self {
        Self {
            handle,
            history,
            copy_at: COPY_PAGES,
        }
    }

    /// Notes what was committed, and copies the log into the database once it is long, as far as that can be done
    /// without waiting.
    pub(super) fn settle(&mut self) {
        self.history.note(self.handle.log_pages());
        if self.handle.log_pages() >= self.copy_at {
            self.copy_log(CheckpointMode::PASSIVE);
        }
    }

    /// Whether the log is so long that it must be cut.
    pub(super) fn has_long_log(&self) -> bool {
        self.handle.log_pages() >= CUT_PAGES
    }

    /// Cuts the log. Readers pin it for no longer than a statement runs, and those that begin meanwhile do not.
    pub(super) fn cut_log(&mut self) -> bool {
        self.copy_log(CheckpointMode::TRUNCATE)
    }

    /// Takes what is new in the log into the history.
    pub(super) fn remember(&mut self) {
        if let Err(error) = self.history.take(&mut self.handle.connection) {
            tracing::warn!(%error, "a database's history has a gap");
        }
    }

    /// Copies the log into the database; answers whether all of it is there. Once it is, SQLite may write over the
    /// log, so history takes it first, and has it synced.
    fn copy_log(&mut self, mode: CheckpointMode) -> bool {
        self.remember();
        let wholly = self.handle.checkpoint(mode).unwrap_or_else(|error| {
            tracing::warn!(%error, "a tenant's log cannot be copied");
            false
        });
        let left = self.handle.log_pages();
        self.copy_at = if wholly {
            COPY_PAGES
        } else {
            left.saturating_add(AGAIN_PAGES).max(COPY_PAGES)
        };
        self.history.copied(wholly, left);
        wholly
    }

    /// Closes the database: all of its log is copied, and its history says so.
    pub(super) fn close(mut self) {
        if !self.cut_log() {
            return;
        }
        if self.history.is_on()
            && let Err(error) = self.history.seal()
        {
            tracing::warn!(%error, "a database's history will have a gap");
        }
        self.handle.leave_no_log();
    }
}
