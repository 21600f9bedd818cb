//! A revision of a site as one archive: a tar that is written as it is read, and never read here.

use std::io;

use bytes::Bytes;
use tar::{Builder, EntryType, Header};

use svc_base::clock::Timestamp;

/// Size of a tar's blocks.
const BLOCK_BYTES: usize = 512;
/// Permissions of the files.
const FILE_MODE: u32 = 0o644;

/// Returns what comes before the bytes of a file in a tar.
pub(super) fn file_header(path: &str, bytes: u64, changed_at: Timestamp) -> io::Result<Bytes> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(bytes);
    header.set_mode(FILE_MODE);
    header.set_mtime(u64::try_from(changed_at.0 / 1000).unwrap_or(0));
    // The library writes a long path ahead of the header. The bytes of the file follow from elsewhere.
    let mut builder = Builder::new(Vec::new());
    builder.append_data(&mut header, path, io::empty())?;
    Ok(std::mem::take(builder.get_mut()).into())
}

/// Returns what comes after the bytes of a file: zeros up to the end of a block.
pub(super) fn padding(bytes: u64) -> Bytes {
    let begun = usize::try_from(bytes % BLOCK_BYTES as u64).unwrap_or(0);
    Bytes::from_static(&[0; BLOCK_BYTES]).slice(..(BLOCK_BYTES - begun) % BLOCK_BYTES)
}

/// Returns the end of a tar: two blocks of zeros.
pub(super) fn end() -> Bytes {
    Bytes::from_static(&[0; 2 * BLOCK_BYTES])
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn an_archive_has_every_file_whole() {
        let long = format!("{}/{}.txt", "folder".repeat(20), "ü".repeat(60));
        let files = [
            ("index.html", vec![b'a'; 512]),
            (long.as_str(), vec![b'b'; 700]),
            ("empty", Vec::new()),
        ];
        let mut archive = Vec::new();
        for (path, file) in &files {
            let bytes = file.len() as u64;
            archive.extend(file_header(path, bytes, Timestamp(1_000)).unwrap());
            archive.extend(file);
            archive.extend(padding(bytes));
        }
        archive.extend(end());
        let mut archive = tar::Archive::new(archive.as_slice());
        let mut read = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_str().unwrap().to_owned();
            assert_eq!(entry.header().mtime().unwrap(), 1);
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            read.push((path, bytes));
        }
        let expected = files.map(|(path, bytes)| (path.to_owned(), bytes));
        assert_eq!(read, expected);
    }
}
