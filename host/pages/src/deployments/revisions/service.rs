//! Making drafts, publishing at once, and reading a frontend's history. Each revision is immutable; drafts can be previewed before
//! visitors see them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::edits::{apply_in_order, too_long};
use super::model::{
    CreatedDraft, DraftSource, Edit, FetchedContent, FetchedRevisionSource, NewDraft,
    NewFrontendContent, NewRevision, Revision, RevisionError, RevisionHistoryPage,
    RevisionHistoryQuery, RevisionKind, RevisionSourceQuery, StoredRevisionSource,
};
use super::preview::PreviewRenders;
use super::releases::{RevisionToRelease, apply_release};
use super::sites::SiteTurns;
use super::store;
use crate::access::{ClientDisconnected, run_while_client_waits};
use crate::config::Config;
use crate::content::Digest;
use crate::control::audit::AuditAction;
use crate::control::kept_answers::AnswerRecorder;
use crate::control::{self, Tx};
use crate::deployments::files::{FileError, ProjectFiles};
use crate::deployments::frontends::{
    Frontend, FrontendError, FrontendSelector, Frontends, active_in, address_of,
};
use crate::deployments::open_tabs::OpenTabs;
use crate::deployments::publication::{
    CapacityChecker, PageSource, PublicationPipeline, PublishError, PublishedDigests,
    StoredSourceAndPage,
};
use crate::deployments::serving::PageService;
use crate::deployments::views::Warning;
use crate::infra::Infra;
use crate::projects::{self, Project};
use svc_base::ThreadCpuStopwatch;
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::{DeploymentId, RevisionId};
use svc_sandbox::{ContentType, Sandbox};

/// Revisions of all frontends, and their releases.
#[derive(Debug)]
pub struct Revisions {
    pub(super) infra: Infra,
    pub(super) sandbox: Sandbox,
    pub(super) pipeline: Arc<PublicationPipeline>,
    pub(super) capacity: CapacityChecker,
    /// Finds the pages of previews.
    pub(super) serving: Arc<PageService>,
    /// Renderings of previews that are under way, or failed a short time ago.
    pub(super) previews: PreviewRenders,
    pub(super) files: Arc<ProjectFiles>,
    pub(super) frontends: Arc<Frontends>,
    pub(super) site_turns: SiteTurns,
}

impl Revisions {
    /// Makes the service of a server.
    pub fn new(
        infra: Infra,
        sandbox: Sandbox,
        pipeline: Arc<PublicationPipeline>,
        capacity: CapacityChecker,
        serving: Arc<PageService>,
        files: Arc<ProjectFiles>,
        frontends: Arc<Frontends>,
    ) -> Self {
        Self {
            infra,
            sandbox,
            pipeline,
            capacity,
            serving,
            previews: PreviewRenders::default(),
            files,
            frontends,
            site_turns: SiteTurns::default(),
        }
    }

    /// Returns the settings.
    pub(super) fn config(&self) -> &Arc<Config> {
        &self.infra.config
    }

    /// Returns the time.
    pub(super) fn now(&self) -> Timestamp {
        self.infra.clock.now()
    }

    pub(super) fn new_revision_id(&self) -> Result<RevisionId, PublishError> {
        Ok(RevisionId::new(&self.infra.clock, &self.infra.random)?)
    }

    /// Returns an active frontend that has a history; the first call begins that.
    pub(super) async fn frontend_with_history(
        &self,
        project: &Project,
        target: &FrontendSelector,
    ) -> Result<(Frontend, RevisionId), RevisionError> {
        let frontend = self.frontends.find_active(project.id, target).await?;
        if let Some(active) = frontend.active_revision {
            return Ok((frontend, active));
        }
        let (baseline, now) = (self.new_revision_id()?, self.infra.clock.now());
        let (project, id) = (project.id, frontend.id);
        self.infra
            .control
            .write(move |tx| {
                let mut frontend = active_in(tx, &project, &id)?;
                let active = ensure_history(tx, &mut frontend, baseline, now)?;
                Ok((active_in(tx, &project, &id)?, active))
            })
            .await
    }

    /// Begins the history of an active frontend that has none yet.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn begin_history(
        &self,
        project: &Project,
        target: &FrontendSelector,
    ) -> Result<(), RevisionError> {
        self.frontend_with_history(project, target)
            .await
            .map(|_| ())
    }

    /// Returns a revision of a frontend, and the frontend's id.
    ///
    /// # Errors
    /// `NotFound`, `NoRevision`.
    pub async fn revision(
        &self,
        project: &Project,
        target: &FrontendSelector,
        id: RevisionId,
    ) -> Result<(DeploymentId, Revision), RevisionError> {
        let (frontend, _) = self.frontend_with_history(project, target).await?;
        let revision = self.find_revision(frontend.id, id).await?;
        Ok((frontend.id, revision))
    }

    pub(super) async fn find_revision(
        &self,
        frontend: DeploymentId,
        id: RevisionId,
    ) -> Result<Revision, RevisionError> {
        let found = self
            .infra
            .control
            .read(move |c| store::find_by_id(c, &frontend, &id))
            .await?;
        found.ok_or(RevisionError::NoRevision)
    }

    /// Returns a page of a frontend's history, newest first, older than `before`.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn history(
        &self,
        project: &Project,
        target: &FrontendSelector,
        page: RevisionHistoryQuery,
    ) -> Result<RevisionHistoryPage, RevisionError> {
        let RevisionHistoryQuery { limit, before } = page;
        let (frontend, active) = self.frontend_with_history(project, target).await?;
        let mut revisions = self
            .infra
            .control
            .read(move |c| store::list(c, &frontend.id, before, limit + 1))
            .await?;
        let more = revisions.len() > limit as usize;
        revisions.truncate(limit as usize);
        let next = revisions.last().filter(|_| more).map(|last| last.number);
        Ok(RevisionHistoryPage {
            active,
            revisions,
            next,
        })
    }

    /// Finds the source of a frontend, or of one of its revisions.
    ///
    /// # Errors
    /// `NotFound`, `NoRevision`.
    pub async fn stored_source(
        &self,
        project: &Project,
        target: &FrontendSelector,
        revision: Option<RevisionId>,
    ) -> Result<StoredRevisionSource, RevisionError> {
        let frontend = self.frontends.find_active(project.id, target).await?;
        match revision {
            Some(id) => {
                let revision = self.find_revision(frontend.id, id).await?;
                Ok(StoredRevisionSource {
                    frontend,
                    revision: Some(id),
                    digest: revision.source,
                    manifest: revision.site.and(revision.preview),
                })
            }
            None => {
                let digest = frontend.source.ok_or(FrontendError::NotFound)?;
                let id = frontend.id;
                let manifest = self
                    .infra
                    .control
                    .read(move |c| store::live_manifest(c, &id));
                Ok(StoredRevisionSource {
                    revision: frontend.active_revision,
                    digest,
                    manifest: manifest.await?,
                    frontend,
                })
            }
        }
    }

    /// Returns a source with its content, unless the caller has that.
    ///
    /// # Errors
    /// `NotFound`, `NoRevision`.
    pub async fn fetch_source(
        &self,
        project: &Project,
        target: &FrontendSelector,
        wanted: RevisionSourceQuery,
    ) -> Result<FetchedRevisionSource, RevisionError> {
        let stored = self.stored_source(project, target, wanted.revision).await?;
        let content = match stored.manifest {
            _ if wanted.known == Some(stored.digest) => FetchedContent::Known,
            Some(manifest) => FetchedContent::Site(Box::new(self.files.manifest(manifest).await?)),
            None => FetchedContent::Text(self.shown_text(stored.digest).await?),
        };
        Ok(FetchedRevisionSource { stored, content })
    }

    /// Returns the text of a stored source, to be shown.
    async fn shown_text(&self, digest: Digest) -> Result<String, RevisionError> {
        match self.pipeline.source_text(digest).await {
            Err(PublishError::Blocked(_)) => Err(FileError::Disabled.into()),
            text => Ok(text?),
        }
    }

    /// Makes a draft.
    ///
    /// # Errors
    /// [`RevisionError`]: a conflict if `base` is not the active revision.
    pub async fn create_draft(
        &self,
        project: Project,
        target: FrontendSelector,
        new: NewDraft,
        keep: AnswerRecorder<CreatedDraft>,
    ) -> Result<CreatedDraft, RevisionError> {
        let (frontend, active) = self.frontend_with_history(&project, &target).await?;
        let content_type = page_type(&frontend)?;
        if new.base != Some(active) {
            return Err(RevisionError::Conflict(active));
        }
        let (caps, workspace) = (self.capacity.cap_check(), project.workspace.id);
        self.capacity.check_content(workspace).await?;
        let base = self.find_revision(frontend.id, active).await?;
        let content = self.draft_text(new.source, base.source).await?;
        let title = new.title.unwrap_or(base.title);
        let (title, stored) = self.store_draft(content_type, &title, content).await?;
        fault::point("draft.stored");
        let (id, now) = (self.new_revision_id()?, self.infra.clock.now());
        let (source_digest, preview_digest) = (stored.source.digest(), stored.page.digest());
        let (project, deployment, bytes) = (project.id, frontend.id, stored.bytes);
        self.infra
            .control
            .write(move |tx| {
                let frontend = active_in(tx, &project, &deployment)?;
                let active = frontend.active_revision.ok_or(FrontendError::NotFound)?;
                if new.base != Some(active) {
                    return Err(RevisionError::Conflict(active));
                }
                let same = store::find_same(tx, &deployment, (&source_digest, &title), false)?;
                let (deduplicated, id) = (same.is_some(), same.unwrap_or(id));
                if !deduplicated {
                    caps.check_content(tx, &workspace)?;
                    let made = NewRevision {
                        id,
                        title: &title,
                        source: source_digest,
                        preview: Some(preview_digest),
                        site: None,
                        bytes,
                        message: new.message.as_deref(),
                        kind: RevisionKind::Draft,
                        warnings: &[],
                    };
                    store::insert(tx, &deployment, &made, now)?;
                    projects::record_audit(tx, &project, AuditAction::RevisionCreate, &id, now)?;
                }
                // An older draft with the same content gets this base, too: its author has seen the live revision.
                store::set_base(tx, &id, &active)?;
                let drafted = CreatedDraft {
                    deployment,
                    revision: revision_in(tx, &deployment, &id)?,
                    deduplicated,
                };
                keep.store(tx, &drafted)?;
                Ok(drafted)
            })
            .await
    }

    /// Renders the preview of a draft, and stores it with its source; returns the title that the page has.
    async fn store_draft(
        &self,
        content_type: ContentType,
        title: &str,
        content: String,
    ) -> Result<(String, StoredSourceAndPage), PublishError> {
        let draft = PageSource::titled(content_type, title, &content);
        let page = self.pipeline.render(draft).await?;
        let stored = self
            .pipeline
            .store_page(Bytes::from(content), page.html)
            .await?;
        Ok((page.title, stored))
    }

    /// Returns the whole source of a draft, which may be sent as edits of the `base`.
    async fn draft_text(&self, new: DraftSource, base: Digest) -> Result<String, RevisionError> {
        match new {
            DraftSource::Content(content) => Ok(content),
            DraftSource::Edits(edits) => self.apply_edits(base, edits).await,
        }
    }

    /// Returns a stored source with edits applied: by a worker, because each of them goes through the whole text. They may take as
    /// much processor time as a page.
    async fn apply_edits(&self, base: Digest, edits: Vec<Edit>) -> Result<String, RevisionError> {
        let most = usize::try_from(self.infra.config.limits.body_bytes).unwrap_or(usize::MAX);
        let text = self.pipeline.source_text(base).await?;
        let reserved = self.pipeline.reserve(text.len()).await?;
        let edited = self
            .run_edits(move |may_go_on| apply_in_order(text, &edits, most, may_go_on))
            .await;
        // The edited text counts anew when it is rendered.
        drop(reserved);
        edited
    }

    /// Has a worker edit texts, for as much processor time as a page may take; the work asks before each edit whether it may go on.
    pub(super) async fn run_edits<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Fn() -> Result<(), RevisionError>) -> Result<T, RevisionError>
        + Send
        + 'static,
    ) -> Result<T, RevisionError> {
        let millis = self.infra.config.limits.page_processor_ms;
        let editing = self.sandbox.page_lane().run(move |stop| {
            let spent = ThreadCpuStopwatch::start();
            work(&|| {
                if stop.is_cancelled() {
                    return Err(PublishError::from(ClientDisconnected).into());
                }
                if spent.elapsed() >= Duration::from_millis(millis) {
                    return Err(too_long(millis));
                }
                Ok(())
            })
        });
        let edited = run_while_client_waits(editing)
            .await
            .map_err(PublishError::from)?;
        edited.map_err(PublishError::from)?
    }

    /// Publishes new content at once, whatever is live: a revision that is made and released in one.
    ///
    /// # Errors
    /// [`RevisionError`].
    pub async fn republish(
        &self,
        project: Project,
        target: FrontendSelector,
        new: NewFrontendContent,
    ) -> Result<Frontend, RevisionError> {
        let frontend = self.frontends.find_active(project.id, &target).await?;
        let content_type = page_type(&frontend)?;
        if new.content_type.is_some_and(|named| named != content_type) {
            return Err(RevisionError::TypeMismatch(frontend.content_type));
        }
        self.capacity.check_content(project.workspace.id).await?;
        let title = new.title.unwrap_or_else(|| frontend.title.clone());
        let source = PageSource::titled(content_type, &title, &new.content);
        let (stored, page) = self
            .pipeline
            .render_and_store_live(source, &frontend.slug, project.expires_at)
            .await?;
        let (title, warnings) = (page.title, page.warnings);
        fault::point("republish.stored");
        let (baseline, revision) = (self.new_revision_id()?, self.new_revision_id()?);
        let (id, now) = (frontend.id, self.infra.clock.now());
        let (address, caps) = (address_of(&frontend, &project), self.capacity.cap_check());
        let tabs = self.open_tabs(now, false);
        let mut frontend = self
            .pipeline
            .publish(stored, address, now, move |tx, published| {
                let mut frontend = active_in(tx, &project.id, &id)?;
                caps.check_content(tx, &project.workspace.id)?;
                ensure_history(tx, &mut frontend, baseline, now)?;
                let made = NewLiveRevision {
                    id: revision,
                    title: &title,
                    message: None,
                    published,
                    tabs,
                    warnings: &[],
                };
                publish_in(tx, &frontend, &made, now)?;
                projects::record_audit(tx, &project.id, AuditAction::FrontendPublish, &id, now)?;
                Ok::<_, RevisionError>(active_in(tx, &project.id, &id)?)
            })
            .await?;
        frontend.warnings = warnings;
        fault::point("republish.committed");
        Ok(frontend)
    }
}

/// Stored page that becomes a frontend's live revision.
pub(super) struct NewLiveRevision<'a> {
    pub(super) id: RevisionId,
    pub(super) title: &'a str,
    pub(super) message: Option<&'a str>,
    pub(super) published: &'a PublishedDigests,
    /// Fate of a site's files that were live before.
    pub(super) tabs: OpenTabs,
    /// Warnings for the author of a site.
    pub(super) warnings: &'a [Warning],
}

/// Makes a revision of a stored page, and makes it live, inside a transaction that announces the change.
pub(super) fn publish_in(
    tx: &Tx<'_>,
    frontend: &Frontend,
    new: &NewLiveRevision<'_>,
    now: Timestamp,
) -> Result<(), control::Error> {
    let kind = RevisionKind::Publish;
    let made = NewRevision {
        id: new.id,
        title: new.title,
        source: new.published.source,
        preview: new.published.site.map(|_| new.published.artifact),
        site: new.published.site,
        // Includes the bytes of the page, because the first request for the revision's preview renders another copy.
        bytes: new.published.bytes,
        message: new.message,
        kind,
        warnings: new.warnings,
    };
    store::insert(tx, &frontend.id, &made, now)?;
    let released = RevisionToRelease {
        revision: new.id,
        kind,
        message: None,
        title: new.title,
        published: new.published,
        tabs: new.tabs,
    };
    apply_release(tx, frontend, &released, now)
}

/// Begins a frontend's history: a baseline that copies the live page and claims the release pointer.
pub(super) fn ensure_history(
    tx: &Tx<'_>,
    frontend: &mut Frontend,
    baseline: RevisionId,
    now: Timestamp,
) -> Result<RevisionId, RevisionError> {
    if let Some(active) = frontend.active_revision {
        return Ok(active);
    }
    let source = frontend.source.ok_or(FrontendError::NotFound)?;
    let kind = RevisionKind::Baseline;
    let warnings = store::first_warnings(tx, &frontend.id).map_err(control::Error::from)?;
    let made = NewRevision {
        id: baseline,
        title: &frontend.title,
        source,
        preview: store::live_manifest(tx, &frontend.id).map_err(control::Error::from)?,
        site: frontend.site,
        bytes: store::live_bytes(tx, &frontend.id).map_err(control::Error::from)?,
        message: None,
        kind,
        warnings: &warnings,
    };
    store::insert(tx, &frontend.id, &made, now)?;
    store::make_active(tx, &baseline, kind, now)?;
    store::set_active_revision(tx, &frontend.id, &baseline)?;
    store::insert_release(tx, &frontend.id, &baseline, kind, None, now)?;
    frontend.active_revision = Some(baseline);
    Ok(baseline)
}

/// Finds a revision, inside a transaction.
pub(super) fn revision_in(
    tx: &Tx<'_>,
    frontend: &DeploymentId,
    id: &RevisionId,
) -> Result<Revision, RevisionError> {
    let found = store::find_by_id(tx, frontend, id).map_err(control::Error::from)?;
    found.ok_or(RevisionError::NoRevision)
}

/// Returns the type of a page's source.
///
/// # Errors
/// `Content` for a site.
pub(super) fn page_type(frontend: &Frontend) -> Result<ContentType, RevisionError> {
    frontend.content_type.page().ok_or(RevisionError::Content(
        "The frontend is a site: send its `files`, or `changes` of them, in place of `content`. Nothing was changed.",
    ))
}
