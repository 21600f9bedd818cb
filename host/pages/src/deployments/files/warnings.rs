//! Warnings about paths of a site that visitors do not reach, or that some machines take for one.

use crate::deployments::sites::{SiteManifest, case_collisions, hidden_paths, paths_behind_slugs};
use crate::deployments::views::Warning;

/// Paths that a warning names at most.
const NAMED_PATHS: usize = 5;

/// Returns warnings about paths that visitors do not reach, or that some file systems take for one.
pub(super) fn of_site(manifest: &SiteManifest) -> Vec<Warning> {
    let paths = || manifest.files.keys().map(String::as_str);
    let mut found = Vec::new();
    for group in case_collisions(paths()).into_iter().take(NAMED_PATHS) {
        let detail = format!(
            "{} differ in case alone: they are two files here, and one on some machines.",
            name_some(&group)
        );
        found.push(warning("case_collision", detail));
    }
    let hidden = hidden_paths(paths());
    if !hidden.is_empty() {
        let detail = format!(
            "No visitor reaches {}: the page's runtime answers there. Give it another path.",
            name_some(&hidden)
        );
        found.push(warning("path_hidden", detail));
    }
    found
}

/// Returns the warning about paths that visitors do not reach at the root of the project's origin, where these slugs come first.
pub(super) fn of_slugs<'p>(
    paths: impl Iterator<Item = &'p str>,
    slugs: &[String],
) -> Option<Warning> {
    let hidden = paths_behind_slugs(paths, slugs);
    (!hidden.is_empty()).then(|| {
        let detail = format!(
            "At the root of the project's origin no visitor reaches {}: a frontend answers at that slug. Give it another path.",
            name_some(&hidden)
        );
        warning("path_hidden", detail)
    })
}

fn warning(code: &'static str, detail: String) -> Warning {
    Warning {
        code: code.into(),
        detail,
        line: None,
    }
}

/// Names the first of some paths, and the number of the others.
fn name_some(paths: &[&str]) -> String {
    let named: Vec<String> = paths
        .iter()
        .take(NAMED_PATHS)
        .map(|path| format!("`{path}`"))
        .collect();
    let more = match paths.len().saturating_sub(NAMED_PATHS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Digest;
    use crate::deployments::sites::SiteFile;

    #[test]
    fn authors_are_told_of_files_that_nobody_reaches() {
        let mut manifest = SiteManifest::default();
        for path in ["a", "A", "ws", "x"] {
            let digest = Digest::of(path.as_bytes());
            let file = SiteFile {
                digest,
                bytes: 1,
                list: None,
            };
            manifest.files.insert(path.to_owned(), file);
        }
        let found = of_site(&manifest);
        let codes: Vec<&str> = found.iter().map(|warning| warning.code.as_ref()).collect();
        assert_eq!(codes, ["case_collision", "path_hidden"]);
    }

    #[test]
    fn authors_are_told_of_files_behind_slugs() {
        let slugs = ["docs".to_owned()];
        let found = of_slugs(["docs/a", "x"].into_iter(), &slugs).unwrap();
        assert_eq!(found.code, "path_hidden");
        assert!(found.detail.contains("`docs/a`:"), "{found:?}");
        assert_eq!(of_slugs(["x"].into_iter(), &slugs), None);
    }
}
