//! Files of sites in memory: each in its encodings, by its digest, however many sites have it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};

use super::page_cache::CacheKey;
use super::{PageLookupError, PageService, RawSource};
use crate::content::{Digest, EncodedPage, Encoding};
use crate::deployments::sites::SiteFile;
use crate::deployments::store;
use crate::http::document;

/// Time after which a text without encodings is looked at again: they are made behind its publication.
const ENCODINGS_LOOKED_FOR_AFTER: Duration = Duration::from_secs(5);

/// A file ready to be served.
#[derive(Debug)]
pub(super) struct ServedFile {
    /// Encodings in the server's order of preference, identity last; none of a large file whose encodings are not made.
    variants: Vec<FileVariant>,
    /// Moment from which it is loaded again, because its encodings may be made by then.
    old_at: Option<Duration>,
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
    /// Returns about how many bytes this takes in memory.
    pub(super) fn memory(&self) -> u64 {
        let variants = self.variants.iter();
        variants.map(|variant| variant.bytes.len() as u64).sum()
    }

    /// Returns the variant that a client prefers. A part of a file is a part of its own bytes.
    pub(super) fn variant(&self, request: &HeaderMap) -> Option<&FileVariant> {
        match request.contains_key(header::RANGE) {
            true => self.variants.last(),
            false => {
                document::preferred_variant(&self.variants, request, |variant| variant.encoding)
            }
        }
    }
}

impl PageService {
    /// Returns a file of a site, from memory or loaded into it. A text has encodings; of a large file there is nothing else.
    ///
    /// # Errors
    /// [`PageLookupError`].
    pub(super) async fn served_file(
        &self,
        file: SiteFile,
        is_text: bool,
    ) -> Result<Arc<ServedFile>, PageLookupError> {
        let is_new = |served: &ServedFile| {
            let now = || self.infra.clock.elapsed();
            served.old_at.is_none_or(|old_at| now() < old_at)
        };
        match self.pages.file(&file.digest, is_text, is_new) {
            Some(served) => Ok(served),
            None => {
                let load = self.load_file(file, is_text);
                let key = CacheKey::File(file.digest, is_text);
                Box::pin(self.pages.load(key, load)).await
            }
        }
    }

    async fn load_file(
        &self,
        file: SiteFile,
        is_text: bool,
    ) -> Result<Arc<ServedFile>, PageLookupError> {
        let digest = file.digest;
        if is_text && let Some(encoded) = self.load_encodings(&digest).await? {
            let variants = encoded.variants.into_iter();
            let variants =
                variants.map(|variant| FileVariant::new(&digest, variant.encoding, variant.bytes));
            return Ok(Arc::new(ServedFile {
                variants: variants.collect(),
                old_at: None,
            }));
        }
        let variants = match file.list {
            None => self.load_small_file(digest, is_text).await?,
            Some(_) => Vec::new(),
        };
        let old_at = self.infra.clock.elapsed() + ENCODINGS_LOOKED_FOR_AFTER;
        Ok(Arc::new(ServedFile {
            variants,
            old_at: is_text.then_some(old_at),
        }))
    }

    /// Loads the encodings of a text, if they are made.
    async fn load_encodings(
        &self,
        digest: &Digest,
    ) -> Result<Option<EncodedPage>, PageLookupError> {
        let of = *digest;
        let found = self
            .infra
            .control
            .read(move |c| store::find_encodings(c, &of));
        let Some(encoded) = found.await.map_err(anyhow::Error::from)? else {
            return Ok(None);
        };
        // The last site with the file may have ended since: then it is served as it is.
        let object = self.read_object(&encoded).await?;
        Ok(object.as_ref().and_then(EncodedPage::from_object))
    }

    /// Loads a file that is one object; a text also in an encoding that is made at once, if a worker is free.
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
            let encoded = self.encode_source(source, Encoding::Gzip).await;
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
