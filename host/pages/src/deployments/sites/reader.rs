//! Bytes of a stored file, read as they are sent.

use std::ops::Range;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};

use super::SiteFile;
use crate::content::{self, ContentStore, Digest, OBJECT_BYTES, ObjectList};

/// Most bytes that are handed on at once.
const STEP_BYTES: usize = 256 << 10;

/// A stored file, which is read one object at a time.
#[derive(Clone, Debug)]
pub struct FileReader {
    store: ContentStore,
    file: SiteFile,
    list: Option<ObjectList>,
}

impl FileReader {
    /// Finds a stored file.
    ///
    /// # Errors
    /// Those of the store; `Damaged` for one that is not there.
    pub async fn open(store: &ContentStore, file: SiteFile) -> Result<Self, content::Error> {
        let list = match file.list {
            None => None,
            Some(digest) => {
                let object = store.get_compared(&digest).await?;
                let list = object.and_then(|object| ObjectList::from_object(&object));
                Some(list.ok_or(content::Error::Damaged(digest))?)
            }
        };
        Ok(Self {
            store: store.clone(),
            file,
            list,
        })
    }

    /// Returns the file's digest.
    pub fn digest(&self) -> Digest {
        self.file.digest
    }

    /// Returns the digests of the objects of a large file.
    pub fn objects(&self) -> Vec<Digest> {
        self.list.as_ref().map_or_else(Vec::new, |list| {
            let parts = list.parts(0..list.bytes());
            parts.map(|part| part.digest).collect()
        })
    }

    /// Returns the file's length.
    pub fn bytes(&self) -> u64 {
        self.file.bytes
    }

    /// Returns the most bytes of the file that are in memory at once while it is read.
    pub fn bytes_in_memory(&self) -> usize {
        usize::try_from(self.file.bytes).map_or(OBJECT_BYTES, |bytes| bytes.min(OBJECT_BYTES))
    }

    /// Reads a range of the file.
    pub fn read(self, range: Range<u64>) -> impl Stream<Item = Result<Bytes, content::Error>> {
        let parts: Vec<(Digest, Range<usize>)> = match &self.list {
            Some(list) => {
                let parts = list.parts(range);
                parts.map(|part| (part.digest, part.range)).collect()
            }
            None => {
                let within = |at: u64| usize::try_from(at).unwrap_or(OBJECT_BYTES);
                vec![(self.file.digest, within(range.start)..within(range.end))]
            }
        };
        let store = self.store;
        let objects = stream::iter(parts).then(move |(digest, range)| {
            let store = store.clone();
            async move {
                let object = store.get_compared(&digest).await?;
                let object = object.filter(|object| range.end <= object.len());
                let object = object.ok_or(content::Error::Damaged(digest))?;
                Ok::<_, content::Error>(object.slice(range))
            }
        });
        objects.map_ok(in_steps).try_flatten()
    }
}

/// Divides bytes, so that each step is sent before the next one is looked at.
fn in_steps(bytes: Bytes) -> impl Stream<Item = Result<Bytes, content::Error>> {
    let count = bytes.len().div_ceil(STEP_BYTES);
    stream::iter((0..count).map(move |number| {
        let from = number * STEP_BYTES;
        Ok(bytes.slice(from..bytes.len().min(from + STEP_BYTES)))
    }))
}
