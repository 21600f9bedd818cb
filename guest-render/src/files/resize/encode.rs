//! Copies as JPEG, or as PNG where something is behind them.

use super::raster::Raster;
use crate::files::{Fault, SmallerCopy, broken};

/// Quality of a JPEG.
const QUALITY: u8 = 82;
/// Most bytes of a colour profile that a copy has.
const PROFILE_BYTES: usize = 64 << 10;

/// Encodes a picture.
pub(super) fn encode(raster: &Raster, profile: Option<&[u8]>) -> Result<SmallerCopy, Fault> {
    let is_png = raster.is_transparent();
    let bytes = match is_png {
        true => png(raster),
        false => jpeg(raster, profile),
    };
    let media_type = if is_png { "image/png" } else { "image/jpeg" };
    Ok(SmallerCopy {
        media_type: media_type.to_owned(),
        bytes: bytes.ok_or_else(|| broken("The copy cannot be encoded."))?,
    })
}

fn jpeg(raster: &Raster, profile: Option<&[u8]>) -> Option<Vec<u8>> {
    let width = u16::try_from(raster.width).ok()?;
    let height = u16::try_from(raster.height).ok()?;
    let (colour, pixels) = match raster.channels {
        1 => (jpeg_encoder::ColorType::Luma, &raster.pixels),
        3 => (jpeg_encoder::ColorType::Rgb, &raster.pixels),
        // All of it is opaque.
        _ => (jpeg_encoder::ColorType::Rgba, &raster.pixels),
    };
    let mut bytes = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut bytes, QUALITY);
    if let Some(profile) = profile.filter(|profile| profile.len() <= PROFILE_BYTES) {
        encoder.add_icc_profile(profile).ok()?;
    }
    encoder.encode(pixels, width, height, colour).ok()?;
    Some(bytes)
}

fn png(raster: &Raster) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, raster.width, raster.height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(&raster.pixels).ok()?;
    writer.finish().ok()?;
    Some(bytes)
}
