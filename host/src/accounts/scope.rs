//! Authority over a workspace, by extractor: a handler that is given a [`WorkspaceScope`] acts for a caller who may.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts, Path};
use http::request::Parts;
use serde::Deserialize;

use crate::access::{Authenticated, Authority, HasMinimumRole, MinimumRole, Viewer};
use crate::config::Config;
use crate::http::extract::{self, DeclaredLength};
use crate::http::problem::Problem;
use crate::workspaces::{Caller, Role, UserId, WorkspaceError, Workspaces};

/// A workspace, and a caller whose role in it is `F` or above.
#[derive(Clone, Debug)]
pub struct WorkspaceScope<F> {
    /// The caller's authority.
    pub authority: Authority<F>,
}

impl<F: MinimumRole> WorkspaceScope<F> {
    /// Finds a workspace by its id or slug, as the caller wrote it.
    ///
    /// # Errors
    /// `Unknown`; `Foreign` or `Role` where the caller may not.
    pub async fn find(
        workspaces: &Workspaces,
        caller: &Caller,
        name: &str,
    ) -> Result<Self, WorkspaceError> {
        let found = workspaces.find(name).await?;
        let authority = Authority::in_workspace(workspaces, caller, found.id, name).await?;
        Ok(Self { authority })
    }
}

impl<F: MinimumRole> HasMinimumRole for WorkspaceScope<F> {
    const ROLE: Role = F::ROLE;
}

/// A caller who is a user: a key belongs to one workspace and makes no others.
#[derive(Clone, Debug)]
pub struct UserScope {
    /// The user.
    pub user: UserId,
}

impl UserScope {
    /// Finds out whether a caller is a user.
    ///
    /// # Errors
    /// `UsersOnly`.
    pub fn require(caller: Caller) -> Result<Self, WorkspaceError> {
        match caller {
            Caller::User(user) => Ok(Self { user }),
            Caller::Key { .. } => Err(WorkspaceError::UsersOnly),
        }
    }
}

impl HasMinimumRole for UserScope {
    // It takes no role in any workspace.
    const ROLE: Role = Viewer::ROLE;
}

impl<S> FromRequestParts<S> for UserScope
where
    S: Send + Sync,
    Arc<Config>: FromRef<S>,
{
    type Rejection = Problem;

    /// In the specification's order: credential, declared length, authority.
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, state).await?;
        DeclaredLength::from_request_parts(parts, state).await?;
        Ok(Self::require(caller)?)
    }
}

#[derive(Deserialize)]
struct WorkspacePath {
    id: String,
}

impl<F: MinimumRole, S> FromRequestParts<S> for WorkspaceScope<F>
where
    S: Send + Sync,
    Workspaces: FromRef<S>,
    Arc<Config>: FromRef<S>,
{
    type Rejection = Problem;

    /// In the specification's order: credential, declared length, existence and ownership.
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, state).await?;
        extract::check_length(
            &parts.headers,
            Arc::<Config>::from_ref(state).limits.body_bytes,
        )?;
        let Path(path) = Path::<WorkspacePath>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::not_found())?;
        Ok(Self::find(&Workspaces::from_ref(state), &caller, &path.id).await?)
    }
}
