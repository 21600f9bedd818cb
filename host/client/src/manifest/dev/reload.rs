//! Versions of a folder's pages: one changes with the page, and all with what every page calls.

use std::collections::BTreeMap;

use super::super::ProjectFolder;
use super::super::apply::PageAddress;
use svc_base::digest::Digest;

/// Returns the version of each page by the slug that it has on the server.
pub(super) fn page_versions(
    folder: &ProjectFolder,
    pages: &[PageAddress],
) -> BTreeMap<String, String> {
    let shared = shared_digest(folder);
    let version = |slug: &str| {
        let page = folder.pages.iter().find(|page| page.slug == slug)?;
        let title = page.title.as_deref().unwrap_or_default();
        Some(digest_of(&[&shared, title, &page.sha256()]))
    };
    // The server has given another slug where this one was not to be had.
    let found = pages.iter();
    let found = found.filter_map(|page| Some((page.real_slug.clone(), version(&page.slug)?)));
    found.collect()
}

/// Digest of what all pages share: the database's form, the actions, and the manifest's settings.
fn shared_digest(folder: &ProjectFolder) -> String {
    let manifest = &folder.manifest;
    let switches = format!("{:?} {:?}", manifest.realtime, manifest.agents);
    let mut parts = vec![switches.as_str()];
    parts.extend(folder.migrations.iter().map(|one| one.checksum.as_str()));
    for action in &folder.actions {
        parts.extend([action.name.as_str(), action.sql.as_str()]);
    }
    digest_of(&parts)
}

/// Digest of several texts, of which no two lists have the same.
fn digest_of(parts: &[&str]) -> String {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(format!("{}:{part}", part.len()).as_bytes());
    }
    Digest::of(&bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::DirectoryHandle;
    use crate::manifest::AcceptedOwners;

    /// A change of a page is that page's, and a change of an action is every page's.
    #[test]
    fn a_version_changes_with_what_the_page_shows_and_calls() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let versions = || {
            let handle = DirectoryHandle::open(folder.path()).unwrap();
            let read = ProjectFolder::read(&handle, AcceptedOwners::ALL).unwrap();
            let url = |slug: &str, real: &str| PageAddress {
                slug: slug.to_owned(),
                real_slug: real.to_owned(),
                url: format!("http://a/{real}"),
            };
            page_versions(&read, &[url("a", "a"), url("b", "b-2")])
        };
        write(
            "svc.toml",
            "project = \"P\"\n[pages]\na = \"a.md\"\nb = \"b.md\"\n",
        );
        write("a.md", "A");
        write("b.md", "B");
        let first = versions();
        assert_eq!(first.keys().collect::<Vec<_>>(), ["a", "b-2"]);
        assert_eq!(versions(), first);
        write("a.md", "A2");
        let second = versions();
        assert!(second["a"] != first["a"] && second["b-2"] == first["b-2"]);
        write("actions/one.sql", "SELECT 1");
        let third = versions();
        assert!(third["a"] != second["a"] && third["b-2"] != second["b-2"]);
        write(
            "svc.toml",
            "project = \"P\"\n[pages]\na = \"a.md\"\nb = {file = \"b.md\", title = \"T\"}\n",
        );
        let fourth = versions();
        assert!(fourth["a"] == third["a"] && fourth["b-2"] != third["b-2"]);
    }
}
