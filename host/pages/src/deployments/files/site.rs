//! Preparing a site for its publication: its files are there, within their bounds, and stored, before a row names them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use futures_util::{StreamExt as _, stream};

use super::immutables::{ComparedImmutables, JudgedImmutables};
use super::model::{FileError, FileOwner, FileRoom, FileUsage, NewSite, NewSiteFile, SiteTitle};
use super::published::PublishedFiles;
use super::rules::RuleBounds;
use super::service::ProjectFiles;
use super::storing::give_up_files;
use super::uploads::ReceivedFile;
use super::{store, warnings};
use crate::config::Limits;
use crate::content::Digest;
use crate::control::{self, Tx};
use crate::deployments::address::{find_origin, slugs_before_files};
use crate::deployments::publication::{PublishError, StoredPublication};
use crate::deployments::sites::{SiteFile, SiteManifest, SiteRules};
use crate::deployments::views::Warning;
use crate::projects::Project;
use crate::workspaces::{self, FileLimits};
use svc_base::clock::Timestamp;
use svc_base::ids::DeploymentId;

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

/// A site that was only tried: nothing of it is stored.
#[derive(Debug)]
pub(in crate::deployments) struct UnstoredSite {
    /// Digest of its canonical form.
    pub(in crate::deployments) source: Digest,
    /// Files and options.
    pub(in crate::deployments) manifest: SiteManifest,
    /// Title of the site; empty where there is none.
    pub(in crate::deployments) title: String,
}

/// Findings of the checks of a site.
struct CheckedSite {
    owner: FileOwner,
    known: KnownFiles,
    named: Vec<Digest>,
    rules: SiteRules,
    compared: Option<ComparedImmutables>,
    room: FileRoom,
}

fn internal(error: anyhow::Error) -> FileError {
    PublishError::Internal(error).into()
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
    now: Timestamp,
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
    Ok(store::move_all(tx, (&from, &to), more, now)?)
}

/// Frontend that a site is prepared for.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::deployments) struct SiteTarget<'t> {
    /// Slug, as far as it is known.
    pub(in crate::deployments) slug: Option<&'t str>,
    /// Identifier of a frontend that is there already.
    pub(in crate::deployments) deployment: Option<DeploymentId>,
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
        let (limits, slugs) = self.bounds_for(project, target).await?;
        let warning = warnings::of_slugs(new.files.keys().map(String::as_str), &slugs);
        let at = ((&project.id).into(), target.deployment);
        let site = (new, RuleBounds { is_share: false });
        let mut prepared = self.prepare_for(at, limits, site, title).await?;
        prepared.warnings.extend(warning);
        Ok(prepared)
    }

    /// Tries a site: it is looked at like one that is prepared, and nothing of it is stored.
    ///
    /// # Errors
    /// Those of [`ProjectFiles::prepare`].
    pub(in crate::deployments) async fn try_site(
        &self,
        project: &Project,
        target: SiteTarget<'_>,
        new: NewSite,
        title: SiteTitle,
    ) -> Result<UnstoredSite, FileError> {
        let (limits, _) = self.bounds_for(project, target).await?;
        // The bytes of a request are in memory until they are hashed.
        let counted = self.pipeline.reserve(new.inline_bytes()).await?;
        let at = ((&project.id).into(), target.deployment);
        let bounds = RuleBounds { is_share: false };
        let (new, checked) = self.check(at, limits, (new, bounds)).await?;
        let start_page = new.start_page();
        let known = checked.known.files;
        let hashing = tokio::task::spawn_blocking(move || SiteManifest {
            files: new.to_files(&known),
            options: new.options,
            rules: checked.rules,
            deleted: new.deleted,
        });
        let manifest = hashing.await.map_err(|error| internal(error.into()))?;
        drop(counted);
        let digests = manifest.files.values().map(|file| &file.digest);
        self.pipeline.blocked().check(digests)?;
        let title = self.find_title(title, start_page, &manifest).await?;
        let form = manifest
            .to_canonical()
            .map_err(|error| internal(error.into()))?;
        Ok(UnstoredSite {
            source: Digest::of(&form),
            manifest,
            title,
        })
    }

    /// Returns the bounds of a project's files, and the slugs that come before a site's at the root of the project's origin.
    async fn bounds_for(
        &self,
        project: &Project,
        target: SiteTarget<'_>,
    ) -> Result<(FileLimits, Vec<String>), FileError> {
        let (workspace, slug) = (project.workspace.id, target.slug.map(str::to_owned));
        let has_origin = self.infra.config.sites_domain.is_some();
        let label = has_origin.then(|| project.host_label.clone());
        let read = self.infra.control.read(move |c| {
            let slugs = label.map(|label| slugs_before_files(c, &label, slug.as_deref()));
            let slugs = slugs.transpose()?.unwrap_or_default();
            Ok((workspaces::plan_of(c, &workspace)?, slugs))
        });
        let (plan, slugs) = read.await?;
        Ok((plan.file_limits(&self.infra.config.limits), slugs))
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

    /// Refuses a site that breaks a rule or has no room.
    async fn check(
        &self,
        (owner, deployment): (FileOwner, Option<DeploymentId>),
        limits: FileLimits,
        (new, bounds): (NewSite, RuleBounds),
    ) -> Result<(NewSite, CheckedSite), FileError> {
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
        let (new, more) = self.new_bytes(owner.clone(), new).await?;
        room.check(known.used, more)?;
        let checked = CheckedSite {
            owner,
            known,
            named,
            rules,
            compared,
            room,
        };
        Ok((new, checked))
    }

    async fn prepare_for(
        &self,
        at: (FileOwner, Option<DeploymentId>),
        limits: FileLimits,
        site: (NewSite, RuleBounds),
        title: SiteTitle,
    ) -> Result<PreparedSite, FileError> {
        // The bytes of a request are in memory until they are stored.
        let counted = self.pipeline.reserve(site.0.inline_bytes()).await?;
        let (new, checked) = self.check(at, limits, site).await?;
        let CheckedSite {
            owner, known, room, ..
        } = checked;
        let start_page = new.start_page();
        let at = (owner.clone(), room);
        let (mut manifest, stored) = self.store_files(at, new, &known.files).await?;
        manifest.rules = checked.rules;
        drop(counted);
        let mut files = PublishedFiles {
            owner,
            version: known.version,
            named: checked.named,
            stored,
            texts: Vec::new(),
            room,
            immutables: None,
            forms: OnceLock::new(),
        };
        let added = self.add_lists(&mut files, &manifest, checked.compared);
        let added = added.await;
        let files = Arc::new(files);
        let finished = match added {
            Ok(()) => {
                let finished = self.finish(manifest, start_page, title, Arc::clone(&files));
                finished.await
            }
            Err(error) => Err(error),
        };
        if finished.is_err() {
            self.give_up(&files).await?;
        }
        finished
    }

    /// Adds what follows from a site's files: the texts that are to be encoded, and the list of its immutable files.
    async fn add_lists(
        &self,
        files: &mut PublishedFiles,
        manifest: &SiteManifest,
        compared: Option<ComparedImmutables>,
    ) -> Result<(), FileError> {
        files.texts = self.texts_to_encode(&files.owner, manifest).await?;
        files.immutables = self.store_immutables(compared).await?;
        Ok(())
    }

    /// Returns the bytes of the files that come with a site and that their owner does not have, each distinct one once.
    async fn new_bytes(&self, owner: FileOwner, new: NewSite) -> Result<(NewSite, u64), FileError> {
        let hashing = tokio::task::spawn_blocking(move || (new.sent(), new));
        let (sent, new) = hashing.await.map_err(|error| internal(error.into()))?;
        if sent.is_empty() {
            return Ok((new, 0));
        }
        let digests: Vec<Digest> = sent.keys().copied().collect();
        let found = self
            .infra
            .control
            .read(move |c| store::find(c, &owner, &digests));
        let there = found.await?;
        let missing = sent
            .iter()
            .filter(|(digest, _)| !there.contains_key(*digest));
        let more = missing.fold(0_u64, |all, (_, bytes)| all.saturating_add(*bytes));
        Ok((new, more))
    }

    /// Marks what was stored for a publication which has failed: no row names it.
    ///
    /// # Errors
    /// The database's.
    pub(in crate::deployments) async fn give_up(
        &self,
        files: &PublishedFiles,
    ) -> Result<(), FileError> {
        let mut objects = give_up_files(files.stored.iter().map(|stored| &**stored));
        objects.extend(files.immutables.as_ref().map(JudgedImmutables::object));
        objects.extend(files.forms.get().into_iter().flatten());
        self.forget(objects).await
    }

    /// Finds the title of a site whose files are stored, and stores its manifest.
    async fn finish(
        &self,
        manifest: SiteManifest,
        start_page: Option<NewSiteFile>,
        title: SiteTitle,
        files: Arc<PublishedFiles>,
    ) -> Result<PreparedSite, FileError> {
        let title = self.find_title(title, start_page, &manifest).await?;
        let warnings = warnings::of_site(&manifest);
        let deletes_files = !manifest.deleted.is_empty();
        let listed = files.immutables.as_ref().map_or(0, |judged| judged.bytes);
        let announce = |forms| {
            files.forms.get_or_init(|| forms);
        };
        let publication = self.pipeline.store_site(manifest, announce).await?;
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
        (owner, room): (FileOwner, FileRoom),
        new: NewSite,
        known: &HashMap<Digest, SiteFile>,
    ) -> Result<(SiteManifest, Vec<Arc<ReceivedFile>>), FileError> {
        let begin = || self.uncounted.begin(owner.clone(), room);
        let files = stream::iter(new.files.into_iter().map(async |(path, file)| {
            let stored = match file {
                NewSiteFile::Kept(file) => return Ok((path, file, None)),
                NewSiteFile::Named(digest, _) => {
                    let file = known.get(&digest).copied();
                    let file = file.ok_or_else(|| FileError::Missing(vec![digest]))?;
                    return Ok((path, file, None));
                }
                NewSiteFile::Stored(stored) => stored,
                NewSiteFile::Inline(bytes) => {
                    Arc::new(self.store_inline(&path, bytes, begin()).await?)
                }
            };
            let file = SiteFile {
                digest: stored.file.digest,
                bytes: stored.file.bytes,
                list: stored.file.objects.as_ref().map(|objects| objects.list),
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
