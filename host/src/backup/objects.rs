//! Copying objects between a data directory and a backup.

use std::collections::BTreeSet;

use super::outcome::Copied;
use super::{Stage, Watch};
use crate::content::{Digest, PutError, Shelf};
use svc_base::fault;

/// Objects to copy.
pub(super) struct Objects<'o> {
    /// Where they are.
    pub(super) from: Shelf,
    /// Digests to copy.
    pub(super) wanted: &'o BTreeSet<Digest>,
}

impl Objects<'_> {
    /// Copies what is not there yet, and if `thorough` what is there and not whole; answers of which there is
    /// no whole one.
    pub(super) fn copy_to(
        &self,
        to: &mut Shelf,
        copied: &mut Copied,
        thorough: bool,
        watch: Watch<'_>,
    ) -> anyhow::Result<Vec<String>> {
        *copied = Copied::default();
        let mut damaged = Vec::new();
        let mut all = 0;
        for digest in self.wanted {
            all += self.from.bytes(digest)?.unwrap_or(0);
        }
        watch(Stage::Content, 0, all);
        for digest in self.wanted {
            match self.copy_one(digest, to, thorough)? {
                Some((bytes, now)) => copied.count(bytes, now),
                None => damaged.push(format!(
                    "object {digest} is missing or damaged at its source"
                )),
            }
            fault::point("backup.object");
            watch(Stage::Content, copied.bytes.min(all), all);
        }
        to.sync()?;
        Ok(damaged)
    }

    /// Answers how many bytes an object has and whether they were copied now; `None` if there is no whole one.
    fn copy_one(
        &self,
        digest: &Digest,
        to: &mut Shelf,
        thorough: bool,
    ) -> anyhow::Result<Option<(u64, bool)>> {
        let (source, there) = (self.from.bytes(digest)?, to.bytes(digest)?);
        let trusted = there.is_some() && !thorough && (source.is_none() || source == there);
        if trusted || (thorough && to.is_whole(digest)?) {
            to.rely_on(digest);
            return Ok(there.map(|bytes| (bytes, false)));
        }
        let Some(object) = self.from.get(digest)? else {
            return Ok(None);
        };
        match to.put(digest, object) {
            Ok(bytes) => Ok(Some((bytes, true))),
            // Damage at the source need not be damage here.
            Err(PutError::Damaged) if to.is_whole(digest)? => {
                to.rely_on(digest);
                Ok(there.map(|bytes| (bytes, false)))
            }
            Err(PutError::Damaged) => Ok(None),
            Err(PutError::Io(error)) => Err(error.into()),
        }
    }
}
