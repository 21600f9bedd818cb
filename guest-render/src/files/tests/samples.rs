//! Small pictures of every kind with something to hide.

use std::io::Cursor;

use super::super::{exif, png, webp};

/// Text that no cleaned picture has.
pub(super) const SECRET: &[u8] = b"SECRET 52.5200 13.4050";

/// A picture with metadata.
pub(super) struct Sample {
    pub(super) name: &'static str,
    pub(super) file: Vec<u8>,
    /// Width and height as they are shown.
    pub(super) size: (u32, u32),
    /// Decodes the picture.
    pub(super) pixels: fn(&[u8]) -> Vec<u8>,
}

/// Returns a picture of every kind.
pub(super) fn all() -> Vec<Sample> {
    vec![
        Sample {
            name: "jpeg",
            file: jpeg(),
            size: (8, 16),
            pixels: jpeg_pixels,
        },
        Sample {
            name: "png",
            file: png(),
            size: (16, 8),
            pixels: png_pixels,
        },
        Sample {
            name: "gif",
            file: gif(),
            size: (16, 8),
            pixels: gif_pixels,
        },
        Sample {
            name: "webp",
            file: webp(),
            size: (8, 16),
            pixels: webp_pixels,
        },
        Sample {
            name: "avif",
            file: avif(),
            size: (16, 8),
            pixels: avif_pixels,
        },
    ]
}

/// Returns 16 × 8 pixels of red, green and blue.
fn rgb() -> Vec<u8> {
    (0..=250).cycle().step_by(7).take(16 * 8 * 3).collect()
}

/// Returns EXIF with an orientation and a secret behind it.
fn exif_of(orientation: u8) -> Vec<u8> {
    let mut tiff = exif::with_orientation(orientation);
    tiff.extend_from_slice(SECRET);
    tiff
}

fn segment(marker: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len() + 2).unwrap();
    let mut segment = vec![0xff, marker];
    segment.extend_from_slice(&length.to_be_bytes());
    segment.extend_from_slice(content);
    segment
}

/// A JPEG that is turned by its EXIF, with a comment, XMP, a maker's segment, and a script behind its end.
fn jpeg() -> Vec<u8> {
    let mut plain = Vec::new();
    let encoder = jpeg_encoder::Encoder::new(&mut plain, 90);
    encoder
        .encode(&rgb(), 16, 8, jpeg_encoder::ColorType::Rgb)
        .unwrap();
    let mut file = plain[..2].to_vec();
    file.extend(segment(0xe1, &[b"Exif\0\0", &exif_of(6)[..]].concat()));
    file.extend(segment(
        0xe1,
        &[b"http://ns.adobe.com/xap/1.0/\0", SECRET].concat(),
    ));
    file.extend(segment(0xed, SECRET));
    file.extend(segment(0xfe, SECRET));
    file.extend_from_slice(&plain[2..]);
    file.extend_from_slice(b"<script>");
    file.extend_from_slice(SECRET);
    file
}

fn jpeg_pixels(file: &[u8]) -> Vec<u8> {
    jpeg_decoder::Decoder::new(Cursor::new(file))
        .decode()
        .unwrap()
}

fn png_chunk(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    png::chunk(kind, content)
}

/// Returns the begin of a PNG of this size, with one chunk of pixels that are none.
pub(super) fn png_header(width: u32, height: u32) -> Vec<u8> {
    let mut header = width.to_be_bytes().to_vec();
    header.extend_from_slice(&height.to_be_bytes());
    header.extend_from_slice(&[8, 2, 0, 0, 0]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    file.extend(png_chunk(b"IHDR", &header));
    file.extend(png_chunk(b"IDAT", b"\x78\x9c\x03\0\0\0\0\x01"));
    file.extend(png_chunk(b"IEND", b""));
    file
}

/// A PNG with a text, a time, EXIF, a private chunk, an end that is not empty, and a script behind its end.
fn png() -> Vec<u8> {
    let mut plain = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut plain, 16, 8);
    encoder.set_color(::png::ColorType::Rgb);
    encoder.set_depth(::png::BitDepth::Eight);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&rgb()).unwrap();
    writer.finish().unwrap();
    // After signature and header.
    let (head, rest) = plain.split_at(8 + 25);
    let mut file = head.to_vec();
    file.extend(png_chunk(b"tEXt", &[b"Comment\0", SECRET].concat()));
    file.extend(png_chunk(b"eXIf", &exif_of(1)));
    file.extend(png_chunk(b"prVt", SECRET));
    let (pixels, _) = rest.split_at(rest.len() - 12);
    file.extend_from_slice(pixels);
    file.extend(png_chunk(b"IEND", SECRET));
    file.extend_from_slice(b"<script>");
    file.extend_from_slice(SECRET);
    file
}

fn png_pixels(file: &[u8]) -> Vec<u8> {
    let mut reader = ::png::Decoder::new(Cursor::new(file)).read_info().unwrap();
    let mut pixels = vec![0; 16 * 8 * 3];
    reader.next_frame(&mut pixels).unwrap();
    pixels
}

/// A GIF of two frames with a comment, XMP, and a script behind its end.
fn gif() -> Vec<u8> {
    let mut plain = Vec::new();
    let palette = [255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0];
    let mut encoder = ::gif::Encoder::new(&mut plain, 16, 8, &palette).unwrap();
    encoder.set_repeat(::gif::Repeat::Infinite).unwrap();
    for shift in 0..2 {
        let frame = ::gif::Frame {
            width: 16,
            height: 8,
            delay: 5,
            buffer: (0..4).cycle().skip(shift).take(16 * 8).collect(),
            ..::gif::Frame::default()
        };
        encoder.write_frame(&frame).unwrap();
    }
    drop(encoder);
    // After the screen and its table of four colours.
    let (head, rest) = plain.split_at(13 + 12);
    let mut file = head.to_vec();
    let length = u8::try_from(SECRET.len()).unwrap();
    file.extend_from_slice(&[0x21, 0xfe, length]);
    file.extend_from_slice(SECRET);
    file.extend_from_slice(&[0, 0x21, 0xff, 11]);
    file.extend_from_slice(b"XMP DataXMP");
    file.push(length);
    file.extend_from_slice(SECRET);
    file.push(0);
    file.extend_from_slice(rest);
    file.extend_from_slice(b"<script>");
    file.extend_from_slice(SECRET);
    file
}

fn gif_pixels(file: &[u8]) -> Vec<u8> {
    let mut options = ::gif::DecodeOptions::new();
    options.set_color_output(::gif::ColorOutput::RGBA);
    let mut decoder = options.read_info(Cursor::new(file)).unwrap();
    let mut pixels = Vec::new();
    while let Some(frame) = decoder.read_next_frame().unwrap() {
        pixels.extend_from_slice(&frame.buffer);
    }
    pixels
}

fn webp_chunk(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let mut chunk = webp::chunk_head(kind, content.len());
    chunk.extend_from_slice(content);
    if content.len() % 2 == 1 {
        chunk.push(0);
    }
    chunk
}

/// A WebP that is turned by its EXIF, with a longer head, XMP, a chunk that nobody knows, and a script behind its end.
fn webp() -> Vec<u8> {
    let mut plain = Vec::new();
    let encoder = image_webp::WebPEncoder::new(&mut plain);
    encoder
        .encode(&rgb(), 16, 8, image_webp::ColorType::Rgb8)
        .unwrap();
    let canvas = [0x0c, 0, 0, 0, 15, 0, 0, 7, 0, 0];
    let mut chunks = webp_chunk(b"VP8X", &[&canvas, SECRET].concat());
    chunks.extend_from_slice(&plain[12..]);
    chunks.extend(webp_chunk(b"EXIF", &exif_of(6)));
    chunks.extend(webp_chunk(b"XMP ", SECRET));
    chunks.extend(webp_chunk(b"JUNK", SECRET));
    let mut file = b"RIFF".to_vec();
    file.extend_from_slice(&u32::try_from(chunks.len() + 4).unwrap().to_le_bytes());
    file.extend_from_slice(b"WEBP");
    file.extend(chunks);
    file.extend_from_slice(b"<script>");
    file.extend_from_slice(SECRET);
    file
}

fn webp_pixels(file: &[u8]) -> Vec<u8> {
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(file)).unwrap();
    let mut pixels = vec![0; decoder.output_buffer_size().unwrap()];
    decoder.read_image(&mut pixels).unwrap();
    pixels
}

fn media_box(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len() + 8).unwrap();
    let mut found = length.to_be_bytes().to_vec();
    found.extend_from_slice(kind);
    found.extend_from_slice(content);
    found
}

fn item(id: u8, kind: &[u8; 4]) -> Vec<u8> {
    media_box(
        b"infe",
        &[&[2, 0, 0, 0, 0, id, 0, 0][..], kind, b"\0"].concat(),
    )
}

/// Bytes that stand for pixels.
const AV1: &[u8] = b"these stand for pixels";

/// An AVIF with EXIF and XMP as items, data that no item has, and free space with a script.
fn avif() -> Vec<u8> {
    let start = avif_of(0).len() - AV1.len() - 3 * SECRET.len() - 8;
    let script = media_box(b"free", b"<script>");
    let mut file = avif_of(u32::try_from(start).unwrap());
    file.extend(script);
    file
}

/// An AVIF, if its data begin at an offset.
fn avif_of(start: u32) -> Vec<u8> {
    let brands = media_box(b"ftyp", b"avif\0\0\0\0avifmif1");
    let items = [
        &[0, 0, 0, 0, 0, 3][..],
        &item(1, b"av01"),
        &item(2, b"Exif"),
        &item(3, b"mime"),
    ];
    let mut places = vec![0, 0, 0, 0, 0x44, 0, 0, 3];
    let mut offset = start + 8;
    for (id, length) in [(1, AV1.len()), (2, SECRET.len()), (3, SECRET.len())] {
        let length = u32::try_from(length).unwrap();
        places.extend_from_slice(&[0, id, 0, 0, 0, 1]);
        places.extend_from_slice(&offset.to_be_bytes());
        places.extend_from_slice(&length.to_be_bytes());
        offset += length;
    }
    let size = media_box(b"ispe", &[0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 8]);
    let properties = media_box(b"iprp", &media_box(b"ipco", &size));
    let meta = [
        &[0; 4][..],
        &media_box(b"hdlr", &[0; 25]),
        &media_box(b"pitm", &[0, 0, 0, 0, 0, 1]),
        &media_box(b"iinf", &items.concat()),
        &media_box(b"iloc", &places),
        &properties,
    ];
    let mut file = brands;
    file.extend(media_box(b"meta", &meta.concat()));
    file.extend(media_box(b"mdat", &[AV1, SECRET, SECRET, SECRET].concat()));
    file
}

/// Returns the bytes that stand for pixels.
fn avif_pixels(file: &[u8]) -> Vec<u8> {
    let at = file.windows(AV1.len()).position(|part| part == AV1);
    let at = at.unwrap();
    let mut pixels = at.to_be_bytes().to_vec();
    pixels.extend_from_slice(&file[at..at + AV1.len()]);
    pixels
}
