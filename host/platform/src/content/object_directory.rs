//! Objects in a directory, in the layout of the content store: for copying them between directories.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use cap_std::fs::{Dir, File};

use super::Digest;
use super::local::OPENED_FILE;
use svc_base::disk;

/// Prefix of the names of unfinished objects.
const PARTIAL_PREFIX: &str = ".new-";

/// Error of putting an object.
#[derive(Debug, thiserror::Error)]
pub enum ObjectPutError {
    /// The bytes do not match the digest.
    #[error("its bytes are not what its name says")]
    Damaged,
    /// The disk's.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A directory of objects. An object under its final name is complete. Functions block on the disk.
#[derive(Debug)]
pub struct ObjectDirectory {
    dir: Dir,
    /// Subdirectories whose entries [`ObjectDirectory::sync`] makes durable.
    unsynced: BTreeSet<String>,
}

impl ObjectDirectory {
    /// Wraps a directory.
    pub fn new(dir: Dir) -> Self {
        Self {
            dir,
            unsynced: BTreeSet::new(),
        }
    }

    /// Returns the size of an object in bytes, if it is there.
    pub fn bytes(&self, digest: &Digest) -> io::Result<Option<u64>> {
        let (shard, rest) = digest.storage_path();
        match self.dir.metadata(Path::new(&shard).join(rest)) {
            Ok(metadata) => Ok(metadata.is_file().then(|| metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens an object, if it is there.
    pub fn get(&self, digest: &Digest) -> io::Result<Option<File>> {
        let (shard, rest) = digest.storage_path();
        match self.dir.open(Path::new(&shard).join(rest)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether an object is there and its bytes match its digest.
    pub fn is_whole(&self, digest: &Digest) -> io::Result<bool> {
        let Some(file) = self.get(digest)? else {
            return Ok(false);
        };
        Ok(Digest::copy_and_digest(file, io::sink())?.0 == *digest)
    }

    /// Writes an object, replacing one that is there already. It appears complete, and is durable after
    /// [`ObjectDirectory::sync`].
    ///
    /// # Errors
    /// [`ObjectPutError`]; an earlier object stays.
    pub fn put(&mut self, digest: &Digest, from: impl io::Read) -> Result<u64, ObjectPutError> {
        let (shard, rest) = digest.storage_path();
        let dir = disk::ensure_subdirectory(&self.dir, &shard)?;
        let unfinished = format!("{PARTIAL_PREFIX}{rest}");
        disk::remove_file(&dir, &unfinished)?;
        let mut file = dir.open_with(&unfinished, &disk::private_file_options())?;
        let (copied, bytes) = Digest::copy_and_digest(from, &mut file)?;
        if copied != *digest {
            disk::remove_file(&dir, &unfinished)?;
            return Err(ObjectPutError::Damaged);
        }
        file.sync_all()?;
        dir.rename(&unfinished, &dir, rest)?;
        self.unsynced.insert(shard);
        Ok(bytes)
    }

    /// Has [`ObjectDirectory::sync`] sync the name of an object that is there already: its writer may have crashed before its own sync.
    pub fn sync_later(&mut self, digest: &Digest) {
        self.unsynced.insert(digest.storage_path().0);
    }

    /// Makes the names of put objects, and of those for [`ObjectDirectory::sync_later`], durable.
    pub fn sync(&mut self) -> io::Result<()> {
        for shard in std::mem::take(&mut self.unsynced) {
            disk::sync_directory(&self.dir.open_dir(shard)?)?;
        }
        disk::sync_directory(&self.dir)
    }

    /// Removes all objects but `kept`, and foreign files.
    pub fn retain_only(&self, kept: &BTreeSet<Digest>) -> io::Result<()> {
        for shard in self.dir.entries()? {
            let shard = shard?;
            let name = shard.file_name();
            if !shard.file_type()?.is_dir() {
                if name != OPENED_FILE {
                    shard.remove_file()?;
                }
                continue;
            }
            let dir = shard.open_dir()?;
            for object in dir.entries()? {
                let object = object?;
                let hex =
                    [&name, &object.file_name()].map(|part| part.to_string_lossy().into_owned());
                if !Digest::from_hex(&hex.concat()).is_some_and(|digest| kept.contains(&digest)) {
                    object.remove_file()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_put_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let mut shelf = ObjectDirectory::new(disk::open_directory(directory.path()).unwrap());
        let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
        assert_eq!(shelf.put(&one, &b"one"[..]).unwrap(), 3);
        assert!(matches!(
            shelf.put(&two, &b"tw"[..]),
            Err(ObjectPutError::Damaged)
        ));
        shelf.sync().unwrap();
        assert_eq!(
            (shelf.bytes(&one).unwrap(), shelf.bytes(&two).unwrap()),
            (Some(3), None)
        );
        assert!(shelf.is_whole(&one).unwrap() && !shelf.is_whole(&two).unwrap());
        // A name says nothing about bytes that were damaged later; putting them again mends them.
        let (shard, rest) = one.storage_path();
        std::fs::write(directory.path().join(shard).join(rest), b"ONE").unwrap();
        assert!(!shelf.is_whole(&one).unwrap());
        shelf.put(&one, &b"one"[..]).unwrap();
        assert!(shelf.is_whole(&one).unwrap());
        shelf.put(&two, &b"two"[..]).unwrap();
        shelf.retain_only(&BTreeSet::from([two])).unwrap();
        assert!(shelf.get(&one).unwrap().is_none() && shelf.get(&two).unwrap().is_some());
    }
}
