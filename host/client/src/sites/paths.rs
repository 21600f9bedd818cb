//! Rules of the paths of a site's files. They hold for what a folder has, and for what a server answers, which is not trusted.

use std::collections::BTreeSet;

use unicode_normalization::{UnicodeNormalization as _, is_nfc};

/// The one name with a dot before it that a site may have.
pub(super) const WELL_KNOWN: &str = ".well-known";
/// First part of the platform's own paths.
const PLATFORM_PART: &str = "_svc";
/// Most bytes of a path, and of each of its parts.
const MAX_PATH_BYTES: usize = 512;
const MAX_PART_BYTES: usize = 255;

/// Returns the rule that a path breaks, as the end of a sentence about it.
pub(super) fn path_fault(path: &str) -> Option<&'static str> {
    if path.len() > MAX_PATH_BYTES {
        return Some("has more than 512 bytes");
    }
    if path.contains('\\') {
        return Some("has a backslash");
    }
    if path.contains(char::is_control) {
        return Some("has a control character");
    }
    if !is_nfc(path) {
        return Some("is not in Unicode's normal form NFC");
    }
    if path.split('/').next() == Some(PLATFORM_PART) {
        return Some("begins with _svc, which is the platform's own");
    }
    path.split('/').find_map(|part| match part {
        "" => Some("has an empty part"),
        WELL_KNOWN => None,
        _ if part.starts_with('.') => Some("has a part that begins with a dot"),
        _ if part.len() > MAX_PART_BYTES => Some("has a part of more than 255 bytes"),
        _ => None,
    })
}

/// Finds a path that is another one's folder.
pub(super) fn folder_of_another<'p>(paths: impl Iterator<Item = &'p str>) -> Option<&'p str> {
    let all: BTreeSet<&str> = paths.collect();
    all.iter().find_map(|path| {
        let mut folders = path.match_indices('/').map(|(end, _)| &path[..end]);
        folders.find(|folder| all.contains(folder))
    })
}

/// Returns a name in Unicode's normal form NFC.
pub(super) fn to_nfc(name: &str) -> String {
    name.nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_in_its_folder_and_hides_nothing() {
        for path in [
            "index.html",
            "docs/a b/ü.html",
            ".well-known/assetlinks.json",
            "a..b/c",
            "_headers",
            "docs/_svc/x",
        ] {
            assert_eq!(path_fault(path), None, "{path}");
        }
        let (part, path) = ("a".repeat(256), "a/".repeat(300) + "b");
        for path in [
            "",
            "/",
            "/etc/passwd",
            "../a",
            "a/../../b",
            "a/..",
            ".",
            "a/./b",
            "a//b",
            "a/",
            "a\\b",
            "..\\a",
            "C:\\a",
            "a\nb",
            "a\0",
            "a\u{85}",
            ".git/hooks/post-checkout",
            ".env",
            "a/.ssh/config",
            "_svc/x",
            "_svc",
            "u\u{308}",
            &part,
            &path,
        ] {
            assert!(path_fault(path).is_some(), "{path:?}");
        }
    }

    #[test]
    fn a_file_is_no_folder() {
        let find = |paths: &[&'static str]| folder_of_another(paths.iter().copied());
        assert_eq!(find(&["a", "b/a", "ab/x"]), None);
        assert_eq!(find(&["a/b", "a"]), Some("a"));
        assert_eq!(find(&["a/b/c", "a/b"]), Some("a/b"));
        assert_eq!(to_nfc("u\u{308}"), "ü");
    }
}
