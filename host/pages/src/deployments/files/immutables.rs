//! Immutable files: a site's new ones are compared with those that were live before anything is stored, and once more, by one digest,
//! in the transaction that makes them live.
//!
//! The files that were live are one object a site (`sites/immutables.rs`), which the row of the site names. A draft keeps the object that it
//! was compared with, and the one that takes its place when the draft is live, so that a release swaps two digests, whatever the files. If
//! the site's object is another one by then, the draft is compared anew. What was live once needs no comparison: its files are in the
//! object, and an object is only ever replaced by one with more in it.

use bytes::Bytes;

use super::model::{FileError, NewSite, NewSiteFile};
use super::service::ProjectFiles;
use super::store;
use crate::content::{Digest, ObjectPin};
use crate::control::{self, Tx};
use crate::deployments::publication::PublishError;
use crate::deployments::sites::{ImmutableChange, ImmutableFiles, SiteManifest};
use crate::deployments::store::mark_garbage;
use svc_base::clock::Timestamp;
use svc_base::ids::{DeploymentId, RevisionId};

/// Immutable files of a site that were compared with those that were live, stored. While this lives the collector keeps the object.
#[derive(Debug)]
pub(in crate::deployments) struct JudgedImmutables {
    /// Object that they were compared with; none where nothing was live.
    base: Option<Digest>,
    /// Object with them in it.
    next: ObjectPin,
    /// Bytes of that object.
    pub(super) bytes: u64,
}

/// Immutable files of a site that were compared with those that were live; nothing is stored yet.
#[derive(Debug)]
pub(super) struct ComparedImmutables {
    base: Option<Digest>,
    object: Bytes,
}

/// Digests of a comparison, as rows have them.
#[derive(Clone, Copy, Debug)]
pub(in crate::deployments) struct ImmutableVerdict {
    /// Object that the files were compared with.
    base: Option<Digest>,
    /// Object with them in it.
    next: Digest,
}

/// Immutable file of a site, before it is stored.
enum JudgedFile {
    Known(Digest),
    Sent(Bytes),
}

impl JudgedImmutables {
    /// Returns the digest of the object with them in it.
    pub(in crate::deployments) fn object(&self) -> Digest {
        self.next.digest()
    }

    /// Returns the digests, which rows may name for as long as this lives.
    pub(in crate::deployments) fn verdict(&self) -> ImmutableVerdict {
        ImmutableVerdict {
            base: self.base,
            next: self.next.digest(),
        }
    }
}

impl From<ImmutableChange> for FileError {
    fn from(ImmutableChange(paths): ImmutableChange) -> Self {
        Self::ImmutableChanged(paths)
    }
}

impl ProjectFiles {
    /// Compares the immutable files of a new site with those that were live; `None` for a site without.
    ///
    /// # Errors
    /// `ImmutableChanged`.
    pub(super) async fn compare_immutables(
        &self,
        deployment: Option<DeploymentId>,
        new: &NewSite,
    ) -> Result<Option<ComparedImmutables>, FileError> {
        let files = new.files.iter();
        let files = files.filter(|(path, _)| new.options.is_immutable(path));
        let files = files.map(|(path, file)| (path.clone(), JudgedFile::of(file)));
        self.compare_files(deployment, files.collect()).await
    }

    /// Stores the list of a site's immutable files.
    pub(super) async fn store_immutables(
        &self,
        compared: Option<ComparedImmutables>,
    ) -> Result<Option<JudgedImmutables>, FileError> {
        let Some(ComparedImmutables { base, object }) = compared else {
            return Ok(None);
        };
        Ok(Some(JudgedImmutables {
            base,
            bytes: object.len() as u64,
            next: self.content.put(object).await?,
        }))
    }

    /// Compares the immutable files of a stored revision with those that were live; `None` for a revision without.
    ///
    /// # Errors
    /// `ImmutableChanged`.
    pub(in crate::deployments) async fn judge_stored(
        &self,
        deployment: DeploymentId,
        manifest: Digest,
    ) -> Result<Option<JudgedImmutables>, FileError> {
        let SiteManifest { files, options, .. } = self.manifest(manifest).await?;
        let files = files.into_iter();
        let files = files.filter(|(path, _)| options.is_immutable(path));
        let files = files.map(|(path, file)| (path, JudgedFile::Known(file.digest)));
        let compared = self
            .compare_files(Some(deployment), files.collect())
            .await?;
        self.store_immutables(compared).await
    }

    async fn compare_files(
        &self,
        deployment: Option<DeploymentId>,
        files: Vec<(String, JudgedFile)>,
    ) -> Result<Option<ComparedImmutables>, FileError> {
        if files.is_empty() {
            return Ok(None);
        }
        let base = match deployment {
            Some(id) => {
                self.infra
                    .control
                    .read(move |c| store::live_immutables(c, &id))
                    .await?
            }
            None => None,
        };
        let live = match base {
            Some(digest) => self.content.get(&digest).await?,
            None => Some(Bytes::new()),
        };
        let judged = tokio::task::spawn_blocking(move || {
            let live = live.as_deref().and_then(ImmutableFiles::from_object);
            let files: Vec<(String, Digest)> = files
                .into_iter()
                .map(|(path, file)| (path, file.digest()))
                .collect();
            let files = files.iter().map(|(path, digest)| (path.as_str(), *digest));
            live.map(|live| live.with(files).map(|all| all.to_object()))
        });
        let judged = judged.await.map_err(|error| internal(error.into()))?;
        let missing = || internal(anyhow::anyhow!("the list of immutable files is missing"));
        let object: Result<Vec<u8>, ImmutableChange> = judged.ok_or_else(missing)?;
        Ok(Some(ComparedImmutables {
            base,
            object: object?.into(),
        }))
    }
}

fn internal(error: anyhow::Error) -> FileError {
    PublishError::Internal(error).into()
}

impl JudgedFile {
    fn of(file: &NewSiteFile) -> Self {
        match file {
            NewSiteFile::Inline(bytes) => Self::Sent(bytes.clone()),
            NewSiteFile::Named(digest, _) => Self::Known(*digest),
            NewSiteFile::Kept(file) => Self::Known(file.digest),
            NewSiteFile::Stored(stored) => Self::Known(stored.file.digest),
        }
    }

    fn digest(self) -> Digest {
        match self {
            Self::Known(digest) => digest,
            Self::Sent(bytes) => Digest::of(&bytes),
        }
    }
}

/// Has a site's row name the object with immutable files that become live, if it names the one that they were compared with.
///
/// # Errors
/// `ImmutablesMoved`.
pub(super) fn make_live(
    tx: &Tx<'_>,
    deployment: &DeploymentId,
    verdict: ImmutableVerdict,
    now: Timestamp,
) -> Result<(), FileError> {
    let ImmutableVerdict { base, next } = verdict;
    let live = store::live_immutables(tx, deployment).map_err(control::Error::from)?;
    if live == Some(next) {
        return Ok(());
    }
    if live != base {
        return Err(FileError::ImmutablesMoved);
    }
    store::set_live_immutables(tx, deployment, &next)?;
    match base {
        Some(replaced) => Ok(mark_garbage(tx, &replaced, now)?),
        None => Ok(()),
    }
}

/// Has the row of a draft name what its immutable files were compared with. One that is no draft any more keeps nothing.
pub(super) fn keep_verdict(
    tx: &Tx<'_>,
    draft: &RevisionId,
    verdict: ImmutableVerdict,
    now: Timestamp,
) -> Result<(), control::Error> {
    forget_verdict(tx, draft, now)?;
    store::set_draft_immutables(tx, draft, verdict.base, verdict.next)?;
    // Collected unless something names it.
    mark_garbage(tx, &verdict.next, now)
}

fn forget_verdict(
    tx: &Tx<'_>,
    revision: &RevisionId,
    now: Timestamp,
) -> Result<(), control::Error> {
    match store::take_draft_immutables(tx, revision)? {
        Some(digest) => mark_garbage(tx, &digest, now),
        None => Ok(()),
    }
}

/// Adds the immutable files of a stored revision to those that were live, inside the transaction that releases it: by the comparison
/// that was made just now, or else by the one that the draft keeps. What was live once is among them.
///
/// # Errors
/// `ImmutablesMoved` if others became live since they were compared.
pub(in crate::deployments) fn release(
    tx: &Tx<'_>,
    (deployment, revision): (&DeploymentId, &RevisionId),
    judged: Option<ImmutableVerdict>,
    now: Timestamp,
) -> Result<(), FileError> {
    let kept = store::draft_immutables(tx, revision).map_err(control::Error::from)?;
    let Some((base, next)) = kept else {
        return Ok(());
    };
    let kept = ImmutableVerdict { base, next };
    make_live(tx, deployment, judged.unwrap_or(kept), now)?;
    Ok(forget_verdict(tx, revision, now)?)
}
