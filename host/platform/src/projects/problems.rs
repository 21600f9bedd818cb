//! Maps errors of projects to problems.

use super::ProjectError;
use crate::http::problem::{Problem, ProblemCode};
use svc_base::pluralize;

impl From<ProjectError> for Problem {
    fn from(error: ProjectError) -> Self {
        let detail = error.to_string();
        match error {
            ProjectError::NotFound => Self::new(
                ProblemCode::NotFound,
                "There is no such project: it was deleted, has expired, or never was.",
            ),
            ProjectError::InvalidId => Self::new(
                ProblemCode::NotFound,
                "There is no such project: this is not the id of one, and a project is not found by its name. List your projects (GET /api/v1/projects, or manage_project list) and send the `id` of the one that you mean.",
            ),
            ProjectError::Forbidden => Self::new(
                ProblemCode::Forbidden,
                "The project belongs to another workspace, or to nobody. Use the credential of its owner.",
            ),
            ProjectError::Workspace(error) => error.into(),
            ProjectError::PlanLimit(most) => Self::new(
                ProblemCode::PlanLimit,
                format!(
                    "The plan of this workspace allows {}. Delete one, or ask for a larger plan.",
                    pluralize(most, "project")
                ),
            ),
            ProjectError::NoSuchHome(_) => Self::new(
                ProblemCode::InvalidRequest,
                format!(
                    "In `home`: {detail}. Publish it first, or send an empty text for the oldest."
                ),
            ),
            ProjectError::UnknownProvider(_, known) if known.is_empty() => Self::new(
                ProblemCode::InvalidRequest,
                format!(
                    "In `allowed_providers`: {detail}: the operator of this server has set up none."
                ),
            ),
            ProjectError::UnknownProvider(_, known) => Self::new(
                ProblemCode::InvalidRequest,
                format!(
                    "In `allowed_providers`: {detail}: this server has `{}`.",
                    known.join("`, `")
                ),
            ),
            ProjectError::Store(error) => error.into(),
            ProjectError::Random(error) => Self::internal(&error),
            ProjectError::Internal(error) => Self::internal(&format!("{error:#}")),
        }
    }
}
