//! Large files of sites, which are read object by object as they are sent. Readers of one file share its objects.

use std::sync::Arc;

use bytes::Bytes;

use super::page_cache::PageCache;
use super::{PageLookupError, PageService};
use crate::content::{ContentStore, Digest};
use crate::deployments::blocked::BlockedContent;
use crate::deployments::sites::{FileReader, ObjectSource, SiteFile};

/// Objects of a large file, as one answer reads them.
#[derive(Clone, Debug)]
pub(super) struct ServedObjects {
    file: SiteFile,
    content: ContentStore,
    blocked: BlockedContent,
    pages: Arc<PageCache>,
}

impl ObjectSource for ServedObjects {
    type Error = PageLookupError;

    async fn read_object(&self, digest: Digest) -> Result<Bytes, PageLookupError> {
        // The operator may have blocked it since the answer began.
        let named = [&digest, &self.file.digest].into_iter();
        if self.blocked.find(named.chain(&self.file.list)).is_some() {
            return Err(PageLookupError::Disabled);
        }
        let reading = self.content.read_object(digest);
        Ok(self.pages.object(digest, reading).await?)
    }
}

impl PageService {
    /// Opens a file of a site that is read as it is sent.
    ///
    /// # Errors
    /// [`PageLookupError`].
    pub(super) async fn open_file(
        &self,
        file: SiteFile,
    ) -> Result<FileReader<ServedObjects>, PageLookupError> {
        let objects = ServedObjects {
            file,
            content: self.content.clone(),
            blocked: self.blocked.clone(),
            pages: Arc::clone(&self.pages),
        };
        let reader = FileReader::open(&objects, file).await?;
        if !self.blocked.is_empty() {
            self.check_allowed(&reader.objects())?;
        }
        Ok(reader)
    }
}
