//! Operations on a project with its contents.

use super::Teardown;
use super::views::ProjectDetail;
use crate::access::{Editor, Viewer};
use crate::http::problem::Problem;
use crate::projects::scope::ProjectScope;

/// Returns a project with its frontends and their views.
pub async fn get(envelope: Teardown, at: ProjectScope<Viewer>) -> Result<ProjectDetail, Problem> {
    let members = envelope.deployments().members(at.project.id).await?;
    Ok(ProjectDetail::new(
        &at.project,
        members,
        envelope.projects().config(),
    ))
}

/// Deletes a project with its contents; `None` is a project that no longer exists. The addresses stop resolving before this
/// returns.
pub async fn delete(envelope: Teardown, at: Option<ProjectScope<Editor>>) -> Result<(), Problem> {
    match at {
        Some(at) => Ok(envelope.delete_project(at.project.id).await?),
        None => Ok(()),
    }
}
