//! Cleaning of AVIF: places in the file are named by their offsets, so nothing moves; what does not draw is written over with zeros.

use std::ops::Range;

use super::pieces::Pieces;
use super::{CleanPicture, Fault, be16, be32, broken, check_pixels, cut_short, exif};

/// Most boxes of a box that are looked at.
const MAX_BOXES: usize = 4096;
/// Most items, and parts of all items.
const MAX_ITEMS: usize = 4096;
/// Bytes of a box before its content, where its length has four bytes.
const BOX_HEAD: usize = 8;

/// A box: its type, and where its content and all of it are.
#[derive(Clone, Debug)]
struct MediaBox {
    kind: [u8; 4],
    content: Range<usize>,
    whole: Range<usize>,
}

/// Bytes that are written over.
#[derive(Debug)]
struct Erasure {
    range: Range<usize>,
    /// First of the new bytes; zeros follow.
    first: Vec<u8>,
}

/// State of the reading of an AVIF.
#[derive(Debug, Default)]
struct AvifScan {
    dimensions: Option<(u32, u32)>,
    is_turned: bool,
    has_data: bool,
    /// Bytes of the file that items have.
    named: Vec<Range<usize>>,
    /// Whether a description of an animation names bytes, too.
    has_movie: bool,
    erasures: Vec<Erasure>,
}

/// Cleans an AVIF.
pub(super) fn clean(file: &[u8]) -> Result<CleanPicture, Fault> {
    let mut scan = AvifScan::default();
    let (parts, end) = top_boxes(file)?;
    // Bytes behind the picture's end are no part of it.
    let file = &file[..end];
    let mut data = Vec::new();
    for found in parts {
        match &found.kind {
            b"ftyp" => {}
            b"mdat" => data.push(found.content),
            b"meta" => scan.meta(file, &found)?,
            b"moov" => {
                scan.has_movie = true;
                scan.movie(file, found.content.clone(), 2)?;
            }
            // Parts of a longer animation.
            b"moof" | b"sidx" => scan.has_movie = true,
            _ => scan.erase_box(&found),
        }
    }
    scan.has_data |= !data.is_empty();
    scan.erase_unnamed(data);
    let (width, height) = scan
        .dimensions
        .ok_or_else(|| broken("The AVIF has no picture."))?;
    check_pixels(width, height)?;
    if !scan.has_data {
        return Err(broken("The AVIF has no pixels."));
    }
    Ok(CleanPicture {
        width,
        height,
        // The format's own turn; that of EXIF is not followed.
        orientation: if scan.is_turned { 6 } else { 1 },
        pieces: erased(file, scan.erasures)?,
    })
}

/// Lists the boxes of a file, up to the end of the picture: what is no box behind the description and the pixels is not of it.
fn top_boxes(file: &[u8]) -> Result<(Vec<MediaBox>, usize), Fault> {
    let (mut found, mut at) = (Vec::<MediaBox>::new(), 0);
    let has = |found: &[MediaBox], kinds: &[&[u8; 4]]| {
        let mut kinds = kinds.iter();
        kinds.any(|kind| found.iter().any(|one| one.kind == **kind))
    };
    while at < file.len() {
        let is_whole = has(&found, &[b"meta", b"moov"]) && has(&found, &[b"mdat"]);
        match next_box(file, at, file.len()) {
            // Another file begins.
            Ok(next) if is_whole && next.kind == *b"ftyp" => break,
            Ok(next) if found.len() < MAX_BOXES => {
                at = next.whole.end;
                found.push(next);
            }
            Ok(_) => return Err(broken("The AVIF has too many parts.")),
            Err(_) if is_whole => break,
            Err(fault) => return Err(fault),
        }
    }
    Ok((found, at))
}

/// Lists the boxes of a range.
fn boxes(file: &[u8], range: Range<usize>) -> Result<Vec<MediaBox>, Fault> {
    let (mut found, mut at) = (Vec::new(), range.start);
    while at < range.end {
        let next = next_box(file, at, range.end)?;
        if found.len() == MAX_BOXES {
            return Err(broken("The AVIF has too many parts."));
        }
        at = next.whole.end;
        found.push(next);
    }
    Ok(found)
}

/// Reads the box that begins here, in what goes to `most`.
fn next_box(file: &[u8], at: usize, most: usize) -> Result<MediaBox, Fault> {
    let length = be32(file, at).ok_or_else(cut_short)?;
    let kind = file.get(at + 4..at + 8).ok_or_else(cut_short)?;
    let (head, length) = match length {
        // The last box goes to the end.
        0 => (BOX_HEAD, most - at),
        1 => (2 * BOX_HEAD, be64(file, at + 8).ok_or_else(cut_short)?),
        length => (BOX_HEAD, usize::try_from(length).map_err(|_| cut_short())?),
    };
    let end = at.checked_add(length).filter(|end| *end <= most);
    let end = end.ok_or_else(cut_short)?;
    if length < head {
        return Err(broken("A box of the AVIF is damaged."));
    }
    Ok(MediaBox {
        kind: [kind[0], kind[1], kind[2], kind[3]],
        content: at + head..end,
        whole: at..end,
    })
}

/// Reads a big-endian number of eight bytes, as a length.
fn be64(file: &[u8], at: usize) -> Option<usize> {
    let high = be32(file, at)?;
    let low = be32(file, at.checked_add(4)?)?;
    (high == 0).then(|| usize::try_from(low).ok()).flatten()
}

/// Reads a number of 0, 2, 4 or 8 bytes, and moves behind it.
fn take_number(file: &[u8], at: &mut usize, bytes: usize) -> Result<usize, Fault> {
    let number = match bytes {
        0 => Some(0),
        2 => be16(file, *at).map(usize::from),
        4 => be32(file, *at).and_then(|number| usize::try_from(number).ok()),
        8 => be64(file, *at),
        _ => None,
    };
    *at += bytes;
    number.ok_or_else(cut_short)
}

impl AvifScan {
    /// Writes over a box, which is free space from then on.
    fn erase_box(&mut self, found: &MediaBox) {
        let type_start = found.whole.start + 4;
        let mut first = b"free".to_vec();
        let head = found.content.start - found.whole.start;
        if head > BOX_HEAD {
            // The length has its eight bytes still.
            self.erasures.push(Erasure {
                range: type_start..found.whole.start + BOX_HEAD,
                first,
            });
            first = Vec::new();
            self.erasures.push(Erasure {
                range: found.content.clone(),
                first,
            });
            return;
        }
        self.erasures.push(Erasure {
            range: type_start..found.whole.end,
            first,
        });
    }

    /// Writes over the bytes beside the description that no item has. An animation's frames are named elsewhere.
    fn erase_unnamed(&mut self, data: Vec<Range<usize>>) {
        if self.has_movie {
            return;
        }
        self.named.sort_unstable_by_key(|range| range.start);
        let mut named = self.named.iter().peekable();
        let mut at = 0;
        for content in data {
            at = content.start.max(at);
            while at < content.end {
                // Ranges that end before this place name nothing behind it.
                while named.peek().is_some_and(|range| range.end <= at) {
                    named.next();
                }
                match named.peek() {
                    Some(range) if range.start <= at => at = range.end,
                    next => {
                        let end = next.map_or(content.end, |range| range.start.min(content.end));
                        self.erasures.push(Erasure {
                            range: at..end,
                            first: Vec::new(),
                        });
                        at = end;
                    }
                }
            }
        }
    }

    /// Looks through the description of an animation, for boxes that do not draw.
    fn movie(&mut self, file: &[u8], range: Range<usize>, depth: usize) -> Result<(), Fault> {
        for found in boxes(file, range)? {
            match &found.kind {
                b"udta" | b"meta" | b"uuid" | b"free" | b"skip" => self.erase_box(&found),
                b"trak" | b"mdia" if depth > 0 => self.movie(file, found.content, depth - 1)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Looks through the description of the pictures.
    fn meta(&mut self, file: &[u8], meta: &MediaBox) -> Result<(), Fault> {
        // Four bytes of version and flags stand before its boxes.
        let parts = boxes(file, meta.content.start + 4..meta.content.end)?;
        let part = |kind: &[u8; 4]| parts.iter().find(|part| part.kind == *kind);
        for found in &parts {
            match &found.kind {
                b"iprp" => self.properties(file, found.content.clone())?,
                b"hdlr" | b"pitm" | b"iinf" | b"iloc" | b"iref" | b"idat" | b"grpl" | b"dinf" => {}
                _ => self.erase_box(found),
            }
        }
        let items = match part(b"iinf") {
            Some(list) => erased_items(file, list)?,
            None => Vec::new(),
        };
        let inner = part(b"idat").map(|data| data.content.clone());
        self.has_data |= inner.is_some();
        match part(b"iloc") {
            Some(places) => self.erase_items(file, places, &items, inner.as_ref()),
            None => Ok(()),
        }
    }

    /// Reads size and turn of the pictures: the largest counts.
    fn properties(&mut self, file: &[u8], range: Range<usize>) -> Result<(), Fault> {
        for list in boxes(file, range)? {
            if &list.kind != b"ipco" {
                continue;
            }
            for property in boxes(file, list.content)? {
                let start = property.content.start;
                match &property.kind {
                    b"ispe" => {
                        let width = be32(file, start + 4).ok_or_else(cut_short)?;
                        let height = be32(file, start + 8).ok_or_else(cut_short)?;
                        let pixels =
                            |(width, height): (u32, u32)| u64::from(width) * u64::from(height);
                        let new = (width, height);
                        if self.dimensions.is_none_or(|old| pixels(new) > pixels(old)) {
                            self.dimensions = Some(new);
                        }
                    }
                    b"irot" => self.is_turned |= file.get(start).is_some_and(|turn| turn & 1 == 1),
                    b"uuid" | b"udes" => self.erase_box(&property),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Writes over the bytes of items.
    fn erase_items(
        &mut self,
        file: &[u8],
        places: &MediaBox,
        items: &[(usize, Vec<u8>)],
        inner: Option<&Range<usize>>,
    ) -> Result<(), Fault> {
        let start = places.content.start;
        let version = *file.get(start).ok_or_else(cut_short)?;
        let sizes = be16(file, start + 4).ok_or_else(cut_short)?;
        let size = |shift: u16| usize::from(sizes >> shift & 15);
        let index_bytes = if version > 0 { size(0) } else { 0 };
        let id_bytes = if version < 2 { 2 } else { 4 };
        let mut at = start + 6;
        let count = take_number(file, &mut at, id_bytes)?;
        let mut parts = 0;
        for _ in 0..count {
            let id = take_number(file, &mut at, id_bytes)?;
            let method = match version {
                0 => 0,
                _ => take_number(file, &mut at, 2)? & 15,
            };
            let source = take_number(file, &mut at, 2)?;
            let base = take_number(file, &mut at, size(4))?;
            let extents = take_number(file, &mut at, 2)?;
            let erased = items.iter().find(|(item, _)| *item == id);
            for _ in 0..extents {
                parts += 1;
                if parts > MAX_ITEMS || at > places.content.end {
                    return Err(broken("The AVIF has too many parts."));
                }
                take_number(file, &mut at, index_bytes)?;
                let offset = take_number(file, &mut at, size(12))?;
                let length = take_number(file, &mut at, size(8))?;
                if source == 0 && method == 0 {
                    self.named.push(named_bytes(base, offset, length));
                }
                let Some((_, first)) = erased.filter(|_| source == 0) else {
                    continue;
                };
                let bounds = match (method, inner) {
                    (0, _) => 0..file.len(),
                    (1, Some(inner)) => inner.clone(),
                    _ => continue,
                };
                let begin = bounds
                    .start
                    .checked_add(base)
                    .and_then(|it| it.checked_add(offset));
                let range = begin.and_then(|begin| Some(begin..begin.checked_add(length)?));
                let range = range.filter(|range| range.end <= bounds.end);
                self.erasures.push(Erasure {
                    range: range.ok_or_else(cut_short)?,
                    first: first.clone(),
                });
            }
        }
        Ok(())
    }
}

/// Returns the bytes of the file that a part of an item has; one without a length goes to the end.
fn named_bytes(base: usize, offset: usize, length: usize) -> Range<usize> {
    let start = base.saturating_add(offset);
    let end = match length {
        0 => usize::MAX,
        length => start.saturating_add(length),
    };
    start..end
}

/// Lists the items that do not draw, by their ids, with the bytes that stand in their place.
fn erased_items(file: &[u8], list: &MediaBox) -> Result<Vec<(usize, Vec<u8>)>, Fault> {
    let start = list.content.start;
    let version = *file.get(start).ok_or_else(cut_short)?;
    let first = start + if version == 0 { 6 } else { 8 };
    let mut items = Vec::new();
    for entry in boxes(file, first..list.content.end)? {
        let content = &file[entry.content.clone()];
        let (Some(version), true) = (content.first(), &entry.kind == b"infe") else {
            continue;
        };
        let (id, kind_at) = match version {
            2 => (be16(content, 4).map(usize::from), 8),
            3 => (be32(content, 4).and_then(|id| usize::try_from(id).ok()), 10),
            _ => continue,
        };
        let id = id.ok_or_else(cut_short)?;
        match content.get(kind_at..kind_at + 4).ok_or_else(cut_short)? {
            b"Exif" => {
                // Four bytes say where the block begins; one that says nothing follows.
                let mut empty = vec![0; 4];
                empty.extend_from_slice(&exif::with_orientation(1));
                items.push((id, empty));
            }
            b"mime" | b"uri " => items.push((id, Vec::new())),
            _ => {}
        }
        if items.len() > MAX_ITEMS {
            return Err(broken("The AVIF has too many parts."));
        }
    }
    Ok(items)
}

/// Returns the parts of a file with some bytes written over.
fn erased(file: &[u8], mut erasures: Vec<Erasure>) -> Result<Pieces, Fault> {
    erasures.sort_by_key(|erasure| erasure.range.start);
    let (mut pieces, mut at) = (Pieces::default(), 0);
    for Erasure { range, first } in erasures {
        if range.start < at {
            // Two names for the same bytes, which are gone already.
            if range.end <= at {
                continue;
            }
            return Err(broken("Parts of the AVIF overlap."));
        }
        pieces.keep(at..range.start);
        let first = if first.len() <= range.len() {
            first
        } else {
            Vec::new()
        };
        let zeros = range.len() - first.len();
        pieces.add(first);
        pieces.zeros(zeros);
        at = range.end;
    }
    pieces.keep(at..file.len());
    Ok(pieces)
}
