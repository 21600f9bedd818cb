//! Files of a site as a server has them, and how a folder differs from them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use super::folder::SiteFolder;
use super::paths::{folder_of_another, path_fault};
use super::{SiteOptions, size_text};
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::output::{escape_excerpt, escape_line};
use svc_base::digest::Digest;

/// Most lines of a difference for people.
const MAX_LINES: usize = 50;
/// Most characters of a path in a message.
const MAX_PATH_CHARACTERS: usize = 200;

/// A file of a site on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemoteFile {
    pub(crate) digest: Digest,
    pub(crate) bytes: u64,
}

/// Files and options of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemoteSite {
    pub(crate) content_sha256: String,
    /// Files by their paths, each of which leads into a folder and to nothing hidden.
    pub(crate) files: BTreeMap<String, RemoteFile>,
    pub(crate) options: SiteOptions,
}

#[derive(Deserialize)]
struct SiteDocument {
    content_sha256: String,
    files: BTreeMap<String, FileDocument>,
    #[serde(default)]
    options: SiteOptions,
}

#[derive(Deserialize)]
struct FileDocument {
    sha256: String,
    size: u64,
}

/// Differences between a site and another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SiteDifference {
    /// Paths of new files, with their bytes.
    added: BTreeMap<String, u64>,
    changed: BTreeMap<String, u64>,
    removed: BTreeSet<String>,
    are_options_new: bool,
}

impl RemoteSite {
    /// Reads the answer of a server.
    ///
    /// # Errors
    /// When it is none, or has a path that leads out of a folder or to what is hidden.
    pub(crate) fn parse(document: Value) -> Result<Self> {
        let refused = |detail: String| {
            CliFailure::new(
                FailureExitCode::NoAnswer,
                "Not an answer",
                format!("{detail} Nothing was done with it."),
            )
        };
        let no_site = || refused("The server answered without the files of the site.".to_owned());
        let site: SiteDocument = serde_json::from_value(document).map_err(|_| no_site())?;
        let mut files = BTreeMap::new();
        for (path, file) in site.files {
            if let Some(fault) = path_fault(&path) {
                let path = escape_excerpt(&path, MAX_PATH_CHARACTERS);
                return Err(refused(format!(
                    "The server answered a file `{path}`, whose path {fault}."
                )));
            }
            let digest = Digest::from_hex(&file.sha256).ok_or_else(no_site)?;
            let bytes = file.size;
            files.insert(path, RemoteFile { digest, bytes });
        }
        if let Some(path) = folder_of_another(files.keys().map(String::as_str)) {
            let path = escape_excerpt(path, MAX_PATH_CHARACTERS);
            return Err(refused(format!(
                "The server answered `{path}` as a file and as a folder."
            )));
        }
        Ok(Self {
            content_sha256: site.content_sha256,
            files,
            options: site.options,
        })
    }

    /// Digests of all files, which the project has.
    pub(super) fn digests(&self) -> BTreeSet<Digest> {
        self.files.values().map(|file| file.digest).collect()
    }
}

impl SiteDifference {
    /// Compares a folder with what a server has. Without options of its own the folder takes the server's.
    pub(crate) fn of_folder(
        remote: &RemoteSite,
        local: &SiteFolder,
        options: Option<&SiteOptions>,
    ) -> Self {
        let local = local.files.iter();
        let new = local.map(|(path, file)| (path.as_str(), (file.digest, file.bytes)));
        Self::between(remote, new, options)
    }

    /// Compares two sites of a server.
    pub(crate) fn of_revisions(old: &RemoteSite, new: &RemoteSite) -> Self {
        let files = new.files.iter();
        let files = files.map(|(path, file)| (path.as_str(), (file.digest, file.bytes)));
        Self::between(old, files, Some(&new.options))
    }

    fn between<'p>(
        old: &RemoteSite,
        new: impl Iterator<Item = (&'p str, (Digest, u64))>,
        options: Option<&SiteOptions>,
    ) -> Self {
        let mut found = Self {
            removed: old.files.keys().cloned().collect(),
            are_options_new: options.is_some_and(|options| *options != old.options),
            ..Self::default()
        };
        for (path, (digest, bytes)) in new {
            found.removed.remove(path);
            match old.files.get(path) {
                Some(file) if file.digest == digest => {}
                Some(_) => drop(found.changed.insert(path.to_owned(), bytes)),
                None => drop(found.added.insert(path.to_owned(), bytes)),
            }
        }
        found
    }

    /// Whether nothing differs.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Paths of the files that are new or have other bytes.
    pub(super) fn new_paths(&self) -> impl Iterator<Item = &str> {
        self.added
            .keys()
            .chain(self.changed.keys())
            .map(String::as_str)
    }

    /// Whether it is sent as changes. Where files are gone, the whole list is: a path that is deleted by its name ends in open tabs, too,
    /// and one that a list leaves out does not.
    pub(super) fn is_small(&self) -> bool {
        self.removed.is_empty() && self.new_paths().next().is_some()
    }

    /// Summary of the size.
    pub(crate) fn size(&self) -> String {
        format!(
            "+{} ~{} −{} files",
            self.added.len(),
            self.changed.len(),
            self.removed.len()
        )
    }

    /// Lists the files for people, one a line.
    pub(crate) fn to_text(&self) -> String {
        let sized = |sign: char, (path, bytes): (&String, &u64)| {
            format!("{sign} {} ({})", escape_line(path), size_text(*bytes))
        };
        let added = self.added.iter().map(|file| sized('+', file));
        let changed = self.changed.iter().map(|file| sized('~', file));
        let removed = self.removed.iter();
        let removed = removed.map(|path| format!("- {}", escape_line(path)));
        let options = self.are_options_new.then(|| "~ options".to_owned());
        let all: Vec<_> = added.chain(changed).chain(removed).chain(options).collect();
        let mut lines: Vec<_> = all.iter().take(MAX_LINES).map(String::as_str).collect();
        let more = format!("and {} more", all.len().saturating_sub(MAX_LINES));
        if all.len() > MAX_LINES {
            lines.push(&more);
        }
        lines.join("\n")
    }

    /// Formats the paths for programs.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "added": self.added.keys().collect::<Vec<_>>(),
            "changed": self.changed.keys().collect::<Vec<_>>(),
            "removed": self.removed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(files: &[(&str, &str)], fallback: Option<&str>) -> RemoteSite {
        let files = files.iter().map(|(path, text)| {
            let digest = Digest::of(text.as_bytes()).to_string();
            (
                (*path).to_owned(),
                json!({ "sha256": digest, "size": text.len() }),
            )
        });
        let files: serde_json::Map<String, Value> = files.collect();
        RemoteSite::parse(json!({
            "type": "site", "content_sha256": "x", "files": files, "options": { "fallback": fallback },
        }))
        .unwrap()
    }

    #[test]
    fn a_servers_paths_lead_into_the_folder_alone() {
        let digest = Digest::of(b"x").to_string();
        for path in [
            "../a",
            "/etc/passwd",
            "a/../../b",
            ".bashrc",
            ".git/hooks/post-checkout",
            "a\\..\\b",
            "a\u{1b}[2J",
            "",
        ] {
            let document = json!({
                "content_sha256": "x", "files": { path: { "sha256": digest, "size": 1 } }, "options": {},
            });
            let refused = RemoteSite::parse(document).unwrap_err();
            assert_eq!(refused.exit, FailureExitCode::NoAnswer, "{path}");
        }
        let file = json!({ "sha256": digest, "size": 1 });
        for document in [
            json!({}),
            json!({ "content_sha256": "x", "files": [] }),
            json!({ "content_sha256": "x", "files": { "a": { "sha256": "../x", "size": 1 } } }),
            json!({ "content_sha256": "x", "files": { "a": file, "a/b": file } }),
        ] {
            assert!(RemoteSite::parse(document).is_err());
        }
    }

    #[test]
    fn a_difference_names_what_is_new_other_and_gone() {
        let old = site(&[("a", "1"), ("b", "2"), ("c", "3")], None);
        let new = site(&[("a", "1"), ("b", "22"), ("d", "4")], Some("a"));
        let found = SiteDifference::of_revisions(&old, &new);
        assert_eq!(found.to_text(), "+ d (1 B)\n~ b (2 B)\n- c\n~ options");
        assert_eq!(found.size(), "+1 ~1 −1 files");
        assert_eq!(found.new_paths().collect::<Vec<_>>(), ["d", "b"]);
        assert!(SiteDifference::of_revisions(&new, &new).is_empty());
        let many: Vec<_> = (0..60).map(|number| format!("f{number}")).collect();
        let many: Vec<_> = many.iter().map(|path| (path.as_str(), "x")).collect();
        let found = SiteDifference::of_revisions(&old, &site(&many, None)).to_text();
        assert!(found.ends_with("and 13 more"), "{found}");
    }
}
