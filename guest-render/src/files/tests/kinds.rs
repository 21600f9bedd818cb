//! Table of the kinds of files.

use super::super::{Recognition, is_text, recognise};

fn head_of(kind: &str) -> Vec<u8> {
    let boxes = |brand: &str, others: &str| {
        let length = u32::try_from(16 + others.len()).unwrap();
        let mut head = length.to_be_bytes().to_vec();
        head.extend_from_slice(format!("ftyp{brand}\0\0\0\0{others}").as_bytes());
        head.extend_from_slice(&[0; 32]);
        head
    };
    match kind {
        "avif" => boxes("avif", "mif1avif"),
        "avis" => boxes("avis", "avif"),
        "heic" => boxes("heic", "mif1heic"),
        "mp4" => boxes("isom", "iso2avc1mp41"),
        "m4a" => boxes("M4A ", "isommp42"),
        "mov" => boxes("qt  ", ""),
        "webm" => b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm".to_vec(),
        "mkv" => b"\x1a\x45\xdf\xa3\xa3\x42\x86\x81\x01\x42\x82\x88matroska".to_vec(),
        // One frame of 128 kbit at 44.1 kHz has 417 bytes.
        "mp3" => [&b"\xff\xfb\x90\x00"[..], &[0; 413], b"\xff\xfb\x90\x00"].concat(),
        _ => Vec::new(),
    }
}

#[test]
fn kinds_are_told_by_their_bytes() {
    let picture = |kind: &str| Recognition::Picture(kind.to_owned());
    let other = |kind: &str| Recognition::Other(kind.to_owned());
    let rows: Vec<(Vec<u8>, Recognition)> = vec![
        (b"\xff\xd8\xff\xe0".to_vec(), picture("image/jpeg")),
        (b"\x89PNG\r\n\x1a\n".to_vec(), picture("image/png")),
        (b"GIF89a".to_vec(), picture("image/gif")),
        (b"GIF87a".to_vec(), picture("image/gif")),
        (b"RIFF\0\0\0\0WEBP".to_vec(), picture("image/webp")),
        (head_of("avif"), picture("image/avif")),
        (head_of("avis"), picture("image/avif")),
        (head_of("heic"), Recognition::Unknown),
        (head_of("mov"), Recognition::Unknown),
        (head_of("mkv"), Recognition::Unknown),
        (b"RIFF\0\0\0\0WAVE".to_vec(), other("audio/wav")),
        (b"OggS\0".to_vec(), other("audio/ogg")),
        (b"fLaC".to_vec(), other("audio/flac")),
        (b"%PDF-1.7".to_vec(), other("application/pdf")),
        (b"ID3\x04\0\0".to_vec(), other("audio/mpeg")),
        (head_of("mp3"), other("audio/mpeg")),
        (head_of("mp4"), other("video/mp4")),
        (head_of("m4a"), other("audio/mp4")),
        (head_of("webm"), other("video/webm")),
        (
            b"<!doctype html><script>".to_vec(),
            Recognition::PerhapsText,
        ),
        (
            b"<svg xmlns='http://www.w3.org/2000/svg'>".to_vec(),
            Recognition::PerhapsText,
        ),
        (b"gr\xc3\xbc\xc3".to_vec(), Recognition::PerhapsText),
        (
            b"The ftyp box comes first".to_vec(),
            Recognition::PerhapsText,
        ),
        (b"".to_vec(), Recognition::PerhapsText),
        (b"PK\x03\x04\0".to_vec(), Recognition::Unknown),
        (
            b"\xff\xfb\x90\x00 and no second frame".to_vec(),
            Recognition::Unknown,
        ),
        (b"MZ\x90\0".to_vec(), Recognition::Unknown),
    ];
    for (head, kind) in rows {
        assert_eq!(recognise(&head), kind, "{}", head.escape_ascii());
    }
}

#[test]
fn a_text_is_utf_8_without_nul() {
    assert!(is_text("grün".as_bytes()) && is_text(b""));
    assert!(!is_text(b"a\0b") && !is_text(b"gr\xfcn") && !is_text(b"gr\xc3"));
}
