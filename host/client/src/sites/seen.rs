//! Sites as they were when this folder last saw them on a server: what is sent next is compared with that, and what somebody else has
//! published since is noticed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use url::Url;

use super::content::{RemoteFile, RemoteSite};
use super::{SiteOptions, content_digest};
use crate::files::DirectoryHandle;
use crate::manifest::{AcceptedOwners, IGNORE_FILE, state_file_name};
use svc_base::digest::Digest;
use svc_base::names::is_slug;

/// Folder of the files, in that of all that a folder remembers.
const DIRECTORY: &str = "sites";
/// Version of the file's form. A file of another one is not read.
const VERSION: u32 = 1;
/// The most bytes of a file.
const MAX_BYTES: u64 = 16 << 20;

/// A site of a server.
#[derive(Clone, Debug)]
pub(crate) struct SeenSite {
    name: Option<PathBuf>,
}

#[derive(Debug, Deserialize, Serialize)]
struct SeenDocument {
    version: u32,
    content_sha256: String,
    /// Digests and lengths by the paths.
    files: BTreeMap<String, (String, u64)>,
    options: SiteOptions,
}

impl SeenSite {
    /// Finds the place for a site of a project. One with a name that makes no file's has none, and is never remembered.
    pub(crate) fn at(server: &Url, project: &str, slug: &str) -> Self {
        let file = state_file_name(server, project).filter(|_| is_slug(slug));
        let name = file.and_then(|file| {
            let parent = file.parent()?.join(DIRECTORY);
            let stem = file.file_stem()?.to_str()?;
            Some(parent.join(format!("{stem}-{slug}.json")))
        });
        Self { name }
    }

    /// Reads what was seen; `None` where nothing is known that could be relied on.
    pub(crate) fn read(&self) -> Option<RemoteSite> {
        let name = self.name.as_ref()?;
        let here = DirectoryHandle::open(Path::new(".")).ok()?;
        let (bytes, owner) = here.read_with_owner(name, MAX_BYTES).ok()??;
        AcceptedOwners::default().check(owner, name, "").ok()?;
        let seen: SeenDocument = serde_json::from_slice(&bytes).ok()?;
        let files = seen.files.into_iter().map(|(path, (digest, bytes))| {
            let digest = Digest::from_hex(&digest)?;
            Some((path, RemoteFile { digest, bytes }))
        });
        let site = RemoteSite {
            content_sha256: seen.content_sha256,
            files: files.collect::<Option<_>>()?,
            options: seen.options,
        };
        // The digest says of which files it is: a file that was changed by hand is not believed.
        let files = site.files.iter();
        let files = files.map(|(path, file)| (path.as_str(), file.digest));
        let is_whole = content_digest(files, &site.options) == site.content_sha256;
        (seen.version == VERSION && is_whole).then_some(site)
    }

    /// Forgets what was seen, after the user has made another revision live.
    pub(crate) fn forget(&self) {
        let Some(name) = &self.name else {
            return;
        };
        if let Ok(here) = DirectoryHandle::open(Path::new("."))
            && here.exists(name).unwrap_or(false)
        {
            // A file that is none is not read.
            let _ = here.write(name, b"{}", true);
        }
    }

    /// Writes what was seen. A folder that cannot be written to remembers nothing, which is no failure.
    pub(crate) fn write(&self, site: &RemoteSite) {
        let Some(name) = &self.name else {
            return;
        };
        let files = site.files.iter();
        let document = SeenDocument {
            version: VERSION,
            content_sha256: site.content_sha256.clone(),
            files: files
                .map(|(path, file)| (path.clone(), (file.digest.to_string(), file.bytes)))
                .collect(),
            options: site.options.clone(),
        };
        let write = || {
            let here = DirectoryHandle::open(Path::new("."))?;
            let (ignore, text) = IGNORE_FILE;
            if !here.exists(Path::new(ignore))? {
                here.write(Path::new(ignore), text.as_bytes(), true)?;
            }
            let bytes = serde_json::to_vec(&document).unwrap_or_default();
            here.write(name, &bytes, true)
        };
        // The next push asks the server for the list then.
        let _ = write();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        let server = Url::parse("https://svc.example").unwrap();
        let project = "01900000-0000-7000-8000-000000000001";
        let name = |project: &str, slug: &str| SeenSite::at(&server, project, slug).name;
        let expected = format!(".svc/sites/svc.example-443-{project}-app.json");
        assert_eq!(name(project, "app").as_deref(), Some(Path::new(&expected)));
        for (project, slug) in [(project, "../app"), (project, ""), ("../x", "app")] {
            assert_eq!(name(project, slug), None, "{project} {slug}");
        }
    }
}
