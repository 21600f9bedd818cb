//! Operations on projects by themselves; those on what is in them are `envelope`'s.

use std::sync::Arc;

use super::Projects;
use super::requests::{CreateProject, ListProjects, UpdateProject};
use super::scope::ProjectScope;
use super::views::{ProjectList, ProjectView};
use crate::access::{Editor, Viewer, WorkspaceChooser};
use crate::control::kept_answers::AnswerKeeper;
use crate::http::problem::Problem;

/// Makes a project.
///
/// # Errors
/// `invalid_request`, `contradictory_expiry`, `plan_limit`; `not_found` or `forbidden` for the workspace.
pub async fn create(
    projects: Projects,
    by: WorkspaceChooser<Editor>,
    input: CreateProject,
    keep: AnswerKeeper<ProjectView>,
) -> Result<ProjectView, Problem> {
    let authority = by
        .workspace(projects.workspaces(), input.workspace.as_deref())
        .await?;
    let new = input.checked()?;
    let config = Arc::clone(projects.config());
    let keep = keep.map_view(move |project| ProjectView::new(project, &config));
    let project = projects.create(authority.workspace, new, keep).await?;
    Ok(ProjectView::new(&project, projects.config()))
}

/// Lists the projects of a workspace, or of all that the caller is in.
///
/// # Errors
/// `not_found` or `forbidden` for the workspace.
pub async fn list(
    projects: Projects,
    by: WorkspaceChooser<Viewer>,
    input: ListProjects,
) -> Result<ProjectList, Problem> {
    let workspaces = by
        .workspaces(projects.workspaces(), input.workspace.as_deref())
        .await?;
    let found = projects.list(workspaces).await?;
    Ok(ProjectList::new(&found, projects.config()))
}

/// Changes a project.
///
/// # Errors
/// `invalid_request`, `nothing_to_update`.
pub async fn update(
    projects: Projects,
    at: ProjectScope<Editor>,
    input: UpdateProject,
) -> Result<ProjectView, Problem> {
    let project = projects.update(at.project.id, input.checked()?).await?;
    Ok(ProjectView::new(&project, projects.config()))
}
