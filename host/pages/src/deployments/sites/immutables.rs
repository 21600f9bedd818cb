//! Immutable paths of a site: patterns that name them, and what was live there, which never changes.
//!
//! What was live is a list of paths and digests, each by its SHA-256, in the order in which they were first live. A revision may be
//! published if its immutable files have the bytes that the list has for their paths, and what is new is added when it is live. So the
//! list has one digest a path, and whatever was live once may always be live again.

use std::collections::HashMap;

use super::SiteOptions;
use super::paths::{MAX_PATH_BYTES, path_fault};
use crate::content::Digest;

/// Paths that are remembered at most; of more, those that were first live are forgotten.
const MAX_REMEMBERED: usize = 100_000;
/// Bytes of a path's hash, and of an entry with its digest.
const HASH_BYTES: usize = 16;
const ENTRY_BYTES: usize = HASH_BYTES + 32;

/// Returns the rule that a pattern of immutable paths breaks, as the end of a sentence about it.
pub fn pattern_fault(pattern: &str) -> Option<&'static str> {
    let Some(path) = pattern.strip_prefix('/') else {
        return Some("does not begin with a slash");
    };
    if path.len() > MAX_PATH_BYTES {
        return Some("has more than 512 bytes");
    }
    if path.split('/').any(|segment| segment.starts_with(':')) {
        return Some("has a placeholder, which such patterns do not know");
    }
    // A `*` stands for any characters, so for these, too.
    path_fault(&path.replace('*', "a"))
}

/// Whether a path matches a pattern, in which each `*` stands for any characters, slashes among them.
fn matches(pattern: &str, path: &str) -> bool {
    let Some((beginning, rest)) = pattern.split_once('*') else {
        return path == pattern;
    };
    let Some(mut path) = path.strip_prefix(beginning) else {
        return false;
    };
    let (between, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in between.split('*') {
        // The first place leaves the most for the parts after it.
        let Some(at) = path.find(part) else {
            return false;
        };
        path = &path[at + part.len()..];
    }
    path.ends_with(end)
}

impl SiteOptions {
    /// Whether the file at a path never changes.
    pub fn is_immutable(&self, path: &str) -> bool {
        let matches =
            |pattern: &String| matches(pattern.strip_prefix('/').unwrap_or(pattern), path);
        self.immutable.iter().any(matches)
    }
}

type PathHash = [u8; HASH_BYTES];

/// Immutable files of a site that were live.
#[derive(Clone, Debug, Default)]
pub struct ImmutableFiles {
    /// In the order in which they were first live.
    entries: Vec<(PathHash, Digest)>,
}

/// Paths at which a site has other bytes than were live there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImmutableChange(pub Vec<String>);

impl ImmutableFiles {
    /// Adds the immutable files of a revision.
    ///
    /// # Errors
    /// All paths at which other bytes were live; nothing is added then.
    pub fn with<'f>(
        mut self,
        files: impl Iterator<Item = (&'f str, Digest)>,
    ) -> Result<Self, ImmutableChange> {
        let mut known: HashMap<PathHash, Digest> = self.entries.iter().copied().collect();
        let mut changed = Vec::new();
        for (path, digest) in files {
            let hash = hash_of(path);
            match known.get(&hash) {
                Some(before) if *before == digest => {}
                Some(_) => changed.push(path.to_owned()),
                None => {
                    known.insert(hash, digest);
                    self.entries.push((hash, digest));
                }
            }
        }
        if !changed.is_empty() {
            return Err(ImmutableChange(changed));
        }
        let excess = self.entries.len().saturating_sub(MAX_REMEMBERED);
        self.entries.drain(..excess);
        Ok(self)
    }

    /// Returns the form that is stored.
    pub fn to_object(&self) -> Vec<u8> {
        let mut object = Vec::with_capacity(self.entries.len() * ENTRY_BYTES);
        for (hash, digest) in &self.entries {
            object.extend_from_slice(hash);
            object.extend_from_slice(digest.as_bytes());
        }
        object
    }

    /// Reads the stored form; `None` if it is malformed.
    pub fn from_object(object: &[u8]) -> Option<Self> {
        let (entries, rest) = object.as_chunks::<ENTRY_BYTES>();
        let entries = entries.iter().map(|entry| {
            let (hash, digest) = entry.split_first_chunk()?;
            Some((*hash, Digest::from_bytes(digest.try_into().ok()?)))
        });
        match rest.is_empty() {
            true => Some(Self {
                entries: entries.collect::<Option<_>>()?,
            }),
            false => None,
        }
    }
}

/// Returns the beginning of a path's SHA-256.
fn hash_of(path: &str) -> PathHash {
    let digest = Digest::of(path.as_bytes());
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(&digest.as_bytes()[..HASH_BYTES]);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_paths_with_stars() {
        for pattern in [
            "/*",
            "/assets/*",
            "/assets/app-*",
            "/assets/**",
            "/*.js",
            "/a/*/b",
            "/a.js",
            "/a/b c.js",
        ] {
            assert_eq!(pattern_fault(pattern), None, "{pattern}");
        }
        let long = format!("/{}", "a".repeat(513));
        for pattern in [
            "",
            "/",
            "a.js",
            "*",
            "//*",
            "/a//*",
            "/../*",
            "/a/",
            "/.git/*",
            "/_svc/*",
            "/:id/x",
            "/a\\b",
            &long,
            "https://a.b/*",
        ] {
            assert!(pattern_fault(pattern).is_some(), "{pattern}");
        }
    }

    #[test]
    fn a_star_matches_any_characters() {
        for (pattern, path, expected) in [
            ("*.js", "a.js", true),
            ("*.js", "deep/a.js", true),
            ("*.js", "a.json", false),
            ("*.js", ".js", true),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a/*/b", "a/x/y/b", true),
            ("a/*/b", "a/b", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a**", "a", true),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn patterns_match_from_the_beginning() {
        let options = SiteOptions {
            immutable: vec!["/assets/*".to_owned(), "/a.js".to_owned()],
            ..SiteOptions::default()
        };
        for (path, expected) in [
            ("assets/x.js", true),
            ("assets/deep/x.js", true),
            ("assets", false),
            ("assets2/x.js", false),
            ("other/assets/x.js", false),
            ("a.js", true),
            ("a.json", false),
            ("A.js", false),
        ] {
            assert_eq!(options.is_immutable(path), expected, "{path}");
        }
        assert!(!SiteOptions::default().is_immutable("a"));
    }

    #[test]
    fn what_was_live_stays_what_it_is() {
        let digest = |text: &str| Digest::of(text.as_bytes());
        let first = [("a", digest("1")), ("b", digest("2"))];
        let live = ImmutableFiles::default().with(first.into_iter()).unwrap();
        let live = live.with([("c", digest("3"))].into_iter()).unwrap();
        let again = live.clone().with(first.into_iter()).unwrap();
        assert_eq!(again.to_object(), live.to_object(), "nothing is new");
        let other = [("a", digest("9")), ("b", digest("2")), ("c", digest("8"))];
        let refused = live.clone().with(other.into_iter()).unwrap_err();
        assert_eq!(refused, ImmutableChange(vec!["a".into(), "c".into()]));
        let read = ImmutableFiles::from_object(&live.to_object()).unwrap();
        assert_eq!(read.entries, live.entries);
        assert!(ImmutableFiles::from_object(&[0; ENTRY_BYTES + 1]).is_none());
    }

    #[test]
    fn the_oldest_paths_are_forgotten() {
        let paths: Vec<String> = (0..=MAX_REMEMBERED)
            .map(|number| number.to_string())
            .collect();
        let digest = Digest::of(b"1");
        let files = paths.iter().map(|path| (path.as_str(), digest));
        let live = ImmutableFiles::default().with(files).unwrap();
        assert_eq!(live.entries.len(), MAX_REMEMBERED);
        let other = Digest::of(b"2");
        assert!(live.clone().with([("0", other)].into_iter()).is_ok());
        assert!(live.with([("1", other)].into_iter()).is_err());
    }
}
