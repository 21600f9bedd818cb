//! Pictures that are cut short or broken: they are refused, and never a panic.

use super::super::{Fault, clean, recognise, resize};
use super::samples::{Sample, all};

/// Returns the length of a sample without what follows its end.
fn end_of(sample: &Sample) -> usize {
    match sample.name {
        // Free space is a box of its own.
        "avif" => sample.file.len() - 16,
        _ => sample
            .file
            .windows(8)
            .rposition(|part| part == b"<script>")
            .unwrap(),
    }
}

#[test]
fn a_picture_that_is_cut_short_is_refused() {
    for sample in all() {
        for length in 0..end_of(&sample) {
            let cleaned = clean(&sample.file[..length], false);
            let is_refused = matches!(cleaned, Err(Fault::Broken(_)));
            assert!(
                is_refused,
                "{} with {length} bytes: {cleaned:?}",
                sample.name
            );
        }
        let whole = &sample.file[..end_of(&sample)];
        assert!(clean(whole, false).is_ok(), "{}", sample.name);
    }
}

#[test]
fn what_follows_the_end_goes() {
    for sample in all() {
        let whole = &sample.file[..end_of(&sample)];
        let clean_whole = super::built(whole, &clean(whole, false).unwrap());
        for tail in [&b"PK\x03\x04 an archive"[..], b"<script>", b"\xff", whole] {
            let long = [whole, tail].concat();
            let cleaned = clean(&long, false).unwrap();
            assert_eq!(
                super::built(&long, &cleaned),
                clean_whole,
                "{}",
                sample.name
            );
        }
    }
}

#[test]
fn a_picture_with_a_wrong_byte_is_cleaned_or_refused() {
    for sample in all() {
        for at in 0..sample.file.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff, sample.file[at] ^ 1] {
                let mut file = sample.file.clone();
                file[at] = byte;
                recognise(&file);
                if let Ok(cleaned) = clean(&file, false) {
                    let bytes = super::built(&file, &cleaned);
                    assert!(bytes.len() <= file.len() + 256, "{} at {at}", sample.name);
                }
            }
        }
    }
}

#[test]
fn copies_of_broken_pictures_are_made_or_refused() {
    for sample in all() {
        for at in (0..sample.file.len()).step_by(3) {
            let mut file = sample.file.clone();
            file[at] ^= 0xff;
            // A decoder may make something of it; it ends, and does not panic.
            drop((resize(&file, 8), resize(&file[..at], 8)));
        }
    }
}
