//! Sites of a pull: only files that the folder has otherwise are fetched, and each is held against its digest.

use std::collections::BTreeMap;
use std::path::Path;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::super::pages::{FrontendType, ManifestPageEntry, SiteEntry};
use super::super::remote_state::{RemoteFrontend, RemoteProjectState, fetch_site};
use super::super::{DEFAULT_ACTIONS, DEFAULT_MIGRATIONS, Manifest};
use super::{PlannedFileWrite, PullPlan};
use crate::api::ApiClient;
use crate::endpoints;
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::files::DirectoryHandle;
use crate::output::escape_line;
use crate::sites::{
    NOTHING_TO_PUBLISH, RemoteFile, RemoteSite, SiteFolder, is_path_left_out, name_some,
};
use svc_base::digest::Digest;

/// Files that are fetched at once.
const DOWNLOADS_AT_ONCE: usize = 8;

impl PullPlan {
    /// Reads the lists of the sites that the folder does not have as the server has them.
    pub(super) async fn read_sites(
        &mut self,
        api: &ApiClient,
        manifest: Option<&Manifest>,
        state: &RemoteProjectState,
    ) -> Result<()> {
        let mut known = BTreeMap::new();
        for (slug, entry) in manifest.iter().flat_map(|manifest| &manifest.pages) {
            let Some(site) = entry.site() else {
                continue;
            };
            let is_other = |slug: &str| manifest.is_some_and(|one| one.pages.contains_key(slug));
            if let Some(frontend) = state.find_frontend_by_slug(slug, is_other)? {
                known.insert(frontend.slug.as_str(), self.digest_of_site(site)?);
            }
        }
        let sites = state.frontends.iter();
        let sites = sites.filter(|one| one.frontend_type == FrontendType::SITE);
        for site in sites {
            let local = known.get(site.slug.as_str()).cloned().flatten();
            if local.is_none() || local != site.content_sha256 {
                let revision = site.active_revision_id.as_deref();
                let at = (&*state.project.id, &*site.slug);
                let fetched = fetch_site(api, at, revision).await?;
                self.sites.insert(site.slug.clone(), fetched);
            }
        }
        Ok(())
    }

    /// Computes the digest of a site as the folder has it; `None` if it has none.
    pub(super) fn digest_of_site(&self, entry: &SiteEntry) -> Result<Option<String>> {
        let local = read_local_site(&self.folder, entry)?;
        Ok(local.map(|local| local.content_digest(&entry.options())))
    }

    /// Makes the entry of a page that no manifest names: its file or folder is called as its slug.
    pub(super) fn new_entry(&self, frontend: &RemoteFrontend) -> (String, ManifestPageEntry) {
        let slug = &frontend.slug;
        let entry = match frontend.frontend_type {
            FrontendType::Page(page) => {
                let extension = page.extensions()[0];
                ManifestPageEntry::File(format!("{slug}.{extension}").into())
            }
            FrontendType::Site(_) => {
                let site = self.sites.get(slug);
                let options = site.map(|site| site.options.clone()).unwrap_or_default();
                // Folders of SQL have these names.
                let folder = match [DEFAULT_MIGRATIONS, DEFAULT_ACTIONS].contains(&slug.as_str()) {
                    true => format!("{slug}-site"),
                    false => slug.clone(),
                };
                ManifestPageEntry::Folder(SiteEntry {
                    folder: folder.into(),
                    title: None,
                    fallback: options.fallback,
                    immutable: options.immutable,
                })
            }
        };
        (slug.clone(), entry)
    }

    /// Adds the files of a site that the folder has otherwise, and notes what only the folder has.
    pub(super) async fn add_site(
        &mut self,
        api: &ApiClient,
        (project, frontend): (&str, &RemoteFrontend),
        entry: &SiteEntry,
    ) -> Result<()> {
        // Without a list, the folder is as the server says.
        let Some(remote) = self.sites.remove(&frontend.slug) else {
            return Ok(());
        };
        let local = read_local_site(&self.folder, entry)?;
        let wanted = self.wanted_files(entry, &remote, local.as_ref());
        for (path, file) in &wanted {
            let name = entry.folder.join(name_in(local.as_ref(), path));
            self.count(&name, usize::try_from(file.bytes).unwrap_or(usize::MAX))?;
        }
        let at = [project, frontend.slug.as_str()];
        let revision = frontend.active_revision_id.as_deref();
        let fetched = stream::iter(wanted).map(|(path, file)| async move {
            let bytes = fetch_file(api, (at, path), revision, file).await?;
            Ok::<_, CliFailure>((path.clone(), bytes))
        });
        let fetched = fetched.buffer_unordered(DOWNLOADS_AT_ONCE);
        let fetched: BTreeMap<String, Vec<u8>> = fetched.try_collect().await?;
        for (path, bytes) in fetched {
            let name = entry.folder.join(name_in(local.as_ref(), &path));
            let is_new = !self.folder.exists(&name)?;
            self.files.push(PlannedFileWrite {
                name,
                bytes,
                is_new,
            });
        }
        let local = local.iter().flat_map(|local| local.files.keys());
        let extra: Vec<_> = local
            .filter(|path| !remote.files.contains_key(*path))
            .collect();
        self.note_extra(entry, &extra);
        if remote.options != entry.options() {
            self.notes.push(format!(
                "The options of the site `{}` differ from svc.toml: the server has {}. Change them in svc.toml.",
                frontend.slug,
                escape_line(&serde_json::to_string(&remote.options).unwrap_or_default())
            ));
        }
        Ok(())
    }

    /// Lists the files that the folder has otherwise, and notes those that are not written: a link's, and what no folder publishes.
    fn wanted_files<'r>(
        &mut self,
        entry: &SiteEntry,
        remote: &'r RemoteSite,
        local: Option<&SiteFolder>,
    ) -> Vec<(&'r String, RemoteFile)> {
        let digest = |path: &str| local.and_then(|local| Some(local.files.get(path)?.digest));
        let (mut wanted, mut left_out, mut linked) = (Vec::new(), Vec::new(), Vec::new());
        for (path, file) in &remote.files {
            if is_path_left_out(path) {
                left_out.push(path.as_str());
                continue;
            }
            let target = match local {
                Some(local) => local.linked_path(path),
                None => Some(path.into()),
            };
            if target.as_deref() == Some(path.as_str()) {
                if digest(path) != Some(file.digest) {
                    wanted.push((path, *file));
                }
                continue;
            }
            // A link shows the file that it leads to, as it will be written.
            let shown = target.and_then(|target| match remote.files.get(&*target) {
                Some(file) => Some(file.digest),
                None => digest(&target),
            });
            if shown != Some(file.digest) {
                linked.push(path.as_str());
            }
        }
        let folder = self.folder.display_path(&entry.folder);
        let folder = folder.display();
        if !left_out.is_empty() {
            self.notes.push(format!(
                "Left out: {} of {folder}. Such files are not published from a folder, and the next `svc apply` takes them away.",
                name_some(left_out.into_iter())
            ));
        }
        if !linked.is_empty() {
            self.notes.push(format!(
                "Not written: {} of {folder}, where a link is, and the server has other bytes. Put files in the place of the link, and pull again.",
                name_some(linked.into_iter())
            ));
        }
        wanted
    }

    /// Notes the files that only the folder has.
    fn note_extra(&mut self, entry: &SiteEntry, extra: &[&String]) {
        if extra.is_empty() {
            return;
        }
        self.notes.push(format!(
            "Only {} has {}: remove what is not wanted, for the next `svc apply` publishes it.",
            self.folder.display_path(&entry.folder).display(),
            name_some(extra.iter().map(|path| path.as_str()))
        ));
    }
}

/// Reads the folder of a site; `None` if it is not there, or has no file.
pub(super) fn read_local_site(
    folder: &DirectoryHandle,
    entry: &SiteEntry,
) -> Result<Option<SiteFolder>> {
    let Some(opened) = folder.open_folder(&entry.folder)? else {
        return Ok(None);
    };
    match SiteFolder::of_handle(opened) {
        Err(failure) if failure.is_titled(NOTHING_TO_PUBLISH) => Ok(None),
        read => read.map(Some),
    }
}

/// Name that a path of a site has in its folder. A file system may have a name in another form of Unicode.
fn name_in<'a>(local: Option<&'a SiteFolder>, path: &'a str) -> &'a Path {
    let known = local.and_then(|local| local.name_of(path));
    known.unwrap_or(Path::new(path))
}

/// Fetches a file of a site, which must be the one that the list names.
async fn fetch_file(
    api: &ApiClient,
    ([project, slug], path): ([&str; 2], &str),
    revision: Option<&str>,
    file: RemoteFile,
) -> Result<Vec<u8>> {
    let asked = api.call(&endpoints::FILE, &[project, slug, path]);
    let asked = asked.query("revision_id", revision);
    let begin = |_: Option<u64>| Ok(Vec::new());
    let take = |bytes: &mut Vec<u8>, part: &[u8]| {
        bytes.extend_from_slice(part);
        Ok(())
    };
    let (bytes, _) = asked.send_and_stream(file.bytes, begin, take).await?;
    match Digest::of(&bytes) == file.digest {
        true => Ok(bytes),
        false => Err(CliFailure::new(
            FailureExitCode::NoAnswer,
            "Not an answer",
            format!(
                "The server answered other bytes for `{}` than its list names. Nothing was written.",
                escape_line(path)
            ),
        )),
    }
}
