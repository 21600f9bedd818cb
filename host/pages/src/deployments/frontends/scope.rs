//! Authority over a frontend, by extractor: a handler that is given a [`AuthorizedFrontend`] acts for a caller who may.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts, Path};
use http::request::Parts;
use serde::Deserialize;

use super::{Frontend, FrontendError, FrontendSelector, Frontends};
use crate::access::{MinimumRole, RoleProof};
use crate::config::Config;
use crate::http::problem::Problem;
use crate::projects::scope::AuthorizedProject;
use crate::projects::{Project, Projects};
use crate::workspaces::Role;

/// An active frontend of a live project, and a caller whose role in its workspace is `F` or above.
#[derive(Clone, Debug)]
pub struct AuthorizedFrontend<F> {
    /// The caller's authority over the project.
    pub at: AuthorizedProject<F>,
    /// The frontend.
    pub frontend: Frontend,
}

impl<F: MinimumRole> AuthorizedFrontend<F> {
    /// Finds an active frontend of a project.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn find(
        frontends: &Frontends,
        at: AuthorizedProject<F>,
        target: &FrontendSelector,
    ) -> Result<Self, FrontendError> {
        let frontend = frontends.find_active(at.project.id, target).await?;
        Ok(Self { at, frontend })
    }

    /// The project.
    pub fn project(&self) -> &Project {
        &self.at.project
    }

    /// The frontend by its id.
    pub fn target(&self) -> FrontendSelector {
        FrontendSelector::Id(self.frontend.id)
    }
}

impl<F: MinimumRole> RoleProof for AuthorizedFrontend<F> {
    const ROLE: Role = F::ROLE;
}

/// The second part of a frontend's address.
#[derive(Debug, Deserialize)]
pub struct FrontendPath {
    #[serde(default = "claim_slug")]
    target: String,
}

/// The slug of the frontend whose address is that of claims, too.
fn claim_slug() -> String {
    "claim".to_owned()
}

impl FrontendPath {
    /// Returns the frontend that the path names.
    pub fn target(&self) -> FrontendSelector {
        FrontendSelector::from(self.target.as_str())
    }
}

impl<F: MinimumRole, S> FromRequestParts<S> for AuthorizedFrontend<F>
where
    S: Send + Sync,
    Projects: FromRef<S>,
    Arc<Frontends>: FromRef<S>,
    Arc<Config>: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let at = AuthorizedProject::from_request_parts(parts, state).await?;
        let Path(path) = Path::<FrontendPath>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::not_found())?;
        let frontends = Arc::<Frontends>::from_ref(state);
        Ok(Self::find(&frontends, at, &path.target()).await?)
    }
}
