//! Files of any length: a small one is an object, a large one several objects of one size with a list that names them.
//!
//! Each object is named by its digest, so that every part that is read is compared with its name, in a directory as in a bucket. A file
//! passes through memory one object at a time.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use super::{ContentStore, Digest, DigestBuilder, Error, ObjectPin};

/// Bytes of each object of a large file but the last, and most bytes of a file that is one object.
pub const OBJECT_BYTES: usize = 1 << 20;
/// Bytes that are hashed at once: more would keep other requests of the thread waiting.
const HASHED_BYTES: usize = 256 << 10;

/// A file as it was stored. While this lives the collector keeps its objects.
#[derive(Debug)]
pub struct StoredFile {
    /// Digest of the file's bytes.
    pub digest: Digest,
    /// Length of the file.
    pub bytes: u64,
    /// Objects of a large file.
    pub objects: Option<FileObjects>,
    pins: Vec<ObjectPin>,
}

impl StoredFile {
    /// Returns the digests of all objects that were stored for the file.
    pub fn stored_objects(&self) -> Vec<Digest> {
        self.pins.iter().map(ObjectPin::digest).collect()
    }
}

/// Objects that a large file consists of.
#[derive(Clone, Debug)]
pub struct FileObjects {
    /// Digest of the list.
    pub list: Digest,
    /// Digests of the objects, in order.
    pub objects: Vec<Digest>,
}

/// Writes a file as its bytes come.
#[derive(Debug)]
pub struct FileWriter {
    store: ContentStore,
    digest: DigestBuilder,
    bytes: u64,
    /// Bytes that are in no object yet.
    rest: BytesMut,
    pins: Vec<ObjectPin>,
}

impl FileWriter {
    /// Begins a file.
    pub fn new(store: &ContentStore) -> Self {
        Self {
            store: store.clone(),
            digest: DigestBuilder::new(),
            bytes: 0,
            rest: BytesMut::new(),
            pins: Vec::new(),
        }
    }

    /// Adds the next bytes. An object is stored once there are bytes for the next one.
    ///
    /// # Errors
    /// [`Error::Full`] when there is no room.
    pub async fn write(&mut self, mut more: Bytes) -> Result<(), Error> {
        self.bytes += more.len() as u64;
        while !more.is_empty() {
            if self.rest.len() == OBJECT_BYTES {
                self.store_rest().await?;
            }
            let room = OBJECT_BYTES - self.rest.len();
            let part = more.split_to(more.len().min(room).min(HASHED_BYTES));
            self.digest.update(&part);
            self.rest.extend_from_slice(&part);
            if !more.is_empty() {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// Returns how many of so many bytes of a file are stored before it is finished.
    pub fn bytes_stored_of(bytes: u64) -> u64 {
        let object = OBJECT_BYTES as u64;
        bytes.saturating_sub(1) / object * object
    }

    /// Returns the number of bytes that are in memory.
    pub fn bytes_in_memory(&self) -> usize {
        self.rest.len()
    }

    /// Returns the digests of the objects that are stored: of a file that is given up, nothing names them.
    pub fn stored_objects(&self) -> Vec<Digest> {
        self.pins.iter().map(ObjectPin::digest).collect()
    }

    /// Returns the digest of the bytes that were written.
    pub fn digest(&self) -> Digest {
        self.digest.clone().finish()
    }

    /// Stores the rest of the file. It is durable when this returns.
    ///
    /// # Errors
    /// [`Error::Full`] when there is no room.
    pub async fn finish(&mut self) -> Result<StoredFile, Error> {
        let digest = self.digest();
        let objects = if self.pins.is_empty() {
            let file = self.rest.split().freeze();
            self.pins.push(self.store.put_as(digest, file).await?);
            None
        } else {
            self.store_rest().await?;
            let objects = self.stored_objects();
            let list = ObjectList {
                bytes: self.bytes,
                objects: objects.iter().map(ToString::to_string).collect(),
            };
            let pin = self.store.put(list.to_object()?).await?;
            let list = pin.digest();
            self.pins.push(pin);
            Some(FileObjects { list, objects })
        };
        Ok(StoredFile {
            digest,
            bytes: self.bytes,
            objects,
            pins: std::mem::take(&mut self.pins),
        })
    }

    async fn store_rest(&mut self) -> Result<(), Error> {
        let object = self.rest.split().freeze();
        let bytes = object.clone();
        let taken = tokio::task::spawn_blocking(move || Digest::of(&bytes)).await;
        let digest = taken.map_err(|source| object_store::Error::JoinError { source })?;
        self.pins.push(self.store.put_as(digest, object).await?);
        Ok(())
    }
}

/// List of the objects of a large file, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectList {
    bytes: u64,
    objects: Vec<String>,
}

/// Part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectPart {
    /// Digest of the object.
    pub digest: Digest,
    /// Bytes of it.
    pub range: Range<usize>,
}

impl ObjectList {
    /// Reads a stored list; `None` if it is malformed.
    pub fn from_object(object: &[u8]) -> Option<Self> {
        let list: Self = serde_json::from_slice(object).ok()?;
        let all = u64::try_from(list.objects.len()).ok()?;
        let is_whole = all == list.bytes.div_ceil(OBJECT_BYTES as u64)
            && list.objects.iter().all(|it| Digest::from_hex(it).is_some());
        is_whole.then_some(list)
    }

    fn to_object(&self) -> Result<Bytes, Error> {
        let object = serde_json::to_vec(self).map_err(|error| object_store::Error::Generic {
            store: "files",
            source: error.into(),
        })?;
        Ok(object.into())
    }

    /// Returns the length of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the parts of objects that a range of the file consists of, in order.
    pub fn parts(&self, range: Range<u64>) -> impl Iterator<Item = ObjectPart> + use<> {
        let (size, end) = (OBJECT_BYTES as u64, range.end.min(self.bytes));
        let first = usize::try_from(range.start / size).unwrap_or(usize::MAX);
        let objects: Vec<Digest> = self
            .objects
            .iter()
            .skip(first)
            .take(
                usize::try_from(end.div_ceil(size))
                    .unwrap_or(usize::MAX)
                    .saturating_sub(first),
            )
            .filter_map(|name| Digest::from_hex(name))
            .collect();
        let within = move |at: u64, number: u64| {
            let from = at.saturating_sub(number * size).min(size);
            usize::try_from(from).unwrap_or(OBJECT_BYTES)
        };
        (range.start / size..)
            .zip(objects)
            .map(move |(number, digest)| ObjectPart {
                digest,
                range: within(range.start, number)..within(end, number),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn write(store: &ContentStore, file: &[u8], step: usize) -> StoredFile {
        let mut writer = FileWriter::new(store);
        for part in file.chunks(step) {
            writer.write(Bytes::copy_from_slice(part)).await.unwrap();
            assert!(writer.bytes_in_memory() <= OBJECT_BYTES);
            let in_memory = writer.bytes_in_memory() as u64;
            let stored = FileWriter::bytes_stored_of(writer.bytes);
            assert_eq!(stored, writer.bytes - in_memory);
        }
        assert_eq!(writer.digest(), Digest::of(file));
        writer.finish().await.unwrap()
    }

    #[tokio::test]
    async fn a_small_file_is_one_object_of_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let store = ContentStore::open(directory.path()).unwrap();
        for file in [Vec::new(), b"small".to_vec(), vec![7; OBJECT_BYTES]] {
            let stored = write(&store, &file, 100_000).await;
            assert_eq!(stored.digest, Digest::of(&file));
            assert_eq!(stored.bytes, file.len() as u64);
            assert!(stored.objects.is_none());
            assert_eq!(store.get(&stored.digest).await.unwrap().unwrap(), file);
        }
    }

    #[tokio::test]
    async fn a_large_file_is_read_in_parts_that_are_compared() {
        let directory = tempfile::tempdir().unwrap();
        let store = ContentStore::open(directory.path()).unwrap();
        let file: Vec<u8> = (0..2 * OBJECT_BYTES + 5)
            .map(|at| (at / 1000).to_le_bytes()[0])
            .collect();
        let stored = write(&store, &file, 300_000).await;
        let objects = stored.objects.unwrap();
        assert_eq!(objects.objects.len(), 3);
        let list = store.get_compared(&objects.list).await.unwrap().unwrap();
        let list = ObjectList::from_object(&list).unwrap();
        assert_eq!(list.bytes(), file.len() as u64);
        let object = OBJECT_BYTES as u64;
        for range in [
            0..list.bytes(),
            0..1,
            5..object,
            object - 1..object + 1,
            object..2 * object,
            2 * object + 4..list.bytes(),
        ] {
            let mut read = Vec::new();
            for part in list.parts(range.clone()) {
                let found = store.get_compared(&part.digest).await.unwrap().unwrap();
                read.extend_from_slice(&found[part.range]);
            }
            let at = |at: u64| usize::try_from(at).unwrap();
            let (from, to) = (at(range.start), at(range.end));
            assert!(read == file[from..to], "{range:?}");
        }
        let read = async |digest: &Digest| store.get_compared(digest).await.unwrap().unwrap();
        let (one, other) = (
            read(&objects.objects[0]).await,
            read(&objects.objects[0]).await,
        );
        assert_eq!(one.as_ptr(), other.as_ptr(), "it is in memory once");
        let (shard, rest) = objects.objects[1].storage_path();
        std::fs::write(directory.path().join(shard).join(rest), b"other").unwrap();
        let damaged = store.get_compared(&objects.objects[1]).await;
        assert!(matches!(damaged, Err(Error::Damaged(_))));
    }

    #[test]
    fn a_list_that_does_not_fit_its_length_is_none() {
        let digest = Digest::of(b"x").to_string();
        let list = |bytes: u64, objects: Vec<String>| {
            ObjectList::from_object(&serde_json::to_vec(&ObjectList { bytes, objects }).unwrap())
        };
        assert!(list(OBJECT_BYTES as u64 + 1, vec![digest.clone(); 2]).is_some());
        assert!(list(OBJECT_BYTES as u64 + 1, vec![digest]).is_none());
        assert!(list(1, vec!["x".to_owned()]).is_none());
        assert!(ObjectList::from_object(b"{}").is_none());
    }
}
