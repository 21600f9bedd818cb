//! Sizes and lists of paths, as people read them.

use crate::output::escape_excerpt;

/// Most paths that a sentence names.
const MAX_NAMED: usize = 5;
/// Most characters of a path in a sentence.
const MAX_PATH_CHARACTERS: usize = 200;

/// Formats a number of bytes.
pub(crate) fn size_text(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} KB", bytes.div_ceil(1_000)),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// Names some paths of a list, and counts the others.
pub(crate) fn name_some<'p>(paths: impl Iterator<Item = &'p str>) -> String {
    let all: Vec<_> = paths.collect();
    let shown: Vec<_> = all
        .iter()
        .take(MAX_NAMED)
        .map(|path| escape_excerpt(path, MAX_PATH_CHARACTERS))
        .collect();
    match all.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_lists_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1 KB"),
            (10_001, "11 KB"),
            (999_999, "1000 KB"),
            (2_340_000, "2.3 MB"),
        ] {
            assert_eq!(size_text(bytes), text);
        }
        assert_eq!(name_some(["a", "b\n"].into_iter()), "a, b\\n");
        let many = ["a", "b", "c", "d", "e", "f", "g"];
        assert_eq!(name_some(many.into_iter()), "a, b, c, d, e and 2 more");
    }
}
