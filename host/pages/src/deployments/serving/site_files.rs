//! Files of sites in memory: each by its digest, however many sites have it; a text, which has encodings, for its site alone. So nobody
//! is told by an encoding that another project has the same text.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwapOption, Guard};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};

use super::memory_answer::ComposedHeaders;
use super::page_cache::CacheKey;
use super::{PageLookupError, PageService, RawSource};
use crate::content::{Digest, EncodedPage, Encoding, gzip_as_stored};
use crate::deployments::sites::SiteFile;
use crate::deployments::store;
use crate::http::document;
use svc_base::ids::DeploymentId;

/// Time after which a text without encodings is looked at again: they are made behind its publication.
const ENCODINGS_LOOKED_FOR_AFTER: Duration = Duration::from_secs(1);

/// A file ready to be served.
#[derive(Debug)]
pub(super) struct ServedFile {
    /// Encodings in the server's order of preference, identity last; of a large file only those that are made.
    variants: Vec<FileVariant>,
    /// Moment from which it is loaded again, because its encodings may be made by then.
    old_at: Option<Duration>,
    /// Headers of the newest answer.
    composed: ArcSwapOption<ComposedHeaders>,
}

/// One encoding of a file.
#[derive(Debug)]
pub(super) struct FileVariant {
    /// How it is encoded.
    pub(super) encoding: Encoding,
    /// Strong entity tag.
    pub(super) etag: HeaderValue,
    /// Bytes of the encoding.
    pub(super) bytes: Bytes,
}

impl FileVariant {
    fn new(digest: &Digest, encoding: Encoding, bytes: Bytes) -> Self {
        Self {
            encoding,
            etag: document::etag(digest, encoding),
            bytes,
        }
    }
}

impl ServedFile {
    fn new(variants: Vec<FileVariant>, old_at: Option<Duration>) -> Self {
        Self {
            variants,
            old_at,
            composed: ArcSwapOption::empty(),
        }
    }

    /// Returns the headers that were kept last.
    pub(super) fn composed(&self) -> Guard<Option<Arc<ComposedHeaders>>> {
        self.composed.load()
    }

    /// Keeps headers in place of the last ones.
    pub(super) fn keep_composed(&self, headers: ComposedHeaders) {
        self.composed.store(Some(Arc::new(headers)));
    }

    /// Returns about how many bytes this takes in memory.
    pub(super) fn memory(&self) -> u64 {
        let variants = self.variants.iter();
        variants.map(|variant| variant.bytes.len() as u64).sum()
    }

    /// Returns the variant that a client prefers; none where that is the bytes of a large file. A part of a file is a part of its own bytes.
    pub(super) fn variant(&self, request: &HeaderMap) -> Option<&FileVariant> {
        let is_identity = |variant: &&FileVariant| variant.encoding == Encoding::Identity;
        let own = self.variants.last().filter(is_identity);
        if request.contains_key(header::RANGE) {
            return own;
        }
        // Identity is the last choice of the server, whether it is here or is read as it is sent.
        let here = self.variants.iter().map(Some);
        let offered = here.chain(own.is_none().then_some(None));
        let chosen = document::preferred_variant(offered, request, |it| {
            it.map_or(Encoding::Identity, |it| it.encoding)
        });
        chosen.flatten()
    }
}

impl PageService {
    /// Returns a file of a site, if it is in memory; see [`PageService::served_file`].
    pub(super) fn file_in_memory(
        &self,
        file: &SiteFile,
        text_of: Option<DeploymentId>,
    ) -> Option<Arc<ServedFile>> {
        let is_new = |served: &ServedFile| {
            let now = || self.infra.clock.elapsed();
            served.old_at.is_none_or(|old_at| now() < old_at)
        };
        self.pages.file(&file.digest, text_of, is_new)
    }

    /// Returns a file of a site, from memory or loaded into it. A text, for the site that it is of, has encodings; of a large file there
    /// is nothing else.
    ///
    /// # Errors
    /// [`PageLookupError`].
    pub(super) async fn served_file(
        &self,
        file: SiteFile,
        text_of: Option<DeploymentId>,
    ) -> Result<Arc<ServedFile>, PageLookupError> {
        if let Some(served) = self.file_in_memory(&file, text_of) {
            return Ok(served);
        }
        let digest = file.digest;
        let load = self.load_file(file, text_of);
        let loaded = Box::pin(self.pages.load(CacheKey::File(digest, text_of), load)).await;
        // Only its encodings were looked for.
        let kept = || self.pages.file(&digest, text_of, |_| true);
        loaded.or_else(|error| kept().ok_or(error))
    }

    async fn load_file(
        &self,
        file: SiteFile,
        text_of: Option<DeploymentId>,
    ) -> Result<Arc<ServedFile>, PageLookupError> {
        let digest = file.digest;
        let encoded = match text_of {
            Some(site) => self.load_encodings(site, digest).await?,
            None => None,
        };
        if let Some(encoded) = encoded {
            let variants = encoded.variants.into_iter();
            let variants =
                variants.map(|variant| FileVariant::new(&digest, variant.encoding, variant.bytes));
            let mut variants: Vec<FileVariant> = variants.collect();
            if file.list.is_none() {
                variants.extend(self.load_small_file(digest, false).await?);
            }
            return Ok(Arc::new(ServedFile::new(variants, None)));
        }
        let is_text = text_of.is_some();
        let variants = match file.list {
            None => self.load_small_file(digest, is_text).await?,
            Some(_) => Vec::new(),
        };
        let old_at = self.infra.clock.elapsed() + ENCODINGS_LOOKED_FOR_AFTER;
        let file = ServedFile::new(variants, is_text.then_some(old_at));
        Ok(Arc::new(file))
    }

    /// Loads the encodings of a text of a site, if they are made.
    async fn load_encodings(
        &self,
        site: DeploymentId,
        text: Digest,
    ) -> Result<Option<EncodedPage>, PageLookupError> {
        let found = self
            .infra
            .control
            .read(move |c| store::find_encodings(c, &site, &text));
        let Some(encoded) = found.await.map_err(anyhow::Error::from)? else {
            return Ok(None);
        };
        // The site may have ended since: then it is served as it is.
        let object = self.read_object(&encoded).await?;
        Ok(object.as_ref().and_then(EncodedPage::encodings_from_object))
    }

    /// Loads a file that is one object; a text also in an encoding that is made at once, if a worker is free. Its tag is that of the
    /// stored one, which has the same bytes.
    async fn load_small_file(
        &self,
        digest: Digest,
        is_text: bool,
    ) -> Result<Vec<FileVariant>, PageLookupError> {
        let bytes = self.read_object(&digest).await?;
        let bytes = bytes.ok_or_else(|| anyhow::anyhow!("file {digest} is missing"))?;
        let mut variants = Vec::with_capacity(2);
        if is_text {
            let source = RawSource {
                digest,
                encoding: Encoding::Identity,
                bytes: bytes.clone(),
            };
            let encoded = self.gzip_source(source, gzip_as_stored).await;
            let encoded = encoded
                .ok()
                .filter(|encoded| encoded.bytes.len() < bytes.len());
            variants.extend(
                encoded.map(|encoded| FileVariant::new(&digest, encoded.encoding, encoded.bytes)),
            );
        }
        variants.push(FileVariant::new(&digest, Encoding::Identity, bytes));
        Ok(variants)
    }
}
