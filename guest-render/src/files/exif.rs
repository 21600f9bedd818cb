//! The one thing of EXIF that draws: the orientation.

/// Tag of the orientation.
const ORIENTATION: u16 = 0x0112;
/// Type of a number of two bytes.
const SHORT: u16 = 3;
/// Bytes of an entry of a directory.
const ENTRY_BYTES: usize = 12;
/// Most entries that are looked at.
const MAX_ENTRIES: usize = 1000;

/// Whether an orientation swaps width and height.
pub(super) fn is_turned(orientation: u8) -> bool {
    (5..=8).contains(&orientation)
}

/// Reads the orientation of a block of EXIF, which begins with its byte order. One that says nothing is 1.
pub(super) fn orientation(tiff: &[u8]) -> u8 {
    find_orientation(tiff)
        .filter(|found| (1..=8).contains(found))
        .map_or(1, |found| found.to_le_bytes()[0])
}

fn find_orientation(tiff: &[u8]) -> Option<u16> {
    let is_big = match tiff.get(..4)? {
        b"MM\0*" => true,
        b"II*\0" => false,
        _ => return None,
    };
    let two = |at: usize| match is_big {
        true => super::be16(tiff, at),
        false => super::le16(tiff, at),
    };
    let four = |at: usize| match is_big {
        true => super::be32(tiff, at),
        false => super::le32(tiff, at),
    };
    let directory = usize::try_from(four(4)?).ok()?;
    let count = usize::from(two(directory)?).min(MAX_ENTRIES);
    (0..count).find_map(|number| {
        let entry = directory.checked_add(2 + number * ENTRY_BYTES)?;
        let is_it = two(entry)? == ORIENTATION && two(entry.checked_add(2)?)? == SHORT;
        match is_it {
            true => two(entry.checked_add(8)?),
            false => None,
        }
    })
}

/// Writes a block of EXIF with an orientation, and nothing else.
pub(super) fn with_orientation(orientation: u8) -> Vec<u8> {
    let mut tiff = b"MM\0*\0\0\0\x08\0\x01".to_vec();
    tiff.extend_from_slice(&ORIENTATION.to_be_bytes());
    tiff.extend_from_slice(&SHORT.to_be_bytes());
    tiff.extend_from_slice(&[0, 0, 0, 1, 0, orientation, 0, 0]);
    tiff.extend_from_slice(&[0; 4]);
    tiff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_orientation_is_read_as_it_is_written() {
        for number in 1..=8 {
            assert_eq!(orientation(&with_orientation(number)), number);
        }
        let little = b"II*\0\x08\0\0\0\x02\0\x0f\x01\x02\0\x01\0\0\0aaaa\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        assert_eq!(orientation(little), 6);
        for bad in [
            &b""[..],
            b"MM\0*",
            b"MM\0*\xff\xff\xff\xff",
            b"II*\0\x08\0\0\0\xff\xff",
        ] {
            assert_eq!(orientation(bad), 1);
        }
        assert_eq!(orientation(&with_orientation(9)), 1);
        assert!(is_turned(6) && !is_turned(3));
    }
}
