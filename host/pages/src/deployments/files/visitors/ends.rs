//! The end of visitors' files: when their rows are gone, and when nothing can bring them back.

use std::collections::HashSet;
use std::sync::Arc;

use super::errands::{VisitorFileChanges, VisitorFileSweep};
use super::store::{self, FileBackend, NamedFileState};
use crate::control;
use crate::deployments::files::ProjectFiles;
use crate::deployments::store::look_through_files;
use crate::workspaces;
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::BackendId;

/// Files that one transaction changes at most, so that none holds the writer for long.
const FILES_PER_STEP: u32 = 500;
/// Backends that are listed at once.
const BACKENDS_PER_LIST: u32 = 200;
/// Time for which the row of an upload may not be committed yet, in seconds: longer than any upload waits for its database.
pub(super) const ARRIVING_SECONDS: i64 = 120;

impl ProjectFiles {
    /// Lists the backends that have files of visitors, some at a time, after one of them.
    ///
    /// # Errors
    /// The database's.
    pub async fn visitor_file_backends(
        &self,
        after: Option<BackendId>,
    ) -> Result<Vec<FileBackend>, control::Error> {
        let list = move |c: &_| store::list_backends(c, after.as_ref(), BACKENDS_PER_LIST);
        self.infra.control.read(list).await
    }

    /// Lists the backends that have uploads without a row, though they should have one by now; some at a time, after one of them.
    ///
    /// # Errors
    /// The database's.
    pub async fn backends_with_late_uploads(
        &self,
        after: Option<BackendId>,
    ) -> Result<Vec<FileBackend>, control::Error> {
        let before = self.infra.clock.now().plus_seconds(-ARRIVING_SECONDS);
        let list = move |c: &_| store::list_late(c, before, after.as_ref(), BACKENDS_PER_LIST);
        self.infra.control.read(list).await
    }

    /// Returns a backend that has had files of visitors.
    ///
    /// # Errors
    /// The database's.
    pub async fn visitor_file_backend(
        &self,
        backend: BackendId,
    ) -> Result<Option<FileBackend>, control::Error> {
        let find = move |c: &_| store::find_backend(c, &backend);
        self.infra.control.read(find).await
    }

    /// Notes that rows of files are committed.
    ///
    /// # Errors
    /// The database's; the files are noted again then, or found by a look at the backend.
    pub async fn keep_visitor_files(
        &self,
        backend: BackendId,
        kept: Vec<String>,
    ) -> Result<(), control::Error> {
        let Some(of) = self.visitor_file_backend(backend).await? else {
            return Ok(());
        };
        let changes = VisitorFileChanges {
            kept,
            ..VisitorFileChanges::default()
        };
        self.change_visitor_files(of, changes).await
    }

    /// Compares the files of a backend with those that its database has, which were read at a moment after `read_from`.
    ///
    /// # Errors
    /// The database's; the next look goes on.
    pub async fn follow_visitor_files(
        &self,
        of: FileBackend,
        there: HashSet<String>,
        read_from: Timestamp,
    ) -> Result<(), control::Error> {
        let named = self
            .infra
            .control
            .read(move |c| store::list_named(c, &of.backend))
            .await?;
        let mut changes = VisitorFileChanges::default();
        for file in named {
            // Whoever has changed it since knows better.
            if file.since > read_from {
                continue;
            }
            let may_commit = file.since.plus_seconds(ARRIVING_SECONDS) > read_from;
            match (file.state, there.contains(&file.id)) {
                (NamedFileState::Arriving, true) => changes.kept.push(file.id),
                (NamedFileState::Ended, true) => changes.returned.push(file.id),
                (NamedFileState::Kept, false) => changes.ended.push(file.id),
                (NamedFileState::Arriving, false) if !may_commit => changes.dropped.push(file.id),
                _ => {}
            }
        }
        self.change_visitor_files(of, changes).await
    }

    /// Makes changes, some at a time.
    async fn change_visitor_files(
        &self,
        of: FileBackend,
        changes: VisitorFileChanges,
    ) -> Result<(), control::Error> {
        for changes in in_steps(changes) {
            let sweep = VisitorFileSweep {
                project: of.project,
                backend: of.backend,
                changes,
                at: self.infra.clock.now(),
            };
            self.infra.control.run_errand(sweep).await?;
            fault::point("visitor_files.followed");
        }
        Ok(())
    }

    /// Removes files that nothing can bring back: they ended before `kept_since`, take more room than ended ones may, or their backend is
    /// gone.
    ///
    /// # Errors
    /// The database's; the next call goes on.
    pub async fn expire_visitor_files(&self, kept_since: Timestamp) -> Result<(), control::Error> {
        let control = &self.infra.control;
        let now = self.infra.clock.now();
        loop {
            let step = control.write(move |tx| store::expire(tx, kept_since, FILES_PER_STEP, now));
            let expired = step.await?;
            if expired > 0 {
                fault::point("visitor_files.expired");
            }
            if expired < FILES_PER_STEP as usize {
                break;
            }
        }
        loop {
            let step = control.write(move |tx| {
                let projects = store::expire_backends(tx, FILES_PER_STEP, now)?;
                for project in &projects {
                    look_through_files(tx, &project.to_string())?;
                }
                Ok::<_, control::Error>(projects.len())
            });
            if step.await? == 0 {
                break;
            }
        }
        self.shrink_ended().await
    }

    /// Removes the oldest ended files of projects that have more than they may.
    async fn shrink_ended(&self) -> Result<(), control::Error> {
        let control = &self.infra.control;
        let now = self.infra.clock.now();
        let config = Arc::clone(&self.infra.config);
        let over = control.read(move |c| {
            let mut over = Vec::new();
            for (project, bytes, workspace) in store::ended_bytes(c)? {
                let Some(workspace) = workspace else {
                    continue;
                };
                let plan = workspaces::plan_of(c, &workspace)?;
                let most = plan.file_limits(&config.limits).storage_bytes;
                if bytes > most {
                    over.push((project, bytes - most));
                }
            }
            Ok(over)
        });
        for (project, beyond) in over.await? {
            let mut left = beyond;
            while left > 0 {
                let step = control.write(move |tx| {
                    let mut gone = 0_u64;
                    for _ in 0..FILES_PER_STEP {
                        if gone >= left {
                            break;
                        }
                        match store::expire_oldest(tx, &project, now)? {
                            Some(bytes) => gone = gone.saturating_add(bytes),
                            None => return Ok(left),
                        }
                    }
                    Ok::<_, control::Error>(gone)
                });
                left = left.saturating_sub(step.await?.max(1));
            }
        }
        Ok(())
    }
}

/// Divides changes, so that no transaction makes too many.
fn in_steps(changes: VisitorFileChanges) -> Vec<VisitorFileChanges> {
    let mut steps = Vec::new();
    let mut add = |ids: Vec<String>, put: fn(Vec<String>) -> VisitorFileChanges| {
        for some in ids.chunks(FILES_PER_STEP as usize) {
            steps.push(put(some.to_vec()));
        }
    };
    add(changes.kept, |kept| VisitorFileChanges {
        kept,
        ..VisitorFileChanges::default()
    });
    add(changes.returned, |returned| VisitorFileChanges {
        returned,
        ..VisitorFileChanges::default()
    });
    add(changes.ended, |ended| VisitorFileChanges {
        ended,
        ..VisitorFileChanges::default()
    });
    add(changes.dropped, |dropped| VisitorFileChanges {
        dropped,
        ..VisitorFileChanges::default()
    });
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_changes_are_made_in_steps() {
        let ids = |count: u32| (0..count).map(|number| number.to_string()).collect();
        let changes = VisitorFileChanges {
            kept: ids(FILES_PER_STEP + 1),
            ended: ids(1),
            ..VisitorFileChanges::default()
        };
        let steps = in_steps(changes);
        let lengths: Vec<_> = steps
            .iter()
            .map(|it| (it.kept.len(), it.ended.len()))
            .collect();
        assert_eq!(lengths, [(FILES_PER_STEP as usize, 0), (1, 0), (0, 1)]);
        assert!(in_steps(VisitorFileChanges::default()).is_empty());
    }
}
