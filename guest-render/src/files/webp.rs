//! Cleaning of WebP: its chunks, of which those stay that draw, and the orientation.

use std::ops::Range;

use super::pieces::Pieces;
use super::{CleanPicture, Fault, broken, check_pixels, cut_short, exif, le16, le32};

/// Bytes before the first chunk.
const HEAD_BYTES: usize = 12;
/// Bytes of a chunk before its content.
const CHUNK_HEAD: usize = 8;
/// Bytes of a frame before its chunks.
const FRAME_HEAD: usize = 16;
/// Bytes of an extended file's first chunk: flags and canvas.
const CANVAS_BYTES: usize = 10;
/// Flags of an extended file: it has EXIF, it has XMP.
const EXIF_FLAG: u8 = 0x08;
const XMP_FLAG: u8 = 0x04;

/// A chunk: its name, its content, and all of it with its padding.
struct Chunk<'f> {
    kind: &'f [u8],
    content: Range<usize>,
    whole: Range<usize>,
}

/// Cleans a WebP.
pub(super) fn clean(file: &[u8]) -> Result<CleanPicture, Fault> {
    let end = end_of(file)?;
    let orientation = find_orientation(file, end)?;
    let mut pieces = Pieces::default();
    let (mut dimensions, mut has_pixels, mut at) = (None, false, HEAD_BYTES);
    while at < end {
        let chunk = next_chunk(file, at, end)?;
        let is_first = at == HEAD_BYTES;
        match chunk.kind {
            b"VP8X" if is_first => {
                dimensions = Some(extended_size(&file[chunk.content.clone()])?);
                pieces.add(canvas(&file[chunk.content.clone()], orientation));
            }
            b"VP8 " | b"VP8L" => {
                let content = &file[chunk.content.clone()];
                let found = match chunk.kind {
                    b"VP8 " => lossy_size(content)?,
                    _ => lossless_size(content)?,
                };
                // It may be larger than the canvas says.
                check_pixels(found.0, found.1)?;
                dimensions.get_or_insert(found);
                has_pixels = true;
                keep_padded(&chunk, end, &mut pieces);
            }
            b"ANMF" => {
                keep_frame(file, &chunk, &mut pieces)?;
                has_pixels = true;
            }
            b"ALPH" | b"ANIM" | b"ICCP" => keep_padded(&chunk, end, &mut pieces),
            _ => {}
        }
        at = chunk.whole.end;
    }
    let (width, height) = dimensions.ok_or_else(cut_short)?;
    check_pixels(width, height)?;
    if !has_pixels {
        return Err(broken("The WebP has no pixels."));
    }
    if orientation != 1 {
        let tiff = exif::with_orientation(orientation);
        pieces.add(chunk_head(b"EXIF", tiff.len()));
        pieces.add(tiff);
    }
    let bytes = u32::try_from(pieces.bytes() + 4).map_err(|_| Fault::TooLarge)?;
    let mut head = b"RIFF".to_vec();
    head.extend_from_slice(&bytes.to_le_bytes());
    head.extend_from_slice(b"WEBP");
    Ok(CleanPicture {
        width,
        height,
        orientation,
        pieces: pieces.behind(head),
    })
}

/// Writes the first chunk of an extended file: that it has EXIF if there is an orientation, and nothing else beside what draws.
fn canvas(content: &[u8], orientation: u8) -> Vec<u8> {
    let mut kept = chunk_head(b"VP8X", CANVAS_BYTES);
    kept.extend_from_slice(&content[..CANVAS_BYTES]);
    kept[CHUNK_HEAD] &= !(EXIF_FLAG | XMP_FLAG);
    if orientation != 1 {
        kept[CHUNK_HEAD] |= EXIF_FLAG;
    }
    kept
}

/// Returns where the file ends by its own length; what follows is no part of it.
fn end_of(file: &[u8]) -> Result<usize, Fault> {
    let length = le32(file, 4).ok_or_else(cut_short)?;
    let end = usize::try_from(length)
        .ok()
        .and_then(|it| it.checked_add(8));
    end.filter(|end| *end <= file.len()).ok_or_else(cut_short)
}

/// Reads the chunk that begins here. A file may leave out the padding of its last one.
fn next_chunk(file: &[u8], at: usize, end: usize) -> Result<Chunk<'_>, Fault> {
    let kind = file.get(at..at + 4).ok_or_else(cut_short)?;
    let length = le32(file, at + 4).ok_or_else(cut_short)?;
    let start = at + CHUNK_HEAD;
    let content_end = usize::try_from(length)
        .ok()
        .and_then(|length| start.checked_add(length))
        .filter(|it| *it <= end)
        .ok_or_else(cut_short)?;
    let padded = (content_end + (content_end - start) % 2).min(end);
    Ok(Chunk {
        kind,
        content: start..content_end,
        whole: at..padded,
    })
}

/// Keeps a chunk, with the padding that it lacks.
fn keep_padded(chunk: &Chunk<'_>, end: usize, pieces: &mut Pieces) {
    let is_odd = chunk.content.len() % 2 == 1;
    let lacks_padding = is_odd && chunk.whole.end == chunk.content.end && chunk.whole.end == end;
    pieces.keep(chunk.whole.clone());
    pieces.zeros(usize::from(lacks_padding));
}

/// Keeps a frame of an animation, with the chunks that draw.
fn keep_frame(file: &[u8], frame: &Chunk<'_>, pieces: &mut Pieces) -> Result<(), Fault> {
    let start = frame.content.start + FRAME_HEAD;
    let end = frame.content.end;
    if start > end {
        return Err(cut_short());
    }
    let mut inner = Pieces::default();
    let mut at = start;
    while at < end {
        let chunk = next_chunk(file, at, end)?;
        if matches!(chunk.kind, b"ALPH" | b"VP8 " | b"VP8L") {
            keep_padded(&chunk, end, &mut inner);
        }
        at = chunk.whole.end;
    }
    let bytes = usize::try_from(inner.bytes()).map_err(|_| Fault::TooLarge)?;
    let is_whole = bytes == end - start;
    if is_whole {
        keep_padded(frame, frame.whole.end, pieces);
        return Ok(());
    }
    pieces.add(chunk_head(b"ANMF", FRAME_HEAD + bytes));
    pieces.keep(frame.content.start..start);
    for piece in inner.finish()? {
        match piece {
            super::Piece::Kept(span) => pieces.keep(span.start as usize..span.end as usize),
            super::Piece::Added(bytes) => pieces.add(bytes),
            super::Piece::Zeros(count) => pieces.zeros(count as usize),
        }
    }
    Ok(())
}

/// Writes the begin of a chunk.
pub(super) fn chunk_head(kind: &[u8; 4], length: usize) -> Vec<u8> {
    let mut head = kind.to_vec();
    head.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    head
}

/// Finds the orientation that the file says.
fn find_orientation(file: &[u8], end: usize) -> Result<u8, Fault> {
    let mut at = HEAD_BYTES;
    while at < end {
        let chunk = next_chunk(file, at, end)?;
        if chunk.kind == b"EXIF" {
            let content = &file[chunk.content];
            // Some writers put before it what JPEG has there.
            let tiff = content.strip_prefix(b"Exif\0\0").unwrap_or(content);
            return Ok(exif::orientation(tiff));
        }
        at = chunk.whole.end;
    }
    Ok(1)
}

/// Reads the canvas of an extended file.
fn extended_size(content: &[u8]) -> Result<(u32, u32), Fault> {
    let number = |at: usize| -> Result<u32, Fault> {
        let bytes = content.get(at..at + 3).ok_or_else(cut_short)?;
        Ok(1 + u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]))
    };
    Ok((number(4)?, number(7)?))
}

/// Reads the size of a lossy picture.
fn lossy_size(content: &[u8]) -> Result<(u32, u32), Fault> {
    if content.get(3..6) != Some(b"\x9d\x01\x2a") {
        return Err(broken("The pixels of the WebP are damaged."));
    }
    let number = |at: usize| -> Result<u32, Fault> {
        Ok(u32::from(le16(content, at).ok_or_else(cut_short)? & 0x3fff))
    };
    Ok((number(6)?, number(8)?))
}

/// Reads the size of a lossless picture.
fn lossless_size(content: &[u8]) -> Result<(u32, u32), Fault> {
    if content.first() != Some(&0x2f) {
        return Err(broken("The pixels of the WebP are damaged."));
    }
    let bits = le32(content, 1).ok_or_else(cut_short)?;
    Ok((1 + (bits & 0x3fff), 1 + (bits >> 14 & 0x3fff)))
}
