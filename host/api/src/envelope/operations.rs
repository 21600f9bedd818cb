//! Operations on a project with its contents.

use super::ProjectLifecycle;
use super::views::ProjectDetail;
use crate::access::{Editor, Viewer};
use crate::http::problem::Problem;
use crate::projects::requests::UpdateProject;
use crate::projects::scope::AuthorizedProject;
use crate::projects::views::ProjectView;

/// Returns a project with its frontends and their views, and what its files take.
pub async fn get(
    envelope: ProjectLifecycle,
    at: AuthorizedProject<Viewer>,
) -> Result<ProjectDetail, Problem> {
    let members = envelope.frontends().summaries(at.project.id).await?;
    let storage = envelope.files().storage_of(&at.project).await?;
    let config = envelope.projects().config();
    Ok(ProjectDetail::new(&at.project, members, storage, config))
}

/// Changes a project.
///
/// # Errors
/// `invalid_request`, `nothing_to_update`.
pub async fn update(
    envelope: ProjectLifecycle,
    at: AuthorizedProject<Editor>,
    input: UpdateProject,
) -> Result<ProjectView, Problem> {
    let project = envelope.update(at.project.id, input.checked()?).await?;
    Ok(ProjectView::new(&project, envelope.projects().config()))
}

/// Deletes a project with its contents; `None` is a project that is deleted already. Its addresses stop resolving before this
/// function returns.
pub async fn delete(
    envelope: ProjectLifecycle,
    at: Option<AuthorizedProject<Editor>>,
) -> Result<(), Problem> {
    match at {
        Some(at) => Ok(envelope.delete_project(at.project.id).await?),
        None => Ok(()),
    }
}
