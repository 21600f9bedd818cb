//! Files that visitors bring: recognised from their bytes, pictures cleaned of what does not draw, and smaller copies of them.
//!
//! Cleaning decodes no picture. It walks through the parts of a file and names those that draw, so that pixels stay as they are: what is
//! not on a list of such parts goes.

mod avif;
mod exif;
mod gif;
mod jpeg;
mod pieces;
mod png;
mod recognise;
mod resize;
mod webp;

#[cfg(test)]
mod tests;

pub use crate::file_bindings::exports::svc::files::cleaner::{
    Cleaned, Fault, Piece, Recognition, SmallerCopy, Span,
};
pub use recognise::{is_text, recognise};
pub use resize::resize;

use pieces::Pieces;

/// Most pixels of a picture.
const MAX_PIXELS: u64 = 100_000_000;

/// Picture as its parts say, before anything of it is built.
#[derive(Debug)]
struct CleanPicture {
    width: u32,
    height: u32,
    /// Orientation as EXIF has it, from 1 to 8; 1 where the format has another way to say so.
    orientation: u8,
    pieces: Pieces,
}

/// Returns the fault of a file that is cut short or broken.
fn broken(reason: &str) -> Fault {
    Fault::Broken(reason.to_owned())
}

/// Returns the fault of a file that ends too early.
fn cut_short() -> Fault {
    broken("The picture is cut short.")
}

/// Refuses a picture without pixels, or with too many.
fn check_pixels(width: u32, height: u32) -> Result<(), Fault> {
    match u64::from(width) * u64::from(height) {
        0 => Err(broken("The picture has no pixels.")),
        pixels if pixels > MAX_PIXELS => Err(Fault::TooLarge),
        _ => Ok(()),
    }
}

/// Takes out of a picture what does not draw.
///
/// # Errors
/// [`Fault`].
pub fn clean(file: &[u8], keep_metadata: bool) -> Result<Cleaned, Fault> {
    let length = u32::try_from(file.len()).map_err(|_| Fault::TooLarge)?;
    let picture = match recognise(file) {
        Recognition::Picture(kind) => match kind.as_str() {
            recognise::JPEG => jpeg::clean(file)?,
            recognise::PNG => png::clean(file)?,
            recognise::GIF => gif::clean(file)?,
            recognise::WEBP => webp::clean(file)?,
            _ => avif::clean(file)?,
        },
        _ => return Err(broken("The file is no picture.")),
    };
    let CleanPicture {
        width,
        height,
        orientation,
        pieces,
    } = picture;
    let (width, height) = match exif::is_turned(orientation) {
        true => (height, width),
        false => (width, height),
    };
    let pieces = match keep_metadata {
        true => vec![Piece::Kept(Span {
            start: 0,
            end: length,
        })],
        false => pieces.finish()?,
    };
    Ok(Cleaned {
        width,
        height,
        pieces,
    })
}

/// Reads a big-endian number of two bytes.
fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let part = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes(part.try_into().ok()?))
}

/// Reads a big-endian number of four bytes.
fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    let part = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(part.try_into().ok()?))
}

/// Reads a little-endian number of two bytes.
fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    let part = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(part.try_into().ok()?))
}

/// Reads a little-endian number of four bytes.
fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    let part = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(part.try_into().ok()?))
}
