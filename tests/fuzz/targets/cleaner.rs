//! The cleaner of visitors' pictures natively: whatever the bytes, a picture of parts of them or a reason, and a cleaned one is clean.

use guest_render::files::{Cleaned, Piece, Recognition, clean, is_text, recognise};

/// Bytes by which a cleaned picture may be longer: an orientation of its own.
const LONGER: usize = 256;
/// First bytes by which a file is recognised.
const HEAD: usize = 65_536;

/// Recognises and cleans a file.
pub(crate) fn clean_all(data: &[u8]) {
    let kind = recognise(&data[..data.len().min(HEAD)]);
    let _ = is_text(data);
    let is_picture = matches!(kind, Recognition::Picture(_));
    let Ok(cleaned) = clean(data, false) else {
        return;
    };
    assert!(is_picture, "{kind:?} was cleaned");
    assert!(cleaned.width > 0 && cleaned.height > 0);
    let bytes = built(data, &cleaned);
    assert!(bytes.len() <= data.len() + LONGER, "{} bytes", bytes.len());
    // What is written over in an AVIF may be what describes it.
    if kind != Recognition::Picture("image/avif".to_owned()) {
        let again = clean(&bytes, false).expect("a cleaned picture is a picture");
        assert!(built(&bytes, &again) == bytes, "a cleaned picture is clean");
    }
    let whole = clean(data, true).expect("what is cleaned can be kept, too");
    assert!(built(data, &whole) == data);
}

/// Builds a picture from its pieces, of which those of the file ascend.
fn built(file: &[u8], cleaned: &Cleaned) -> Vec<u8> {
    let (mut bytes, mut free_from) = (Vec::new(), 0);
    for piece in &cleaned.pieces {
        match piece {
            Piece::Kept(span) => {
                let (start, end) = (span.start as usize, span.end as usize);
                assert!(free_from <= start && start < end && end <= file.len());
                bytes.extend_from_slice(&file[start..end]);
                free_from = end;
            }
            Piece::Added(added) => bytes.extend_from_slice(added),
            Piece::Zeros(count) => bytes.resize(bytes.len() + *count as usize, 0),
        }
    }
    bytes
}
