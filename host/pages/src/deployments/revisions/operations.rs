//! Operations on revisions and releases.

use std::sync::Arc;

use super::model::{RevisionHistoryQuery, RevisionKind};
use super::requests::{ContentQuery, CreateRevision, ReleaseRequest, Republish};
use super::views::{
    ContentView, ReleaseList, ReleaseView, RevisionCreated, RevisionList, RevisionView,
};
use super::{RevisionError, Revisions};
use crate::access::{Editor, Viewer};
use crate::control::kept_answers::AnswerRecorder;
use crate::deployments::frontends::Frontend;
use crate::deployments::frontends::scope::AuthorizedFrontend;
use crate::deployments::frontends::views::FrontendView;
use crate::http::problem::Problem;

/// Lists a page of the history. The first call begins the history with the live page as its baseline.
///
/// # Errors
/// `capacity_reached`.
pub async fn list(
    revisions: Arc<Revisions>,
    at: AuthorizedFrontend<Viewer>,
    page: RevisionHistoryQuery,
) -> Result<RevisionList, Problem> {
    let history = revisions.history(at.project(), &at.target(), page).await?;
    Ok(RevisionList::new(&history, revisions.config()))
}

/// Returns a revision by its id as the caller wrote it.
///
/// # Errors
/// `not_found`.
pub async fn get(
    revisions: Arc<Revisions>,
    at: AuthorizedFrontend<Viewer>,
    id: String,
) -> Result<RevisionView, Problem> {
    let id = id.parse().map_err(|_| Problem::not_found())?;
    let target = at.target();
    let (frontend, revision) = revisions.revision(at.project(), &target, id).await?;
    Ok(RevisionView::alone(&revision, frontend, revisions.config()))
}

/// Deletes a revision that is not live, by its id as the caller wrote it. One that is gone already is deleted.
///
/// # Errors
/// `revision_conflict` for the live one.
pub async fn delete(
    revisions: Arc<Revisions>,
    at: AuthorizedFrontend<Editor>,
    id: String,
) -> Result<(), Problem> {
    let Ok(id) = id.parse() else {
        return Ok(());
    };
    Ok(revisions.delete(at.project(), &at.target(), id).await?)
}

/// Makes a draft with an unlisted preview. The same content and title make no second revision.
///
/// # Errors
/// `invalid_request`, `revision_conflict`, `render_failed`, `capacity_reached`.
pub async fn create(
    revisions: Arc<Revisions>,
    at: AuthorizedFrontend<Editor>,
    input: CreateRevision,
    keep: AnswerRecorder<RevisionCreated>,
) -> Result<RevisionCreated, Problem> {
    let (new, target) = (input.checked()?, at.target());
    let config = Arc::clone(revisions.config());
    let keep = keep.map_view(move |drafted| RevisionCreated::new(drafted, &config));
    let drafted = revisions
        .create_draft(at.at.project, target, new, keep)
        .await?;
    Ok(RevisionCreated::new(&drafted, revisions.config()))
}

/// Makes a revision live, if the live revision is the one that the caller expects.
///
/// # Errors
/// `not_found`, `revision_conflict`, `render_failed`, `capacity_reached`.
pub async fn promote(
    revisions: Arc<Revisions>,
    at: AuthorizedFrontend<Editor>,
    input: ReleaseRequest,
) -> Result<ReleaseView, Problem> {
    release(revisions, at, input, RevisionKind::Promote).await
}

/// Makes an earlier live revision live again, if the live revision is the one that the caller expects.
///
/// # Errors
/// `invalid_request` for one that was never live; those of [`promote`].
pub async fn rollback(
    revisions: Arc<Revisions>,
    at: AuthorizedFrontend<Editor>,
    input: ReleaseRequest,
) -> Result<ReleaseView, Problem> {
    release(revisions, at, input, RevisionKind::Rollback).await
}

async fn release(
    revisions: Arc<Revisions>,
    at: AuthorizedFrontend<Editor>,
    input: ReleaseRequest,
    kind: RevisionKind,
) -> Result<ReleaseView, Problem> {
    let (new, target, project) = (input.checked(kind)?, at.target(), at.at.project);
    let done = revisions.release(project.clone(), target, new).await?;
    Ok(ReleaseView::new(&done, &project, revisions.config()))
}

/// Lists everything that ever was live, newest first.
///
/// # Errors
/// `capacity_reached`.
pub async fn releases(
    revisions: Arc<Revisions>,
    at: AuthorizedFrontend<Viewer>,
) -> Result<ReleaseList, Problem> {
    let releases = revisions.releases(at.project(), &at.target()).await?;
    Ok(releases.into())
}

/// Refuses new content for a page that calls itself a site.
///
/// # Errors
/// `type_mismatch`.
pub fn check_is_no_site(frontend: &Frontend, names_site: bool) -> Result<(), Problem> {
    match names_site {
        true => Err(RevisionError::TypeMismatch(frontend.content_type).into()),
        false => Ok(()),
    }
}

/// Publishes new content at once, whatever is live.
///
/// # Errors
/// `invalid_request`, `type_mismatch`, `render_failed`, `capacity_reached`.
pub async fn republish(
    revisions: Arc<Revisions>,
    at: AuthorizedFrontend<Editor>,
    input: Republish,
) -> Result<FrontendView, Problem> {
    let (new, target, project) = (input.checked()?, at.target(), at.at.project);
    let frontend = revisions.republish(project.clone(), target, new).await?;
    Ok(FrontendView::new(&frontend, &project, revisions.config()))
}

/// Returns the stored source of the live revision, or of a given one.
///
/// # Errors
/// `not_found` for the revision.
pub async fn content(
    revisions: Arc<Revisions>,
    at: AuthorizedFrontend<Viewer>,
    input: ContentQuery,
) -> Result<ContentView, Problem> {
    let wanted = input.checked()?;
    let source = revisions
        .fetch_source(at.project(), &at.target(), wanted)
        .await?;
    Ok(source.into())
}
