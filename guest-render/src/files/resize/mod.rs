//! Smaller copies of pictures: decoded, shrunk as the rows come, turned upright, and encoded again.

mod decode;
mod encode;
mod raster;
mod shrink;

use super::recognise::{self, recognise};
use super::{Fault, Recognition, SmallerCopy, broken};

/// Most pixels of a picture of which copies are made.
const MAX_PIXELS: u64 = 24_000_000;

/// Makes a copy of a picture that fits a square of `size` pixels.
///
/// # Errors
/// [`Fault`].
pub fn resize(file: &[u8], size: u32) -> Result<SmallerCopy, Fault> {
    let Recognition::Picture(kind) = recognise(file) else {
        return Err(broken("The file is no picture."));
    };
    let decoded = match kind.as_str() {
        recognise::JPEG => decode::jpeg(file, size)?,
        recognise::PNG => decode::png(file, size)?,
        recognise::GIF => decode::gif(file, size)?,
        recognise::WEBP => decode::webp(file, size)?,
        _ => return Err(Fault::Unsupported),
    };
    let upright = decoded.raster.upright(decoded.orientation);
    encode::encode(&upright, decoded.profile.as_deref())
}

/// Refuses a picture with too many pixels for a copy.
fn check_pixels(width: u32, height: u32) -> Result<(), Fault> {
    match u64::from(width) * u64::from(height) {
        0 => Err(broken("The picture has no pixels.")),
        pixels if pixels > MAX_PIXELS => Err(Fault::TooLarge),
        _ => Ok(()),
    }
}

/// Returns the size of a copy of a picture that fits a square. It is never larger than the picture.
fn fitting(width: u32, height: u32, square: u32) -> (u32, u32) {
    let longer = width.max(height).max(1);
    if longer <= square {
        return (width, height);
    }
    let scaled = |length: u32| {
        let rounded =
            (u64::from(length) * u64::from(square) + u64::from(longer) / 2) / u64::from(longer);
        u32::try_from(rounded).unwrap_or(square).clamp(1, square)
    };
    (scaled(width), scaled(height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_fits_its_square() {
        for (picture, square, copy) in [
            ((4000, 3000), 256, (256, 192)),
            ((3000, 4000), 256, (192, 256)),
            ((100, 50), 256, (100, 50)),
            ((10_000, 1), 64, (64, 1)),
            ((256, 256), 256, (256, 256)),
        ] {
            assert_eq!(fitting(picture.0, picture.1, square), copy);
        }
    }
}
