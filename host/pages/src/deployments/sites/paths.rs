//! Rules of the paths of a site's files. They never become paths on a disk.

use std::collections::BTreeMap;

use svc_sandbox::RuleFile;
use unicode_normalization::is_nfc;

/// Most bytes of a path, and of each of its segments.
pub(super) const MAX_PATH_BYTES: usize = 512;
const MAX_SEGMENT_BYTES: usize = 255;
/// First segment of the platform's own paths.
const PLATFORM_SEGMENT: &str = "_svc";
/// The one segment that may begin with a dot.
const WELL_KNOWN_SEGMENT: &str = ".well-known";
/// Paths below a page's address that are its runtime's.
const RUNTIME_PATHS: [&str; 15] = [
    "api/op",
    "api/query",
    "api/schema",
    "api/live",
    "auth/login",
    "auth/complete",
    "auth/status",
    "auth/providers",
    "auth/logout",
    "auth/passkeys",
    "payments/checkout",
    "payments/status",
    "payments/catalog",
    "ws",
    "mcp",
];
/// Folder of the runtime, whose files are visitors'.
const VISITOR_FILES: &str = "api/files/";
/// Path of the runtime's script below a site's address.
pub const RUNTIME_SCRIPT: &str = "_svc/runtime.js";

/// A path that a site cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the path `{path}` {reason}")]
pub struct PathFault {
    /// The path.
    pub path: String,
    /// The rule that it breaks, as the end of a sentence.
    pub reason: &'static str,
}

/// Returns the rule that a path breaks, as the end of a sentence about it.
pub fn path_fault(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("is empty");
    }
    if path.len() > MAX_PATH_BYTES {
        return Some("has more than 512 bytes");
    }
    if path.starts_with('/') {
        return Some("begins with a slash: paths are relative to the site");
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
    if path.split('/').next() == Some(PLATFORM_SEGMENT) {
        return Some("begins with _svc/, which is the platform's own");
    }
    path.split('/').find_map(segment_fault)
}

fn segment_fault(segment: &str) -> Option<&'static str> {
    match segment {
        "" => Some("has an empty segment"),
        "." | ".." => Some("has a segment `.` or `..`"),
        WELL_KNOWN_SEGMENT => None,
        _ if segment.len() > MAX_SEGMENT_BYTES => Some("has a segment of more than 255 bytes"),
        _ if segment.starts_with('.') => {
            Some("has a segment that begins with a dot, which only .well-known may")
        }
        _ => None,
    }
}

/// Whether a file has the rules of its site. It is never served.
pub fn is_rule_file(path: &str) -> bool {
    RuleFile::ALL.iter().any(|file| file.path() == path)
}

/// Refuses a set of paths of which one breaks a rule, or is another one's folder.
///
/// # Errors
/// The first such path.
pub fn check_paths<'p>(paths: impl Iterator<Item = &'p str> + Clone) -> Result<(), PathFault> {
    for path in paths.clone() {
        if let Some(reason) = path_fault(path) {
            return Err(PathFault {
                path: path.to_owned(),
                reason,
            });
        }
    }
    check_folders(paths)
}

/// Refuses a set of paths of which one is another one's folder. Each keeps the rules of a path alone.
///
/// # Errors
/// The first such path.
pub fn check_folders<'p>(paths: impl Iterator<Item = &'p str>) -> Result<(), PathFault> {
    // With the slash before all other characters, all that is in a folder follows it at once.
    let key = |byte: u8| if byte == b'/' { 0 } else { byte };
    let mut files: Vec<&str> = paths.collect();
    files.sort_unstable_by(|one, other| one.bytes().map(key).cmp(other.bytes().map(key)));
    let is_folder = |pair: &&[&str]| match pair {
        [folder, file] => {
            let rest = file.strip_prefix(*folder);
            rest.is_some_and(|rest| rest.starts_with('/'))
        }
        _ => false,
    };
    match files.windows(2).find(is_folder) {
        Some(pair) => Err(PathFault {
            path: pair[0].to_owned(),
            reason: "is a file and the folder of another one",
        }),
        None => Ok(()),
    }
}

/// Lists groups of paths that differ in case alone, which some file systems take for one file.
pub fn case_collisions<'p>(paths: impl Iterator<Item = &'p str>) -> Vec<Vec<&'p str>> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for path in paths {
        groups.entry(path.to_lowercase()).or_default().push(path);
    }
    groups
        .into_values()
        .filter(|group| group.len() > 1)
        .collect()
}

/// Whether a path below a site's address is the runtime's, and no file's.
pub fn is_runtime_path(path: &str) -> bool {
    RUNTIME_PATHS.contains(&path)
        || path.starts_with(VISITOR_FILES)
        || path.split('/').next() == Some(PLATFORM_SEGMENT)
}

/// Lists the paths that no visitor reaches, because the page's runtime answers there.
pub fn hidden_paths<'p>(paths: impl Iterator<Item = &'p str>) -> Vec<&'p str> {
    paths.filter(|path| is_runtime_path(path)).collect()
}

/// Lists the paths that no visitor reaches at the root of an origin, because frontends answer at these slugs there.
pub fn paths_behind_slugs<'p>(
    paths: impl Iterator<Item = &'p str>,
    slugs: &[String],
) -> Vec<&'p str> {
    let is_behind = |path: &&str| {
        let first = path.split('/').next();
        slugs.iter().any(|slug| first == Some(slug))
    };
    paths.filter(is_behind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_file_and_nothing_else() {
        let long = "a".repeat(255);
        let longest = format!("{long}/{long}");
        for path in [
            "index.html",
            "docs/a b/ü.html",
            "a..b",
            "%2e%2e/x",
            ".well-known/assetlinks.json",
            "a/.well-known/x",
            "docs/_svc/x",
            "docs/_headers",
            "_headers",
            "_redirects",
            "raw",
            &longest,
        ] {
            assert_eq!(path_fault(path), None, "{path}");
        }
        let segment = "a".repeat(256);
        let path = format!("{longest}/a/b");
        for path in [
            "",
            "/index.html",
            "a//b",
            "a/",
            "./a",
            "a/../b",
            "..",
            "a\\b",
            "a\nb",
            "a\u{7f}",
            "a\u{85}b",
            "u\u{308}.html",
            "_svc/runtime.js",
            "_svc",
            ".git/config",
            "a/.env",
            ".well-known2/x",
            &segment,
            &path,
        ] {
            assert!(path_fault(path).is_some(), "{path}");
        }
    }

    #[test]
    fn rules_are_in_files_at_the_root() {
        assert!(is_rule_file("_headers") && is_rule_file("_redirects"));
        for path in ["_headers.html", "docs/_headers", "_Headers", ""] {
            assert!(!is_rule_file(path), "{path}");
        }
    }

    #[test]
    fn a_file_is_no_folder() {
        let check = |paths: &[&str]| check_paths(paths.iter().copied());
        check(&["a", "b/a", "b/c/a", "ab/x"]).unwrap();
        check(&["a", "a-b", "a.b/c", "a!", "a b/c", "aa"]).unwrap();
        for paths in [["a", "a/b"], ["a/b/c", "a"], ["a/b", "a/b/c/d"]] {
            let fault = check(&paths).unwrap_err();
            assert!(fault.reason.contains("folder"), "{fault:?}");
        }
        // By their bytes alone, others come between a file and what is in a folder of its name.
        let fault = check(&["a", "a b", "a-b", "a.html", "a/b", "a0"]).unwrap_err();
        assert_eq!(fault.path, "a");
        assert_eq!(check(&["b", "../a"]).unwrap_err().path, "../a");
    }

    #[test]
    fn what_visitors_do_not_reach_or_tell_apart_is_found() {
        let paths = [
            "A.html",
            "a.html",
            "api/op",
            "api/op.html",
            "api/files/x",
            "Ü",
            "ü",
        ];
        assert_eq!(
            case_collisions(paths.into_iter()),
            [vec!["A.html", "a.html"], vec!["Ü", "ü"]]
        );
        assert_eq!(hidden_paths(paths.into_iter()), ["api/op", "api/files/x"]);
        let slugs = ["docs".to_owned(), "app".to_owned()];
        let paths = ["docs", "docs/x", "docs.html", "x/docs", "app/index.html"];
        assert_eq!(
            paths_behind_slugs(paths.into_iter(), &slugs),
            ["docs", "docs/x", "app/index.html"]
        );
    }
}
