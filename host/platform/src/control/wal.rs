//! The write-ahead log as its one writer sees it: commits are counted when SQLite appends them, and the log is copied into the
//! database's file by the writer alone, between two groups.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use rusqlite::Connection;
use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;

use svc_base::positions::CommitPosition;

/// The log is copied from this many pages on. What readers still need stays, and is tried again after the next commit.
const CHECKPOINT_PAGES: i32 = 1000;

/// Number of the writer's commits, and the length of its log.
#[derive(Debug, Default)]
pub(super) struct WriterLog(Arc<WriterLogState>);

#[derive(Debug, Default)]
struct WriterLogState {
    commits: AtomicU64,
    /// Pages in the log after the last commit; 0 once it was looked at.
    pages: AtomicI32,
}

impl WriterLog {
    /// Counts the commits of `writer`, and keeps SQLite from copying its log by itself.
    pub(super) fn watch(&self, writer: &mut Connection) -> rusqlite::Result<()> {
        // Setting this removes the hook, so it comes first.
        writer.pragma_update(None, "wal_autocheckpoint", 0)?;
        let inner = Arc::clone(&self.0);
        writer.wal_hook(Some(move |_: &mut Wal, pages| {
            inner.commits.fetch_add(1, Ordering::Relaxed);
            inner.pages.store(pages, Ordering::Relaxed);
            Ok(())
        }))
    }

    /// Returns the position of the last commit. An attempt that wrote nothing, or failed, has none.
    pub(super) fn position(&self) -> CommitPosition {
        CommitPosition(self.0.commits.load(Ordering::Relaxed))
    }

    /// Copies the log into the database's file if the last commit has left it long. The next commit then starts the log anew, unless
    /// a reader still needs it.
    pub(super) fn copy_if_long(&self, writer: &Connection) {
        if self.0.pages.swap(0, Ordering::Relaxed) < CHECKPOINT_PAGES {
            return;
        }
        if let Err(error) = writer.wal_checkpoint_v2(None::<&str>, CheckpointMode::PASSIVE) {
            tracing::warn!(%error, "the control database's log cannot be copied");
        }
    }
}
