//! Tests of what visitors' pictures lose, and of what they keep.

mod damage;
mod encoders;
mod kinds;
mod samples;

use super::{Cleaned, Fault, Piece, clean, resize};
use samples::{SECRET, Sample, all};

/// Builds a cleaned picture, as the host does.
fn built(file: &[u8], cleaned: &Cleaned) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in &cleaned.pieces {
        match piece {
            Piece::Kept(span) => {
                bytes.extend_from_slice(&file[span.start as usize..span.end as usize]);
            }
            Piece::Added(added) => bytes.extend_from_slice(added),
            Piece::Zeros(count) => bytes.extend(std::iter::repeat_n(0, *count as usize)),
        }
    }
    bytes
}

fn has(file: &[u8], part: &[u8]) -> bool {
    file.windows(part.len()).any(|window| window == part)
}

#[test]
fn what_does_not_draw_goes_and_pixels_stay() {
    for Sample {
        name,
        file,
        size,
        pixels,
    } in all()
    {
        assert!(has(&file, SECRET), "{name}");
        let cleaned = clean(&file, false).unwrap();
        assert_eq!((cleaned.width, cleaned.height), size, "{name}");
        let first = built(&file, &cleaned);
        assert!(!has(&first, SECRET), "{name}");
        assert!(!has(&first, b"<script>"), "{name}");
        assert_eq!(pixels(&first), pixels(&file), "{name}");
        let again = clean(&first, false).unwrap();
        assert_eq!(built(&first, &again), first, "{name}: cleaned twice");
        assert_eq!((again.width, again.height), size, "{name}: cleaned twice");
    }
}

#[test]
fn a_profile_between_a_frame_and_its_timing_stays() {
    let parts: [&[u8]; 6] = [
        b"GIF89a\x01\0\x01\0\x80\0\0",
        &[0, 0, 0, 255, 255, 255],
        b"\x21\xf9\x04\0\x0a\0\0\0",
        b"\x21\xff\x0bICCRGBG1012\x04abcd\0",
        b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0",
        b"\x3b",
    ];
    let file = parts.concat();
    let cleaned = clean(&file, false).unwrap();
    assert_eq!(built(&file, &cleaned), file);
    // One block that times nothing gives way to the next, whatever stands between them.
    let unknown: &[u8] = b"\x21\xff\x0bSOMEBODY1.0\x04abcd\0";
    let file = [
        parts[0], parts[1], parts[2], unknown, parts[2], parts[4], parts[5],
    ]
    .concat();
    let expected = [parts[0], parts[1], parts[2], parts[4], parts[5]].concat();
    let cleaned = clean(&file, false).unwrap();
    assert_eq!(built(&file, &cleaned), expected);
}

#[test]
fn metadata_is_kept_for_those_who_ask() {
    for Sample {
        name, file, size, ..
    } in all()
    {
        let cleaned = clean(&file, true).unwrap();
        assert_eq!(built(&file, &cleaned), file, "{name}");
        assert_eq!((cleaned.width, cleaned.height), size, "{name}");
    }
}

#[test]
fn copies_fit_and_are_upright() {
    for Sample {
        name, file, size, ..
    } in all()
    {
        let copy = match resize(&file, 8) {
            Ok(copy) => copy,
            Err(fault) => {
                assert_eq!((name, fault), ("avif", Fault::Unsupported));
                continue;
            }
        };
        let cleaned = clean(&copy.bytes, false).unwrap();
        assert!(cleaned.width.max(cleaned.height) <= 8, "{name}");
        let is_tall = size.1 > size.0;
        assert_eq!(cleaned.height > cleaned.width, is_tall, "{name}");
        assert!(!has(&copy.bytes, SECRET), "{name}");
    }
}

#[test]
fn a_bomb_is_refused_by_its_header() {
    let bomb = samples::png_header(60_000, 60_000);
    assert_eq!(clean(&bomb, false), Err(Fault::TooLarge));
    assert!(resize(&bomb, 64).is_err());
    let large = samples::png_header(6000, 6000);
    assert_eq!(resize(&large, 64), Err(Fault::TooLarge));
}
