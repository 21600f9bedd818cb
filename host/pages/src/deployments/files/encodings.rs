//! Encodings of text files: made once for a digest, by the workers, behind the publication that names it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt as _;

use super::model::{FileError, FileOwner};
use super::service::ProjectFiles;
use super::store::{self, FileToEncode};
use crate::content::{self, Digest, ObjectPin};
use crate::control;
use crate::deployments::publication::PublishError;
use crate::deployments::sites::{FileReader, MediaType, SiteFile, SiteManifest};
use svc_base::Stopwatch;
use svc_sandbox::CallerFlow;

/// Files whose encodings one transaction stores at most.
const FILES_PER_STEP: u32 = 20;
/// Time after which no more files are begun, so that a server that stops need not wait for all of them.
const MAX_WORK: Duration = Duration::from_secs(1);

/// Encodings of a file, for their transaction.
enum MadeEncodings {
    /// Another project has the file, and its encodings.
    Shared,
    /// They are stored, in so many bytes. While this lives the collector keeps them.
    Stored(ObjectPin, u64),
    /// There are none, because the file cannot be read.
    None,
}

impl ProjectFiles {
    /// Lists the texts of a site whose encodings are neither made nor asked for.
    pub(super) async fn texts_to_encode(
        &self,
        owner: &FileOwner,
        site: &SiteManifest,
    ) -> Result<Vec<Digest>, FileError> {
        let most = self.infra.config.limits.page_bytes;
        let texts = site.files.iter();
        let texts = texts.filter(|(path, file)| MediaType::of(path).is_encoded(file.bytes, most));
        let texts: BTreeSet<Digest> = texts.map(|(_, file)| file.digest).collect();
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let texts: Vec<Digest> = texts.into_iter().collect();
        let (owner, wanted) = (owner.clone(), texts.clone());
        let asked: HashSet<Digest> = self
            .infra
            .control
            .read(move |c| store::find_encoded(c, &owner, &wanted))
            .await?;
        let new = texts.into_iter().filter(|digest| !asked.contains(digest));
        Ok(new.collect())
    }

    /// Makes encodings that publications have asked for, for a short while.
    ///
    /// # Errors
    /// Of the database or the store; the next call goes on.
    pub async fn make_encodings(&self) -> anyhow::Result<()> {
        let spent = Stopwatch::start();
        while spent.elapsed() < MAX_WORK {
            let due = self
                .infra
                .control
                .read(|c| store::list_to_encode(c, FILES_PER_STEP))
                .await?;
            let is_last = due.len() < FILES_PER_STEP as usize;
            let (made, failure) = self.encode_all(due).await;
            if made.is_empty() {
                return failure.map_or(Ok(()), |error| Err(error.into()));
            }
            let now = self.infra.clock.now();
            let stored = self.infra.control.write(move |tx| {
                for (digest, encodings) in &made {
                    match encodings {
                        MadeEncodings::Shared => store::share_encodings(tx, digest, now)?,
                        MadeEncodings::Stored(pin, bytes) => {
                            let object = (pin.digest(), *bytes);
                            store::set_encodings(tx, digest, Some(object), now)?;
                        }
                        MadeEncodings::None => store::set_encodings(tx, digest, None, now)?,
                    }
                }
                Ok::<_, control::Error>(())
            });
            stored.await?;
            if let Some(error) = failure {
                return Err(error.into());
            }
            if is_last {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Makes the encodings of some files, until there is no room or no worker for more, or one fails. Returns also that failure: those
    /// that were made before are stored.
    async fn encode_all(
        &self,
        due: Vec<FileToEncode>,
    ) -> (HashMap<Digest, MadeEncodings>, Option<PublishError>) {
        let mut made = HashMap::with_capacity(due.len());
        for file in due {
            let digest = file.file.digest;
            // Several projects may have asked for those of one file.
            if made.contains_key(&digest) {
                continue;
            }
            // Publications and pages come first.
            let encoding = Box::pin(self.encode(file));
            match CallerFlow::current().preview().scope(encoding).await {
                Ok(encodings) => {
                    made.insert(digest, encodings);
                }
                Err(PublishError::Capacity(_)) => break,
                Err(error) => return (made, Some(error)),
            }
        }
        (made, None)
    }

    async fn encode(&self, due: FileToEncode) -> Result<MadeEncodings, PublishError> {
        if due.is_encoded_elsewhere {
            return Ok(MadeEncodings::Shared);
        }
        let bytes = usize::try_from(due.file.bytes).unwrap_or(usize::MAX);
        let reserved = self.pipeline.reserve(bytes).await?;
        let made = match self.whole_file(due.file).await {
            Ok(text) => {
                let (pin, bytes) = self.pipeline.store_encodings(text).await?;
                MadeEncodings::Stored(pin, bytes)
            }
            Err(content::Error::Damaged(_)) => MadeEncodings::None,
            Err(error) => return Err(error.into()),
        };
        drop(reserved);
        Ok(made)
    }

    /// Reads all of a file. Its bytes are counted by the caller.
    ///
    /// # Errors
    /// Those of the store.
    pub(in crate::deployments) async fn whole_file(
        &self,
        file: SiteFile,
    ) -> Result<Bytes, content::Error> {
        let bytes = file.bytes;
        let reader = FileReader::open(&self.content, file).await?;
        let capacity = usize::try_from(bytes).unwrap_or_default();
        let gathered = BytesMut::with_capacity(capacity);
        let gathered = reader
            .read(0..bytes)
            .try_fold(gathered, async |mut all, part| {
                all.extend_from_slice(&part);
                Ok(all)
            });
        Ok(gathered.await?.freeze())
    }
}
