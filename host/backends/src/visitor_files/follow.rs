//! Looks at the databases of backends: which files their rows have, and so which bytes are kept.

use std::time::Duration;

use super::VisitorFiles;
use crate::backends::BackendError;
use crate::deployments::files::visitors::FileBackend;
use svc_base::ids::BackendId;
use svc_base::sync::lock;
use svc_database::oldest_moment_kept;

/// Longest wait of an upload for a look that may find room.
const LOOK_WAIT: Duration = Duration::from_secs(2);
/// Time in which another node ends files that nothing names.
const SWEEP_WAIT: Duration = Duration::from_millis(1200);
/// Pause between two looks at all databases.
const FOLLOW_ALL_EVERY: Duration = Duration::from_secs(86_400);

impl VisitorFiles {
    /// Notes which files were uploaded, and looks at the databases in which files may have been deleted or come back, since the last call.
    ///
    /// # Errors
    /// The first failure, after what could be done in spite of it; the next call, or the next look at all databases, goes on.
    pub async fn follow_changes(&self) -> anyhow::Result<()> {
        let _turn = self.following.lock().await;
        let mut first_error = self.keep_uploaded().await.err();
        for backend in self.backends.take_file_changes() {
            // The node that has it now has looked when it got it.
            if !self.backends.is_responsible(backend) {
                continue;
            }
            if let Err(error) = self.follow_backend(backend).await {
                self.backends.note_file_changes(backend);
                first_error = first_error.or(Some(error));
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Looks at the database of a backend, if it has had files.
    async fn follow_backend(&self, backend: BackendId) -> anyhow::Result<()> {
        match self.files.visitor_file_backend(backend).await? {
            Some(of) => self.follow(of).await,
            None => Ok(()),
        }
    }

    /// Notes that rows of uploaded files are committed: one that is deleted soon has been there, and the history may bring it back.
    async fn keep_uploaded(&self) -> anyhow::Result<()> {
        let mut first_error = None;
        for (backend, files) in self.backends.take_uploaded_files() {
            let kept = self.files.keep_visitor_files(backend, files.clone());
            if let Err(error) = kept.await {
                self.backends.note_uploaded_files(backend, files);
                first_error = first_error.or(Some(error));
            }
        }
        first_error.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Looks at databases in which nobody may have noted what has changed, as after a crash: all of them at first and once a day, and else
    /// those that have uploads without a row. Others rest, and are not opened for it.
    ///
    /// # Errors
    /// Those of [`VisitorFiles::follow_all`].
    pub async fn follow_rest(&self) -> anyhow::Result<()> {
        let now = self.infra.clock.elapsed();
        let is_due = {
            let last = lock(&self.followed_all);
            last.is_none_or(|last| now.saturating_sub(last) >= FOLLOW_ALL_EVERY)
        };
        if !is_due {
            return self.follow_some(true).await;
        }
        self.follow_all().await?;
        *lock(&self.followed_all) = Some(now);
        Ok(())
    }

    /// Looks at the databases of all backends that have had files, of which this machine has the databases.
    ///
    /// # Errors
    /// The first failure, after what could be done in spite of it.
    pub async fn follow_all(&self) -> anyhow::Result<()> {
        self.follow_some(false).await
    }

    /// Looks at all databases, or only at those with uploads that should have their row by now.
    async fn follow_some(&self, only_late: bool) -> anyhow::Result<()> {
        let turn = self.following.lock().await;
        let (mut after, mut first_error) = (None, self.keep_uploaded().await.err());
        drop(turn);
        loop {
            let some = match only_late {
                true => self.files.backends_with_late_uploads(after).await?,
                false => self.files.visitor_file_backends(after).await?,
            };
            let Some(last) = some.last() else {
                return first_error.map_or(Ok(()), Err);
            };
            after = Some(last.backend);
            for of in some {
                let _turn = self.following.lock().await;
                if self.backends.is_responsible(of.backend)
                    && let Err(error) = self.follow(of).await
                {
                    first_error = first_error.or(Some(error));
                }
            }
        }
    }

    /// Removes bytes of files that nothing can bring back.
    ///
    /// # Errors
    /// The database's.
    pub async fn expire(&self) -> anyhow::Result<()> {
        let kept_since = oldest_moment_kept(self.infra.clock.now());
        Ok(self.files.expire_visitor_files(kept_since).await?)
    }

    /// Looks at a database at once, and ends files that nothing names, for an upload that finds no room. One does so at a time.
    pub(super) async fn follow_now(&self, backend: BackendId) {
        let look = async {
            let Ok(_turn) = self.following.try_lock() else {
                return anyhow::Ok(());
            };
            self.keep_uploaded().await?;
            self.follow_backend(backend).await?;
            if self.infra.control.is_follower() {
                // Control's node sweeps once a second.
                tokio::time::sleep(SWEEP_WAIT).await;
                return Ok(());
            }
            self.files.sweep_rested().await
        };
        if let Ok(Err(error)) = tokio::time::timeout(LOOK_WAIT, look).await {
            tracing::warn!(%error, "ended files are not looked for");
        }
    }

    async fn follow(&self, of: FileBackend) -> anyhow::Result<()> {
        let read_from = self.infra.clock.now();
        let there = match self.backends.file_ids(of.backend).await {
            Ok(there) => there,
            // It is being removed, and its files end with it.
            Err(BackendError::Run(svc_database::StatementRunError::Closed)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let followed = self.files.follow_visitor_files(of, there, read_from);
        Ok(followed.await?)
    }
}
