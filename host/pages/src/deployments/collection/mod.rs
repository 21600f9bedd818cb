//! Deletes content that nothing refers to, and marks content that a crash left without a reference.

mod store;

use std::time::Duration;

use anyhow::bail;
use futures_util::future::join_all;

use crate::content::{ContentLock, ContentStore, Digest};
use crate::control;
use crate::deployments::store::is_referenced;
use crate::infra::Infra;
use svc_base::clock::Timestamp;
use svc_base::fault;

pub(super) use store::is_marked_before;

/// Marks handled in one step, so that no step holds the writer for long.
const MARKS_PER_STEP: u32 = 500;
/// Time for which content without a reference is kept, in seconds: by one server, and where several nodes share the store.
pub(super) const GRACE_SECONDS: i64 = 60;
pub(super) const SHARED_GRACE_SECONDS: i64 = 24 * 3600;
/// Difference of two nodes' clocks that does no harm, in seconds.
const CLOCK_SKEW_SECONDS: i64 = 3600;
/// Longest time between asking for the commit that confirms marks and sending a deletion.
const CONFIRMED_FOR: Duration = Duration::from_secs(1);
/// Objects that are deleted at once: a store of other machines takes its time for each.
const CONCURRENT_DELETIONS: usize = 16;
/// Objects that are deleted in one step at a store of other machines: a backup waits no longer than for one request.
const REMOTE_MARKS_PER_STEP: u32 = 16;
/// Pause between two steps of a collection, in which a waiting backup can begin.
const STEP_PAUSE: Duration = Duration::from_millis(50);

/// Outcome of a step of the collector.
#[derive(Default)]
struct CollectionStepOutcome {
    /// Content that no longer needs a mark.
    done: Vec<Digest>,
    /// Number of deleted objects.
    gone: usize,
    /// Number of objects that could not be checked or deleted, and the first error.
    failed: u32,
    why: Option<anyhow::Error>,
}

/// Marks that may be acted on.
struct ConfirmedMarks {
    /// Content that nothing refers to.
    unreferenced: Vec<Digest>,
    /// Time at which the confirming commit was asked for; `None` where one server alone has the store.
    asked: Option<Duration>,
}

/// Deletes content that nothing refers to.
#[derive(Debug)]
pub struct ContentGarbageCollector {
    infra: Infra,
    content: ContentStore,
    /// Whether several nodes share the store.
    is_shared: bool,
}

impl ContentGarbageCollector {
    /// Makes the collector of a server.
    pub fn new(infra: Infra, content: ContentStore) -> Self {
        Self {
            infra,
            content,
            is_shared: false,
        }
    }

    /// Has several nodes share the store. Then marks are kept for a day, and a commit that is acknowledged just before a deletion proves
    /// that no other node has taken over and published the content again.
    #[must_use]
    pub fn shared_by_nodes(self) -> Self {
        Self {
            is_shared: true,
            ..self
        }
    }

    /// Returns the time before which a mark must have been made for its content to go.
    fn marked_before(&self) -> Timestamp {
        let grace = match self.is_shared {
            true => SHARED_GRACE_SECONDS,
            false => GRACE_SECONDS,
        };
        self.infra.clock.now().plus_seconds(-grace)
    }

    /// Deletes marked content that is past its grace and that nothing refers to; returns how many objects.
    ///
    /// # Errors
    /// Errors of the database or of the store; the next collection continues.
    pub async fn collect(&self) -> anyhow::Result<usize> {
        self.collect_until(|| false).await
    }

    /// Collects, and leaves the rest for another time when the server `stops`.
    ///
    /// # Errors
    /// The first of the database or the store, after what could be done in spite of it.
    pub async fn collect_until(&self, stops: impl Fn() -> bool) -> anyhow::Result<usize> {
        let before = self.marked_before();
        let most = match self.content.is_remote() {
            true => REMOTE_MARKS_PER_STEP,
            false => MARKS_PER_STEP,
        };
        let (mut collected, mut failed, mut why) = (0, 0, None);
        while !stops() && failed < MARKS_PER_STEP {
            let marked = self
                .infra
                .control
                .read(move |c| store::list_marked(c, before, most, failed))
                .await?;
            if marked.is_empty() {
                break;
            }
            // Content that a backup copies stays until the backup ends; the next collection removes it.
            let data = self.infra.config.data.clone();
            let hold = tokio::task::spawn_blocking(move || ContentLock::exclusive(&data)).await??;
            if hold.is_none() {
                break;
            }
            let step = self.collect_digests(&marked, before, &stops).await;
            fault::point("collection.deleted");
            drop(hold);
            collected += step.gone;
            failed += step.failed;
            why = why.or(step.why);
            let done = step.done;
            self.infra
                .control
                .write(move |tx| {
                    done.iter()
                        .try_for_each(|digest| store::unmark(tx, digest, before))
                })
                .await?;
            fault::point("collection.committed");
            if marked.len() < most as usize {
                break;
            }
            tokio::time::sleep(STEP_PAUSE).await;
        }
        why.map_or(Ok(collected), Err)
    }

    /// Deletes some objects; one that fails does not hinder the others.
    async fn collect_digests(
        &self,
        marked: &[Digest],
        before: Timestamp,
        stops: &impl Fn() -> bool,
    ) -> CollectionStepOutcome {
        let mut step = CollectionStepOutcome::default();
        for some in marked.chunks(CONCURRENT_DELETIONS) {
            let confirmed = match self.confirm(some, before).await {
                Ok(confirmed) => confirmed,
                Err(error) => {
                    step.failed += u32::try_from(some.len()).unwrap_or(u32::MAX);
                    step.why.get_or_insert(error.into());
                    break;
                }
            };
            if stops() {
                break;
            }
            let ConfirmedMarks {
                unreferenced,
                asked,
            } = confirmed;
            let referenced = some.iter().filter(|digest| !unreferenced.contains(digest));
            step.done.extend(referenced);
            let gone = unreferenced
                .iter()
                .map(|digest| self.collect_one(*digest, asked));
            // Each deletion runs to its end: an abandoned one could take effect after a later write of the same object.
            for (digest, gone) in unreferenced.iter().zip(join_all(gone).await) {
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

    /// Reads marks once more where nodes share the store, in a commit that is acknowledged when this returns.
    async fn confirm(
        &self,
        marked: &[Digest],
        before: Timestamp,
    ) -> Result<ConfirmedMarks, control::Error> {
        let marked = marked.to_vec();
        if !self.is_shared {
            return Ok(ConfirmedMarks {
                unreferenced: marked,
                asked: None,
            });
        }
        let asked = Some(self.infra.clock.elapsed());
        let confirmed = self
            .infra
            .control
            .write(move |tx| store::confirm_marks(tx, &marked, before));
        Ok(ConfirmedMarks {
            unreferenced: confirmed.await?,
            asked,
        })
    }

    /// Deletes an object that no row refers to; returns whether it is gone.
    async fn collect_one(&self, digest: Digest, asked: Option<Duration>) -> anyhow::Result<bool> {
        let referenced = async {
            let found = self.infra.control.read(move |c| is_referenced(c, &digest));
            let found = found.await?;
            let now = self.infra.clock.elapsed();
            if !found && asked.is_some_and(|asked| now.saturating_sub(asked) > CONFIRMED_FOR) {
                bail!("the ledger has confirmed too long ago that nothing refers to {digest}");
            }
            Ok(found)
        };
        self.content.collect(&digest, referenced).await
    }

    /// Tells a remote store which deletions a collector before this start may have begun. Runs before serving.
    pub async fn expect_unfinished_deletions(&self) -> Result<(), control::Error> {
        if !self.content.is_remote() {
            return Ok(());
        }
        // The collector before was another node's, by whose clock a mark may have been older.
        let skew = match self.is_shared {
            true => CLOCK_SKEW_SECONDS,
            false => 0,
        };
        let before = self.marked_before().plus_seconds(skew);
        let begun = self.infra.control.read(move |c| {
            let mut begun = Vec::new();
            for digest in store::list_marked(c, before, u32::MAX, 0)? {
                if !is_referenced(c, &digest)? {
                    begun.push(digest);
                }
            }
            Ok(begun)
        });
        self.content.expect_deletions(begun.await?);
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
        let now = self.infra.clock.now();
        for step in objects.chunks(MARKS_PER_STEP as usize) {
            let step = step.to_vec();
            let orphans = self
                .infra
                .control
                .read(move |c| {
                    let mut orphans = Vec::new();
                    for digest in step {
                        if !is_referenced(c, &digest)? {
                            orphans.push(digest);
                        }
                    }
                    Ok(orphans)
                })
                .await?;
            if !orphans.is_empty() {
                self.infra
                    .control
                    .write(move |tx| {
                        orphans
                            .iter()
                            .try_for_each(|digest| store::mark_orphan(tx, digest, now))
                    })
                    .await?;
            }
        }
        Ok(())
    }
}
