//! Leftovers: what a process that died between two steps has left in the ledger and in the bucket, and nothing names. Control's owner
//! removes it.
//!
//! A database is made before control names it, so one that control does not name counts as left only at the second look. An object is
//! stored before a row names it, so one without a row is left when it is a day old.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::bases::{self, BaseError};
use super::bucket::{Bucket, StoredObject};
use super::histories;
use super::run::Run;
use super::tenants::Tenants;
use svc_base::clock::Timestamp;
use svc_base::ids::{BackendId, DeploymentId};
use svc_ledger::{Base, DatabaseName, Ledger};

/// Age of an object that nothing names, after which it is removed.
const OBJECT_GRACE_SECONDS: i64 = 24 * 3600;

/// Remover of leftovers.
pub(super) struct Leftovers<L> {
    run: Arc<Run<L>>,
    bucket: Bucket,
    tenants: Arc<Tenants<L>>,
    seen: Mutex<SeenLeftovers>,
}

/// Findings of the last look.
#[derive(Debug, Default)]
struct SeenLeftovers {
    /// Databases that control does not name.
    unnamed: BTreeSet<BackendId>,
    /// Databases that control names and nobody has.
    missing: BTreeSet<BackendId>,
    /// Objects of bases that rows name.
    named_objects: HashSet<String>,
}

impl<L> fmt::Debug for Leftovers<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leftovers").finish_non_exhaustive()
    }
}

impl<L: Ledger> Leftovers<L> {
    /// Makes the remover of what other runs have left, and of what this one did not finish.
    pub(super) fn new(run: Arc<Run<L>>, bucket: Bucket, tenants: Arc<Tenants<L>>) -> Self {
        Self {
            run,
            bucket,
            tenants,
            seen: Mutex::default(),
        }
    }

    /// Removes what is left. `named` reads the backends of control, after the ledger and the bucket are looked at.
    ///
    /// # Errors
    /// Those of the ledger, of the bucket and of `named`; the next look goes on.
    pub(super) async fn remove<E>(
        &self,
        named: impl Future<Output = Result<Vec<BackendId>, E>>,
    ) -> anyhow::Result<()>
    where
        anyhow::Error: From<E>,
    {
        let mut seen = self.seen.lock().await;
        let objects = self.bucket.list(bases::PREFIX).await?;
        let chains = self.bucket.list(histories::PREFIX).await?;
        let there = self.list_databases(&objects, &chains).await?;
        let named: BTreeSet<BackendId> = named.await?.into_iter().collect();
        let unnamed: BTreeSet<_> = there.difference(&named).copied().collect();
        for id in unnamed.intersection(&seen.unnamed) {
            tracing::warn!(backend = %id, "a database is removed that no backend has: a process died while it made or deleted it");
            self.tenants.remove_leftover(*id).await;
        }
        let missing: BTreeSet<_> = named.difference(&there).copied().collect();
        for id in missing.intersection(&seen.missing) {
            tracing::error!(backend = %id, "a backend has no database: neither the ledger nor the bucket knows it");
        }
        (seen.unnamed, seen.missing) = (unnamed, missing);
        self.remove_unnamed_bases(&objects, &mut seen.named_objects)
            .await?;
        self.drop_older_bases(&objects).await;
        // That of a database which nobody loads expires, too.
        histories::delete_expired_of(&self.bucket, &chains, self.run.clock().now()).await?;
        self.bucket.remove_stale_uploads(self.old_before()).await?;
        Ok(())
    }

    /// Lists the databases of backends that have something in the bucket or a place.
    async fn list_databases(
        &self,
        bases: &[StoredObject],
        chains: &[StoredObject],
    ) -> anyhow::Result<BTreeSet<BackendId>> {
        let objects = bases.iter().chain(chains);
        let mut there: BTreeSet<BackendId> = objects.filter_map(database_of).collect();
        for place in self.run.ledger().places().await? {
            if let DatabaseName::Backend(id) = place.database {
                there.insert(id);
            }
        }
        Ok(there)
    }

    /// Deletes old objects of bases that no row names. Who has looked at an object does not ask for its row again.
    async fn remove_unnamed_bases(
        &self,
        objects: &[StoredObject],
        named: &mut HashSet<String>,
    ) -> Result<(), BaseError> {
        let before = self.old_before();
        let old = objects
            .iter()
            .filter(|object| object.at <= before)
            .filter_map(bases::parse);
        let unknown: Vec<Base> = old.filter(|base| !named.contains(&base.object)).collect();
        let still_there: HashSet<&str> = objects.iter().map(|it| it.name.as_str()).collect();
        named.retain(|object| still_there.contains(object.as_str()));
        for base in unknown {
            let rows = self
                .run
                .ledger()
                .bases(Some(self.run.id()), base.database)
                .await?;
            if rows.iter().any(|row| row.object == base.object) {
                named.insert(base.object);
            } else {
                self.bucket.delete(&base.object).await?;
            }
        }
        Ok(())
    }

    /// Has databases whose newest base is a day old keep it alone.
    async fn drop_older_bases(&self, objects: &[StoredObject]) {
        let before = self.old_before();
        let mut found = BTreeMap::new();
        // They are in the order of the commits.
        for base in objects.iter().filter_map(bases::parse) {
            let (count, newest) = found.entry(base.database).or_insert((0, base.at));
            (*count, *newest) = (*count + 1, base.at);
        }
        for (database, (count, newest)) in found {
            if count < 2 || newest > before {
                continue;
            }
            let dropped = self.tenants.drop_older_base(database, before).await;
            if let Err(error) = dropped {
                tracing::warn!(%error, %database, "the base before a database's newest stays: that is tried again");
            }
        }
    }

    /// Lists the one-time pages that are old enough to have a row, if they ever had one.
    ///
    /// # Errors
    /// The bucket's.
    pub(super) async fn list_old_one_time_pages(&self) -> anyhow::Result<Vec<DeploymentId>> {
        let before = self.old_before();
        let pages = self.bucket.list(super::bucket::ONCE).await?;
        let old = pages.iter().filter(|page| page.at <= before);
        let ids = old.filter_map(|page| page.name.rsplit_once('/')?.1.parse().ok());
        Ok(ids.collect())
    }

    /// Returns the time before which an object was stored that is old.
    pub(super) fn old_before(&self) -> Timestamp {
        self.run.clock().now().plus_seconds(-OBJECT_GRACE_SECONDS)
    }
}

/// Returns the backend that an object of a base or of a history belongs to.
fn database_of(object: &StoredObject) -> Option<BackendId> {
    object.name.split('/').nth(1)?.parse().ok()
}
