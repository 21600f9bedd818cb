//! Authority over a project, by extractor: a handler that is given a [`ProjectScope`] acts for a caller who may.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts, Path};
use http::request::Parts;
use serde::Deserialize;

use super::Projects;
use super::model::Project;
use crate::access::{Authenticated, Authority, HasMinimumRole, MinimumRole};
use crate::config::Config;
use crate::http::extract;
use crate::http::problem::Problem;

/// A live project, and a caller whose role in its workspace is `F` or above.
#[derive(Clone, Debug)]
pub struct ProjectScope<F> {
    /// The caller's authority.
    pub authority: Authority<F>,
    /// The project.
    pub project: Project,
}

impl<F: MinimumRole> HasMinimumRole for ProjectScope<F> {
    const ROLE: crate::workspaces::Role = F::ROLE;
}

#[derive(Deserialize)]
struct ProjectPath {
    id: String,
}

impl<F: MinimumRole, S> FromRequestParts<S> for ProjectScope<F>
where
    S: Send + Sync,
    Projects: FromRef<S>,
    Arc<Config>: FromRef<S>,
{
    type Rejection = Problem;

    /// In the specification's order: credential, declared length, existence and ownership.
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, state).await?;
        extract::check_length(&parts.headers, Arc::from_ref(state).limits.body_bytes)?;
        let Path(path) = Path::<ProjectPath>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::not_found())?;
        let projects = Projects::from_ref(state);
        Ok(projects.find_scoped(&caller, &path.id).await?)
    }
}
