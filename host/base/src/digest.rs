//! SHA-256 digests. Stored content is named by its digest.

use std::fmt;
use std::io::{self, Read, Write};

use subtle::ConstantTimeEq as _;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Computes the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
        let mut value = [0; 32];
        value.copy_from_slice(digest.as_ref());
        Self(value)
    }

    /// Makes a digest of its bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the directory and the file under which the object is stored. Objects are spread over 256 directories.
    pub fn storage_path(&self) -> (String, String) {
        let mut shard = self.to_string();
        let rest = shard.split_off(2);
        (shard, rest)
    }

    /// Copies everything from a reader to a writer. Returns the digest and the number of bytes.
    ///
    /// # Errors
    /// An error of the reader or the writer.
    pub fn copy_and_digest(mut from: impl Read, mut to: impl Write) -> io::Result<(Self, u64)> {
        let mut digest = DigestBuilder::new();
        let (mut buffer, mut length) = (vec![0; 128 << 10], 0);
        loop {
            let read = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => &buffer[..read],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            digest.update(read);
            to.write_all(read)?;
            length += read.len() as u64;
        }
        Ok((digest.finish(), length))
    }

    /// Compares with the digest of `bytes` in constant time: for secrets that are stored as digests.
    pub fn is_digest_of(&self, bytes: &[u8]) -> bool {
        self.0.ct_eq(&Self::of(bytes).0).into()
    }

    /// Reads the 64 hexadecimal digits that [`fmt::Display`] writes.
    pub fn from_hex(text: &str) -> Option<Self> {
        let (mut value, text) = ([0; 32], text.as_bytes());
        if text.len() != 64 {
            return None;
        }
        for (byte, pair) in value.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |c: u8| match c {
                b'0'..=b'9' => Some(c - b'0'),
                b'a'..=b'f' => Some(c - b'a' + 10),
                _ => None,
            };
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(value))
    }
}

/// Computes the digest of bytes that come one part after the other.
#[derive(Clone)]
pub struct DigestBuilder(ring::digest::Context);

impl DigestBuilder {
    /// Begins with no bytes.
    pub fn new() -> Self {
        Self(ring::digest::Context::new(&ring::digest::SHA256))
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest of all bytes that were added.
    pub fn finish(self) -> Digest {
        let mut value = [0; 32];
        value.copy_from_slice(self.0.finish().as_ref());
        Digest(value)
    }
}

impl Default for DigestBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for DigestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DigestBuilder").finish_non_exhaustive()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl rusqlite::ToSql for Digest {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        Ok(self.0.as_slice().into())
    }
}

impl rusqlite::types::FromSql for Digest {
    fn column_result(value: rusqlite::types::ValueRef<'_>) -> rusqlite::types::FromSqlResult<Self> {
        <[u8; 32]>::column_result(value).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_goes_there_and_back() {
        let digest = Digest::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(Digest::from_hex(text), Some(digest));
        assert_eq!(Digest::from_hex(&text.to_uppercase()), None);
        assert_eq!(Digest::from_hex("ba"), None);
    }

    #[test]
    fn parts_have_the_digest_of_the_whole() {
        let mut parts = DigestBuilder::new();
        parts.update(b"a");
        parts.update(b"");
        parts.update(b"bc");
        assert_eq!(parts.finish(), Digest::of(b"abc"));
    }
}
