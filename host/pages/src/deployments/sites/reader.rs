//! Bytes of a stored file, read as they are sent.

use std::ops::Range;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};

use super::SiteFile;
use crate::content::{self, ContentStore, Digest, OBJECT_BYTES, ObjectList};

/// Most bytes that are handed on at once.
const STEP_BYTES: usize = 256 << 10;
/// Objects of a large file that are in memory at once: the end of one may be on its way to the client while the next one is read.
const OBJECTS_IN_MEMORY: usize = 2;

/// Source of the objects of files: the store, or what is in front of it.
pub trait ObjectSource: Clone + Send + Sync + 'static {
    /// Error of a read.
    type Error: From<content::Error> + Send;

    /// Reads an object, compared with its digest; one that is not there is damaged.
    fn read_object(
        &self,
        digest: Digest,
    ) -> impl Future<Output = Result<Bytes, Self::Error>> + Send;
}

impl ObjectSource for ContentStore {
    type Error = content::Error;

    async fn read_object(&self, digest: Digest) -> Result<Bytes, content::Error> {
        let object = self.get_compared(&digest).await?;
        object.ok_or(content::Error::Damaged(digest))
    }
}

/// A stored file, which is read one object at a time.
#[derive(Clone, Debug)]
pub struct FileReader<S = ContentStore> {
    source: S,
    file: SiteFile,
    list: Option<ObjectList>,
}

impl<S: ObjectSource> FileReader<S> {
    /// Finds a stored file.
    ///
    /// # Errors
    /// Those of the source; `Damaged` for one that is not there.
    pub async fn open(source: &S, file: SiteFile) -> Result<Self, S::Error> {
        let list = match file.list {
            None => None,
            Some(digest) => {
                let object = source.read_object(digest).await?;
                let list = ObjectList::from_object(&object);
                Some(list.ok_or(content::Error::Damaged(digest))?)
            }
        };
        Ok(Self {
            source: source.clone(),
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
        let most = OBJECTS_IN_MEMORY * OBJECT_BYTES;
        usize::try_from(self.file.bytes).map_or(most, |bytes| bytes.min(most))
    }

    /// Reads a range of the file.
    pub fn read(self, range: Range<u64>) -> impl Stream<Item = Result<Bytes, S::Error>> {
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
        let source = self.source;
        let objects = stream::iter(parts).then(move |(digest, range)| {
            let source = source.clone();
            async move {
                let object = source.read_object(digest).await?;
                if range.end > object.len() {
                    return Err(content::Error::Damaged(digest).into());
                }
                Ok::<_, S::Error>(object.slice(range))
            }
        });
        objects.map_ok(in_steps::<S::Error>).try_flatten()
    }
}

/// Divides bytes, so that each step is sent before the next one is looked at.
fn in_steps<E>(bytes: Bytes) -> impl Stream<Item = Result<Bytes, E>> {
    let count = bytes.len().div_ceil(STEP_BYTES);
    stream::iter((0..count).map(move |number| {
        let from = number * STEP_BYTES;
        Ok(bytes.slice(from..bytes.len().min(from + STEP_BYTES)))
    }))
}
