//! Preparing a site for its publication: its files are there, within their bounds, and stored, before a row names them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use super::immutables::JudgedImmutables;
use super::model::{FileError, FileOwner, FileRoom, FileUsage, NewSite, NewSiteFile, SiteTitle};
use super::published::PublishedFiles;
use super::rules::RuleBounds;
use super::service::ProjectFiles;
use super::{store, warnings};
use crate::config::Limits;
use crate::content::{Digest, StoredFile};
use crate::control::{self, Tx};
use crate::deployments::address::{find_origin, slugs_before_files};
use crate::deployments::frontends::Frontend;
use crate::deployments::publication::{PageSource, PublishError, StoredPublication};
use crate::deployments::sites::{SiteFile, SiteManifest};
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

/// A site that is stored and that nothing answers yet. While this lives the collector keeps its files.
#[derive(Debug)]
pub struct PreparedSite {
    /// Forms of its manifest.
    pub(in crate::deployments) publication: StoredPublication,
    /// Title of the site; empty where there is none.
    pub title: String,
    /// Warnings for the author.
    pub warnings: Vec<Warning>,
    /// Whether some files are deleted by name.
    pub(in crate::deployments) deletes_files: bool,
    pub(in crate::deployments) files: Arc<PublishedFiles>,
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

/// Frontend that a site is prepared for.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::deployments) struct SiteTarget<'t> {
    /// Slug, as far as it is known.
    pub(in crate::deployments) slug: Option<&'t str>,
    /// Identifier of a frontend that is there already.
    pub(in crate::deployments) deployment: Option<DeploymentId>,
}

impl<'t> From<&'t Frontend> for SiteTarget<'t> {
    fn from(frontend: &'t Frontend) -> Self {
        Self {
            slug: Some(&frontend.slug),
            deployment: Some(frontend.id),
        }
    }
}

impl ProjectFiles {
    /// Prepares a site that is to answer at a slug: all that may be refused is looked at before anything is stored.
    ///
    /// # Errors
    /// [`FileError`]; nothing refers to what was stored by then.
    pub(in crate::deployments) async fn prepare(
        &self,
        project: &Project,
        target: SiteTarget<'_>,
        new: NewSite,
        title: SiteTitle,
    ) -> Result<PreparedSite, FileError> {
        let (workspace, slug) = (project.workspace.id, target.slug.map(str::to_owned));
        let has_origin = self.infra.config.sites_domain.is_some();
        let label = has_origin.then(|| project.host_label.clone());
        let read = self.infra.control.read(move |c| {
            let slugs = label.map(|label| slugs_before_files(c, &label, slug.as_deref()));
            let slugs = slugs.transpose()?.unwrap_or_default();
            Ok((workspaces::plan_of(c, &workspace)?, slugs))
        });
        let (plan, slugs) = read.await?;
        let limits = plan.file_limits(&self.infra.config.limits);
        let warning = warnings::of_slugs(new.files.keys().map(String::as_str), &slugs);
        let at = ((&project.id).into(), target.deployment);
        let site = (new, RuleBounds { is_share: false });
        let mut prepared = self.prepare_for(at, limits, site, title).await?;
        prepared.warnings.extend(warning);
        Ok(prepared)
    }

    /// Returns the warning about files of the site at the root of a project's origin that a frontend at a slug hides.
    ///
    /// # Errors
    /// The database's.
    pub(in crate::deployments) async fn hidden_by_slug(
        &self,
        project: &Project,
        slug: &str,
    ) -> Result<Option<Warning>, FileError> {
        if self.infra.config.sites_domain.is_none() {
            return Ok(None);
        }
        let label = project.host_label.clone();
        let read = self.infra.control.read(move |c| {
            let origin = find_origin(c, &label)?;
            Ok(origin.and_then(|origin| origin.root))
        });
        let root = read.await?.filter(|root| root.slug != slug);
        let Some(manifest) = root.and_then(|root| root.manifest) else {
            return Ok(None);
        };
        // No frontend is refused because the files of another cannot be listed.
        let Ok(site) = self.manifest(manifest).await else {
            return Ok(None);
        };
        let paths = site.files.keys().map(String::as_str);
        Ok(warnings::of_slugs(paths, &[slug.to_owned()]))
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
        let site = (new, RuleBounds { is_share: true });
        let at = (share.into(), None);
        self.prepare_for(at, limits, site, title).await
    }

    async fn prepare_for(
        &self,
        (owner, deployment): (FileOwner, Option<DeploymentId>),
        limits: FileLimits,
        (new, bounds): (NewSite, RuleBounds),
        title: SiteTitle,
    ) -> Result<PreparedSite, FileError> {
        let inline = new.inline_bytes();
        // The bytes of a request are in memory until they are stored.
        let counted = self.pipeline.reserve(inline).await?;
        let named = new.named();
        self.pipeline.blocked().load().await?;
        new.check_allowed(self.pipeline.blocked())?;
        let known = self.look_up(owner.clone(), named.clone()).await?;
        new.check_bounds(&limits, &known.files)?;
        refuse_missing(&named, &known.files)?;
        new.check_sizes(&known.files)?;
        let rules = self.judge_rules(&new, &known.files, bounds).await?;
        let compared = self.compare_immutables(deployment, &new).await?;
        let room = FileRoom {
            owner: limits.storage_bytes,
            all: self.infra.config.limits.storage_total_bytes,
        };
        room.check(known.used, new.new_bytes(&known.files))?;
        let start_page = new.files.get(START_PAGE).cloned();
        let (mut manifest, stored) = self.store_files(new, &known.files).await?;
        manifest.rules = rules;
        drop(counted);
        let texts = self.texts_to_encode(&owner, &manifest).await?;
        let immutables = self.store_immutables(compared).await?;
        let files = Arc::new(PublishedFiles {
            owner,
            version: known.version,
            named,
            stored,
            texts,
            room,
            immutables,
            forms: OnceLock::new(),
        });
        let finished = self.finish(manifest, start_page, title, Arc::clone(&files));
        let finished = finished.await;
        if finished.is_err() {
            self.give_up(&files).await?;
        }
        finished
    }

    /// Marks what was stored for a publication which has failed: no row names it.
    ///
    /// # Errors
    /// The database's.
    pub(in crate::deployments) async fn give_up(
        &self,
        files: &PublishedFiles,
    ) -> Result<(), FileError> {
        let objects = files.stored.iter().flat_map(|file| file.stored_objects());
        let list = files.immutables.as_ref().map(JudgedImmutables::object);
        let forms = files.forms.get().into_iter().flatten().copied();
        self.forget(objects.chain(list).chain(forms).collect())
            .await
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
        let warnings = warnings::of_site(&manifest);
        let deletes_files = !manifest.deleted.is_empty();
        let listed = files.immutables.as_ref().map_or(0, |judged| judged.bytes);
        let publication = self.pipeline.store_site(manifest).await?;
        let published = publication.published();
        let forms = [published.source, published.artifact];
        files.forms.get_or_init(|| forms);
        Ok(PreparedSite {
            publication: publication.with_bytes(listed),
            title,
            warnings,
            deletes_files,
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
                NewSiteFile::Inline(bytes) => Arc::new(self.store_inline(&path, bytes).await?),
            };
            let file = SiteFile {
                digest: stored.digest,
                bytes: stored.bytes,
                list: stored.objects.as_ref().map(|objects| objects.list),
            };
            Ok::<_, FileError>((path, file, Some(stored)))
        }));
        let files: Vec<Result<_, FileError>> =
            files.buffer_unordered(CONCURRENT_WRITES).collect().await;
        let files = self.give_up_unless_all(files).await?;
        let mut manifest = SiteManifest {
            options: new.options,
            deleted: new.deleted,
            ..SiteManifest::default()
        };
        let mut stored = Vec::new();
        for (path, file, new) in files {
            manifest.files.insert(path, file);
            stored.extend(new);
        }
        Ok((manifest, stored))
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
                ..SiteOptions::default()
            },
            deleted: BTreeSet::new(),
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
}
