//! Addresses below a site's mount, and the files that answer there.

use std::ops::Bound;

use super::paths::MAX_PATH_BYTES;
use super::{RuleRedirect, SiteFile, SiteManifest, is_rule_file};

/// Longest path, decoded, that files and rules are looked for at: no file has so long a path, and rules cost time with its length.
const MAX_ASKED_BYTES: usize = 2 << 10;
/// Document of a folder.
const INDEX_FILE: &str = "index.html";
/// Document in place of a missing file.
const NOT_FOUND_FILE: &str = "404.html";
/// Ending that an address may leave out.
const HTML_ENDING: &str = ".html";

/// A request for a path below a site's mount.
#[derive(Clone, Copy, Debug)]
pub struct SiteRequest<'r> {
    /// Decoded path, relative to the mount.
    pub path: &'r str,
    /// Whether a browser opens the address as a page.
    pub is_navigation: bool,
}

/// File of a site, as its manifest has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundFile<'m> {
    /// Path of the file.
    pub path: &'m str,
    /// Digest and length of it.
    pub file: SiteFile,
}

/// Answer of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteAnswer<'m> {
    /// A file.
    File(FoundFile<'m>),
    /// The site's own page for what it routes by itself.
    Fallback(FoundFile<'m>),
    /// The site's page for missing files.
    NotFoundPage(FoundFile<'m>),
    /// Another path of the site.
    Redirect(String),
    /// Another address, by a rule.
    Rule(RuleRedirect<'m>),
    /// Nothing of the site.
    Missing,
}

/// Whether a path is so long that no file and no rule is looked for.
pub fn is_too_long(path: &str) -> bool {
    path.len() > MAX_ASKED_BYTES
}

impl SiteManifest {
    /// Finds what answers at a path by a rule that redirects, a file, or a rule with status 200.
    pub fn by_path(&self, path: &str) -> Option<SiteAnswer<'_>> {
        if is_too_long(path) {
            return None;
        }
        let redirect = self.rules.redirect(path).map(SiteAnswer::Rule);
        let found = redirect.or_else(|| self.file_or_redirect(path));
        found.or_else(|| self.rewritten(path).map(SiteAnswer::File))
    }

    /// Finds the file that a rule with status 200 has for a path that no file can have, as those of an application that routes by itself.
    pub fn by_rule(&self, path: &str) -> Option<SiteAnswer<'_>> {
        let path = Some(path).filter(|path| !is_too_long(path))?;
        self.rewritten(path).map(SiteAnswer::File)
    }

    /// Finds what answers a request where no file does.
    pub fn in_place_of_file(&self, request: SiteRequest<'_>) -> SiteAnswer<'_> {
        let path = request.path;
        let name = path.rsplit('/').next().unwrap_or(path);
        if request.is_navigation
            && !name.contains('.')
            && let Some(fallback) = &self.options.fallback
            && let Some(file) = self.file(fallback)
        {
            return SiteAnswer::Fallback(file);
        }
        match self.nearest_not_found_page(path) {
            Some(file) => SiteAnswer::NotFoundPage(file),
            None => SiteAnswer::Missing,
        }
    }

    /// Finds the file that answers at a path, or the path at which it does.
    fn file_or_redirect(&self, path: &str) -> Option<SiteAnswer<'_>> {
        if path.is_empty() {
            return self.file(INDEX_FILE).map(SiteAnswer::File);
        }
        if let Some(folder) = path.strip_suffix('/') {
            let page = || self.file(&format!("{folder}{HTML_ENDING}"));
            return match self.file(&format!("{path}{INDEX_FILE}")) {
                Some(file) => Some(SiteAnswer::File(file)),
                None => page().map(|_| SiteAnswer::Redirect(folder.to_owned())),
            };
        }
        if let Some(file) = self.file(path) {
            return Some(SiteAnswer::File(file));
        }
        // Of most missing files this is all that is looked up.
        if !self.any_path_begins_with(path) {
            return None;
        }
        if let Some(page) = self.file(&format!("{path}{HTML_ENDING}")) {
            return Some(SiteAnswer::File(page));
        }
        let folder = format!("{path}/");
        let index = self.file(&format!("{folder}{INDEX_FILE}"));
        index.map(|_| SiteAnswer::Redirect(folder))
    }

    /// Finds the file that answers in place of a path by a rule. It is looked up once: a rule leads to no other rule.
    fn rewritten(&self, path: &str) -> Option<FoundFile<'_>> {
        let target = self.rules.rewrite(path)?;
        match self.file_or_redirect(&target)? {
            SiteAnswer::File(file) => Some(file),
            // The page of a folder, or a page without its ending.
            SiteAnswer::Redirect(other) => match self.file_or_redirect(&other)? {
                SiteAnswer::File(file) => Some(file),
                _ => None,
            },
            _ => None,
        }
    }

    /// Finds the file at a path, if it may be served.
    fn file(&self, path: &str) -> Option<FoundFile<'_>> {
        let (path, file) = self.files.get_key_value(path)?;
        let found = FoundFile { path, file: *file };
        (!is_rule_file(path)).then_some(found)
    }

    /// Whether the path of any file begins with a text.
    fn any_path_begins_with(&self, text: &str) -> bool {
        let from_text = (Bound::Included(text), Bound::Unbounded);
        let mut paths = self.files.range::<str, _>(from_text);
        paths.next().is_some_and(|(path, _)| path.starts_with(text))
    }

    /// Finds the page for missing files in the folder of a path, or above it.
    fn nearest_not_found_page(&self, path: &str) -> Option<FoundFile<'_>> {
        let folders = path.match_indices('/').rev().map(|(end, _)| &path[..=end]);
        // No file is in a folder with a longer path.
        let folders = folders.filter(|folder| folder.len() < MAX_PATH_BYTES);
        let mut folders = folders.chain([""]);
        folders.find_map(|folder| self.file(&format!("{folder}{NOT_FOUND_FILE}")))
    }
}

#[cfg(test)]
mod tests {
    use svc_sandbox::{
        PatternPart, RedirectRule, RedirectTarget, SiteRules as JudgedRules, TargetPart,
    };

    use super::super::{SiteFile, SiteRules};
    use super::*;
    use crate::content::Digest;

    fn site(paths: &[&str], fallback: Option<&str>) -> SiteManifest {
        let mut site = SiteManifest::default();
        for path in paths {
            let file = SiteFile {
                digest: Digest::of(path.as_bytes()),
                bytes: 1,
                list: None,
            };
            site.files.insert((*path).to_owned(), file);
        }
        site.options.fallback = fallback.map(str::to_owned);
        site
    }

    fn answers(site: &SiteManifest, path: &str) -> String {
        let answer = |is_navigation| match site.by_path(path).unwrap_or_else(|| {
            site.in_place_of_file(SiteRequest {
                path,
                is_navigation,
            })
        }) {
            SiteAnswer::File(found) => found.path.to_owned(),
            SiteAnswer::Fallback(found) => format!("200 {}", found.path),
            SiteAnswer::NotFoundPage(found) => format!("404 {}", found.path),
            SiteAnswer::Redirect(path) => format!("308 {path}"),
            SiteAnswer::Rule(rule) => {
                format!("{} {}", rule.status.as_u16(), rule.location("/", None))
            }
            SiteAnswer::Missing => "404".to_owned(),
        };
        match (answer(true), answer(false)) {
            (page, file) if page == file => page,
            (page, file) => format!("{page} | {file}"),
        }
    }

    #[test]
    fn files_answer_where_tools_expect_them() {
        let site = site(
            &[
                "index.html",
                "about.html",
                "docs/index.html",
                "docs/intro.html",
                "both.html",
                "both/index.html",
                "plain",
                "plain.html",
                "a.js",
                "docs/404.html",
                "raw",
            ],
            None,
        );
        for (path, expected) in [
            ("", "index.html"),
            ("index.html", "index.html"),
            ("about", "about.html"),
            ("about.html", "about.html"),
            ("about/", "308 about"),
            ("docs", "308 docs/"),
            ("doc", "404"),
            ("abou", "404"),
            ("docs/", "docs/index.html"),
            ("docs/intro", "docs/intro.html"),
            ("docs/intro/", "308 docs/intro"),
            ("both", "both.html"),
            ("both/", "both/index.html"),
            ("plain", "plain"),
            ("raw", "raw"),
            ("a.js", "a.js"),
            ("A.js", "404"),
            ("a.js/", "404"),
            ("nothing", "404"),
            ("docs/nothing", "404 docs/404.html"),
            ("docs/x/y.js", "404 docs/404.html"),
            ("other/x", "404"),
        ] {
            assert_eq!(answers(&site, path), expected, "{path}");
        }
    }

    /// Makes rules of paths without placeholders, and of `*` for all paths.
    fn rules(rules: &[(&str, &str, u16)]) -> SiteRules {
        let redirects = rules.iter().map(|(from, to, status)| RedirectRule {
            pattern: match *from {
                "*" => vec![PatternPart::Rest],
                from => vec![PatternPart::Text(from.to_owned())],
            },
            target: RedirectTarget {
                origin: None,
                path: vec![TargetPart::Text((*to).to_owned())],
                query: None,
                fragment: None,
            },
            status: *status,
        });
        let judged = JudgedRules {
            redirects: redirects.collect(),
            headers: Vec::new(),
        };
        SiteRules::new(judged).unwrap()
    }

    #[test]
    fn rules_come_before_and_after_files() {
        let files = [
            "index.html",
            "a.html",
            "docs/index.html",
            "_headers",
            "_redirects",
        ];
        let mut site = site(&files, Some("index.html"));
        site.rules = rules(&[
            ("a", "moved", 301),
            ("docs/", "x", 200),
            ("app", "docs", 200),
            ("page", "a/", 200),
            ("chain", "app", 200),
            ("secret", "_headers", 200),
            ("gone", "nothing", 200),
        ]);
        for (path, expected) in [
            ("a", "301 /moved"),
            ("a.html", "a.html"),
            ("docs/", "docs/index.html"),
            ("app", "docs/index.html"),
            ("page", "a.html"),
            ("chain", "200 index.html | 404"),
            ("secret", "200 index.html | 404"),
            ("gone", "200 index.html | 404"),
            ("_headers", "200 index.html | 404"),
            ("_redirects", "200 index.html | 404"),
        ] {
            assert_eq!(answers(&site, path), expected, "{path}");
        }
        site.rules = rules(&[("*", "index.html", 200), ("*", "index.html", 302)]);
        assert_eq!(answers(&site, "index.html"), "index.html", "it is no loop");
        assert_eq!(answers(&site, "x.js"), "302 /index.html");
        site.rules = rules(&[("*", "index.html", 200)]);
        assert_eq!(answers(&site, "x.js"), "index.html");
        assert_eq!(answers(&site, "_headers"), "index.html");
    }

    #[test]
    fn nothing_but_the_pages_for_missing_files_answers_a_long_path() {
        let mut app = site(&["index.html", "404.html"], Some("index.html"));
        app.rules = rules(&[("*", "moved", 302), ("*", "index.html", 200)]);
        let longest = "a".repeat(MAX_ASKED_BYTES);
        assert_eq!(answers(&app, &longest), "302 /moved");
        let routed = answers(&app, &format!("{longest}a"));
        assert_eq!(routed, "200 index.html | 404 404.html");
    }

    #[test]
    fn an_app_routes_navigations_and_misses_scripts() {
        let app = site(&["index.html", "a.js", "404.html"], Some("index.html"));
        for (path, expected) in [
            ("", "index.html"),
            ("users/7", "200 index.html | 404 404.html"),
            ("users/", "200 index.html | 404 404.html"),
            ("old.js", "404 404.html"),
            ("v1.2/x", "200 index.html | 404 404.html"),
        ] {
            assert_eq!(answers(&app, path), expected, "{path}");
        }
        let empty = site(&["a.js"], None);
        assert_eq!(answers(&empty, ""), "404");
    }
}
