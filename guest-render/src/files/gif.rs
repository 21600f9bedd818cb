//! Cleaning of GIF: its frames and what times and repeats them stay, comments and other extensions go.

use std::ops::Range;

use super::pieces::Pieces;
use super::{CleanPicture, Fault, broken, check_pixels, cut_short, le16};

/// Bytes of signature and screen.
const HEAD_BYTES: usize = 13;
/// Bytes of an image's descriptor.
const DESCRIPTOR_BYTES: usize = 10;
/// Applications whose blocks say how often an animation is repeated.
const LOOPS: [&[u8]; 2] = [b"NETSCAPE2.0", b"ANIMEXTS1.0"];
/// Application whose blocks have a colour profile.
const PROFILE: &[u8] = b"ICCRGBG1012";

/// Cleans a GIF.
pub(super) fn clean(file: &[u8]) -> Result<CleanPicture, Fault> {
    let (width, height) = le16(file, 6).zip(le16(file, 8)).ok_or_else(cut_short)?;
    check_pixels(width.into(), height.into())?;
    let flags = *file.get(10).ok_or_else(cut_short)?;
    let mut at = HEAD_BYTES + table_bytes(flags);
    let mut pieces = Pieces::default();
    pieces.keep(0..at);
    // The block that times the next image is kept once that is there.
    let mut timing: Option<Range<usize>> = None;
    let mut has_image = false;
    loop {
        match *file.get(at).ok_or_else(cut_short)? {
            0x3b if has_image => {
                pieces.keep(at..at + 1);
                break;
            }
            0x2c => {
                let flags = *file.get(at + 9).ok_or_else(cut_short)?;
                // After the table stands the smallest length of a code.
                let data = at + DESCRIPTOR_BYTES + table_bytes(flags) + 1;
                let end = after_blocks(file, data)?;
                if let Some(timing) = timing.take() {
                    pieces.keep(timing);
                }
                pieces.keep(at..end);
                has_image = true;
                at = end;
            }
            0x21 => {
                let label = *file.get(at + 1).ok_or_else(cut_short)?;
                let end = after_blocks(file, at + 2)?;
                match label {
                    0xf9 => timing = Some(at..end),
                    0xff => keep_application(file, at..end, (&mut timing, &mut pieces)),
                    // A text is drawn by nobody any more, and takes its timing along.
                    0x01 => timing = None,
                    _ => {}
                }
                at = end;
            }
            _ => return Err(broken("A block of the GIF is damaged.")),
        }
    }
    Ok(CleanPicture {
        width: width.into(),
        height: height.into(),
        orientation: 1,
        pieces,
    })
}

/// Returns the length of a colour table, by the flags before it.
fn table_bytes(flags: u8) -> usize {
    match flags & 0x80 {
        0 => 0,
        _ => 3 << ((flags & 7) + 1),
    }
}

/// Returns where the sub-blocks end that begin here.
fn after_blocks(file: &[u8], mut at: usize) -> Result<usize, Fault> {
    loop {
        match *file.get(at).ok_or_else(cut_short)? {
            0 => return Ok(at + 1),
            length => at += 1 + usize::from(length),
        }
    }
}

/// Keeps an application's block that says how often the animation is repeated, or which colours it has; before it, the timing that
/// stands before it.
fn keep_application(
    file: &[u8],
    range: Range<usize>,
    (timing, pieces): (&mut Option<Range<usize>>, &mut Pieces),
) {
    let block = &file[range.clone()];
    let Some(name) = block.get(3..14).filter(|_| block[2] == 11) else {
        return;
    };
    let repeats = block.get(14..18).filter(|_| LOOPS.contains(&name));
    let repeats = repeats.filter(|repeats| repeats.starts_with(&[3, 1]));
    if name != PROFILE && repeats.is_none() {
        return;
    }
    if let Some(timing) = timing.take() {
        pieces.keep(timing);
    }
    let Some([_, _, low, high]) = repeats else {
        pieces.keep(range);
        return;
    };
    let mut kept = block[..14].to_vec();
    kept.extend_from_slice(&[3, 1, *low, *high, 0]);
    pieces.add(kept);
}
