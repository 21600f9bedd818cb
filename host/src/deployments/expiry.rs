//! The end of deployments: the sweep of what has expired, the collection of content that nothing refers to, and
//! the repair of what a crash left half done.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::publication::{Address, announce};
use super::{Deployments, frontends, sharing, store};
use crate::content::{ContentLock, Digest};
use crate::control;
use crate::control::audit::AuditAction;
use crate::projects;
use svc_base::ids::ProjectId;

/// Rows handled in one step, so that no step holds the writer for long.
const STEP: u32 = 500;
/// How long content without a reference is kept, in seconds.
const GRACE: i64 = 60;
/// Objects that are deleted at once: a store of other machines takes its time for each.
const AT_ONCE: usize = 16;
/// Objects that are deleted in one step at a store of other machines: a backup waits no longer than for one request.
const FEW: u32 = 16;
/// How long content is left alone between two steps, for a backup that waits for its turn.
const REST: Duration = Duration::from_millis(50);

/// Outcome of a step of the collector.
#[derive(Default)]
struct Step {
    /// Content that needs no mark any more.
    done: Vec<Digest>,
    /// How many objects are gone.
    gone: usize,
    /// How many could not be looked at or deleted, and why the first could not.
    failed: u32,
    why: Option<anyhow::Error>,
}

impl Deployments {
    /// Removes what has expired; returns how many deployments that were.
    ///
    /// # Errors
    /// The database's or the disk's; what is left comes with the next sweep.
    pub async fn sweep(&self) -> anyhow::Result<usize> {
        let now = self.clock.now();
        let mut swept = 0;
        loop {
            let expired = self
                .control
                .read(move |c| store::expired(c, now, STEP))
                .await?;
            let step = expired.len();
            let config = Arc::clone(&self.config);
            let ends = expired.iter().map(|d| (d.id, d.address()));
            let ends: Vec<_> = ends.collect();
            if step > 0 {
                self.control
                    .write(move |tx| {
                        for (id, address) in &ends {
                            // An owner may have claimed it between the two looks.
                            if store::has_expired(tx, id, now)? {
                                store::remove(tx, id, now)?;
                                announce(tx, &config, address, now)?;
                            }
                        }
                        Ok::<_, control::Error>(())
                    })
                    .await?;
            }
            // Their rows are gone, so nobody comes back to these files before the next start: one that cannot be
            // removed must not keep the others.
            let mut kept = None;
            for deployment in expired {
                if deployment.one_time
                    && let Err(error) = self.burn_file(deployment.id).await
                {
                    kept = kept.or(Some(error));
                }
            }
            if let Some(error) = kept {
                return Err(error.into());
            }
            swept += step;
            if step < STEP as usize {
                return Ok(swept);
            }
        }
    }

    /// Forgets tokens of shares that have been gone for long.
    pub async fn forget_old(&self) -> Result<(), control::Error> {
        let now = self.clock.now();
        self.control
            .write(move |tx| sharing::forget_tokens(tx, now))
            .await
    }

    /// Deletes marked content that is past its grace and that nothing refers to; returns how many objects.
    ///
    /// # Errors
    /// The database's or the store's; what is left comes with the next collection.
    pub async fn collect(&self) -> anyhow::Result<usize> {
        self.collect_until(|| false).await
    }

    /// Collects, and leaves the rest for another time when the server `stops`.
    ///
    /// # Errors
    /// The first of the database or the store, after what could be done in spite of it.
    pub async fn collect_until(&self, stops: impl Fn() -> bool) -> anyhow::Result<usize> {
        let before = self.clock.now().plus_seconds(-GRACE);
        let most = match self.content.is_remote() {
            true => FEW,
            false => STEP,
        };
        let (mut collected, mut failed, mut why) = (0, 0, None);
        while !stops() && failed < STEP {
            let marked = self
                .control
                .read(move |c| store::garbage(c, before, most, failed))
                .await?;
            if marked.is_empty() {
                break;
            }
            // What a backup copies stays until it has; the next collection comes soon enough.
            let data = self.config.data.clone();
            let hold = tokio::task::spawn_blocking(move || ContentLock::exclusive(&data)).await??;
            if hold.is_none() {
                break;
            }
            let step = self.collect_these(&marked, &stops).await;
            drop(hold);
            collected += step.gone;
            failed += step.failed;
            why = why.or(step.why);
            let done = step.done;
            self.control
                .write(move |tx| {
                    done.iter()
                        .try_for_each(|digest| store::unmark(tx, digest, before))
                })
                .await?;
            if marked.len() < most as usize {
                break;
            }
            tokio::time::sleep(REST).await;
        }
        why.map_or(Ok(collected), Err)
    }

    /// Collects some, each whatever becomes of the others.
    async fn collect_these(&self, marked: &[Digest], stops: &impl Fn() -> bool) -> Step {
        let mut step = Step::default();
        for some in marked.chunks(AT_ONCE) {
            if stops() {
                break;
            }
            let gone = some.iter().map(|digest| self.collect_one(*digest));
            // Each goes on to its end: one that was left in the middle could come after what is put meanwhile.
            for (digest, gone) in some.iter().zip(join_all(gone).await) {
                match gone {
                    Ok(gone) => {
                        step.done.push(*digest);
                        step.gone += usize::from(gone);
                    }
                    Err(error) => {
                        step.failed += 1;
                        step.why.get_or_insert(error);
                    }
                }
            }
        }
        step
    }

    /// Deletes an object that no row refers to; returns whether it is gone.
    async fn collect_one(&self, digest: Digest) -> anyhow::Result<bool> {
        let referenced = async {
            let found = self.control.read(move |c| store::is_referenced(c, &digest));
            found.await.map_err(anyhow::Error::from)
        };
        self.content.collect(&digest, referenced).await
    }

    /// Remembers what a collector before this start may have begun to delete, in a store of other machines. Runs before serving.
    pub async fn remember_deletions(&self) -> Result<(), control::Error> {
        if !self.content.is_remote() {
            return Ok(());
        }
        let before = self.clock.now().plus_seconds(-GRACE);
        let begun = self.control.read(move |c| {
            let mut begun = Vec::new();
            for digest in store::garbage(c, before, u32::MAX, 0)? {
                if !store::is_referenced(c, &digest)? {
                    begun.push(digest);
                }
            }
            Ok(begun)
        });
        self.content.expect_deletions(begun.await?);
        Ok(())
    }

    /// Makes a project and its frontends stop resolving; durable when it answers. `act` is what somebody did, if not time.
    pub async fn begin_project_end(
        &self,
        project: ProjectId,
        act: Option<AuditAction>,
    ) -> Result<(), control::Error> {
        let (config, now) = (Arc::clone(&self.config), self.clock.now());
        self.control
            .write(move |tx| {
                // Of two who end it at once, one does.
                if let Some(act) = act
                    && projects::is_live(tx, &project, now)?
                {
                    projects::record_audit(tx, &project, act, &project, now)?;
                }
                let Some(label) = projects::begin_deletion(tx, &project, now)? else {
                    return Ok(());
                };
                for slug in frontends::mark_deleting(tx, &project)? {
                    let address = Address {
                        slug,
                        host_label: Some(label.clone()),
                    };
                    announce(tx, &config, &address, now)?;
                }
                Ok(())
            })
            .await
    }

    /// Removes some frontends of a project whose end has begun; returns whether there were any.
    pub async fn remove_members(&self, project: ProjectId) -> Result<bool, control::Error> {
        let members = self
            .control
            .read(move |c| frontends::deleting(c, &project, STEP))
            .await?;
        let (some, now) = (!members.is_empty(), self.clock.now());
        if some {
            self.control
                .write(move |tx| {
                    members
                        .iter()
                        .try_for_each(|id| store::remove(tx, id, now).map(|_| ()))
                })
                .await?;
        }
        Ok(some)
    }

    /// Ends creations that a crash interrupted. Runs before serving, when none is under way.
    pub async fn end_unfinished(&self) -> Result<(), control::Error> {
        self.control.write(frontends::remove_all_unfinished).await
    }

    /// Unlinks the files of one-time shares that have no row: burnt, or never answered for. Runs before serving,
    /// when no publish is between its file and its row.
    ///
    /// # Errors
    /// The database's or the disk's.
    pub async fn finish_burning(&self) -> anyhow::Result<()> {
        let files = self.once.clone();
        let files = tokio::task::spawn_blocking(move || files.list()).await??;
        let rows: HashSet<_> = self
            .control
            .read(store::one_time_ids)
            .await?
            .into_iter()
            .collect();
        for id in files.into_iter().filter(|id| !rows.contains(id)) {
            self.burn_file(id).await?;
        }
        Ok(())
    }

    /// Marks content that no row ever came to refer to, because of a crash. Runs once, beside serving; what it
    /// marks has its grace, and is looked at again before it goes.
    ///
    /// # Errors
    /// The database's or the disk's.
    pub async fn mark_orphans(&self) -> anyhow::Result<()> {
        self.content.remove_stale_uploads().await?;
        let (objects, _) = self.content.list().await?;
        let now = self.clock.now();
        for step in objects.chunks(STEP as usize) {
            let step = step.to_vec();
            let orphans = self
                .control
                .read(move |c| {
                    let mut orphans = Vec::new();
                    for digest in step {
                        if !store::is_referenced(c, &digest)? {
                            orphans.push(digest);
                        }
                    }
                    Ok(orphans)
                })
                .await?;
            if !orphans.is_empty() {
                self.control
                    .write(move |tx| {
                        orphans
                            .iter()
                            .try_for_each(|digest| store::add_orphan(tx, digest, now))
                    })
                    .await?;
            }
        }
        Ok(())
    }
}
