//! Histories in the bucket: each chain of a database's history is copied there when it has ended, so that time travel survives the
//! loss of a machine. Their names say all that is known of them, so no row does.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::spawn_blocking;

use super::bases::LiveDatabases;
use super::bucket::{Bucket, BucketError, StoredObject};
use svc_base::clock::{Clock, Timestamp};
use svc_base::ids::BackendId;
use svc_base::positions::CommitPosition;
use svc_database::{DatabasesDirectory, EndedChain, first_commit_kept, oldest_moment_kept};
use svc_ledger::DatabaseName;

/// Prefix of histories.
pub(super) const PREFIX: &str = "histories";
/// How often the histories of this node are looked at: a chain ends once a day, or after many commits.
const LOOK_EVERY: Duration = Duration::from_secs(600);

/// A chain in the bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StoredChain {
    /// Number of the commit that it begins with.
    first: CommitPosition,
    /// Number of the last commit.
    last: CommitPosition,
    /// Time of the last moment.
    to: Timestamp,
    object: String,
}

/// Returns the prefix of the history of a database.
fn prefix(id: &BackendId) -> String {
    format!("{PREFIX}/{id}")
}

/// Returns the name of a chain. Names are in the order of the commits.
fn object_name(id: &BackendId, chain: &EndedChain) -> String {
    let EndedChain { first, last, .. } = chain;
    let (from, to) = (chain.from.0, chain.to.0);
    let prefix = prefix(id);
    format!("{prefix}/{:020}-{:020}-{from}-{to}", first.0, last.0)
}

/// Reads a chain off an object; `None` if the object is none.
fn parse(object: &StoredObject) -> Option<StoredChain> {
    let (_, name) = object.name.rsplit_once('/')?;
    let mut parts = name.splitn(4, '-');
    let (first, last) = (parts.next()?, parts.next()?);
    let (_from, to) = (parts.next()?, parts.next()?);
    Some(StoredChain {
        first: CommitPosition(first.parse().ok()?),
        last: CommitPosition(last.parse().ok()?),
        to: Timestamp(to.parse().ok()?),
        object: object.name.clone(),
    })
}

/// Keeper of the histories of the databases that a run has on its machine.
#[derive(Debug)]
pub struct HistoryKeeper {
    bucket: Bucket,
    files: DatabasesDirectory,
    clock: Clock,
    /// Last commit of each database whose chain was copied.
    copied: HashMap<BackendId, CommitPosition>,
}

impl HistoryKeeper {
    /// Makes the keeper of the histories beside the databases in `files`.
    pub fn new(bucket: Bucket, files: DatabasesDirectory, clock: Clock) -> Self {
        Self {
            bucket,
            files,
            clock,
            copied: HashMap::new(),
        }
    }

    /// Copies chains as they end and deletes those that have expired, for as long as it is polled.
    pub async fn run(mut self, databases: &impl LiveDatabases) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let files = self.files.clone();
            let here = blocking(move || files.list()).await;
            for id in here.unwrap_or_default() {
                if let Err(error) = self.keep(id, databases).await {
                    let error = format!("{error:#}");
                    tracing::warn!(error, backend = %id, "a history is not copied: it is tried again");
                }
            }
        }
    }

    /// Copies the chains of a database that have ended since the last look, if there are any.
    pub(super) async fn keep(
        &mut self,
        id: BackendId,
        databases: &impl LiveDatabases,
    ) -> anyhow::Result<()> {
        let dir = self.files.directory(&id)?;
        let ended = blocking(move || EndedChain::list(&dir, false)).await?;
        let Some(last) = ended.last().map(|chain| chain.last) else {
            return Ok(());
        };
        let name = DatabaseName::Backend(id);
        if self.copied.get(&id) >= Some(&last) || !databases.acknowledged(name, last).await {
            return Ok(());
        }
        upload_ended(&self.bucket, &self.files, &id, last, false).await?;
        delete_expired(&self.bucket, &id, self.clock.now()).await?;
        self.copied.insert(id, last);
        Ok(())
    }
}

/// Copies the chains of a database that have ended to the bucket, unless they are there: all of a database that is `at_rest`, else all
/// but the newest. A chain is left out as long as it has commits that are not acknowledged. Returns how many were copied.
///
/// # Errors
/// The bucket's or the disk's; it may be repeated.
pub async fn upload_ended(
    bucket: &Bucket,
    files: &DatabasesDirectory,
    id: &BackendId,
    acknowledged: CommitPosition,
    at_rest: bool,
) -> anyhow::Result<u64> {
    let dir = files.directory(id)?;
    let ended = blocking(move || EndedChain::list(&dir, at_rest)).await?;
    let ended: Vec<_> = ended
        .into_iter()
        .filter(|chain| chain.last <= acknowledged)
        .collect();
    if ended.is_empty() {
        return Ok(0);
    }
    let there = bucket.list(&prefix(id)).await?;
    let mut copied = 0;
    for chain in ended {
        let name = object_name(id, &chain);
        if there.iter().any(|object| object.name == name) {
            continue;
        }
        let dir = files.directory(id)?;
        if let Some(bytes) = blocking(move || chain.read(&dir)).await? {
            bucket.put(&name, bytes.into()).await?;
            copied += 1;
        }
    }
    Ok(copied)
}

/// Brings the chains of a database that ended elsewhere and have moments to restore, and puts them before those that are here. Returns
/// how many were brought.
///
/// # Errors
/// The bucket's or the disk's; it may be repeated.
pub async fn fetch_earlier(
    bucket: &Bucket,
    files: &DatabasesDirectory,
    id: &BackendId,
    now: Timestamp,
) -> anyhow::Result<u64> {
    let dir = files.directory(id)?;
    let first = blocking(move || first_commit_kept(&dir)).await?;
    let oldest = oldest_moment_kept(now);
    let there = bucket.list(&prefix(id)).await?;
    // A chain that begins here has the state that the one before ends with, so both may name the same commit. One of that commit alone
    // has nothing that is not here.
    let is_earlier =
        |chain: &StoredChain| first.is_none_or(|first| chain.first < first && chain.last <= first);
    let chains = there.iter().filter_map(parse);
    let chains: Vec<_> = chains
        .filter(|chain| is_earlier(chain) && chain.to >= oldest)
        .collect();
    let mut brought = 0;
    for chain in chains.into_iter().rev() {
        let bytes = bucket.get(&chain.object).await?;
        let dir = files.directory(id)?;
        let put = blocking(move || EndedChain::put_before_others(&dir, &bytes)).await;
        put.with_context(|| format!("putting {} in its place", chain.object))?;
        brought += 1;
    }
    Ok(brought)
}

/// Deletes the chains of a database whose moments have all expired.
///
/// # Errors
/// The bucket's; it may be repeated.
pub async fn delete_expired(bucket: &Bucket, id: &BackendId, now: Timestamp) -> anyhow::Result<()> {
    let oldest = oldest_moment_kept(now);
    let there = bucket.list(&prefix(id)).await?;
    for chain in there.iter().filter_map(parse) {
        if chain.to < oldest {
            bucket.delete(&chain.object).await?;
        }
    }
    Ok(())
}

/// Deletes the history of a database that is gone.
///
/// # Errors
/// The bucket's; it may be repeated.
pub async fn delete_all(bucket: &Bucket, id: &BackendId) -> Result<(), BucketError> {
    for object in bucket.list(&prefix(id)).await? {
        bucket.delete(&object.name).await?;
    }
    Ok(())
}

/// Runs work on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(work).await?
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;
    use svc_base::clock::Clock;
    use svc_base::random::Random;

    use super::*;

    #[tokio::test]
    async fn chains_are_brought_in_their_order_until_they_expire() {
        let data = tempfile::tempdir().unwrap();
        let clock = Clock::manual(Timestamp(1_790_000_000_000));
        let id = BackendId::new(&clock, &Random::system()).unwrap();
        let files = DatabasesDirectory::open(data.path()).unwrap();
        files.create_directory(&id).unwrap();
        let bucket = Bucket::from_store(Arc::new(InMemory::new()));
        let (now, day) = (clock.now(), 24 * 3600);
        for (first, days) in [(1, 9), (20, 2), (100, 1)] {
            let at = now.plus_seconds(-days * day).0;
            let last = first + 5;
            let name = format!("histories/{id}/{first:020}-{last:020}-{at}-{at}");
            bucket
                .put(&name, format!("chain {first}").into())
                .await
                .unwrap();
        }
        assert_eq!(fetch_earlier(&bucket, &files, &id, now).await.unwrap(), 2);
        let dir = files.directory(&id).unwrap();
        let names = dir.entries().unwrap().map(|it| it.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        let read = names.iter().map(|name| dir.read_to_string(name).unwrap());
        assert!(read.eq(["chain 20", "chain 100"]), "{names:?}");

        delete_expired(&bucket, &id, now).await.unwrap();
        let left = bucket.list(&prefix(&id)).await.unwrap();
        let left: Vec<_> = left.iter().filter_map(parse).collect();
        let commits: Vec<_> = left.iter().map(|chain| chain.last.0).collect();
        assert_eq!(commits, [25, 105]);
        delete_all(&bucket, &id).await.unwrap();
        assert!(bucket.list("histories").await.unwrap().is_empty());
    }
}
