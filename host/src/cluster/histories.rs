//! Histories in the bucket: each chain of a database's history is copied there when it has ended, when a base is made, and when its
//! place is given back, so that time travel survives the loss of a machine. Their names say all that is known of them, so no row does.
//!
//! What the newest chain in the bucket lacks is made anew from the ledger: from a base, and the commits after it.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tokio::task::spawn_blocking;

use super::bases::LiveDatabases;
use super::bucket::{Bucket, BucketError, StoredObject};
use super::loads::TAIL_PIECE_BYTES;
use svc_base::clock::{Clock, Timestamp};
use svc_base::ids::BackendId;
use svc_base::positions::CommitPosition;
use svc_database::{
    ChainBuilder, DatabasesDirectory, EndedChain, first_commit_kept, oldest_moment_kept,
};
use svc_ledger::{Base, DatabaseName, Ledger, RunId};

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

/// Copies the chains of a database that have ended to the bucket, unless they are there; with `is_all` also the newest, as far as it
/// goes. A chain is left out as long as it has commits that are not acknowledged. Returns how many were copied.
///
/// # Errors
/// The bucket's or the disk's; it may be repeated.
pub async fn upload_ended(
    bucket: &Bucket,
    files: &DatabasesDirectory,
    id: &BackendId,
    acknowledged: CommitPosition,
    is_all: bool,
) -> anyhow::Result<u64> {
    let dir = files.directory(id)?;
    let ended = blocking(move || EndedChain::list(&dir, is_all)).await?;
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
            // A copy of its beginning has nothing that this one lacks.
            let is_beginning = |it: &StoredChain| it.first == chain.first && it.last < chain.last;
            for beginning in there.iter().filter_map(parse).filter(is_beginning) {
                bucket.delete(&beginning.object).await?;
            }
        }
    }
    Ok(copied)
}

/// Whether the bucket has the history of a database up to a commit, or none of it at all.
///
/// # Errors
/// The bucket's.
pub(super) async fn reaches(
    bucket: &Bucket,
    id: &BackendId,
    last: CommitPosition,
) -> Result<bool, BucketError> {
    let there = bucket.list(&prefix(id)).await?;
    let newest = there.iter().filter_map(parse).map(|chain| chain.last).max();
    Ok(newest.is_none_or(|newest| newest >= last))
}

/// Makes the chain of a database's commits up to `last` that no chain in the bucket has, from a base and the commits after it, and puts
/// it before those that are here. Nobody may make a base of the database meanwhile. Returns whether there was anything to make.
///
/// # Errors
/// Those of the ledger, of the bucket and of the disk; it may be repeated.
pub async fn make_missing<L: Ledger>(
    (ledger, run): (&L, RunId),
    bucket: &Bucket,
    files: &DatabasesDirectory,
    id: &BackendId,
    (last, most_bytes): (CommitPosition, u64),
) -> anyhow::Result<bool> {
    let there = bucket.list(&prefix(id)).await?;
    let chains = there.iter().filter_map(parse);
    let newest = chains
        .filter(|chain| chain.last <= last)
        .max_by_key(|chain| chain.last);
    if newest.as_ref().is_some_and(|chain| chain.last == last) {
        return Ok(false);
    }
    let bases = ledger.bases(Some(run), DatabaseName::Backend(*id)).await?;
    let mut failure = None;
    // The oldest has the most commits after it.
    for base in bases.into_iter().rev().filter(|it| it.position <= last) {
        match build((ledger, run), bucket, &base, newest.as_ref(), last).await {
            // A history as large as that would not be kept.
            Ok(chain) if chain.len() as u64 > most_bytes => return Ok(false),
            Ok(chain) => {
                let dir = files.directory(id)?;
                blocking(move || EndedChain::put_before_others(&dir, &chain)).await?;
                return Ok(true);
            }
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| anyhow!("the ledger has no base of it")))
}

/// Builds the chain from a base to `last`; it begins where `before` ends, if that is later.
async fn build<L: Ledger>(
    (ledger, run): (&L, RunId),
    bucket: &Bucket,
    base: &Base,
    before: Option<&StoredChain>,
    last: CommitPosition,
) -> anyhow::Result<Vec<u8>> {
    // The commit of a base says when it was made. The first base of a database has none, and was made with it.
    let mut after = CommitPosition(base.position.0.saturating_sub(1));
    let own = ledger.tail(Some(run), base.database, after, 1).await?;
    let own = own
        .first()
        .filter(|commit| commit.position == base.position);
    let at = own.map_or(base.at, |commit| commit.at);
    let first = before.map_or(base.position, |chain| chain.last);
    let bytes = bucket.get(&base.object).await?;
    let (position, state) = (base.position, base.state);
    let started =
        spawn_blocking(move || ChainBuilder::start(&*bytes, (position, state), at, first));
    let mut builder = started.await??;
    after = base.position;
    while after < last {
        let tail = ledger.tail(Some(run), base.database, after, TAIL_PIECE_BYTES);
        let mut tail = tail.await?;
        let end = tail.last().context("the ledger lacks commits")?;
        after = end.position;
        // Later ones are in the chain that was begun here.
        tail.retain(|commit| commit.position <= last);
        builder = spawn_blocking(move || builder.apply(&tail)).await??;
    }
    let chain = blocking(move || builder.finish()).await?;
    chain.context("its commits end too early")
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
    let mut first = blocking(move || first_commit_kept(&dir)).await?;
    let oldest = oldest_moment_kept(now);
    let there = bucket.list(&prefix(id)).await?;
    let chains = there.iter().filter_map(parse);
    let chains: Vec<_> = chains.filter(|chain| chain.to >= oldest).collect();
    let mut brought = 0;
    for chain in chains.into_iter().rev() {
        // A chain that begins here has the state that the one before ends with, so both may name the same commit. One of that commit
        // alone has nothing that is not here, and neither has a copy of a chain's beginning.
        if first.is_some_and(|first| chain.first >= first || chain.last > first) {
            continue;
        }
        let bytes = bucket.get(&chain.object).await?;
        let dir = files.directory(id)?;
        let put = blocking(move || EndedChain::put_before_others(&dir, &bytes)).await;
        put.with_context(|| format!("putting {} in its place", chain.object))?;
        first = Some(chain.first);
        brought += 1;
    }
    Ok(brought)
}

/// Deletes the chains of a database whose moments have all expired.
///
/// # Errors
/// The bucket's; it may be repeated.
pub async fn delete_expired(bucket: &Bucket, id: &BackendId, now: Timestamp) -> anyhow::Result<()> {
    let there = bucket.list(&prefix(id)).await?;
    Ok(delete_expired_of(bucket, &there, now).await?)
}

/// Deletes those of these objects that are chains whose moments have all expired.
///
/// # Errors
/// The bucket's; it may be repeated.
pub(super) async fn delete_expired_of(
    bucket: &Bucket,
    objects: &[StoredObject],
    now: Timestamp,
) -> Result<(), BucketError> {
    let oldest = oldest_moment_kept(now);
    for chain in objects.iter().filter_map(parse) {
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
        // The beginning of the last one was copied, too, and is not brought.
        for (first, last, days) in [(1, 6, 9), (20, 25, 2), (100, 103, 2), (100, 105, 1)] {
            let at = now.plus_seconds(-days * day).0;
            let name = format!("histories/{id}/{first:020}-{last:020}-{at}-{at}");
            bucket
                .put(&name, format!("chain {first} to {last}").into())
                .await
                .unwrap();
        }
        assert_eq!(fetch_earlier(&bucket, &files, &id, now).await.unwrap(), 2);
        let dir = files.directory(&id).unwrap();
        let names = dir.entries().unwrap().map(|it| it.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        let read = names.iter().map(|name| dir.read_to_string(name).unwrap());
        assert!(read.eq(["chain 20 to 25", "chain 100 to 105"]), "{names:?}");

        delete_expired(&bucket, &id, now).await.unwrap();
        let left = bucket.list(&prefix(&id)).await.unwrap();
        let left: Vec<_> = left.iter().filter_map(parse).collect();
        let commits: Vec<_> = left.iter().map(|chain| chain.last.0).collect();
        assert_eq!(commits, [25, 103, 105]);
        delete_all(&bucket, &id).await.unwrap();
        assert!(bucket.list("histories").await.unwrap().is_empty());
    }
}
