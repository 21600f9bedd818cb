//! Preparing a site for its publication: its files are there, within their bounds, and stored, before a row names them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::model::{FileError, FileOwner, FileRoom, FileUsage, NewSite, NewSiteFile, SiteTitle};
use super::service::ProjectFiles;
use super::store;
use crate::config::Limits;
use crate::content::{Digest, FileWriter, StoredFile};
use crate::control::{self, Tx};
use crate::deployments::publication::{PageSource, PublishError, StoredPublication};
use crate::deployments::sites::{
    FileReader, SiteFile, SiteManifest, case_collisions, hidden_paths,
};
use crate::deployments::views::Warning;
use crate::projects::Project;
use crate::workspaces::{self, FileLimits};
use svc_base::ids::DeploymentId;
use svc_sandbox::ContentType;

/// Document whose title is that of the site.
const START_PAGE: &str = "index.html";
/// Most bytes of the page that shows a shared file.
const SHOWN_PAGE_BYTES: u64 = 32 << 10;
/// Files of a request that are stored at once.
const CONCURRENT_WRITES: usize = 8;
/// Paths that a warning names at most.
const NAMED_PATHS: usize = 5;

/// A site that is stored and that nothing answers yet. While this lives the collector keeps its files.
#[derive(Debug)]
pub struct PreparedSite {
    /// Forms of its manifest.
    pub(in crate::deployments) publication: StoredPublication,
    /// Title of the site; empty where there is none.
    pub title: String,
    /// Warnings for the author.
    pub warnings: Vec<Warning>,
    pub(in crate::deployments) files: Arc<PublishedFiles>,
}

/// Files that a publication names, for its transaction.
#[derive(Debug)]
pub(in crate::deployments) struct PublishedFiles {
    owner: FileOwner,
    /// Version of the owner's files for which the named ones were found.
    version: i64,
    /// Files that the owner has.
    named: Vec<Digest>,
    /// Files that the owner gets.
    stored: Vec<Arc<StoredFile>>,
    room: FileRoom,
}

/// Files of an owner, as they are before a site is prepared.
struct KnownFiles {
    version: i64,
    /// Files that the owner has, of those that the site names.
    files: HashMap<Digest, SiteFile>,
    used: FileUsage,
}

impl PreparedSite {
    /// Returns the files, for the transaction of the publication.
    pub(in crate::deployments) fn files(&self) -> Arc<PublishedFiles> {
        Arc::clone(&self.files)
    }
}

impl PublishedFiles {
    /// Gives the files of a publication to their owner, inside its transaction, if they and the room for them are still there.
    ///
    /// # Errors
    /// `Missing`, `StorageFull`, `InstallationFull`.
    pub(in crate::deployments) fn adopt(&self, tx: &Tx<'_>) -> Result<(), FileError> {
        let owner = &self.owner;
        if store::version(tx, owner).map_err(control::Error::from)? != self.version {
            let there = store::find(tx, owner, &self.named).map_err(control::Error::from)?;
            refuse_missing(&self.named, &there)?;
        }
        for file in &self.stored {
            if store::has(tx, owner, &file.digest).map_err(control::Error::from)? {
                continue;
            }
            let used = store::usage(tx, owner).map_err(control::Error::from)?;
            self.room.check(used, file.bytes)?;
            store::insert(tx, owner, file, None)?;
        }
        Ok(store::raise_version(tx, owner)?)
    }
}

/// Refuses digests of which there is no file.
pub(super) fn refuse_missing(
    named: &[Digest],
    there: &HashMap<Digest, SiteFile>,
) -> Result<(), FileError> {
    let missing = named.iter().filter(|digest| !there.contains_key(digest));
    let missing: Vec<Digest> = missing.copied().collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(FileError::Missing(missing)),
    }
}

/// Moves the files of a claimed share to its project, inside the transaction of the claim, if there is room for them.
///
/// # Errors
/// `StorageFull`.
pub(in crate::deployments) fn move_to_project(
    tx: &Tx<'_>,
    share: &DeploymentId,
    project: &Project,
    limits: &Limits,
) -> Result<(), FileError> {
    let (from, to) = (FileOwner::from(share), FileOwner::from(&project.id));
    let read = || {
        let plan = workspaces::plan_of(tx, &project.workspace.id)?;
        let more = store::bytes_beyond(tx, &from, &to)?;
        Ok::<_, control::Error>((plan, more, store::usage(tx, &to)?))
    };
    let (plan, more, used) = read()?;
    let room = FileRoom {
        owner: plan.file_limits(limits).storage_bytes,
        // They count for the installation already.
        all: u64::MAX,
    };
    room.check(used, more)?;
    Ok(store::move_all(tx, &from, &to, more)?)
}

impl ProjectFiles {
    /// Prepares a site: all that may be refused is looked at before anything is stored.
    ///
    /// # Errors
    /// [`FileError`]; nothing refers to what was stored by then.
    pub async fn prepare(
        &self,
        project: &Project,
        new: NewSite,
        title: SiteTitle,
    ) -> Result<PreparedSite, FileError> {
        let workspace = project.workspace.id;
        let plan = self
            .infra
            .control
            .read(move |c| Ok(workspaces::plan_of(c, &workspace)?));
        let limits = plan.await?.file_limits(&self.infra.config.limits);
        self.prepare_for((&project.id).into(), limits, new, title)
            .await
    }

    /// Prepares the site of a quick share, which is as large as a request may be.
    ///
    /// # Errors
    /// Those of [`ProjectFiles::prepare`].
    pub async fn prepare_share(
        &self,
        share: &DeploymentId,
        new: NewSite,
        title: SiteTitle,
    ) -> Result<PreparedSite, FileError> {
        let most = self.infra.config.limits.body_bytes;
        // A file as large as a request has room for the page that shows it.
        let with_page = most.saturating_add(SHOWN_PAGE_BYTES);
        let limits = FileLimits {
            site_files: u64::MAX,
            site_bytes: with_page,
            file_bytes: most,
            storage_bytes: with_page,
        };
        self.prepare_for(share.into(), limits, new, title).await
    }

    async fn prepare_for(
        &self,
        owner: FileOwner,
        limits: FileLimits,
        new: NewSite,
        title: SiteTitle,
    ) -> Result<PreparedSite, FileError> {
        let inline = new.inline_bytes();
        // The bytes of a request are in memory until they are stored.
        let counted = self.pipeline.reserve(inline).await?;
        let named = new.named();
        let known = self.look_up(owner.clone(), named.clone()).await?;
        new.check_bounds(&limits, &known.files)?;
        refuse_missing(&named, &known.files)?;
        new.check_sizes(&known.files)?;
        let room = FileRoom {
            owner: limits.storage_bytes,
            all: self.infra.config.limits.storage_total_bytes,
        };
        room.check(known.used, new.new_bytes(&known.files))?;
        let start_page = new.files.get(START_PAGE).cloned();
        let (manifest, stored) = self.store_files(new, &known.files).await?;
        drop(counted);
        let files = Arc::new(PublishedFiles {
            owner,
            version: known.version,
            named,
            stored,
            room,
        });
        let finished = self.finish(manifest, start_page, title, Arc::clone(&files));
        let finished = finished.await;
        if finished.is_err() {
            self.give_up(&files).await?;
        }
        finished
    }

    /// Marks the files that were stored for a publication which has failed: no row names them.
    ///
    /// # Errors
    /// The database's.
    pub(in crate::deployments) async fn give_up(
        &self,
        files: &PublishedFiles,
    ) -> Result<(), FileError> {
        let objects = files.stored.iter().flat_map(|file| file.stored_objects());
        self.forget(objects.collect()).await
    }

    /// Finds the title of a site whose files are stored, and stores its manifest.
    async fn finish(
        &self,
        manifest: SiteManifest,
        start_page: Option<NewSiteFile>,
        title: SiteTitle,
        files: Arc<PublishedFiles>,
    ) -> Result<PreparedSite, FileError> {
        let title = match title {
            SiteTitle::Given(title) => title,
            SiteTitle::OfStartPage(other) => {
                let own = self.page_title(start_page, &manifest).await?;
                own.unwrap_or(other)
            }
        };
        let warnings = warnings(&manifest);
        Ok(PreparedSite {
            publication: self.pipeline.store_site(manifest).await?,
            title,
            warnings,
            files,
        })
    }

    async fn look_up(&self, owner: FileOwner, named: Vec<Digest>) -> Result<KnownFiles, FileError> {
        let known = self.infra.control.read(move |c| {
            // Read before the files: a version that has changed meanwhile has the transaction look once more.
            let version = store::version(c, &owner)?;
            Ok(KnownFiles {
                version,
                files: store::find(c, &owner, &named)?,
                used: store::usage(c, &owner)?,
            })
        });
        Ok(known.await?)
    }

    /// Stores the files that were sent with a request; returns the manifest, and the new files.
    async fn store_files(
        &self,
        new: NewSite,
        known: &HashMap<Digest, SiteFile>,
    ) -> Result<(SiteManifest, Vec<Arc<StoredFile>>), FileError> {
        let files = stream::iter(new.files.into_iter().map(async |(path, file)| {
            let stored = match file {
                NewSiteFile::Kept(file) => return Ok((path, file, None)),
                NewSiteFile::Named(digest, _) => {
                    let file = known.get(&digest).copied();
                    let file = file.ok_or_else(|| FileError::Missing(vec![digest]))?;
                    return Ok((path, file, None));
                }
                NewSiteFile::Stored(stored) => stored,
                NewSiteFile::Inline(bytes) => Arc::new(self.store_inline(bytes).await?),
            };
            let file = SiteFile {
                digest: stored.digest,
                bytes: stored.bytes,
                list: stored.objects.as_ref().map(|objects| objects.list),
            };
            Ok::<_, FileError>((path, file, Some(stored)))
        }));
        let files: Vec<_> = files
            .buffer_unordered(CONCURRENT_WRITES)
            .try_collect()
            .await?;
        let mut manifest = SiteManifest {
            files: BTreeMap::new(),
            options: new.options,
        };
        let mut stored = Vec::new();
        for (path, file, new) in files {
            manifest.files.insert(path, file);
            stored.extend(new);
        }
        Ok((manifest, stored))
    }

    async fn store_inline(&self, bytes: Bytes) -> Result<StoredFile, FileError> {
        let mut writer = FileWriter::new(&self.content);
        writer.write(bytes).await?;
        Ok(writer.finish().await?)
    }

    /// Has a guest read the title of a start page; a page that it cannot render has none.
    async fn page_title(
        &self,
        page: Option<NewSiteFile>,
        manifest: &SiteManifest,
    ) -> Result<Option<String>, FileError> {
        let bytes = match page {
            None => return Ok(None),
            Some(NewSiteFile::Inline(bytes)) => Some(bytes),
            Some(_) => self.small_file(manifest, START_PAGE).await?,
        };
        let Some(text) = bytes
            .as_deref()
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
        else {
            return Ok(None);
        };
        let source = PageSource::titled(ContentType::Html, "", text);
        match self.pipeline.render_unstored(source).await {
            Ok(page) => Ok(Some(page.title).filter(|title| !title.is_empty())),
            Err(error) if error.is_lasting() => Ok(None),
            Err(error @ PublishError::Abandoned(_)) => Err(error.into()),
            // A start page that is busy to be read is no reason to refuse a site.
            Err(_) => Ok(None),
        }
    }

    /// Returns the bytes of a file of a site, if that is small enough to be one object.
    ///
    /// # Errors
    /// Those of the store.
    pub(in crate::deployments) async fn small_file(
        &self,
        manifest: &SiteManifest,
        path: &str,
    ) -> Result<Option<Bytes>, FileError> {
        match manifest.files.get(path) {
            Some(SiteFile {
                digest, list: None, ..
            }) => Ok(self.content.get(digest).await?),
            _ => Ok(None),
        }
    }

    /// Opens a stored file.
    ///
    /// # Errors
    /// Those of the store.
    pub(in crate::deployments) async fn open(
        &self,
        file: SiteFile,
    ) -> Result<FileReader, FileError> {
        Ok(FileReader::open(&self.content, file).await?)
    }

    /// Returns the manifest of a stored site.
    ///
    /// # Errors
    /// Ours: it should be there.
    pub(in crate::deployments) async fn manifest(
        &self,
        digest: Digest,
    ) -> Result<SiteManifest, FileError> {
        let object = self.content.get(&digest).await?;
        let read = move || SiteManifest::from_object(object.as_deref()?);
        let read = tokio::task::spawn_blocking(read).await;
        let manifest = read.map_err(|error| PublishError::Internal(error.into()))?;
        let missing = || PublishError::Internal(anyhow::anyhow!("manifest {digest} is missing"));
        Ok(manifest.ok_or_else(missing)?)
    }
}

impl NewSite {
    /// Returns the bytes that were sent with the request.
    fn inline_bytes(&self) -> usize {
        let bytes = self.files.values().map(|file| match file {
            NewSiteFile::Inline(bytes) => bytes.len(),
            _ => 0,
        });
        bytes.sum()
    }

    /// Lists the files that the project must have, each once.
    fn named(&self) -> Vec<Digest> {
        let named = self.files.values().filter_map(|file| match file {
            NewSiteFile::Named(digest, _) => Some(*digest),
            NewSiteFile::Kept(file) => Some(file.digest),
            NewSiteFile::Inline(_) | NewSiteFile::Stored(_) => None,
        });
        named.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the length of a file; a missing one has none yet.
    fn bytes_of(file: &NewSiteFile, known: &HashMap<Digest, SiteFile>) -> u64 {
        match file {
            NewSiteFile::Inline(bytes) => bytes.len() as u64,
            NewSiteFile::Named(digest, _) => known.get(digest).map_or(0, |file| file.bytes),
            NewSiteFile::Kept(file) => file.bytes,
            NewSiteFile::Stored(file) => file.bytes,
        }
    }

    /// Refuses a site with no or too many files, with a file that is too large, or with too many bytes.
    fn check_bounds(
        &self,
        limits: &FileLimits,
        known: &HashMap<Digest, SiteFile>,
    ) -> Result<(), FileError> {
        if self.files.is_empty() {
            return Err(FileError::NoFiles);
        }
        if self.files.len() as u64 > limits.site_files {
            return Err(FileError::TooManyFiles(limits.site_files));
        }
        if let Some(fallback) = &self.options.fallback
            && !self.files.contains_key(fallback)
        {
            return Err(FileError::NoSuchFallback(fallback.clone()));
        }
        let mut all: u64 = 0;
        for file in self.files.values() {
            let bytes = Self::bytes_of(file, known);
            // A file that the project has may be from a time when its plan allowed more.
            if matches!(file, NewSiteFile::Inline(_)) && bytes > limits.file_bytes {
                return Err(FileError::TooLarge(limits.file_bytes));
            }
            all = all.saturating_add(bytes);
        }
        match all > limits.site_bytes {
            true => Err(FileError::SiteTooLarge(limits.site_bytes)),
            false => Ok(()),
        }
    }

    /// Refuses a file whose length is another than the request says.
    fn check_sizes(&self, known: &HashMap<Digest, SiteFile>) -> Result<(), FileError> {
        for (path, file) in &self.files {
            if let NewSiteFile::Named(digest, Some(said)) = file
                && known.get(digest).is_some_and(|file| file.bytes != *said)
            {
                return Err(FileError::SizeMismatch(path.clone()));
            }
        }
        Ok(())
    }

    /// Returns the bytes of the files that the project does not have yet, as far as that is known before they are hashed.
    fn new_bytes(&self, known: &HashMap<Digest, SiteFile>) -> u64 {
        let new = self.files.values().filter(|file| match file {
            NewSiteFile::Stored(file) => !known.contains_key(&file.digest),
            _ => false,
        });
        new.map(|file| Self::bytes_of(file, known)).sum()
    }
}

/// Returns warnings about paths that visitors do not reach, or that some file systems take for one.
fn warnings(manifest: &SiteManifest) -> Vec<Warning> {
    let paths = || manifest.files.keys().map(String::as_str);
    let warning = |code, detail| Warning {
        code,
        detail,
        line: None,
    };
    let list = |paths: &[&str]| {
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
    };
    let mut found = Vec::new();
    for group in case_collisions(paths()).into_iter().take(NAMED_PATHS) {
        let detail = format!(
            "{} differ in case alone: they are two files here, and one on some machines.",
            list(&group)
        );
        found.push(warning("case_collision", detail));
    }
    let hidden = hidden_paths(paths());
    if !hidden.is_empty() {
        let detail = format!(
            "No visitor reaches {}: the page's runtime answers there. Give it another path.",
            list(&hidden)
        );
        found.push(warning("path_hidden", detail));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployments::sites::SiteOptions;

    fn known() -> KnownFiles {
        let digest = Digest::of(b"known");
        let file = SiteFile {
            digest,
            bytes: 5,
            list: None,
        };
        KnownFiles {
            version: 0,
            files: HashMap::from([(digest, file)]),
            used: FileUsage { owner: 0, all: 0 },
        }
    }

    fn site(files: &[(&str, NewSiteFile)], fallback: Option<&str>) -> NewSite {
        let files = files
            .iter()
            .map(|(path, file)| ((*path).to_owned(), file.clone()));
        NewSite {
            files: files.collect(),
            options: SiteOptions {
                fallback: fallback.map(str::to_owned),
            },
        }
    }

    #[test]
    fn a_site_has_its_bounds() {
        let inline = |bytes: usize| NewSiteFile::Inline(vec![b'x'; bytes].into());
        let named = |size| NewSiteFile::Named(Digest::of(b"known"), size);
        let limits = FileLimits {
            site_files: 3,
            site_bytes: 12,
            file_bytes: 6,
            storage_bytes: 100,
        };
        let check = |site: NewSite| site.check_bounds(&limits, &known().files);
        let whole = [("a", inline(6)), ("b", named(None)), ("c", inline(1))];
        check(site(&whole, Some("b"))).unwrap();
        assert!(matches!(check(site(&[], None)), Err(FileError::NoFiles)));
        let refused = check(site(&whole, Some("d")));
        assert!(matches!(refused, Err(FileError::NoSuchFallback(_))));
        let refused = check(site(&[("a", inline(7))], None));
        assert!(matches!(refused, Err(FileError::TooLarge(6))));
        let refused = check(site(
            &[("a", inline(6)), ("b", inline(2)), ("c", named(None))],
            None,
        ));
        assert!(matches!(refused, Err(FileError::SiteTooLarge(12))));
        let many = ["a", "b", "c", "d"].map(|path| (path, inline(1)));
        assert!(matches!(
            check(site(&many, None)),
            Err(FileError::TooManyFiles(3))
        ));
        let sizes = |said| site(&[("a", named(Some(said)))], None).check_sizes(&known().files);
        sizes(5).unwrap();
        assert!(matches!(sizes(4), Err(FileError::SizeMismatch(_))));
    }

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
        let codes: Vec<_> = warnings(&manifest)
            .iter()
            .map(|warning| warning.code)
            .collect();
        assert_eq!(codes, ["case_collision", "path_hidden"]);
    }
}
