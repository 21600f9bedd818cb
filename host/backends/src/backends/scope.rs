//! Extractor of authority over a backend: a handler with a [`AuthorizedBackend`] acts for a caller who has the required role.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;

use super::{Backend, BackendError, Backends};
use crate::access::{MinimumRole, RoleProof};
use crate::config::Config;
use crate::http::problem::Problem;
use crate::projects::Projects;
use crate::projects::scope::AuthorizedProject;
use crate::workspaces::Role;

/// Backend of a live project, and a caller whose role in its workspace is `F` or above.
#[derive(Clone, Debug)]
pub struct AuthorizedBackend<F> {
    /// Authority over the project.
    pub at: AuthorizedProject<F>,
    pub backend: Backend,
}

impl<F: MinimumRole> AuthorizedBackend<F> {
    /// Finds the backend of a project.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn find(backends: &Backends, at: AuthorizedProject<F>) -> Result<Self, BackendError> {
        let backend = backends.find_by_project(at.project.id).await?;
        let backend = backend.ok_or(BackendError::NotFound)?;
        Ok(Self { at, backend })
    }
}

impl<F: MinimumRole> RoleProof for AuthorizedBackend<F> {
    const ROLE: Role = F::ROLE;
}

impl<F: MinimumRole, S> FromRequestParts<S> for AuthorizedBackend<F>
where
    S: Send + Sync,
    Projects: FromRef<S>,
    Arc<Backends>: FromRef<S>,
    Arc<Config>: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let at = AuthorizedProject::from_request_parts(parts, state).await?;
        Ok(Self::find(&Arc::<Backends>::from_ref(state), at).await?)
    }
}
