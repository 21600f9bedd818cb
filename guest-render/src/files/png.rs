//! Cleaning of PNG: its chunks, of which those stay that draw, and the orientation.

use std::ops::Range;

use super::pieces::Pieces;
use super::{CleanPicture, Fault, be32, broken, check_pixels, cut_short, exif};

/// Bytes of the signature.
const SIGNATURE_BYTES: usize = 8;
/// Bytes of a chunk beside its content: length, type and checksum.
const CHUNK_BYTES: usize = 12;

/// Chunks that draw, those of animations included.
const DRAWING: [&[u8; 4]; 18] = [
    b"IHDR", b"PLTE", b"IDAT", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"cICP", b"mDCV",
    b"cLLI", b"sBIT", b"bKGD", b"acTL", b"fcTL", b"fdAT", b"mDCv", b"cLLi",
];

/// Cleans a PNG.
pub(super) fn clean(file: &[u8]) -> Result<CleanPicture, Fault> {
    let mut pieces = Pieces::default();
    pieces.keep(0..SIGNATURE_BYTES);
    let (mut dimensions, mut orientation, mut has_pixels) = (None, 1, false);
    let mut at = SIGNATURE_BYTES;
    loop {
        let length = be32(file, at).ok_or_else(cut_short)?;
        let length = usize::try_from(length).map_err(|_| cut_short())?;
        let end = at
            .checked_add(CHUNK_BYTES)
            .and_then(|start| start.checked_add(length))
            .filter(|end| *end <= file.len())
            .ok_or_else(cut_short)?;
        let (kind, content) = (&file[at + 4..at + 8], &file[at + 8..end - 4]);
        check_sum(file, at + 4..end - 4)?;
        if dimensions.is_none() != (kind == b"IHDR") {
            return Err(broken("The PNG does not begin with its one header."));
        }
        match kind {
            b"IHDR" => {
                dimensions = Some(read_size(content)?);
                pieces.keep(at..end);
            }
            b"IEND" => {
                keep_end(at..end, content, &mut pieces);
                break;
            }
            b"eXIf" => {
                let found = exif::orientation(content);
                if found != 1 && orientation == 1 {
                    orientation = found;
                    pieces.add(chunk(b"eXIf", &exif::with_orientation(found)));
                }
            }
            known if DRAWING.iter().any(|drawing| *drawing == known) => {
                has_pixels |= known == b"IDAT";
                pieces.keep(at..end);
            }
            // Decoders must refuse a chunk that they do not know, if its name begins with a capital letter.
            [first, ..] if first.is_ascii_uppercase() => {
                return Err(broken("The PNG has a chunk that is not known."));
            }
            _ => {}
        }
        at = end;
    }
    let (width, height) = dimensions.ok_or_else(cut_short)?;
    if !has_pixels {
        return Err(broken("The PNG has no pixels."));
    }
    Ok(CleanPicture {
        width,
        height,
        orientation,
        pieces,
    })
}

/// Reads width and height from the header.
fn read_size(header: &[u8]) -> Result<(u32, u32), Fault> {
    let size = be32(header, 0).zip(be32(header, 4));
    let (width, height) = size.ok_or_else(cut_short)?;
    check_pixels(width, height)?;
    Ok((width, height))
}

/// Keeps the end, which has no content.
fn keep_end(whole: Range<usize>, content: &[u8], pieces: &mut Pieces) {
    match content {
        [] => pieces.keep(whole),
        _ => pieces.add(chunk(b"IEND", &[])),
    }
}

/// Checks the sum behind the name and the content of a chunk.
fn check_sum(file: &[u8], summed: Range<usize>) -> Result<(), Fault> {
    let is_right = be32(file, summed.end) == Some(crc32fast::hash(&file[summed]));
    match is_right {
        true => Ok(()),
        false => Err(broken("A chunk of the PNG is damaged.")),
    }
}

/// Writes a chunk.
pub(super) fn chunk(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    let mut chunk = length.to_be_bytes().to_vec();
    chunk.extend_from_slice(kind);
    chunk.extend_from_slice(content);
    let sum = crc32fast::hash(&chunk[4..]);
    chunk.extend_from_slice(&sum.to_be_bytes());
    chunk
}
