//! Making drafts, publishing at once, and reading a frontend's history. Each revision is immutable; drafts can be previewed before
//! visitors see them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::model::{
    CreatedDraft, DraftSource, Edit, FetchedRevisionSource, NewDraft, NewFrontendContent,
    NewRevision, Revision, RevisionError, RevisionHistoryPage, RevisionHistoryQuery, RevisionKind,
    RevisionSourceQuery, StoredRevisionSource,
};
use super::preview::PreviewRenders;
use super::releases::{RevisionToRelease, apply_release};
use super::store;
use crate::access::{ClientDisconnected, run_while_client_waits};
use crate::config::Config;
use crate::content::Digest;
use crate::control::audit::AuditAction;
use crate::control::kept_answers::AnswerRecorder;
use crate::control::{self, Tx};
use crate::deployments::frontends::{
    Frontend, FrontendError, FrontendSelector, Frontends, active_in, address_of,
};
use crate::deployments::publication::{
    CapacityChecker, PageSource, PublicationPipeline, PublishError, PublishedDigests,
    StoredSourceAndPage,
};
use crate::deployments::serving::PageService;
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
    pub(super) frontends: Arc<Frontends>,
}

impl Revisions {
    /// Makes the service of a server.
    pub fn new(
        infra: Infra,
        sandbox: Sandbox,
        pipeline: Arc<PublicationPipeline>,
        capacity: CapacityChecker,
        serving: Arc<PageService>,
        frontends: Arc<Frontends>,
    ) -> Self {
        Self {
            infra,
            sandbox,
            pipeline,
            capacity,
            serving,
            previews: PreviewRenders::default(),
            frontends,
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

    /// Returns a revision of a frontend.
    ///
    /// # Errors
    /// `NotFound`, `NoRevision`.
    pub async fn revision(
        &self,
        project: &Project,
        target: &FrontendSelector,
        id: RevisionId,
    ) -> Result<Revision, RevisionError> {
        let (frontend, _) = self.frontend_with_history(project, target).await?;
        self.find_revision(frontend.id, id).await
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
                })
            }
            None => {
                let digest = frontend.source.ok_or(FrontendError::NotFound)?;
                Ok(StoredRevisionSource {
                    revision: frontend.active_revision,
                    digest,
                    frontend,
                })
            }
        }
    }

    /// Returns a source with its text, unless the caller has that.
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
        let text = if wanted.known == Some(stored.digest) {
            None
        } else {
            Some(self.pipeline.source_text(stored.digest).await?)
        };
        Ok(FetchedRevisionSource { stored, text })
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
        if new.base != Some(active) {
            return Err(RevisionError::Conflict(active));
        }
        let (caps, workspace) = (self.capacity.cap_check(), project.workspace.id);
        self.capacity.check_content(workspace).await?;
        let base = self.find_revision(frontend.id, active).await?;
        let content = self.draft_text(new.source, base.source).await?;
        let title = new.title.unwrap_or(base.title);
        let (title, stored) = self
            .store_draft(frontend.content_type, &title, content)
            .await?;
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
                let same = store::find_same(tx, &deployment, &source_digest, &title)
                    .map_err(control::Error::from)?;
                let (deduplicated, id) = (same.is_some(), same.unwrap_or(id));
                if !deduplicated {
                    caps.check_content(tx, &workspace)?;
                    let made = NewRevision {
                        id,
                        title: &title,
                        source: source_digest,
                        preview: Some(preview_digest),
                        bytes,
                        message: new.message.as_deref(),
                        kind: RevisionKind::Draft,
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
        let limits = &self.infra.config.limits;
        let most = usize::try_from(limits.body_bytes).unwrap_or(usize::MAX);
        let millis = limits.page_processor_ms;
        let text = self.pipeline.source_text(base).await?;
        let reserved = self.pipeline.reserve(text.len()).await?;
        let editing = self.sandbox.page_lane().run(move |stop| {
            let spent = ThreadCpuStopwatch::start();
            apply_in_order(text, &edits, most, || {
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
        // The edited text counts anew when it is rendered.
        drop(reserved);
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
        let wanted = new.content_type;
        if wanted.is_some_and(|named| named != frontend.content_type) {
            return Err(RevisionError::TypeMismatch(frontend.content_type));
        }
        self.capacity.check_content(project.workspace.id).await?;
        let title = new.title.unwrap_or_else(|| frontend.title.clone());
        let source = PageSource::titled(frontend.content_type, &title, &new.content);
        let (stored, page) = self
            .pipeline
            .render_and_store_live(source, &frontend.slug, project.expires_at)
            .await?;
        let (title, warnings) = (page.title, page.warnings);
        fault::point("republish.stored");
        let (baseline, revision) = (self.new_revision_id()?, self.new_revision_id()?);
        let (id, now) = (frontend.id, self.infra.clock.now());
        let (address, caps) = (address_of(&frontend, &project), self.capacity.cap_check());
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
        preview: None,
        // Includes the bytes of the page, because the first request for the revision's preview renders another copy.
        bytes: new.published.bytes,
        message: new.message,
        kind,
    };
    store::insert(tx, &frontend.id, &made, now)?;
    let released = RevisionToRelease {
        revision: new.id,
        kind,
        message: None,
        title: new.title,
        published: new.published,
    };
    apply_release(tx, frontend, &released, now)
}

/// Begins a frontend's history: a baseline that copies the live page and claims the release pointer.
fn ensure_history(
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
    let made = NewRevision {
        id: baseline,
        title: &frontend.title,
        source,
        preview: None,
        bytes: store::live_bytes(tx, &frontend.id).map_err(control::Error::from)?,
        message: None,
        kind,
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

/// Refuses edits that take more than so many milliseconds of processor time.
fn too_long(millis: u64) -> RevisionError {
    RevisionError::Edit(format!(
        "The edits take more than {millis} ms of processor time, which is the most: send fewer, or the whole source as `content`. Nothing was changed."
    ))
}

/// Applies edits in order, while `may_go_on` says so. The text of each must occur exactly as often as the edit states.
fn apply_in_order(
    mut text: String,
    edits: &[Edit],
    most: usize,
    may_go_on: impl Fn() -> Result<(), RevisionError>,
) -> Result<String, RevisionError> {
    for (index, edit) in edits.iter().enumerate() {
        may_go_on()?;
        let wanted = edit.count.unwrap_or(1);
        let found = text.matches(edit.find.as_str()).count();
        if u64::try_from(found).unwrap_or(u64::MAX) != wanted {
            return Err(RevisionError::Edit(format!(
                "`edits[{index}]`: `find` occurs {found} times, not {wanted}: copy it from the stored source with enough around it, or set `count`. Nothing was changed."
            )));
        }
        let grown = text.len() - found * edit.find.len() + found.saturating_mul(edit.replace.len());
        if grown > most {
            return Err(RevisionError::TooLarge(grown));
        }
        text = text.replace(&edit.find, &edit.replace);
    }
    if text.is_empty() {
        return Err(RevisionError::Edit(
            "The edits leave nothing: a page has some content. Nothing was changed.".to_owned(),
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn edit(find: &str, replace: &str, count: Option<u64>) -> Edit {
        Edit {
            find: find.into(),
            replace: replace.into(),
            count,
        }
    }

    #[test]
    fn edits_end_when_they_may_not_go_on() {
        let left = Cell::new(1);
        let may_go_on = || match left.replace(0) {
            0 => Err(too_long(7)),
            _ => Ok(()),
        };
        // The second would be refused for what it finds.
        let edits = [edit("a", "b", None), edit("a", "b", None)];
        let ended = apply_in_order("a".into(), &edits, 9, may_go_on).unwrap_err();
        assert!(ended.to_string().contains("7 ms"), "{ended}");
    }

    #[test]
    fn edits_apply_in_order_or_not_at_all() {
        let edits = [edit("a", "b", None), edit("b", "c", Some(2))];
        assert_eq!(
            apply_in_order("a b".into(), &edits, 10, || Ok(())).unwrap(),
            "c c"
        );
        let refused = apply_in_order("a a".into(), &[edit("a", "b", None)], 10, || Ok(()))
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("edits[0]") && refused.contains("occurs 2 times"),
            "{refused}"
        );
        let refused = apply_in_order("x".into(), &[edit("a", "b", None)], 10, || Ok(()))
            .unwrap_err()
            .to_string();
        assert!(refused.contains("occurs 0 times"), "{refused}");
        let nothing =
            apply_in_order("x".into(), &[edit("x", "", None)], 10, || Ok(())).unwrap_err();
        assert!(nothing.to_string().contains("leave nothing"), "{nothing}");
        let large = apply_in_order("aa".into(), &[edit("a", "12345", Some(2))], 9, || Ok(()));
        assert!(matches!(large, Err(RevisionError::TooLarge(10))));
    }
}
