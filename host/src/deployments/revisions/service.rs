//! Making drafts and reading a frontend's history. Each revision is immutable; drafts can be looked at before
//! anybody else sees them.

use bytes::Bytes;

use super::model::{
    CreatedDraft, DraftSource, Edit, FoundSource, History, HistoryPage, NewDraft, NewRevision,
    Revision, RevisionKind, SourceQuery, StoredSource,
};
use super::store;
use crate::access::while_client_waits;
use crate::content::Digest;
use crate::control::audit::AuditAction;
use crate::control::kept_answers::AnswerKeeper;
use crate::control::{self, Tx};
use crate::deployments::Deployments;
use crate::deployments::frontends::{Frontend, FrontendError, Target};
use crate::deployments::publish::{PageSource, PublishError};
use crate::deployments::room::Room;
use crate::projects::{self, Project};
use svc_base::clock::Timestamp;
use svc_base::fault;
use svc_base::ids::{DeploymentId, RevisionId};

impl Deployments {
    pub(in crate::deployments) fn new_revision_id(&self) -> Result<RevisionId, PublishError> {
        Ok(RevisionId::new(&self.clock, &self.random)?)
    }

    /// Begins a frontend's history: a baseline that mirrors what is live and claims the release pointer.
    pub(in crate::deployments) fn ensure_workflow(
        tx: &Tx<'_>,
        frontend: &mut Frontend,
        baseline: RevisionId,
        now: Timestamp,
    ) -> Result<RevisionId, FrontendError> {
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
        store::point(tx, &frontend.id, &baseline)?;
        store::insert_release(tx, &frontend.id, &baseline, kind, None, now)?;
        frontend.active_revision = Some(baseline);
        Ok(baseline)
    }

    /// An active frontend that has a history; the first call begins it.
    pub(in crate::deployments) async fn in_workflow(
        &self,
        project: &Project,
        target: &Target,
    ) -> Result<(Frontend, RevisionId), FrontendError> {
        let frontend = self.frontend(project.id, target).await?;
        if let Some(active) = frontend.active_revision {
            return Ok((frontend, active));
        }
        let (baseline, now) = (self.new_revision_id()?, self.clock.now());
        let (project, id) = (project.id, frontend.id);
        self.control
            .write(move |tx| {
                let mut frontend = Self::active_in(tx, &project, &id)?;
                let active = Self::ensure_workflow(tx, &mut frontend, baseline, now)?;
                Ok((Self::active_in(tx, &project, &id)?, active))
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
        target: &Target,
    ) -> Result<(), FrontendError> {
        self.in_workflow(project, target).await.map(|_| ())
    }

    /// A revision of a frontend.
    ///
    /// # Errors
    /// `NotFound`, `NoRevision`.
    pub async fn revision(
        &self,
        project: &Project,
        target: &Target,
        id: RevisionId,
    ) -> Result<Revision, FrontendError> {
        let (frontend, _) = self.in_workflow(project, target).await?;
        self.revision_of(frontend.id, id).await
    }

    pub(in crate::deployments) async fn revision_of(
        &self,
        frontend: DeploymentId,
        id: RevisionId,
    ) -> Result<Revision, FrontendError> {
        let found = self
            .control
            .read(move |c| store::by_id(c, &frontend, &id))
            .await?;
        found.ok_or(FrontendError::NoRevision)
    }

    /// A page of a frontend's history, newest first, older than `before`.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn history(
        &self,
        project: &Project,
        target: &Target,
        page: HistoryPage,
    ) -> Result<History, FrontendError> {
        let HistoryPage { limit, before } = page;
        let (frontend, active) = self.in_workflow(project, target).await?;
        let mut revisions = self
            .control
            .read(move |c| store::list(c, &frontend.id, before, limit + 1))
            .await?;
        let more = revisions.len() > limit as usize;
        revisions.truncate(limit as usize);
        let next = revisions.last().filter(|_| more).map(|last| last.number);
        Ok(History {
            active,
            revisions,
            next,
        })
    }

    /// Which source a frontend, or one of its revisions, has.
    ///
    /// # Errors
    /// `NotFound`, `NoRevision`.
    pub async fn stored_source(
        &self,
        project: &Project,
        target: &Target,
        revision: Option<RevisionId>,
    ) -> Result<StoredSource, FrontendError> {
        let frontend = self.frontend(project.id, target).await?;
        match revision {
            Some(id) => {
                let revision = self.revision_of(frontend.id, id).await?;
                Ok(StoredSource {
                    frontend,
                    revision: Some(id),
                    digest: revision.source,
                })
            }
            None => {
                let digest = frontend.source.ok_or(FrontendError::NotFound)?;
                Ok(StoredSource {
                    revision: frontend.active_revision,
                    digest,
                    frontend,
                })
            }
        }
    }

    /// A source with its text, unless it is what the caller holds.
    ///
    /// # Errors
    /// `NotFound`, `NoRevision`.
    pub async fn source(
        &self,
        project: &Project,
        target: &Target,
        wanted: SourceQuery,
    ) -> Result<FoundSource, FrontendError> {
        let stored = self.stored_source(project, target, wanted.revision).await?;
        let text = if wanted.known == Some(stored.digest) {
            None
        } else {
            Some(self.text_of(stored.digest).await?)
        };
        Ok(FoundSource { stored, text })
    }

    /// The text of a stored source.
    ///
    /// # Errors
    /// Ours: it should be there.
    pub async fn text_of(&self, digest: Digest) -> Result<String, PublishError> {
        let bytes = self.content.get(&digest).await?;
        let text = bytes.and_then(|bytes| String::from_utf8(bytes.into()).ok());
        text.ok_or_else(|| PublishError::Internal(anyhow::anyhow!("source {digest} is missing")))
    }

    /// Makes a draft.
    ///
    /// # Errors
    /// [`FrontendError`]: a conflict if `base` is not the active revision.
    pub async fn create_draft(
        &self,
        project: Project,
        target: Target,
        new: NewDraft,
        keep: AnswerKeeper<CreatedDraft>,
    ) -> Result<CreatedDraft, FrontendError> {
        let (frontend, active) = self.in_workflow(&project, &target).await?;
        if new.base != Some(active) {
            return Err(FrontendError::Conflict(active));
        }
        let (room, workspace) = (self.room(), project.workspace.id);
        self.check_room(workspace, Room::for_content).await?;
        let base = self.revision_of(frontend.id, active).await?;
        let content = self.content_of(new.source, base.source).await?;
        let title = new.title.unwrap_or(base.title);
        let draft = PageSource::titled(frontend.content_type, &title, &content);
        let page = self.render(draft).await?;
        let title = page.title;
        let stored = self.store_page(Bytes::from(content), page.html).await?;
        fault::point("draft.stored");
        let (id, now) = (self.new_revision_id()?, self.clock.now());
        let (source_digest, preview_digest) = (stored.source.digest(), stored.page.digest());
        let (project, deployment, bytes) = (project.id, frontend.id, stored.bytes);
        self.control
            .write(move |tx| {
                let frontend = Self::active_in(tx, &project, &deployment)?;
                let active = frontend.active_revision.ok_or(FrontendError::NotFound)?;
                if new.base != Some(active) {
                    return Err(FrontendError::Conflict(active));
                }
                let same = store::same(tx, &deployment, &source_digest, &title)
                    .map_err(control::Error::from)?;
                let (deduplicated, id) = (same.is_some(), same.unwrap_or(id));
                if !deduplicated {
                    room.for_content(tx, &workspace)?;
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
                // Of an older draft with the same content, too: its author has seen what is live now.
                store::set_base(tx, &id, &active)?;
                let drafted = CreatedDraft {
                    deployment,
                    revision: Self::revision_in(tx, &deployment, &id)?,
                    deduplicated,
                };
                keep.store(tx, &drafted)?;
                Ok(drafted)
            })
            .await
    }

    /// The whole source of a draft, which may be sent as edits of the `base`.
    async fn content_of(&self, new: DraftSource, base: Digest) -> Result<String, FrontendError> {
        match new {
            DraftSource::Content(content) => Ok(content),
            DraftSource::Edits(edits) => self.edited(base, edits).await,
        }
    }

    /// A revision as it is in a transaction.
    pub(super) fn revision_in(
        tx: &Tx<'_>,
        frontend: &DeploymentId,
        id: &RevisionId,
    ) -> Result<Revision, FrontendError> {
        let found = store::by_id(tx, frontend, id).map_err(control::Error::from)?;
        found.ok_or(FrontendError::NoRevision)
    }

    /// A stored source with edits applied: by a worker, because each of them goes through the whole text.
    async fn edited(&self, base: Digest, edits: Vec<Edit>) -> Result<String, FrontendError> {
        let most = usize::try_from(self.config.limits.body_bytes).unwrap_or(usize::MAX);
        let text = self.text_of(base).await?;
        let editing = self
            .sandbox
            .page_lane()
            .run(move |_| apply(text, &edits, most));
        let edited = while_client_waits(editing)
            .await
            .map_err(PublishError::from)?;
        edited.map_err(PublishError::from)?
    }
}

/// Applies edits in order. Each must find what it looks for exactly as often as it says.
fn apply(mut text: String, edits: &[Edit], most: usize) -> Result<String, FrontendError> {
    for (index, edit) in edits.iter().enumerate() {
        let wanted = edit.count.unwrap_or(1);
        let found = text.matches(edit.find.as_str()).count();
        if u64::try_from(found).unwrap_or(u64::MAX) != wanted {
            return Err(FrontendError::Edit(format!(
                "`edits[{index}]`: `find` occurs {found} times, not {wanted}: copy it from the stored source with enough around it, or set `count`. Nothing was changed."
            )));
        }
        let grown = text.len() - found * edit.find.len() + found.saturating_mul(edit.replace.len());
        if grown > most {
            return Err(FrontendError::TooLarge(grown));
        }
        text = text.replace(&edit.find, &edit.replace);
    }
    if text.is_empty() {
        return Err(FrontendError::Edit(
            "The edits leave nothing: a page has some content. Nothing was changed.".to_owned(),
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(find: &str, replace: &str, count: Option<u64>) -> Edit {
        Edit {
            find: find.into(),
            replace: replace.into(),
            count,
        }
    }

    #[test]
    fn edits_apply_in_order_or_not_at_all() {
        let edits = [edit("a", "b", None), edit("b", "c", Some(2))];
        assert_eq!(apply("a b".into(), &edits, 10).unwrap(), "c c");
        let refused = apply("a a".into(), &[edit("a", "b", None)], 10)
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("edits[0]") && refused.contains("occurs 2 times"),
            "{refused}"
        );
        let refused = apply("x".into(), &[edit("a", "b", None)], 10)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("occurs 0 times"), "{refused}");
        let nothing = apply("x".into(), &[edit("x", "", None)], 10).unwrap_err();
        assert!(nothing.to_string().contains("leave nothing"), "{nothing}");
        let large = apply("aa".into(), &[edit("a", "12345", Some(2))], 9);
        assert!(matches!(large, Err(FrontendError::TooLarge(10))));
    }
}
