//! Operation of releases.

use std::sync::Arc;

use super::ProjectReleases;
use super::model::ReleaseOutcome;
use super::requests::ReleaseProject;
use super::views::{ProjectReleaseView, ReleasedParts};
use crate::access::Editor;
use crate::control::kept_answers::AnswerRecorder;
use crate::http::problem::Problem;
use crate::projects::scope::AuthorizedProject;

/// Releases parts of a project together, or tries it. Durable when it returns.
///
/// # Errors
/// `release_conflict`; the problems of the single operations, with `part`. Nothing is released then.
pub async fn release(
    releases: Arc<ProjectReleases>,
    at: AuthorizedProject<Editor>,
    input: ReleaseProject,
    keep: AnswerRecorder<ProjectReleaseView>,
) -> Result<ProjectReleaseView, Problem> {
    let new = input.checked(&releases.config().limits)?;
    let project = at.project;
    if new.dry_run {
        let tried = releases.try_release(&project, new).await?;
        return Ok(ProjectReleaseView::Tried(Box::new(tried)));
    }
    let (config, owner) = (Arc::clone(releases.config()), project.clone());
    let view = move |made: &ReleaseOutcome| {
        ProjectReleaseView::Released(ReleasedParts::new(made, &owner, &config))
    };
    let keep = keep.map_view(view.clone());
    let made = releases.release(&project, new, keep).await?;
    Ok(view(&made))
}
