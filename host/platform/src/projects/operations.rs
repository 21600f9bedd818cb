//! Operations on projects alone; those on their contents are in `envelope`.

use std::sync::Arc;

use super::Projects;
use super::requests::{CreateProject, ListProjects};
use super::views::{ProjectList, ProjectView};
use crate::access::{CallerChoosingWorkspace, Editor, Viewer};
use crate::control::kept_answers::AnswerRecorder;
use crate::http::problem::Problem;

/// Creates a project.
///
/// # Errors
/// `invalid_request`, `contradictory_expiry`, `plan_limit`; `not_found` or `forbidden` for the workspace.
pub async fn create(
    projects: Projects,
    by: CallerChoosingWorkspace<Editor>,
    input: CreateProject,
    keep: AnswerRecorder<ProjectView>,
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

/// Lists the projects of a workspace, or of all workspaces of the caller.
///
/// # Errors
/// `not_found` or `forbidden` for the workspace.
pub async fn list(
    projects: Projects,
    by: CallerChoosingWorkspace<Viewer>,
    input: ListProjects,
) -> Result<ProjectList, Problem> {
    let workspaces = by
        .workspaces(projects.workspaces(), input.workspace.as_deref())
        .await?;
    let found = projects.list(workspaces).await?;
    Ok(ProjectList::new(&found, projects.config()))
}
