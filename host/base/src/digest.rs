//! The SHA-256 of content, which is its name.

use std::fmt;
use std::io::{self, Read, Write};

use subtle::ConstantTimeEq as _;

/// A SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
        let mut value = [0; 32];
        value.copy_from_slice(digest.as_ref());
        Self(value)
    }

    /// The two names under which its object is stored, a directory's and the file's in it: no directory grows without bound.
    pub fn storage_path(&self) -> (String, String) {
        let mut shard = self.to_string();
        let rest = shard.split_off(2);
        (shard, rest)
    }

    /// Copies all that `from` reads to `to`; returns the digest of it and how many bytes it was.
    ///
    /// # Errors
    /// The reader's or the writer's.
    pub fn copy_and_digest(mut from: impl Read, mut to: impl Write) -> io::Result<(Self, u64)> {
        let mut context = ring::digest::Context::new(&ring::digest::SHA256);
        let (mut buffer, mut length) = (vec![0; 128 << 10], 0);
        loop {
            let read = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => &buffer[..read],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            context.update(read);
            to.write_all(read)?;
            length += read.len() as u64;
        }
        let mut value = [0; 32];
        value.copy_from_slice(context.finish().as_ref());
        Ok((Self(value), length))
    }

    /// Whether this is the digest of `bytes`, compared in constant time: for secrets that are kept as digests.
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
}
