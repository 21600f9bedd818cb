//! Making, publishing and reading revisions of sites.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};

use super::archive;
use super::model::{
    BaseSite, NewSiteContent, NewSiteDraft, SiteChanges, SiteSource, StoredSiteFile, title_of,
    with_options,
};
use crate::content;
use crate::control::audit::AuditAction;
use crate::control::kept_answers::AnswerRecorder;
use crate::deployments::files::{
    FileError, NewSite, NewSiteFile, PreparedSite, SiteTarget, SiteTitle,
};
use crate::deployments::frontends::{
    Frontend, FrontendError, FrontendSelector, active_in, address_of,
};
use crate::deployments::model::DeploymentType;
use crate::deployments::publication::PublishError;
use crate::deployments::revisions::edits::apply_edit;
use crate::deployments::revisions::model::{
    CreatedDraft, Edit, NewRevision, RevisionError, RevisionKind,
};
use crate::deployments::revisions::service::{
    NewLiveRevision, Revisions, ensure_history, publish_in, revision_in,
};
use crate::deployments::revisions::store;
use crate::deployments::sites::{
    FileReader, PathFault, SiteFile, SiteManifest, check_folders, path_fault,
};
use crate::deployments::store::mark_garbage;
use crate::projects::{self, Project};
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::{DeploymentId, RevisionId};

/// Times that a change is made anew because another publication came first, from another node or of another kind.
const CHANGE_ATTEMPTS: usize = 16;

/// Change of one file of a site.
#[derive(Clone, Debug)]
pub(super) struct FileChange {
    /// Path of the file.
    pub(super) path: String,
    /// New bytes of the file; none for one that goes.
    pub(super) file: Option<NewSiteFile>,
}

/// How a site becomes live.
#[derive(Clone, Copy, Debug)]
struct SiteRelease {
    /// Revision that must be live; any, if there is none.
    expected: Option<RevisionId>,
    /// Whether files that were live before serve no open tab any more.
    forget: bool,
}

/// All files of a revision, for an archive.
#[derive(Debug)]
pub struct SiteArchive {
    /// Name of the archive's file.
    pub name: String,
    files: Vec<(String, FileReader)>,
    made_at: Timestamp,
}

impl SiteArchive {
    /// Returns the most bytes of the archive that are in memory at once while it is written.
    pub fn bytes_in_memory(&self) -> usize {
        let files = self.files.iter();
        let largest = files.map(|(_, file)| file.bytes_in_memory()).max();
        largest.unwrap_or(0)
    }

    /// Writes the archive.
    pub fn write(self) -> impl Stream<Item = Result<Bytes, content::Error>> {
        let made_at = self.made_at;
        let files = stream::iter(self.files).flat_map(move |(path, file)| {
            let bytes = file.bytes();
            let header = archive::file_header(&path, bytes, made_at).map_err(|error| {
                content::Error::Unreachable(format!("an archive's header: {error}"))
            });
            stream::iter([header])
                .chain(file.read(0..bytes))
                .chain(stream::iter([Ok(archive::padding(bytes))]))
        });
        files.chain(stream::iter([Ok(archive::end())]))
    }
}

/// Refuses a frontend that is no site.
fn require_site(frontend: &Frontend) -> Result<(), RevisionError> {
    match frontend.content_type {
        DeploymentType::Site => Ok(()),
        DeploymentType::Page(_) => Err(RevisionError::Content(
            "The frontend is a page of one source, and has no files: send its `content`.",
        )),
    }
}

impl Revisions {
    /// Returns the live revision of a site with its files.
    pub(super) async fn base_site(
        &self,
        frontend: &Frontend,
        active: RevisionId,
    ) -> Result<BaseSite, RevisionError> {
        require_site(frontend)?;
        let revision = self.find_revision(frontend.id, active).await?;
        let manifest = revision.site.and(revision.preview);
        let manifest = manifest.ok_or(RevisionError::NoRevision)?;
        Ok(BaseSite {
            manifest: self.files.manifest(manifest).await?,
            revision,
        })
    }

    /// Makes a draft of a site.
    ///
    /// # Errors
    /// [`RevisionError`]: a conflict if `base` is not the active revision.
    pub(super) async fn create_site_draft(
        &self,
        project: Project,
        target: FrontendSelector,
        new: NewSiteDraft,
        keep: AnswerRecorder<CreatedDraft>,
    ) -> Result<CreatedDraft, RevisionError> {
        let (frontend, active) = self.frontend_with_history(&project, &target).await?;
        if new.base != Some(active) {
            return Err(RevisionError::Conflict(active));
        }
        self.capacity.check_content(project.workspace.id).await?;
        let base = self.base_site(&frontend, active).await?;
        let (files, deleted) = match new.source {
            SiteSource::Files(files) => (files, BTreeSet::new()),
            SiteSource::Changes(changes) => {
                let deleted = changes.delete.iter().cloned().collect();
                (self.change_files(&base.manifest, changes).await?, deleted)
            }
        };
        let mut site = with_options(files, new.options, &base.manifest.options);
        site.deleted = deleted;
        let title = title_of(new.title, &site, &base);
        let target = SiteTarget::from(&frontend);
        let site = self.files.prepare(&project, target, site, title).await?;
        fault::point("draft.stored");
        let files = site.files();
        let draft = SiteDraft {
            id: self.new_revision_id()?,
            active,
            message: new.message,
        };
        let made = self
            .keep_draft(project, frontend.id, (site, draft), keep)
            .await;
        if made.is_err() {
            self.files.give_up(&files).await?;
        }
        made
    }

    /// Adds a prepared site to a frontend's history.
    async fn keep_draft(
        &self,
        project: Project,
        deployment: DeploymentId,
        (site, draft): (PreparedSite, SiteDraft),
        keep: AnswerRecorder<CreatedDraft>,
    ) -> Result<CreatedDraft, RevisionError> {
        let (caps, now) = (self.capacity.cap_check(), self.now());
        let (project, workspace) = (project.id, project.workspace.id);
        let (files, deletes_files) = (site.files(), site.deletes_files);
        let published = site.publication.published();
        let (title, warnings) = (site.title.clone(), site.warnings.clone());
        let keeping = self.infra.control.write(move |tx| {
            let active = active_in(tx, &project, &deployment)?.active_revision;
            let active = active.ok_or(FrontendError::NotFound)?;
            if active != draft.active {
                return Err(RevisionError::Conflict(active));
            }
            let content = (&published.source, title.as_str());
            let same = store::find_same(tx, &deployment, content, deletes_files)?;
            let (deduplicated, id) = (same.is_some(), same.unwrap_or(draft.id));
            if deduplicated {
                // That of the older draft may say something else of what is deleted by name.
                mark_garbage(tx, &published.artifact, now)?;
                store::keep_draft(tx, &id, now)?;
            } else {
                caps.check_content(tx, &workspace)?;
                let made = NewRevision {
                    id,
                    title: &title,
                    source: published.source,
                    preview: Some(published.artifact),
                    site: published.site,
                    bytes: published.bytes,
                    message: draft.message.as_deref(),
                    kind: RevisionKind::Draft,
                    warnings: &warnings,
                };
                store::insert(tx, &deployment, &made, now)?;
                projects::record_audit(tx, &project, AuditAction::RevisionCreate, &id, now)?;
            }
            if deletes_files {
                store::set_deletions(tx, &id, &published.artifact, now)?;
            }
            files.adopt_draft(tx, &id, now)?;
            // An older draft with the same content gets this base, too: its author has seen the live revision.
            store::set_base(tx, &id, &active)?;
            let drafted = CreatedDraft {
                deployment,
                revision: revision_in(tx, &deployment, &id)?,
                deduplicated,
            };
            keep.store(tx, &drafted)?;
            Ok(drafted)
        });
        let kept = keeping.await;
        // The rows hold the content from here on.
        drop(site);
        kept
    }

    /// Publishes new files of a site at once, whatever is live.
    ///
    /// # Errors
    /// [`RevisionError`].
    pub(super) async fn republish_site(
        &self,
        project: Project,
        target: FrontendSelector,
        new: NewSiteContent,
    ) -> Result<Frontend, RevisionError> {
        let frontend = self.frontends.find_active(project.id, &target).await?;
        let named = new.named_type;
        if named.is_some_and(|named| named != frontend.content_type) {
            return Err(RevisionError::TypeMismatch(frontend.content_type));
        }
        self.capacity.check_content(project.workspace.id).await?;
        let _turn = self.site_turns.wait(frontend.id).await;
        for _ in 0..CHANGE_ATTEMPTS {
            let (frontend, active) = self.frontend_with_history(&project, &target).await?;
            let base = self.base_site(&frontend, active).await?;
            let release = SiteRelease {
                expected: None,
                forget: new.forget,
            };
            let site = with_options(
                new.files.clone(),
                new.options.clone(),
                &base.manifest.options,
            );
            let title = title_of(new.title.clone(), &site, &base);
            let site = (site, title);
            match self
                .prepare_and_publish(&project, &frontend, site, release)
                .await
            {
                Err(error) if error.is_moved() => {}
                done => return done,
            }
        }
        Err(FileError::ImmutablesMoved.into())
    }

    /// Prepares a site and makes it live; nothing is left of one that fails.
    async fn prepare_and_publish(
        &self,
        project: &Project,
        frontend: &Frontend,
        (site, title): (NewSite, SiteTitle),
        release: SiteRelease,
    ) -> Result<Frontend, RevisionError> {
        let target = SiteTarget::from(frontend);
        let site = self.files.prepare(project, target, site, title).await?;
        let files = site.files();
        let made = self.publish_site(project, frontend, site, release).await;
        if made.is_err() {
            self.files.give_up(&files).await?;
        }
        made
    }

    /// Makes a prepared site live, if what is live is the expected revision.
    async fn publish_site(
        &self,
        project: &Project,
        frontend: &Frontend,
        site: PreparedSite,
        SiteRelease { expected, forget }: SiteRelease,
    ) -> Result<Frontend, RevisionError> {
        fault::point("republish.stored");
        let (baseline, revision) = (self.new_revision_id()?, self.new_revision_id()?);
        let (id, now, project) = (frontend.id, self.now(), project.clone());
        let (address, caps) = (address_of(frontend, &project), self.capacity.cap_check());
        let (files, title, deletes_files) = (site.files(), site.title, site.deletes_files);
        let (tabs, warnings) = (self.open_tabs(now, forget), site.warnings.clone());
        let published =
            self.pipeline
                .publish(site.publication, address, now, move |tx, published| {
                    let mut frontend = active_in(tx, &project.id, &id)?;
                    caps.check_content(tx, &project.workspace.id)?;
                    let active = ensure_history(tx, &mut frontend, baseline, now)?;
                    if expected.is_some_and(|expected| expected != active) {
                        return Err(RevisionError::Conflict(active));
                    }
                    files.adopt_live(tx, &id, now)?;
                    let made = NewLiveRevision {
                        id: revision,
                        title: &title,
                        message: None,
                        published,
                        tabs,
                        warnings: &warnings,
                    };
                    publish_in(tx, &frontend, &made, now)?;
                    if deletes_files {
                        store::set_deletions(tx, &revision, &published.artifact, now)?;
                    }
                    projects::record_audit(
                        tx,
                        &project.id,
                        AuditAction::FrontendPublish,
                        &id,
                        now,
                    )?;
                    Ok::<_, RevisionError>(active_in(tx, &project.id, &id)?)
                });
        let mut frontend = published.await?;
        frontend.warnings = site.warnings;
        fault::point("republish.committed");
        Ok(frontend)
    }

    /// Refuses a file that no site can have, or whose frontend is none, before its bytes are read.
    pub(super) fn check_file(&self, frontend: &Frontend, path: &str) -> Result<(), RevisionError> {
        require_site(frontend)?;
        match path_fault(path) {
            Some(reason) => Err(PathFault {
                path: path.to_owned(),
                reason,
            }
            .into()),
            None => Ok(()),
        }
    }

    /// Publishes a site with one file changed at once. What others publish meanwhile stays: the change is made anew on top of it.
    ///
    /// # Errors
    /// [`RevisionError`]: `NoFile` for one that is to go and is not there.
    pub(super) async fn change_file(
        &self,
        project: &Project,
        target: &FrontendSelector,
        change: FileChange,
    ) -> Result<Frontend, RevisionError> {
        let frontend = match self.frontends.find_active(project.id, target).await {
            Ok(frontend) => frontend,
            Err(error) => return self.give_up_change(change, error.into()).await,
        };
        let _turn = self.site_turns.wait(frontend.id).await;
        let mut last = None;
        for _ in 0..CHANGE_ATTEMPTS {
            match self.try_change_file(project, target, change.clone()).await {
                Err(RevisionError::Conflict(active)) => last = Some(active),
                // Another publication is between this one's look and its transaction, too.
                Err(error) if error.is_moved() => {}
                Err(error) => return self.give_up_change(change, error).await,
                Ok(done) => return Ok(done),
            }
        }
        let conflict = last.map_or(RevisionError::NoRevision, RevisionError::Conflict);
        self.give_up_change(change, conflict).await
    }

    /// Marks the file that was stored for a change which has failed; returns the failure.
    async fn give_up_change(
        &self,
        change: FileChange,
        error: RevisionError,
    ) -> Result<Frontend, RevisionError> {
        if let Some(NewSiteFile::Stored(stored)) = change.file {
            self.files.give_up_file(&stored).await?;
        }
        Err(error)
    }

    async fn try_change_file(
        &self,
        project: &Project,
        target: &FrontendSelector,
        change: FileChange,
    ) -> Result<Frontend, RevisionError> {
        let (frontend, active) = self.frontend_with_history(project, target).await?;
        self.capacity.check_content(project.workspace.id).await?;
        let base = self.base_site(&frontend, active).await?;
        let FileChange { path, file } = change;
        let changes = match file {
            Some(file) => SiteChanges {
                set: BTreeMap::from([(path, file)]),
                ..SiteChanges::default()
            },
            None => SiteChanges {
                delete: vec![path],
                ..SiteChanges::default()
            },
        };
        let deleted = changes.delete.iter().cloned().collect();
        let files = self.change_files(&base.manifest, changes).await?;
        let mut site = with_options(files, None, &base.manifest.options);
        site.deleted = deleted;
        let title = title_of(None, &site, &base);
        let release = SiteRelease {
            expected: Some(active),
            forget: false,
        };
        self.prepare_and_publish(project, &frontend, (site, title), release)
            .await
    }

    /// Returns the files of a site with changes: all of them, or none.
    pub(super) async fn change_files(
        &self,
        base: &SiteManifest,
        changes: SiteChanges,
    ) -> Result<BTreeMap<String, NewSiteFile>, RevisionError> {
        let edited = self.edit_files(base, changes.edits).await?;
        let kept = base.files.iter();
        let mut files: BTreeMap<String, NewSiteFile> = kept
            .map(|(path, file)| (path.clone(), NewSiteFile::Kept(*file)))
            .collect();
        for path in changes.delete {
            if files.remove(&path).is_none() {
                return Err(RevisionError::NoFile(path));
            }
        }
        // The others keep their rules already, and are looked at as folders alone.
        files.extend(changes.set);
        files.extend(edited);
        let checking = tokio::task::spawn_blocking(move || {
            check_folders(files.keys().map(String::as_str))?;
            Ok::<_, PathFault>(files)
        });
        let checked = checking.await;
        let checked = checked.map_err(|error| PublishError::Internal(error.into()))?;
        Ok(checked?)
    }

    /// Applies edits to text files of a site, in order. Each file grows by as many bytes as a page's source has at most, and all of them
    /// by as many as a publication.
    async fn edit_files(
        &self,
        base: &SiteManifest,
        edits: Vec<(String, Edit)>,
    ) -> Result<BTreeMap<String, NewSiteFile>, RevisionError> {
        if edits.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut edited: BTreeMap<String, SiteFile> = BTreeMap::new();
        for (path, _) in &edits {
            let file = base.files.get(path);
            let file = *file.ok_or_else(|| RevisionError::NoFile(path.clone()))?;
            edited.insert(path.clone(), file);
        }
        let limits = &self.infra.config.limits;
        let to_usize = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let there = edited.values().map(|file| file.bytes);
        let there = to_usize(there.fold(0, u64::saturating_add));
        let largest = to_usize(limits.file_bytes_pro.max(limits.site_body_bytes));
        if there > largest {
            return Err(RevisionError::TooLarge(there));
        }
        let whole = there.saturating_add(to_usize(limits.site_body_bytes));
        let reserved = self.pipeline.reserve(whole).await?;
        let mut texts: BTreeMap<String, EditedText> = BTreeMap::new();
        for (path, file) in edited {
            let most = to_usize(file.bytes.saturating_add(limits.body_bytes));
            let text = self.text_file(&path, file).await?;
            texts.insert(path, EditedText { text, most });
        }
        let edited = self.run_edits(move |may_go_on| {
            for (index, (path, edit)) in (0..).zip(edits) {
                may_go_on()?;
                let name = format!("changes.edits[{index}]");
                if let Some(EditedText { text, most }) = texts.get_mut(&path) {
                    *text = apply_edit(text, &edit, &name, *most)?;
                }
                check_total(&texts, whole)?;
            }
            Ok(texts)
        });
        let edited = edited.await?;
        // The edited files count anew when they are stored.
        drop(reserved);
        let file =
            |(path, edited): (String, EditedText)| (path, NewSiteFile::Inline(edited.text.into()));
        Ok(edited.into_iter().map(file).collect())
    }

    /// Returns a file of a site that is a text.
    async fn text_file(&self, path: &str, file: SiteFile) -> Result<String, RevisionError> {
        let bytes = self.files.whole_file(file).await?;
        String::from_utf8(bytes.into()).map_err(|_| {
            RevisionError::Edit(format!(
                "The file `{path}` is no text in UTF-8: send all of it in `set`. Nothing was changed."
            ))
        })
    }

    /// Finds a file of the live revision of a site, or of a given one.
    ///
    /// # Errors
    /// `NoRevision`, `NoFile`.
    pub(super) async fn site_file(
        &self,
        project: &Project,
        target: &FrontendSelector,
        (revision, path): (Option<RevisionId>, String),
    ) -> Result<StoredSiteFile, RevisionError> {
        let stored = self.stored_source(project, target, revision).await?;
        require_site(&stored.frontend)?;
        let manifest = stored.manifest.ok_or(RevisionError::NoRevision)?;
        let manifest = self.files.manifest(manifest).await?;
        let Some(file) = manifest.files.get(&path) else {
            return Err(RevisionError::NoFile(path));
        };
        let reader = self.files.open(*file).await?;
        Ok(StoredSiteFile {
            path,
            revision: stored.revision,
            reader,
        })
    }

    /// Opens all files of the live revision of a site, or of a given one, for an archive.
    ///
    /// # Errors
    /// `NoRevision`.
    pub(super) async fn archive(
        &self,
        project: &Project,
        target: &FrontendSelector,
        revision: Option<RevisionId>,
    ) -> Result<SiteArchive, RevisionError> {
        let stored = self.stored_source(project, target, revision).await?;
        require_site(&stored.frontend)?;
        let manifest = stored.manifest.ok_or(RevisionError::NoRevision)?;
        let manifest = self.files.manifest(manifest).await?;
        let mut files = Vec::with_capacity(manifest.files.len());
        for (path, file) in manifest.files {
            files.push((path, self.files.open(file).await?));
        }
        Ok(SiteArchive {
            name: format!("{}.tar", stored.frontend.slug),
            files,
            made_at: stored.frontend.updated_at,
        })
    }
}

/// Row of a draft, beside what its site says.
#[derive(Debug)]
struct SiteDraft {
    id: RevisionId,
    /// Revision that it was made from.
    active: RevisionId,
    message: Option<String>,
}

/// A text of a site that is edited.
#[derive(Debug)]
struct EditedText {
    text: String,
    /// Most bytes that it may have.
    most: usize,
}

/// Refuses texts that have more than so many bytes together.
fn check_total(texts: &BTreeMap<String, EditedText>, most: usize) -> Result<(), RevisionError> {
    let all = texts.values().map(|edited| edited.text.len()).sum();
    match all > most {
        true => Err(RevisionError::TooLarge(all)),
        false => Ok(()),
    }
}

impl From<content::Error> for RevisionError {
    fn from(error: content::Error) -> Self {
        PublishError::from(error).into()
    }
}
