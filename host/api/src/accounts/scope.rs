//! Extractors of authority over a workspace: a handler with a [`AuthorizedWorkspace`] acts for a caller who has the required role.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts, Path};
use http::request::Parts;
use serde::Deserialize;

use crate::access::{AuthenticatedCaller, AuthorizedCaller, MinimumRole, RoleProof, Viewer};
use crate::config::Config;
use crate::http::extract::{self, CheckedBodyLength};
use crate::http::problem::Problem;
use crate::workspaces::{Caller, Role, UserId, WorkspaceError, Workspaces};

/// Workspace, and a caller whose role in it is `F` or above.
#[derive(Clone, Debug)]
pub struct AuthorizedWorkspace<F> {
    pub authority: AuthorizedCaller<F>,
}

impl<F: MinimumRole> AuthorizedWorkspace<F> {
    /// Finds a workspace by an id or slug, as the caller wrote it.
    ///
    /// # Errors
    /// `Unknown`; `Foreign` or `Role` if the caller's role does not suffice.
    pub async fn find(
        workspaces: &Workspaces,
        caller: &Caller,
        name: &str,
    ) -> Result<Self, WorkspaceError> {
        let found = workspaces.find(name).await?;
        let authority = AuthorizedCaller::in_workspace(workspaces, caller, found.id, name).await?;
        Ok(Self { authority })
    }
}

impl<F: MinimumRole> RoleProof for AuthorizedWorkspace<F> {
    const ROLE: Role = F::ROLE;
}

/// Caller who is a user. A key belongs to one workspace and cannot create others.
#[derive(Clone, Debug)]
pub struct UserCaller {
    pub user: UserId,
}

impl UserCaller {
    /// Checks that a caller is a user.
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

impl RoleProof for UserCaller {
    // No role in any workspace is required.
    const ROLE: Role = Viewer::ROLE;
}

impl<S> FromRequestParts<S> for UserCaller
where
    S: Send + Sync,
    Arc<Config>: FromRef<S>,
{
    type Rejection = Problem;

    /// Checks in the specification's order: credential, declared length, authority.
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let AuthenticatedCaller(caller) =
            AuthenticatedCaller::from_request_parts(parts, state).await?;
        CheckedBodyLength::from_request_parts(parts, state).await?;
        Ok(Self::require(caller)?)
    }
}

#[derive(Deserialize)]
struct WorkspacePath {
    id: String,
}

impl<F: MinimumRole, S> FromRequestParts<S> for AuthorizedWorkspace<F>
where
    S: Send + Sync,
    Workspaces: FromRef<S>,
    Arc<Config>: FromRef<S>,
{
    type Rejection = Problem;

    /// Checks in the specification's order: credential, declared length, existence and ownership.
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let AuthenticatedCaller(caller) =
            AuthenticatedCaller::from_request_parts(parts, state).await?;
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
