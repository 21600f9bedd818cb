//! The end of files that nothing names: no revision of their project's sites, and no publication that they wait for.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::model::FileOwner;
use super::service::ProjectFiles;
use super::store::{self, OwnedFile, OwnedSites};
use crate::content::Digest;
use crate::control;
use crate::deployments::sites::SiteManifest;
use svc_base::clock::Timestamp;
use svc_base::fault;

/// Owners whose files one sweep looks through at most; the next one goes on.
const OWNERS_PER_SWEEP: u32 = 100;
/// Files that one transaction changes at most, so that none holds the writer for long.
const FILES_PER_STEP: u32 = 500;

/// Manifests of an owner above which reading all of them is much work.
const MANY_MANIFESTS: usize = 50;
/// Time for which the files of an owner with many manifests are not looked through again. An owner who ends a revision each second
/// does not keep the sweep from others.
const REST: Duration = Duration::from_secs(30);

/// Owners whose files were looked through a short time ago, with much work, and the time at which their rest ends.
#[derive(Debug, Default)]
pub(super) struct RestingOwners(Mutex<HashMap<FileOwner, Duration>>);

impl RestingOwners {
    /// Has an owner with so many manifests rest, if they are many.
    fn add(&self, owner: FileOwner, manifests: usize, now: Duration) {
        if manifests > MANY_MANIFESTS {
            let mut resting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            resting.insert(owner, now + REST);
        }
    }

    /// Lists the owners that still rest.
    fn list(&self, now: Duration) -> Vec<FileOwner> {
        let mut resting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        resting.retain(|_, until| *until > now);
        resting.keys().cloned().collect()
    }
}

/// Changes of an owner's files that one transaction makes.
#[derive(Debug, Default)]
struct SweepStep {
    /// Files that nothing names.
    unnamed: Vec<Digest>,
    /// Files that do not wait any more, because a revision names them.
    settled: Vec<Digest>,
}

impl ProjectFiles {
    /// Ends files that nothing names.
    ///
    /// # Errors
    /// The first of the database or the store, after what could be done in spite of it; the next sweep continues.
    pub async fn sweep(&self) -> anyhow::Result<()> {
        self.sweep_but(Vec::new()).await
    }

    /// Ends files that nothing names, but for those of owners who rest since the last sweep.
    ///
    /// # Errors
    /// Those of [`ProjectFiles::sweep`].
    pub async fn sweep_rested(&self) -> anyhow::Result<()> {
        let resting = self.resting.list(self.infra.clock.elapsed());
        self.sweep_but(resting).await
    }

    async fn sweep_but(&self, resting: Vec<FileOwner>) -> anyhow::Result<()> {
        let now = self.infra.clock.now();
        let listed = self
            .infra
            .control
            .read(move |c| store::list_due(c, now, &resting, OWNERS_PER_SWEEP));
        let mut first_error = None;
        for owner in listed.await? {
            if let Err(error) = self.sweep_owner(owner, now).await {
                first_error = first_error.or(Some(error));
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Looks through the files of an owner. A publication meanwhile ends it: the next sweep begins anew.
    async fn sweep_owner(&self, owner: FileOwner, now: Timestamp) -> anyhow::Result<()> {
        let of = owner.clone();
        let sites = self.infra.control.read(move |c| store::sites(c, &of));
        let sites = sites.await?;
        let elapsed = self.infra.clock.elapsed();
        self.resting
            .add(owner.clone(), sites.manifests.len(), elapsed);
        let mut named = self.named_files(&sites).await?;
        named.extend(&sites.visitor_files);
        let OwnedSites {
            mut version,
            is_there,
            ..
        } = sites;
        let mut after = None;
        loop {
            let of = owner.clone();
            let files = self
                .infra
                .control
                .read(move |c| store::list_files(c, &of, after, FILES_PER_STEP))
                .await?;
            let is_last = files.len() < FILES_PER_STEP as usize;
            after = files.last().map(|file| file.digest);
            let step = sort(&files, &named, is_there.then_some(now));
            match self
                .apply(owner.clone(), step, version, (is_there, is_last))
                .await?
            {
                Some(next) => version = next,
                None => return Ok(()),
            }
            fault::point("sweep.committed");
            if is_last {
                return Ok(());
            }
        }
    }

    /// Reads which files the revisions of an owner's sites name.
    async fn named_files(&self, sites: &OwnedSites) -> anyhow::Result<HashSet<Digest>> {
        let mut named = HashSet::new();
        for digest in &sites.manifests {
            let form = self.content.get(digest).await?;
            // Without it nothing can be said of the files that it names.
            let form = form.ok_or_else(|| anyhow::anyhow!("manifest {digest} is missing"))?;
            let read = move || SiteManifest::digests_of_canonical(&form);
            let files = tokio::task::spawn_blocking(read).await?;
            let damaged = || anyhow::anyhow!("manifest {digest} is damaged");
            named.extend(files.ok_or_else(damaged)?);
        }
        Ok(named)
    }

    /// Makes the changes of a step, if the owner's files still have the version for which they were found. Returns their next version.
    async fn apply(
        &self,
        owner: FileOwner,
        step: SweepStep,
        version: i64,
        (is_there, is_last): (bool, bool),
    ) -> Result<Option<i64>, control::Error> {
        let now = self.infra.clock.now();
        let waiting = is_there.then_some(now);
        let applied = self.infra.control.write(move |tx| {
            if store::version(tx, &owner)? != version {
                return Ok(None);
            }
            for digest in &step.settled {
                store::settle(tx, &owner, digest, now)?;
            }
            for digest in &step.unnamed {
                store::remove(tx, &owner, digest, waiting, now)?;
            }
            if !step.unnamed.is_empty() {
                store::raise_version(tx, &owner)?;
            }
            if is_last {
                store::finish(tx, &owner, is_there)?;
            }
            Ok(Some(version + i64::from(!step.unnamed.is_empty())))
        });
        applied.await
    }
}

/// Sorts out the files that nothing names. Files of an owner who is gone, with no `now`, wait for nothing.
fn sort(files: &[OwnedFile], named: &HashSet<Digest>, now: Option<Timestamp>) -> SweepStep {
    let mut step = SweepStep::default();
    for file in files {
        let has_waited = match (file.staged_until, now) {
            (Some(until), Some(now)) => until <= now,
            _ => true,
        };
        match (has_waited, named.contains(&file.digest)) {
            (true, false) => step.unnamed.push(file.digest),
            (true, true) if file.staged_until.is_some() => step.settled.push(file.digest),
            _ => {}
        }
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_with_many_manifests_rest() {
        let (resting, now) = (RestingOwners::default(), Duration::from_secs(100));
        let owner = |id: &str| FileOwner::from_row(id.to_owned());
        resting.add(owner("few"), MANY_MANIFESTS, now);
        resting.add(owner("many"), MANY_MANIFESTS + 1, now);
        assert_eq!(resting.list(now), [owner("many")]);
        let last = now + REST.saturating_sub(Duration::from_millis(1));
        assert_eq!(resting.list(last), [owner("many")]);
        assert!(resting.list(now + REST).is_empty());
    }

    #[test]
    fn what_waits_or_is_named_stays() {
        let digest = |number: u8| Digest::of(&[number]);
        let named = HashSet::from([digest(1), digest(2), digest(3)]);
        let files: Vec<OwnedFile> = [
            (1, None),
            (2, Some(10)),
            (3, Some(20)),
            (4, None),
            (5, Some(10)),
            (6, Some(20)),
        ]
        .map(|(number, until)| OwnedFile {
            digest: digest(number),
            staged_until: until.map(Timestamp),
        })
        .into();
        let step = sort(&files, &named, Some(Timestamp(10)));
        assert_eq!(step.settled, [digest(2)]);
        assert_eq!(step.unnamed, [digest(4), digest(5)]);
        let step = sort(&files, &HashSet::new(), None);
        assert_eq!(step.unnamed.len(), 6);
    }
}
