//! Operations on revisions and releases.

use std::sync::Arc;

use super::model::{HistoryPage, RevisionKind};
use super::requests::{CreateRevision, ReleaseRequest};
use super::views::{ReleaseList, ReleaseView, RevisionCreated, RevisionList, RevisionView};
use crate::access::{Editor, Viewer};
use crate::control::kept_answers::AnswerKeeper;
use crate::deployments::Deployments;
use crate::deployments::frontends::scope::FrontendScope;
use crate::http::problem::Problem;

/// Lists a page of the history. The first look begins it: the baseline is what is live.
///
/// # Errors
/// `capacity_reached`.
pub async fn list(
    deployments: Arc<Deployments>,
    at: FrontendScope<Viewer>,
    page: HistoryPage,
) -> Result<RevisionList, Problem> {
    let history = deployments
        .history(at.project(), &at.target(), page)
        .await?;
    Ok(history.into())
}

/// Returns a revision by its id as the caller wrote it.
///
/// # Errors
/// `not_found`.
pub async fn get(
    deployments: Arc<Deployments>,
    at: FrontendScope<Viewer>,
    id: String,
) -> Result<RevisionView, Problem> {
    let id = id.parse().map_err(|_| Problem::not_found())?;
    let revision = deployments.revision(at.project(), &at.target(), id).await?;
    Ok(RevisionView::from(&revision))
}

/// Makes a draft with an unlisted preview. The same content and title make no second revision.
///
/// # Errors
/// `invalid_request`, `revision_conflict`, `render_failed`, `capacity_reached`.
pub async fn create(
    deployments: Arc<Deployments>,
    at: FrontendScope<Editor>,
    input: CreateRevision,
    keep: AnswerKeeper<RevisionCreated>,
) -> Result<RevisionCreated, Problem> {
    let (new, target) = (input.checked()?, at.target());
    let viewed = Arc::clone(&deployments);
    let keep = keep.map_view(move |drafted| RevisionCreated::new(drafted, &viewed));
    let drafted = deployments
        .create_draft(at.at.project, target, new, keep)
        .await?;
    Ok(RevisionCreated::new(&drafted, &deployments))
}

/// Makes a revision live, if what the caller expects to be live is.
///
/// # Errors
/// `not_found`, `revision_conflict`, `render_failed`, `capacity_reached`.
pub async fn promote(
    deployments: Arc<Deployments>,
    at: FrontendScope<Editor>,
    input: ReleaseRequest,
) -> Result<ReleaseView, Problem> {
    release(deployments, at, input, RevisionKind::Promote).await
}

/// Puts a revision back that was live before, if what the caller expects to be live is.
///
/// # Errors
/// `invalid_request` for one that was never live; those of [`promote`].
pub async fn rollback(
    deployments: Arc<Deployments>,
    at: FrontendScope<Editor>,
    input: ReleaseRequest,
) -> Result<ReleaseView, Problem> {
    release(deployments, at, input, RevisionKind::Rollback).await
}

async fn release(
    deployments: Arc<Deployments>,
    at: FrontendScope<Editor>,
    input: ReleaseRequest,
    kind: RevisionKind,
) -> Result<ReleaseView, Problem> {
    let (new, target, project) = (input.checked(kind)?, at.target(), at.at.project);
    let done = deployments.release(project.clone(), target, new).await?;
    Ok(ReleaseView::new(&done, &project, &deployments.config))
}

/// Lists everything that ever was live, newest first.
///
/// # Errors
/// `capacity_reached`.
pub async fn releases(
    deployments: Arc<Deployments>,
    at: FrontendScope<Viewer>,
) -> Result<ReleaseList, Problem> {
    let releases = deployments.releases(at.project(), &at.target()).await?;
    Ok(releases.into())
}
