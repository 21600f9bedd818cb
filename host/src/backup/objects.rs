//! Copying objects between a data directory and a backup.

use std::collections::{BTreeSet, HashMap};
use std::io;

use super::outcome::CopyStats;
use super::{BackupProgressFn, BackupStage};
use crate::content::{self, ContentStore, Digest, ObjectDirectory, ObjectPutError};
use svc_base::fault;

/// Source of objects.
pub(super) enum ObjectSource {
    /// A directory.
    Directory(ObjectDirectory),
    /// A remote store, with the sizes of its objects.
    Store(ContentStore, HashMap<Digest, u64>),
}

impl ObjectSource {
    fn bytes(&self, digest: &Digest) -> io::Result<Option<u64>> {
        match self {
            Self::Directory(shelf) => shelf.bytes(digest),
            Self::Store(_, sizes) => Ok(sizes.get(digest).copied()),
        }
    }
}

/// A copy of objects from a source.
pub(super) struct ObjectCopier<'o> {
    /// Source of the objects.
    pub(super) from: ObjectSource,
    /// Digests of the objects to copy.
    pub(super) wanted: &'o BTreeSet<Digest>,
}

impl ObjectCopier<'_> {
    /// Copies missing objects, and with `thorough` also replaces damaged ones; returns an error line for each object that has no intact
    /// source.
    pub(super) async fn copy_to(
        &self,
        to: &mut ObjectDirectory,
        copied: &mut CopyStats,
        thorough: bool,
        watch: BackupProgressFn<'_>,
    ) -> anyhow::Result<Vec<String>> {
        *copied = CopyStats::default();
        let mut damaged = Vec::new();
        let mut all = 0;
        for digest in self.wanted {
            all += self.from.bytes(digest)?.unwrap_or(0);
        }
        watch(BackupStage::Content, 0, all);
        for digest in self.wanted {
            match self.copy_one(digest, to, thorough).await? {
                Some((bytes, now)) => copied.count(bytes, now),
                None => damaged.push(format!(
                    "object {digest} is missing or damaged at its source"
                )),
            }
            fault::point("backup.object");
            watch(BackupStage::Content, copied.bytes.min(all), all);
        }
        to.sync()?;
        Ok(damaged)
    }

    /// Copies an object if needed; returns its size and whether it was copied now, or `None` if there is no intact one.
    async fn copy_one(
        &self,
        digest: &Digest,
        to: &mut ObjectDirectory,
        thorough: bool,
    ) -> anyhow::Result<Option<(u64, bool)>> {
        let (source, there) = (self.from.bytes(digest)?, to.bytes(digest)?);
        let trusted = there.is_some() && !thorough && (source.is_none() || source == there);
        if trusted || (thorough && to.is_whole(digest)?) {
            to.sync_later(digest);
            return Ok(there.map(|bytes| (bytes, false)));
        }
        let put = match &self.from {
            ObjectSource::Directory(shelf) => shelf.get(digest)?.map(|file| to.put(digest, file)),
            ObjectSource::Store(content, _) => match content.get(digest).await {
                Err(content::Error::Damaged(_)) => Some(Err(ObjectPutError::Damaged)),
                object => object?.map(|bytes| to.put(digest, &*bytes)),
            },
        };
        let Some(put) = put else {
            return Ok(None);
        };
        match put {
            Ok(bytes) => Ok(Some((bytes, true))),
            // The earlier copy may be intact where the source is damaged.
            Err(ObjectPutError::Damaged) if to.is_whole(digest)? => {
                to.sync_later(digest);
                Ok(there.map(|bytes| (bytes, false)))
            }
            Err(ObjectPutError::Damaged) => Ok(None),
            Err(ObjectPutError::Io(error)) => Err(error.into()),
        }
    }
}
