//! Kinds of files, from their bytes alone.

use super::{Recognition, be16, be32};

pub(super) const JPEG: &str = "image/jpeg";
pub(super) const PNG: &str = "image/png";
pub(super) const GIF: &str = "image/gif";
pub(super) const WEBP: &str = "image/webp";
pub(super) const AVIF: &str = "image/avif";

/// Bytes in which a WebM file says what it is.
const EBML_HEAD: usize = 4096;
/// Most brands of a file of the ISO base media format that are looked at.
const MAX_BRANDS: usize = 64;

/// Recognises a file by its first bytes.
pub fn recognise(head: &[u8]) -> Recognition {
    let picture = |kind: &str| Recognition::Picture(kind.to_owned());
    let other = |kind: &str| Recognition::Other(kind.to_owned());
    let form = head.get(8..12).unwrap_or_default();
    match head {
        [0xff, 0xd8, 0xff, ..] => picture(JPEG),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => picture(PNG),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => picture(GIF),
        [b'R', b'I', b'F', b'F', ..] if form == b"WEBP" => picture(WEBP),
        [b'R', b'I', b'F', b'F', ..] if form == b"WAVE" => other("audio/wav"),
        [b'O', b'g', b'g', b'S', 0, ..] => other("audio/ogg"),
        [b'f', b'L', b'a', b'C', ..] => other("audio/flac"),
        [b'%', b'P', b'D', b'F', b'-', ..] => other("application/pdf"),
        [b'I', b'D', b'3', 2..=4, _, _, ..] => other("audio/mpeg"),
        [0x1a, 0x45, 0xdf, 0xa3, ..] if is_webm(head) => other("video/webm"),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] if media_brand(head).is_some() => {
            match media_brand(head) {
                Some(AVIF) => picture(AVIF),
                kind => other(kind.unwrap_or_default()),
            }
        }
        _ if is_mp3(head) => other("audio/mpeg"),
        _ if begins_as_text(head) => Recognition::PerhapsText,
        _ => Recognition::Unknown,
    }
}

/// Whether a file is a text: UTF-8 without NUL.
pub fn is_text(file: &[u8]) -> bool {
    std::str::from_utf8(file).is_ok_and(|text| !text.contains('\0'))
}

/// Whether a file may be a text, of which these are the first bytes: a character may be cut at their end.
fn begins_as_text(head: &[u8]) -> bool {
    let is_utf8 = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    is_utf8 && !head.contains(&0)
}

/// Whether a file in EBML says that it is WebM.
fn is_webm(head: &[u8]) -> bool {
    let head = &head[..head.len().min(EBML_HEAD)];
    let doc_type = b"\x42\x82\x84webm";
    head.windows(doc_type.len()).any(|part| part == doc_type)
}

/// Returns the media type of a file of the ISO base media format, by its brands.
fn media_brand(head: &[u8]) -> Option<&'static str> {
    let length = usize::try_from(be32(head, 0)?).ok()?;
    let brands = head.get(8..length.min(head.len()))?;
    let mut brands = brands.chunks_exact(4).take(MAX_BRANDS);
    let major = brands.next()?;
    // After the major brand comes its version.
    let compatible: Vec<&[u8]> = brands.skip(1).collect();
    let names = |wanted: &[&[u8]]| {
        wanted.contains(&major) || compatible.iter().any(|brand| wanted.contains(brand))
    };
    match major {
        b"M4A " | b"M4B " => Some("audio/mp4"),
        _ if names(&[b"avif", b"avis"]) => Some(AVIF),
        b"heic" | b"heix" | b"hevc" | b"hevx" | b"mif1" | b"msf1" | b"qt  " => None,
        _ if names(&[
            b"isom", b"iso2", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"M4V ",
            b"MSNV", b"dash",
        ]) =>
        {
            Some("video/mp4")
        }
        _ => None,
    }
}

/// Whether a file begins with two frames of MP3.
fn is_mp3(head: &[u8]) -> bool {
    let Some(first) = mp3_frame_bytes(head, 0) else {
        return false;
    };
    // A file of one frame ends there.
    first == head.len() || mp3_frame_bytes(head, first).is_some()
}

/// Returns the length of a frame of MPEG's layer III.
fn mp3_frame_bytes(head: &[u8], at: usize) -> Option<usize> {
    const RATES_1: [usize; 15] = [
        0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320,
    ];
    const RATES_2: [usize; 15] = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
    let (first, second) = (be16(head, at)?, be16(head, at.checked_add(2)?)?);
    let (version, layer) = (first >> 3 & 3, first >> 1 & 3);
    let (rate, frequency) = (second >> 12, second >> 10 & 3);
    if first >> 5 != 0x7ff
        || version == 1
        || layer != 1
        || rate == 0
        || rate == 15
        || frequency == 3
    {
        return None;
    }
    let is_first_version = version == 3;
    let rates = if is_first_version { RATES_1 } else { RATES_2 };
    let kilobits = rates.get(usize::from(rate))?;
    let hertz = [44_100, 48_000, 32_000][usize::from(frequency)];
    // Version 2 has half the frequencies, and version 2.5 half of those.
    let hertz = match version {
        3 => hertz,
        2 => hertz / 2,
        _ => hertz / 4,
    };
    let samples = if is_first_version { 144 } else { 72 };
    let padding = usize::from(second >> 9 & 1);
    Some(samples * kilobits * 1000 / hertz + padding)
}
