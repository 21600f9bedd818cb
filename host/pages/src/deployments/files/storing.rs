//! Storing and opening files, but for those that the operator has blocked.

use std::sync::Arc;

use bytes::Bytes;

use super::model::{FileError, NewSite, NewSiteFile};
use super::service::ProjectFiles;
use super::uploads::{HeldBytes, ReceivedFile};
use crate::content::{Digest, FileWriter, StoredFile};
use crate::deployments::blocked::{BlockedContent, ContentBlocked};
use crate::deployments::publication::PublishError;
use crate::deployments::sites::{FileReader, SiteFile};

/// Path and bytes of a file of a site, and the file if it was stored for it.
pub(super) type FileOfSite = (String, SiteFile, Option<Arc<ReceivedFile>>);

impl ProjectFiles {
    /// Refuses a file that the operator has blocked.
    pub(super) async fn refuse_blocked(&self, digest: &Digest) -> Result<(), FileError> {
        let blocked = self.pipeline.blocked();
        blocked.load().await?;
        Ok(blocked.check([digest])?)
    }

    /// Refuses a file that is kept already, where the operator has blocked a part of it.
    pub(super) async fn refuse_blocked_parts(&self, kept: SiteFile) -> Result<(), FileError> {
        let reader = FileReader::open(&self.content, kept).await?;
        Ok(self.pipeline.blocked().check(&reader.objects())?)
    }

    /// Stores the rest of a file, unless the operator has blocked it or a part of it.
    pub(super) async fn finish_file(
        &self,
        writer: &mut FileWriter,
    ) -> Result<StoredFile, FileError> {
        self.refuse_blocked(&writer.digest()).await?;
        let file = writer.finish().await?;
        let objects = file.stored_objects();
        if let Err(blocked) = self.pipeline.blocked().check(&objects) {
            self.forget(objects).await?;
            return Err(blocked.into());
        }
        Ok(file)
    }

    /// Returns the files of a site; where one could not be stored, marks those that were.
    pub(super) async fn give_up_unless_all(
        &self,
        files: Vec<Result<FileOfSite, FileError>>,
    ) -> Result<Vec<FileOfSite>, FileError> {
        let (mut all, mut failure) = (Vec::with_capacity(files.len()), None);
        for file in files {
            match file {
                Ok(file) => all.push(file),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        let Some(failure) = failure else {
            return Ok(all);
        };
        let stored = all.iter().filter_map(|(_, _, stored)| stored.as_deref());
        self.forget(give_up_files(stored)).await?;
        Err(failure)
    }

    /// Stores a file that was sent with a request.
    pub(super) async fn store_inline(
        &self,
        path: &str,
        bytes: Bytes,
        held: HeldBytes,
    ) -> Result<ReceivedFile, FileError> {
        held.grow(bytes.len() as u64)?;
        let mut writer = FileWriter::new(&self.content);
        let stored = match writer.write(bytes).await {
            Ok(()) => self.finish_file(&mut writer).await,
            Err(error) => Err(error.into()),
        };
        if stored.is_err() {
            held.give_up();
            self.forget(writer.stored_objects()).await?;
        }
        let stored = stored.map(|file| ReceivedFile { file, held });
        stored.map_err(|error| match error {
            FileError::Publish(PublishError::Blocked(blocked)) => {
                let path = Some(path.to_owned());
                ContentBlocked { path, ..blocked }.into()
            }
            error => error,
        })
    }

    /// Opens a stored file.
    ///
    /// # Errors
    /// `Disabled` where the operator has blocked it; those of the store.
    pub(in crate::deployments) async fn open(
        &self,
        file: SiteFile,
    ) -> Result<FileReader, FileError> {
        let blocked = self.pipeline.blocked();
        blocked.load().await?;
        let reader = FileReader::open(&self.content, file).await?;
        let named = [&file.digest].into_iter().chain(&file.list);
        match blocked.find(named.chain(&reader.objects())) {
            None => Ok(reader),
            Some(_) => Err(FileError::Disabled),
        }
    }
}

/// Has files be given up; returns the objects that were stored for them, to be marked.
pub(super) fn give_up_files<'f>(files: impl Iterator<Item = &'f ReceivedFile>) -> Vec<Digest> {
    let given_up = files.inspect(|stored| stored.held.give_up());
    given_up
        .flat_map(|stored| stored.file.stored_objects())
        .collect()
}

impl NewSite {
    /// Refuses files that the operator has blocked, as far as their digests are known.
    pub(super) fn check_allowed(&self, blocked: &BlockedContent) -> Result<(), ContentBlocked> {
        for (path, file) in &self.files {
            let (digest, list) = match file {
                NewSiteFile::Named(digest, _) => (digest, None),
                NewSiteFile::Kept(file) => (&file.digest, file.list.as_ref()),
                NewSiteFile::Stored(stored) => (&stored.file.digest, None),
                NewSiteFile::Inline(_) => continue,
            };
            if let Some(digest) = blocked.find([digest].into_iter().chain(list)) {
                let path = Some(path.clone());
                return Err(ContentBlocked { digest, path });
            }
        }
        Ok(())
    }
}
