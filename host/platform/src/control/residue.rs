//! Erasure of deleted data: from the database's pages at once, and soon after from the write-ahead log, which still has the old pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::hooks::Action;

use super::pool::BUSY_TIMEOUT;
use super::{ControlDatabase, Error};

/// Tables whose deleted rows are gone from the log soon: password hashes, slugs that are a secret, and erased visitors with all that goes
/// in the same transaction.
const SECRET_TABLES: [&str; 2] = ["deployments", "visitors"];

/// Time for which a checkpoint waits for readers: writers wait meanwhile.
const CHECKPOINT_BUSY_TIMEOUT: Duration = Duration::from_millis(20);

/// State that tells whether the write-ahead log may hold deleted rows.
#[derive(Clone, Debug, Default)]
pub(super) struct WalResidue(Arc<WalResidueState>);

#[derive(Debug, Default)]
struct WalResidueState {
    /// Whether the current transaction deletes rows.
    deleting: AtomicBool,
    /// Whether a committed transaction has deleted rows since the log was last emptied.
    deleted: AtomicBool,
}

impl WalResidue {
    /// Watches the deletions of a connection. Earlier ones are unknown, so the log is taken to hold some.
    pub(super) fn watch(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        self.0.deleted.store(true, Ordering::Release);
        let inner = Arc::clone(&self.0);
        connection.update_hook(Some(move |action, _: &str, table: &str, _| {
            if action == Action::SQLITE_DELETE && SECRET_TABLES.contains(&table) {
                inner.deleting.store(true, Ordering::Release);
            }
        }))
    }

    /// Notes a commit: only now does emptying the log help.
    pub(super) fn on_commit(&self) {
        if self.0.deleting.swap(false, Ordering::AcqRel) {
            self.0.deleted.store(true, Ordering::Release);
        }
    }

    /// Notes that the log may hold deleted rows, as after commits of another machine.
    pub(super) fn note_deleted(&self) {
        self.0.deleted.store(true, Ordering::Release);
    }

    /// Empties the log if it may hold deleted rows. Called by the writer: another connection could take away commits that are not
    /// read yet.
    pub(super) fn empty_log(&self, writer: &Connection) -> Result<(), Error> {
        self.empty_log_by(|| truncate_wal(writer))
    }

    /// Empties the log by `truncate` if it may hold deleted rows. That returns whether no reader prevented it.
    pub(super) fn empty_log_by(
        &self,
        truncate: impl FnOnce() -> rusqlite::Result<bool>,
    ) -> Result<(), Error> {
        if !self.0.deleted.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let emptied = truncate();
        if !matches!(emptied, Ok(true)) {
            self.note_deleted();
        }
        emptied?;
        Ok(())
    }
}

impl ControlDatabase {
    /// Empties the log if secret rows were deleted since the last call. Pages that a slow reader holds are left for the next call. Blocks.
    ///
    /// # Errors
    /// The database's; [`Error::Closed`] once the writer is closed.
    pub fn empty_log_if_deleted(&self) -> Result<(), Error> {
        if !self.residue().0.deleted.load(Ordering::Acquire) {
            return Ok(());
        }
        self.empty_log()
    }
}

/// Copies the log into the database's file and truncates it; returns whether no reader prevented that.
fn truncate_wal(writer: &Connection) -> rusqlite::Result<bool> {
    writer.busy_timeout(CHECKPOINT_BUSY_TIMEOUT)?;
    let emptied = writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
        row.get::<_, bool>(0).map(|busy| !busy)
    });
    writer.busy_timeout(BUSY_TIMEOUT)?;
    emptied
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const ROW: &str =
        "INSERT INTO deployments (id, slug, content_type, title, password_hash, created_at)
        VALUES (?1, ?2, 'html', '', ?3, 0)";

    fn holds(data: &std::path::Path, needle: &str) -> Vec<String> {
        let files = std::fs::read_dir(data).unwrap().map(Result::unwrap);
        files
            .filter(|file| {
                let bytes = std::fs::read(file.path()).unwrap();
                bytes.windows(needle.len()).any(|w| w == needle.as_bytes())
            })
            .map(|file| file.file_name().into_string().unwrap())
            .collect()
    }

    /// The numbers of the secrets and slugs that files hold, wherever in them.
    fn named(data: &std::path::Path) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        for file in std::fs::read_dir(data).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            for word in [&b"secret-"[..], b"slug-"] {
                let starts = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(word));
                let digits = starts.filter_map(|at| bytes.get(at + word.len()..)?.get(..4));
                found.extend(
                    digits.filter_map(|d| std::str::from_utf8(d).ok()?.parse::<u64>().ok()),
                );
            }
        }
        found
    }

    #[tokio::test]
    async fn what_was_deleted_is_in_no_file() {
        let data = tempfile::tempdir().unwrap();
        let control = ControlDatabase::open(data.path()).unwrap();
        // Enough for pages to be split and merged, deleted out of order.
        let count = 2000_u64;
        for step in 0..20 {
            control
                .write(move |tx| {
                    for n in (step * 100)..(step * 100 + 100) {
                        let name = n * 7919 % count;
                        let secret = format!("secret-{name:04}-{}", "x".repeat(90));
                        tx.execute(
                            ROW,
                            (format!("{name:036}"), format!("slug-{name:04}"), secret),
                        )?;
                    }
                    Ok::<_, Error>(())
                })
                .await
                .unwrap();
        }
        for step in 0..20 {
            control
                .write(move |tx| {
                    for n in (step * 100)..(step * 100 + 100) {
                        let name = n * 4703 % count;
                        if name % 10 != 3 {
                            tx.execute(
                                "DELETE FROM deployments WHERE slug = ?1",
                                [format!("slug-{name:04}")],
                            )?;
                        }
                    }
                    Ok::<_, Error>(())
                })
                .await
                .unwrap();
        }
        control.empty_log_if_deleted().unwrap();
        let gone = |name: &u64| name % 10 != 3;
        let left: Vec<u64> = named(data.path()).into_iter().filter(gone).collect();
        assert!(left.is_empty(), "{} left: {left:?}", left.len());
        assert!(
            !holds(data.path(), "secret-0003-").is_empty(),
            "the others stay"
        );
    }

    #[tokio::test]
    async fn a_reader_only_delays_it() {
        let data = tempfile::tempdir().unwrap();
        let control = ControlDatabase::open(data.path()).unwrap();
        let add = |tx: &super::super::Tx<'_>| {
            tx.execute(ROW, ("id", "slug-once", "secret-once"))?;
            Ok::<_, Error>(())
        };
        control.write(add).await.unwrap();
        let snapshot = control.snapshot().unwrap();
        let delete = |tx: &super::super::Tx<'_>| {
            tx.execute("DELETE FROM deployments WHERE id = 'id'", [])?;
            Ok::<_, Error>(())
        };
        control.write(delete).await.unwrap();
        control.empty_log_if_deleted().unwrap();
        assert!(!holds(data.path(), "secret-once").is_empty());
        drop(snapshot);
        control.empty_log_if_deleted().unwrap();
        assert!(holds(data.path(), "secret-once").is_empty());
    }
}
