//! Operations on frontends.

use std::sync::Arc;

use super::Target;
use super::requests::{CreateFrontend, Republish, WhichContent};
use super::scope::FrontendScope;
use super::views::{ContentView, FrontendList, FrontendView};
use crate::access::{Editor, Viewer};
use crate::control::kept_answers::AnswerKeeper;
use crate::deployments::Deployments;
use crate::http::problem::Problem;
use crate::projects::scope::ProjectScope;

/// Publishes a frontend. Durable when it returns.
///
/// # Errors
/// `invalid_request`, `render_failed`, `capacity_reached`; nothing is left of the attempt then.
pub async fn create(
    deployments: Arc<Deployments>,
    at: ProjectScope<Editor>,
    input: CreateFrontend,
    keep: AnswerKeeper<FrontendView>,
) -> Result<FrontendView, Problem> {
    let new = input.checked()?;
    let (project, config) = (at.project, Arc::clone(&deployments.config));
    let owner = project.clone();
    let keep = keep.map_view(move |frontend| FrontendView::new(frontend, &owner, &config));
    let frontend = deployments
        .create_frontend(project.clone(), new, keep)
        .await?;
    Ok(FrontendView::new(&frontend, &project, &deployments.config))
}

/// Lists the frontends of a project, whatever their state.
pub async fn list(
    deployments: Arc<Deployments>,
    at: ProjectScope<Viewer>,
) -> Result<FrontendList, Problem> {
    let frontends = deployments.frontends(at.project.id).await?;
    let view = |frontend| FrontendView::new(frontend, &at.project, &deployments.config);
    Ok(FrontendList {
        frontends: frontends.iter().map(view).collect(),
    })
}

/// Returns a frontend.
///
/// # Errors
/// None.
pub async fn get(
    deployments: Arc<Deployments>,
    at: FrontendScope<Viewer>,
) -> Result<FrontendView, Problem> {
    Ok(FrontendView::new(
        &at.frontend,
        at.project(),
        &deployments.config,
    ))
}

/// Publishes new content at once, whatever is live.
///
/// # Errors
/// `invalid_request`, `type_mismatch`, `render_failed`, `capacity_reached`.
pub async fn republish(
    deployments: Arc<Deployments>,
    at: FrontendScope<Editor>,
    input: Republish,
) -> Result<FrontendView, Problem> {
    let (new, target, project) = (input.checked()?, at.target(), at.at.project);
    let frontend = deployments.republish(project.clone(), target, new).await?;
    Ok(FrontendView::new(&frontend, &project, &deployments.config))
}

/// Removes a frontend with its history; one that is gone already is removed. Its slug is free when this returns.
pub async fn delete(
    deployments: Arc<Deployments>,
    at: ProjectScope<Editor>,
    target: Target,
) -> Result<(), Problem> {
    deployments.delete_frontend(at.project, target).await?;
    Ok(())
}

/// Returns the stored source of what is live, or of a revision.
///
/// # Errors
/// `not_found` for the revision.
pub async fn content(
    deployments: Arc<Deployments>,
    at: FrontendScope<Viewer>,
    input: WhichContent,
) -> Result<ContentView, Problem> {
    let wanted = input.checked()?;
    let source = deployments
        .source(at.project(), &at.target(), wanted)
        .await?;
    Ok(source.into())
}
