//! Decoders of pictures, whose rows are shrunk as they come.

use std::io::Cursor;

use image_webp::UpsamplingMethod;
use jpeg_decoder::PixelFormat;
use png::{ColorType, Transformations};

use super::raster::Raster;
use super::shrink::Shrinker;
use super::{check_pixels, fitting};
use crate::files::{Fault, broken, jpeg as jpeg_parts, png as png_parts, webp as webp_parts};

/// Bytes that a decoder may take beside the picture.
const DECODER_BYTES: usize = 96 << 20;
/// Most pixels of a JPEG that one call decodes, shrinks and encodes within its fuel, whatever they show.
const MAX_DECODED_PIXELS: u64 = 5_500_000;

/// A picture, shrunk but not turned.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) raster: Raster,
    /// Orientation as EXIF has it.
    pub(super) orientation: u8,
    /// Colour profile, of a picture that has one.
    pub(super) profile: Option<Vec<u8>>,
}

/// Converts the error of a decoder, whose text is for nobody.
fn undecodable<E>(_: E) -> Fault {
    broken("The picture cannot be decoded.")
}

/// Shrinks a picture that is in memory.
fn shrink_all(pixels: &[u8], from: (u32, u32), size: u32, channels: usize) -> Raster {
    let mut shrinker = Shrinker::new(from, fitting(from.0, from.1, size), channels);
    for row in pixels.chunks_exact((from.0 as usize * channels).max(1)) {
        shrinker.push(row);
    }
    shrinker.finish()
}

/// Returns by which power of two a JPEG is divided as it is decoded, which costs a fraction of shrinking it afterwards. A copy may be
/// an eighth smaller than its square for that; one of a picture that is too large for the budget of a call is smaller still, and is
/// there.
fn divisor(width: u32, height: u32, size: u32) -> u16 {
    let suffices = |divisor: u32| width.max(height) / divisor >= size - size / 8;
    let is_costly = |divisor: u32| {
        u64::from(width / divisor) * u64::from(height / divisor) > MAX_DECODED_PIXELS
    };
    let mut divisor = 1_u16;
    while divisor < 8 && (suffices(u32::from(divisor) * 2) || is_costly(divisor.into())) {
        divisor *= 2;
    }
    divisor
}

/// Decodes a JPEG.
pub(super) fn jpeg(file: &[u8], size: u32) -> Result<Decoded, Fault> {
    let mut decoder = jpeg_decoder::Decoder::new(Cursor::new(file));
    decoder.set_max_decoding_buffer_size(DECODER_BYTES);
    decoder.read_info().map_err(undecodable)?;
    let info = decoder.info().ok_or_else(|| undecodable(()))?;
    check_pixels(info.width.into(), info.height.into())?;
    let channels = match info.pixel_format {
        PixelFormat::L8 => 1,
        PixelFormat::RGB24 => 3,
        PixelFormat::L16 | PixelFormat::CMYK32 => return Err(Fault::Unsupported),
    };
    let divisor = divisor(info.width.into(), info.height.into(), size);
    let wanted = (info.width.div_ceil(divisor), info.height.div_ceil(divisor));
    let (width, height) = decoder.scale(wanted.0, wanted.1).map_err(undecodable)?;
    let pixels = decoder.decode().map_err(undecodable)?;
    let profile = decoder.icc_profile();
    let orientation = jpeg_parts::clean(file).map_or(1, |picture| picture.orientation);
    Ok(Decoded {
        raster: shrink_all(&pixels, (width.into(), height.into()), size, channels),
        orientation,
        profile,
    })
}

/// Decodes a PNG, row by row unless it is interlaced.
pub(super) fn png(file: &[u8], size: u32) -> Result<Decoded, Fault> {
    let limits = png::Limits {
        bytes: DECODER_BYTES,
    };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(file), limits);
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(undecodable)?;
    let info = reader.info();
    let (width, height, is_interlaced) = (info.width, info.height, info.interlaced);
    let profile = info.icc_profile.as_ref().map(|profile| profile.to_vec());
    check_pixels(width, height)?;
    let (colour, _) = reader.output_color_type();
    let channels = match colour {
        ColorType::Grayscale => 1,
        ColorType::Rgb => 3,
        ColorType::GrayscaleAlpha | ColorType::Rgba => 4,
        ColorType::Indexed => return Err(Fault::Unsupported),
    };
    let to = fitting(width, height, size);
    let mut shrinker = Shrinker::new((width, height), to, channels);
    let mut push = |row: &[u8]| match colour {
        ColorType::GrayscaleAlpha => {
            let pixels = row.chunks_exact(2);
            let wide: Vec<u8> = pixels.flat_map(|it| [it[0], it[0], it[0], it[1]]).collect();
            shrinker.push(&wide);
        }
        _ => shrinker.push(row),
    };
    if is_interlaced {
        let samples = colour.samples();
        let row_bytes = width as usize * samples;
        let mut pixels = vec![0; row_bytes * height as usize];
        reader.next_frame(&mut pixels).map_err(undecodable)?;
        pixels.chunks_exact(row_bytes.max(1)).for_each(push);
    } else {
        while let Some(row) = reader.next_row().map_err(undecodable)? {
            push(row.data());
        }
    }
    let orientation = png_parts::clean(file).map_or(1, |picture| picture.orientation);
    Ok(Decoded {
        raster: shrinker.finish(),
        orientation,
        profile,
    })
}

/// Decodes the first frame of a GIF.
pub(super) fn gif(file: &[u8], size: u32) -> Result<Decoded, Fault> {
    let mut options = gif::DecodeOptions::new();
    options.set_color_output(gif::ColorOutput::RGBA);
    let mut decoder = options.read_info(Cursor::new(file)).map_err(undecodable)?;
    let (width, height) = (u32::from(decoder.width()), u32::from(decoder.height()));
    check_pixels(width, height)?;
    let frame = decoder.next_frame_info().map_err(undecodable)?;
    let frame = frame.ok_or_else(|| undecodable(()))?;
    check_pixels(frame.width.into(), frame.height.into())?;
    let (left, top) = (usize::from(frame.left), usize::from(frame.top));
    let frame_row = usize::from(frame.width) * 4;
    let mut pixels = vec![0; frame_row * usize::from(frame.height)];
    decoder.read_into_buffer(&mut pixels).map_err(undecodable)?;
    let mut shrinker = Shrinker::new((width, height), fitting(width, height, size), 4);
    let mut row = vec![0; width as usize * 4];
    for y in 0..height as usize {
        row.fill(0);
        let inner = y
            .checked_sub(top)
            .and_then(|y| pixels.get(y * frame_row..(y + 1) * frame_row));
        if let Some(pixels) = inner
            && let Some(place) = row.get_mut(left * 4..)
        {
            let length = place.len().min(pixels.len());
            place[..length].copy_from_slice(&pixels[..length]);
        }
        shrinker.push(&row);
    }
    Ok(Decoded {
        raster: shrinker.finish(),
        orientation: 1,
        profile: None,
    })
}

/// Decodes a WebP, of an animation the first frame.
pub(super) fn webp(file: &[u8], size: u32) -> Result<Decoded, Fault> {
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(file)).map_err(undecodable)?;
    let (width, height) = decoder.dimensions();
    check_pixels(width, height)?;
    if width.max(height) / 2 >= size {
        // In a copy of half the size nobody sees the difference.
        decoder.set_lossy_upsampling(UpsamplingMethod::Simple);
    }
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let bytes = decoder.output_buffer_size();
    let bytes = bytes.filter(|bytes| *bytes <= DECODER_BYTES);
    let mut pixels = vec![0; bytes.ok_or(Fault::TooLarge)?];
    decoder.read_image(&mut pixels).map_err(undecodable)?;
    let profile = decoder.icc_profile().ok().flatten();
    let orientation = webp_parts::clean(file).map_or(1, |picture| picture.orientation);
    Ok(Decoded {
        raster: shrink_all(&pixels, (width, height), size, channels),
        orientation,
        profile,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_photo_is_decoded_at_the_scale_that_suffices() {
        for (picture, size, expected) in [
            ((4032, 3024), 2048, 2),
            ((4000, 3000), 1024, 4),
            ((4000, 3000), 64, 8),
            ((3024, 4032), 2048, 2),
            ((3456, 3456), 2048, 2),
            ((2300, 2300), 2048, 1),
            ((3264, 2448), 2048, 2),
            // Half of it would be more pixels than a call has fuel for.
            ((6000, 4000), 2048, 4),
            ((2048, 1536), 2048, 1),
            ((1000, 750), 512, 2),
            ((1000, 750), 2048, 1),
            ((1, 1), 64, 1),
        ] {
            assert_eq!(
                divisor(picture.0, picture.1, size),
                expected,
                "{picture:?} {size}"
            );
        }
    }
}
