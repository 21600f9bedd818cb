//! Model of a project's files.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;

use super::uploads::ReceivedFile;
use crate::content::Digest;
use crate::control;
use crate::deployments::blocked::ContentBlocked;
use crate::deployments::publication::PublishError;
use crate::deployments::sites::{SiteFile, SiteOptions};
use svc_base::ids::{DeploymentId, ProjectId};

/// Bytes of a file as they arrive.
pub trait FileBytes: Send {
    /// Reason why no more bytes come.
    type Error: From<FileError> + Send;

    /// Returns the next bytes; `None` after the last. `kept` of those before are still in memory.
    fn next(
        &mut self,
        kept: usize,
    ) -> impl Future<Output = Result<Option<Bytes>, Self::Error>> + Send;
}

/// Reason why a file was not stored.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The project has ended.
    #[error("the project is gone")]
    NotFound,
    /// The text is no SHA-256.
    #[error("this is no SHA-256")]
    InvalidDigest,
    /// The bytes are others than those that the digest names.
    #[error("the bytes are not those that the SHA-256 names")]
    DigestMismatch,
    /// The file is larger than the plan allows.
    #[error("a file has {0} bytes at most")]
    TooLarge(u64),
    /// The project's files would take more than the plan allows.
    #[error("the files take {used} bytes, and {limit} is the most")]
    StorageFull {
        /// Bytes of the files that the project has.
        used: u64,
        /// Most bytes that they may have.
        limit: u64,
    },
    /// The project has no files of these digests.
    #[error("the project does not have {} of the files", .0.len())]
    Missing(Vec<Digest>),
    /// A file has another length than the request says.
    #[error("the file `{0}` has another length")]
    SizeMismatch(String),
    /// The site has more files than the plan allows.
    #[error("a site has {0} files at most")]
    TooManyFiles(u64),
    /// The site's files have more bytes than the plan allows.
    #[error("the files of a site have {0} bytes at most")]
    SiteTooLarge(u64),
    /// The site has no files.
    #[error("a site has one file at least")]
    NoFiles,
    /// The options name a file that the site does not have.
    #[error("the site has no file `{0}`")]
    NoSuchFallback(String),
    /// The site would have other bytes at immutable paths that were live.
    #[error("{} immutable files have other bytes", .0.len())]
    ImmutableChanged(Vec<String>),
    /// Other immutable files became live since the site was compared with those that were.
    #[error("other immutable files became live meanwhile")]
    ImmutablesMoved,
    /// The files of all projects would take more than the installation allows.
    #[error("the files of all projects take all room that they may")]
    InstallationFull,
    /// The operator has blocked the bytes that are to be read.
    #[error("the operator has blocked these bytes")]
    Disabled,
    /// Another reason for which nothing is published.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

impl From<ContentBlocked> for FileError {
    fn from(blocked: ContentBlocked) -> Self {
        Self::Publish(blocked.into())
    }
}

impl From<control::Error> for FileError {
    fn from(error: control::Error) -> Self {
        Self::Publish(error.into())
    }
}

impl From<crate::content::Error> for FileError {
    fn from(error: crate::content::Error) -> Self {
        Self::Publish(error.into())
    }
}

/// Owner of files: a project, or a quick share, which has them for itself until it is claimed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileOwner(String);

impl FileOwner {
    /// Reads an owner that a row names.
    pub(super) fn from_row(id: String) -> Self {
        Self(id)
    }

    /// Returns the id as rows have it.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&ProjectId> for FileOwner {
    fn from(id: &ProjectId) -> Self {
        Self(id.to_string())
    }
}

impl From<&DeploymentId> for FileOwner {
    fn from(id: &DeploymentId) -> Self {
        Self(id.to_string())
    }
}

/// File of a site that is about to be published.
#[derive(Clone, Debug)]
pub enum NewSiteFile {
    /// Bytes that are sent with the request.
    Inline(Bytes),
    /// File that the project has, with the length that the request says.
    Named(Digest, Option<u64>),
    /// File of the revision that the new one is made from.
    Kept(SiteFile),
    /// File that was stored for this publication.
    Stored(Arc<ReceivedFile>),
}

/// Files and options of a site that is about to be published. The paths keep their rules.
#[derive(Clone, Debug)]
pub struct NewSite {
    /// Files by their paths.
    pub files: BTreeMap<String, NewSiteFile>,
    /// Options of the site.
    pub options: SiteOptions,
    /// Paths of files that are deleted by name.
    pub deleted: BTreeSet<String>,
}

/// Title of a site that is about to be published.
#[derive(Clone, Debug)]
pub enum SiteTitle {
    /// The title is given.
    Given(String),
    /// The title is that of the start page, or else this one.
    OfStartPage(String),
}

/// Room for the files of an owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileRoom {
    /// Most bytes of the owner's files.
    pub(super) owner: u64,
    /// Most bytes of all owners' files.
    pub(super) all: u64,
}

/// Bytes that files take.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileUsage {
    /// Bytes of one owner's.
    pub(super) owner: u64,
    /// Bytes of all owners'.
    pub(super) all: u64,
}

impl FileRoom {
    /// Refuses more bytes than there is room for.
    pub(super) fn check(self, used: FileUsage, more: u64) -> Result<(), FileError> {
        if used.owner.saturating_add(more) > self.owner {
            return Err(FileError::StorageFull {
                used: used.owner,
                limit: self.owner,
            });
        }
        match used.all.saturating_add(more) > self.all {
            true => Err(FileError::InstallationFull),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_byte_fits_and_no_more() {
        let room = FileRoom { owner: 10, all: 20 };
        let used = |owner, all| FileUsage { owner, all };
        room.check(used(9, 9), 1).unwrap();
        let full = room.check(used(9, 9), 2);
        assert!(matches!(
            full,
            Err(FileError::StorageFull { used: 9, limit: 10 })
        ));
        let full = room.check(used(0, 20), 1);
        assert!(matches!(full, Err(FileError::InstallationFull)));
    }
}
