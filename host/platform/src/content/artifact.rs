//! A finished page as it is stored: all its encodings, made once at publish, in one object.
//!
//! The object is a line of JSON that names the encodings and their lengths, then their bytes in that order.

use std::io::Write;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Above this many bytes brotli runs at [`BROTLI_LARGE_LEVEL`]: its slow levels cost seconds a megabyte.
const LARGE_BYTES: usize = 256 * 1024;
const BROTLI_SMALL_LEVEL: u32 = 7;
/// For documents that are compressed once and served to everybody: tens of milliseconds a hundred kilobytes.
const BROTLI_DENSE_LEVEL: u32 = 11;
const BROTLI_LARGE_LEVEL: u32 = 4;
const BROTLI_WINDOW_BITS: u32 = 22;
const ZSTD_LEVEL: i32 = 6;
const GZIP_LEVEL: u32 = 6;
const QUICK_GZIP_LEVEL: u32 = 3;
/// Bytes of a large page that are compressed between two checks whether to go on.
const CHUNK_BYTES: usize = 64 * 1024;
/// Smallest page worth compressing: below, an encoding saves less than its headers cost.
const MIN_COMPRESSED_BYTES: usize = 256;

/// Content coding of a variant, in the server's order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// Brotli (RFC 7932).
    Br,
    /// Zstandard (RFC 8878).
    Zstd,
    /// Gzip (RFC 1952).
    Gzip,
    /// No coding.
    Identity,
}

impl Encoding {
    /// Returns the coding's name in HTTP.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Br => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
            Self::Identity => "identity",
        }
    }
}

/// One encoding of a page.
#[derive(Clone, Debug)]
pub struct EncodedVariant {
    /// Coding of `bytes`.
    pub encoding: Encoding,
    /// The encoded page.
    pub bytes: Bytes,
}

/// A page in all of its encodings; identity is among them, unless the page itself is stored elsewhere.
#[derive(Clone, Debug)]
pub struct EncodedPage {
    /// Variants in the server's order of preference, identity last.
    pub variants: Vec<EncodedVariant>,
}

#[derive(Serialize, Deserialize)]
struct EncodedPageHeader {
    variants: Vec<(Encoding, usize)>,
}

impl EncodedPage {
    /// Compresses a finished page: costs milliseconds of CPU, so callers run it on a worker. A large page can cost a second: it calls
    /// `goes_on` after each chunk, and leaves out the encodings that it may not finish.
    ///
    /// # Errors
    /// Only when a compressor fails, which has no cause in the page.
    pub fn compress(page: Bytes, goes_on: impl Fn() -> bool) -> std::io::Result<Self> {
        Self::compress_at(page, BROTLI_SMALL_LEVEL, &goes_on)
    }

    /// Compresses a document of the platform with the best level of brotli: a tenth smaller than [`EncodedPage::compress`], for ten
    /// times the CPU.
    ///
    /// # Errors
    /// Like [`EncodedPage::compress`].
    pub fn compress_densely(page: Bytes) -> std::io::Result<Self> {
        Self::compress_at(page, BROTLI_DENSE_LEVEL, &|| true)
    }

    fn compress_at(page: Bytes, level: u32, goes_on: &dyn Fn() -> bool) -> std::io::Result<Self> {
        let mut variants = Vec::with_capacity(4);
        if page.len() >= MIN_COMPRESSED_BYTES {
            let encoded = [
                (Encoding::Br, brotli(&page, level, goes_on)?),
                (Encoding::Zstd, zstd(&page, goes_on)?),
                (Encoding::Gzip, gzip(&page, goes_on)?),
            ];
            for (encoding, bytes) in encoded {
                let shorter = bytes.filter(|bytes| bytes.len() < page.len());
                variants.extend(shorter.map(|bytes| EncodedVariant {
                    encoding,
                    bytes: bytes.into(),
                }));
            }
        }
        variants.push(EncodedVariant {
            encoding: Encoding::Identity,
            bytes: page,
        });
        Ok(Self { variants })
    }

    /// Serializes the artifact into an object of the content store.
    ///
    /// # Errors
    /// Never in practice: the header is plain data.
    pub fn to_object(&self) -> std::io::Result<Bytes> {
        let header = EncodedPageHeader {
            variants: self
                .variants
                .iter()
                .map(|v| (v.encoding, v.bytes.len()))
                .collect(),
        };
        let mut object = serde_json::to_vec(&header)?;
        object.push(b'\n');
        for variant in &self.variants {
            object.extend_from_slice(&variant.bytes);
        }
        Ok(object.into())
    }

    /// Leaves out the page itself, which is stored beside its encodings.
    #[must_use]
    pub fn without_identity(mut self) -> Self {
        self.variants
            .retain(|variant| variant.encoding != Encoding::Identity);
        self
    }

    /// Reads a stored object; `None` if it is malformed.
    pub fn from_object(object: &Bytes) -> Option<Self> {
        let page = Self::encodings_from_object(object)?;
        let last = page.variants.last()?;
        (last.encoding == Encoding::Identity).then_some(page)
    }

    /// Reads a stored object that may be without the page itself; `None` if it is malformed.
    pub fn encodings_from_object(object: &Bytes) -> Option<Self> {
        let end = object.iter().position(|&b| b == b'\n')?;
        let header: EncodedPageHeader = serde_json::from_slice(&object[..end]).ok()?;
        let mut at = end + 1;
        let mut variants = Vec::with_capacity(header.variants.len());
        for (encoding, length) in header.variants {
            let next = at
                .checked_add(length)
                .filter(|&next| next <= object.len())?;
            variants.push(EncodedVariant {
                encoding,
                bytes: object.slice(at..next),
            });
            at = next;
        }
        (at == object.len()).then_some(Self { variants })
    }
}

/// Compresses a text that is not stored, in about a millisecond a hundred kilobytes.
///
/// # Errors
/// Like [`EncodedPage::compress`].
pub fn gzip_quickly(text: &[u8]) -> std::io::Result<Bytes> {
    let level = flate2::Compression::new(QUICK_GZIP_LEVEL);
    let mut encoder = flate2::write::GzEncoder::new(Vec::with_capacity(text.len() / 3), level);
    encoder.write_all(text)?;
    Ok(encoder.finish()?.into())
}

/// Compresses a text as [`EncodedPage::compress`] does, so that what is stored of it later is the same, byte for byte.
///
/// # Errors
/// Like [`EncodedPage::compress`].
pub fn gzip_as_stored(text: &[u8]) -> std::io::Result<Bytes> {
    let bytes = gzip(text, &|| true)?;
    Ok(bytes.unwrap_or_default().into())
}

/// Feeds a page to an encoder, a large one in chunks; returns false if it was stopped.
fn feed_encoder(
    encoder: &mut impl Write,
    page: &[u8],
    goes_on: &dyn Fn() -> bool,
) -> std::io::Result<bool> {
    if page.len() <= LARGE_BYTES {
        encoder.write_all(page)?;
        return Ok(true);
    }
    for piece in page.chunks(CHUNK_BYTES) {
        if !goes_on() {
            return Ok(false);
        }
        encoder.write_all(piece)?;
    }
    Ok(true)
}

fn brotli(page: &[u8], level: u32, goes_on: &dyn Fn() -> bool) -> std::io::Result<Option<Vec<u8>>> {
    let level = if page.len() > LARGE_BYTES {
        BROTLI_LARGE_LEVEL
    } else {
        level
    };
    let mut writer = brotli::CompressorWriter::new(Vec::new(), 4096, level, BROTLI_WINDOW_BITS);
    let whole = feed_encoder(&mut writer, page, goes_on)?;
    Ok(whole.then(|| writer.into_inner()))
}

fn zstd(page: &[u8], goes_on: &dyn Fn() -> bool) -> std::io::Result<Option<Vec<u8>>> {
    if page.len() <= LARGE_BYTES {
        return zstd::bulk::compress(page, ZSTD_LEVEL).map(Some);
    }
    let mut writer = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
    writer.set_pledged_src_size(u64::try_from(page.len()).ok())?;
    if !feed_encoder(&mut writer, page, goes_on)? {
        return Ok(None);
    }
    writer.finish().map(Some)
}

fn gzip(page: &[u8], goes_on: &dyn Fn() -> bool) -> std::io::Result<Option<Vec<u8>>> {
    let level = flate2::Compression::new(GZIP_LEVEL);
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), level);
    if !feed_encoder(&mut writer, page, goes_on)? {
        return Ok(None);
    }
    writer.finish().map(Some)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn every_encoding_decodes_to_the_page() {
        for repeated in [500, LARGE_BYTES / 10] {
            every_encoding_decodes_to(&Bytes::from("<p>hello</p>".repeat(repeated)));
        }
    }

    #[test]
    fn a_large_page_has_the_encodings_that_there_was_time_for() {
        let large = Bytes::from("<p>hello</p>".repeat(LARGE_BYTES / 10));
        let pieces = large.len().div_ceil(CHUNK_BYTES);
        let encodings = |asked_for: usize| {
            let left = std::cell::Cell::new(asked_for);
            let goes_on = || left.replace(left.get().saturating_sub(1)) > 0;
            let artifact = EncodedPage::compress(large.clone(), goes_on).unwrap();
            let variants = artifact.variants.iter();
            variants.map(|variant| variant.encoding).collect::<Vec<_>>()
        };
        assert_eq!(encodings(0), [Encoding::Identity]);
        let some = [Encoding::Br, Encoding::Zstd, Encoding::Identity];
        assert_eq!(encodings(2 * pieces), some);
        assert_eq!(encodings(3 * pieces).len(), 4);
    }

    fn every_encoding_decodes_to(page: &Bytes) {
        let stored = EncodedPage::compress(page.clone(), || true)
            .unwrap()
            .to_object()
            .unwrap();
        let artifact = EncodedPage::from_object(&stored).unwrap();
        assert_eq!(artifact.variants.len(), 4);
        for variant in &artifact.variants {
            let mut decoded = Vec::new();
            match variant.encoding {
                Encoding::Br => {
                    let mut reader = brotli::Decompressor::new(&*variant.bytes, 4096);
                    reader.read_to_end(&mut decoded).unwrap();
                }
                Encoding::Zstd => decoded = zstd::stream::decode_all(&*variant.bytes).unwrap(),
                Encoding::Gzip => {
                    let mut reader = flate2::read::GzDecoder::new(&*variant.bytes);
                    reader.read_to_end(&mut decoded).unwrap();
                }
                Encoding::Identity => decoded = variant.bytes.to_vec(),
            }
            assert_eq!(&decoded[..], &page[..], "{:?}", variant.encoding);
        }
    }

    #[test]
    fn a_small_page_has_one_variant_and_a_torn_object_none() {
        let artifact = EncodedPage::compress(Bytes::from_static(b"hi"), || true).unwrap();
        assert_eq!(artifact.variants.len(), 1);
        let object = artifact.to_object().unwrap();
        assert!(EncodedPage::from_object(&object).is_some());
        assert!(EncodedPage::from_object(&object.slice(..object.len() - 1)).is_none());
        assert!(EncodedPage::from_object(&Bytes::from_static(b"{}\n")).is_none());
        let without = artifact.without_identity().to_object().unwrap();
        assert!(EncodedPage::from_object(&without).is_none());
        let read = EncodedPage::encodings_from_object(&without).unwrap();
        assert!(read.variants.is_empty());
    }
}
