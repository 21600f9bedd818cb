//! Checks of what a guest says of files: nothing is taken that names bytes beyond a file, or that is no such picture.

use anyhow::{Context as _, bail, ensure};

use super::values::{CleanedPicture, FilePiece, FileRecognition, PictureCopy};
use crate::bindings::files::exports::svc::files::cleaner as wit;

/// Media types that a guest may name.
const PICTURES: [&str; 5] = [
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "image/avif",
];
const OTHERS: [&str; 9] = [
    "audio/mpeg",
    "audio/mp4",
    "audio/ogg",
    "audio/wav",
    "audio/flac",
    "video/mp4",
    "video/webm",
    "application/pdf",
    "application/octet-stream",
];
/// Most pixels of a picture.
const MAX_PIXELS: u64 = 100_000_000;
/// Most new bytes of a cleaned picture.
const MAX_ADDED_BYTES: usize = 16 << 20;
/// Most bytes of a smaller copy.
const MAX_COPY_BYTES: usize = 32 << 20;

/// Checks how a file is recognised.
pub(super) fn recognition(said: wit::Recognition) -> anyhow::Result<FileRecognition> {
    Ok(match said {
        wit::Recognition::Picture(kind) => {
            ensure!(
                PICTURES.contains(&kind.as_str()),
                "no type of pictures: {kind:?}"
            );
            FileRecognition::Picture(kind)
        }
        wit::Recognition::Other(kind) => {
            ensure!(
                OTHERS.contains(&kind.as_str()),
                "no type of files: {kind:?}"
            );
            FileRecognition::Other(kind)
        }
        wit::Recognition::PerhapsText => FileRecognition::PerhapsText,
        wit::Recognition::Unknown => FileRecognition::Unknown,
    })
}

/// Checks a cleaned picture, whose file has so many bytes.
pub(super) fn cleaned(said: wit::Cleaned, length: usize) -> anyhow::Result<CleanedPicture> {
    let wit::Cleaned {
        width,
        height,
        pieces,
    } = said;
    let pixels = u64::from(width) * u64::from(height);
    ensure!(
        (1..=MAX_PIXELS).contains(&pixels),
        "a picture of {width} × {height}"
    );
    let (mut at, mut added, mut all) = (0, 0, 0_usize);
    let mut checked = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let piece = match piece {
            wit::Piece::Kept(wit::Span { start, end }) => {
                let range = usize::try_from(start)?..usize::try_from(end)?;
                if range.start < at || range.end < range.start || range.end > length {
                    bail!("bytes {start}..{end} of {length}, after {at}");
                }
                at = range.end;
                FilePiece::Kept(range)
            }
            wit::Piece::Added(bytes) => {
                added += bytes.len();
                FilePiece::Added(bytes)
            }
            wit::Piece::Zeros(count) => FilePiece::Zeros(usize::try_from(count)?),
        };
        all = all.checked_add(piece.len()).context("too many bytes")?;
        checked.push(piece);
    }
    ensure!(added <= MAX_ADDED_BYTES, "{added} new bytes");
    ensure!(
        all > 0 && all <= length + MAX_ADDED_BYTES,
        "{all} bytes of {length}"
    );
    Ok(CleanedPicture {
        width,
        height,
        pieces: checked,
    })
}

/// Checks a smaller copy.
pub(super) fn copy(said: wit::SmallerCopy) -> anyhow::Result<PictureCopy> {
    let (media_type, begin): (_, &[u8]) = match said.media_type.as_str() {
        "image/jpeg" => ("image/jpeg", b"\xff\xd8\xff"),
        "image/png" => ("image/png", b"\x89PNG\r\n\x1a\n"),
        other => bail!("a copy of the type {other:?}"),
    };
    ensure!(
        said.bytes.starts_with(begin),
        "a copy that is no {media_type}"
    );
    ensure!(
        said.bytes.len() <= MAX_COPY_BYTES,
        "a copy of {} bytes",
        said.bytes.len()
    );
    Ok(PictureCopy {
        media_type,
        bytes: said.bytes.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(pieces: Vec<wit::Piece>) -> wit::Cleaned {
        wit::Cleaned {
            width: 2,
            height: 1,
            pieces,
        }
    }

    fn kept(start: u32, end: u32) -> wit::Piece {
        wit::Piece::Kept(wit::Span { start, end })
    }

    #[test]
    fn what_is_kept_lies_in_the_file_in_order() {
        let good = vec![
            kept(0, 2),
            wit::Piece::Added(vec![1]),
            wit::Piece::Zeros(3),
            kept(4, 10),
        ];
        let checked = cleaned(picture(good), 10).unwrap();
        assert_eq!(checked.pieces.iter().map(FilePiece::len).sum::<usize>(), 12);
        for bad in [
            vec![kept(0, 11)],
            vec![kept(4, 6), kept(5, 7)],
            vec![kept(6, 4)],
            vec![],
            vec![wit::Piece::Zeros(u32::MAX)],
        ] {
            assert!(cleaned(picture(bad), 10).is_err());
        }
        let flat = wit::Cleaned {
            height: 0,
            ..picture(vec![kept(0, 1)])
        };
        assert!(cleaned(flat, 10).is_err());
    }

    #[test]
    fn a_copy_is_what_it_says() {
        let copy_of = |media_type: &str, bytes: &[u8]| {
            copy(wit::SmallerCopy {
                media_type: media_type.to_owned(),
                bytes: bytes.to_vec(),
            })
        };
        copy_of("image/jpeg", b"\xff\xd8\xff\xe0").unwrap();
        assert!(copy_of("image/jpeg", b"<svg>").is_err());
        assert!(copy_of("image/svg+xml", b"<svg>").is_err());
        assert!(recognition(wit::Recognition::Picture("text/html".to_owned())).is_err());
    }
}
