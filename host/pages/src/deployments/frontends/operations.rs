//! Operations on frontends.

use std::sync::Arc;

use super::requests::{CreateFrontend, CreateSite};
use super::scope::AuthorizedFrontend;
use super::views::{FrontendList, FrontendView};
use super::{FrontendSelector, Frontends};
use crate::access::{Editor, Viewer};
use crate::control::kept_answers::AnswerRecorder;
use crate::http::problem::Problem;
use crate::projects::scope::AuthorizedProject;

/// Publishes a frontend. Durable when it returns.
///
/// # Errors
/// `invalid_request`, `render_failed`, `capacity_reached`; nothing is left of the attempt then.
pub async fn create(
    frontends: Arc<Frontends>,
    at: AuthorizedProject<Editor>,
    input: CreateFrontend,
    keep: AnswerRecorder<FrontendView>,
) -> Result<FrontendView, Problem> {
    let new = input.checked()?;
    let (project, config) = (at.project, Arc::clone(frontends.config()));
    let owner = project.clone();
    let keep = keep.map_view(move |frontend| FrontendView::new(frontend, &owner, &config));
    let frontend = frontends.create(project.clone(), new, keep).await?;
    Ok(FrontendView::new(&frontend, &project, frontends.config()))
}

/// Publishes a site. Durable when it returns.
///
/// # Errors
/// `invalid_request`, `path_refused`, `plan_limit`, `payload_too_large`, `files_missing`, `digest_mismatch`, `storage_full`,
/// `capacity_reached`; nothing is left of the attempt then.
pub async fn create_site(
    frontends: Arc<Frontends>,
    at: AuthorizedProject<Editor>,
    input: CreateSite,
    keep: AnswerRecorder<FrontendView>,
) -> Result<FrontendView, Problem> {
    let new = input.checked()?;
    let (project, config) = (at.project, Arc::clone(frontends.config()));
    let owner = project.clone();
    let keep = keep.map_view(move |frontend| FrontendView::new(frontend, &owner, &config));
    let frontend = frontends.create_site(project.clone(), new, keep).await?;
    Ok(FrontendView::new(&frontend, &project, frontends.config()))
}

/// Lists the frontends of a project, whatever their state.
pub async fn list(
    frontends: Arc<Frontends>,
    at: AuthorizedProject<Viewer>,
) -> Result<FrontendList, Problem> {
    let found = frontends.list(at.project.id).await?;
    let view = |frontend| FrontendView::new(frontend, &at.project, frontends.config());
    Ok(FrontendList {
        frontends: found.iter().map(view).collect(),
    })
}

/// Returns a frontend.
pub async fn get(
    frontends: Arc<Frontends>,
    at: AuthorizedFrontend<Viewer>,
) -> Result<FrontendView, Problem> {
    Ok(FrontendView::new(
        &at.frontend,
        at.project(),
        frontends.config(),
    ))
}

/// Removes a frontend with its history; one that is gone already is removed. Its slug is free when this returns.
pub async fn delete(
    frontends: Arc<Frontends>,
    at: AuthorizedProject<Editor>,
    target: FrontendSelector,
) -> Result<(), Problem> {
    frontends.delete(at.project, target).await?;
    Ok(())
}
