//! Cleaning of JPEG: its segments, of which those stay that decoders need, the colour profile, and the orientation.

use std::ops::Range;

use super::pieces::Pieces;
use super::{CleanPicture, Fault, be16, broken, check_pixels, cut_short, exif};

/// Length of the segment that says that a file is JFIF, without a small copy of the picture.
const JFIF_BYTES: usize = 16;
/// Length of the segment that says how the colours are transformed.
const ADOBE_BYTES: usize = 14;

/// State of the reading of a JPEG.
#[derive(Debug, Default)]
struct JpegScan {
    dimensions: Option<(u32, u32)>,
    orientation: u8,
    has_pixels: bool,
    pieces: Pieces,
}

/// Cleans a JPEG.
pub(super) fn clean(file: &[u8]) -> Result<CleanPicture, Fault> {
    let mut scan = JpegScan {
        orientation: 1,
        ..JpegScan::default()
    };
    scan.pieces.keep(0..2);
    let mut at = 2;
    loop {
        if file.get(at).ok_or_else(cut_short)? != &0xff {
            return Err(broken("A segment of the JPEG is damaged."));
        }
        // Bytes of 0xff may fill the space before a marker.
        while file.get(at + 1).ok_or_else(cut_short)? == &0xff {
            at += 1;
        }
        let marker = file[at + 1];
        match marker {
            0xd9 => {
                scan.pieces.keep(at..at + 2);
                break;
            }
            0x01 => {
                at += 2;
                continue;
            }
            0x00 | 0xd0..=0xd8 => return Err(broken("A segment of the JPEG is damaged.")),
            _ => {}
        }
        let length = usize::from(be16(file, at + 2).ok_or_else(cut_short)?);
        let end = at + 2 + length;
        if length < 2 || end > file.len() {
            return Err(cut_short());
        }
        scan.segment(file, marker, at..end)?;
        at = match marker {
            0xda => scan.entropy_coded(file, end)?,
            _ => end,
        };
    }
    let (width, height) = scan
        .dimensions
        .ok_or_else(|| broken("The JPEG has no frame."))?;
    if !scan.has_pixels {
        return Err(broken("The JPEG has no pixels."));
    }
    Ok(CleanPicture {
        width,
        height,
        orientation: scan.orientation,
        pieces: scan.pieces,
    })
}

impl JpegScan {
    /// Keeps a segment, a part of it, or nothing.
    fn segment(&mut self, file: &[u8], marker: u8, range: Range<usize>) -> Result<(), Fault> {
        let content = &file[range.start + 4..range.end];
        match marker {
            0xe0 if content.starts_with(b"JFIF\0") && content.len() + 2 >= JFIF_BYTES => {
                self.keep_start(file, range.start, JFIF_BYTES, &[0, 0]);
            }
            0xe1 if content.starts_with(b"Exif\0\0") => self.keep_orientation(&content[6..]),
            0xe2 if content.starts_with(b"ICC_PROFILE\0") => self.pieces.keep(range),
            0xee if content.starts_with(b"Adobe") && content.len() + 2 >= ADOBE_BYTES => {
                self.keep_start(file, range.start, ADOBE_BYTES, &[]);
            }
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                if self.dimensions.is_some() {
                    return Err(broken("The JPEG has several frames."));
                }
                let height = be16(content, 1).ok_or_else(cut_short)?;
                let width = be16(content, 3).ok_or_else(cut_short)?;
                check_pixels(width.into(), height.into())?;
                self.dimensions = Some((width.into(), height.into()));
                self.pieces.keep(range);
            }
            // Tables, the restart interval, the number of lines, and the head of a scan.
            0xc4 | 0xcc | 0xda | 0xdb | 0xdc | 0xdd => self.pieces.keep(range),
            _ => {}
        }
        Ok(())
    }

    /// Keeps the first bytes of a segment, `length` of them after its marker, the last of which are replaced.
    fn keep_start(&mut self, file: &[u8], start: usize, length: usize, last: &[u8]) {
        let mut segment = file[start..start + 2 + length].to_vec();
        let declared = u16::try_from(length).unwrap_or(u16::MAX);
        segment[2..4].copy_from_slice(&declared.to_be_bytes());
        let kept = segment.len() - last.len();
        segment[kept..].copy_from_slice(last);
        self.pieces.add(segment);
    }

    /// Keeps the orientation of a block of EXIF, if it turns the picture.
    fn keep_orientation(&mut self, tiff: &[u8]) {
        let found = exif::orientation(tiff);
        if found == 1 || self.orientation != 1 {
            return;
        }
        self.orientation = found;
        let tiff = exif::with_orientation(found);
        let length = u16::try_from(2 + 6 + tiff.len()).unwrap_or(u16::MAX);
        let mut segment = vec![0xff, 0xe1];
        segment.extend_from_slice(&length.to_be_bytes());
        segment.extend_from_slice(b"Exif\0\0");
        segment.extend_from_slice(&tiff);
        self.pieces.add(segment);
    }

    /// Keeps the entropy-coded data of a scan; returns where the next marker stands.
    fn entropy_coded(&mut self, file: &[u8], start: usize) -> Result<usize, Fault> {
        if self.dimensions.is_none() {
            return Err(broken("The JPEG has a scan before its frame."));
        }
        let mut at = start;
        loop {
            let rest = file.get(at..).ok_or_else(cut_short)?;
            let found = memchr::memchr(0xff, rest).ok_or_else(cut_short)?;
            at += found;
            match file.get(at + 1).ok_or_else(cut_short)? {
                0x00 | 0xd0..=0xd7 => at += 2,
                0xff => at += 1,
                _ => break,
            }
        }
        self.has_pixels = true;
        self.pieces.keep(start..at);
        Ok(at)
    }
}
