//! Authority over a project, by extractor: a handler that is given a [`ProjectScope`] acts for its owner.

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;
use serde::Deserialize;

use super::model::{Project, ProjectError};
use crate::app::SharedApp;
use crate::http::extract::{self, Owner};
use crate::http::problem::{Code, Problem};
use crate::workspaces::Principal;

/// A live project, and its owner who calls.
#[derive(Clone, Debug)]
pub struct ProjectScope {
    /// Who calls.
    pub principal: Principal,
    /// Theirs.
    pub project: Project,
}

#[derive(Deserialize)]
struct ProjectPath {
    id: String,
}

impl FromRequestParts<SharedApp> for ProjectScope {
    type Rejection = Problem;

    /// In the specification's order: credential, declared length, existence and ownership.
    async fn from_request_parts(parts: &mut Parts, app: &SharedApp) -> Result<Self, Problem> {
        let Owner(principal) = Owner::from_request_parts(parts, app).await?;
        extract::check_length(&parts.headers, app.config.limits.body_bytes)?;
        let Path(path) = Path::<ProjectPath>::from_request_parts(parts, app)
            .await
            .map_err(|_| Problem::not_found())?;
        let project = app.projects.named(&principal, &path.id).await?;
        Ok(Self { principal, project })
    }
}

impl From<ProjectError> for Problem {
    fn from(error: ProjectError) -> Self {
        let detail = error.to_string();
        match error {
            ProjectError::NotFound => Self::new(
                Code::NotFound,
                "There is no such project: it was deleted, has expired, or never was.",
            ),
            ProjectError::Forbidden => Self::new(
                Code::Forbidden,
                "The project belongs to another namespace, or to nobody. Use the credential of its owner.",
            ),
            ProjectError::PlanLimit(_) => Self::new(
                Code::PlanLimit,
                format!("{detail}. Delete one, or ask for a larger plan."),
            ),
            ProjectError::NoSuchHome(_) => Self::new(
                Code::InvalidRequest,
                format!(
                    "In `home`: {detail}. Publish it first, or send an empty text for the oldest."
                ),
            ),
            ProjectError::UnknownProvider(_) => Self::new(
                Code::InvalidRequest,
                format!("In `allowed_providers`: {detail} on this server."),
            ),
            ProjectError::Store(error) => error.into(),
            ProjectError::Random(error) => Self::internal(&error),
            ProjectError::Internal(error) => Self::internal(&format!("{error:#}")),
        }
    }
}
