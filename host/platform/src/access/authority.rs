//! Authority as a value: the argument of an operation can only be made for a caller whose role suffices.
//!
//! The minimum role of an operation is the type of its second argument, so that it is written once and no entry point can forget to
//! check it: [`AuthorizedCaller<Editor>`] is a caller who is at least an editor of a workspace.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;

use super::identity::AuthenticatedCaller;
use crate::config::Config;
use crate::http::extract::CheckedBodyLength;
use crate::http::problem::Problem;
use crate::workspaces::{Caller, Role, WorkspaceError, Workspaces};
use svc_base::ids::WorkspaceId;

/// The minimum role of an operation, as a type.
pub trait MinimumRole: Clone + Copy + std::fmt::Debug + Send + Sync + 'static {
    const ROLE: Role;
}

macro_rules! floors {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl MinimumRole for $name {
            const ROLE: Role = Role::$name;
        }
    )+};
}

floors! {
    /// May read.
    Viewer
    /// May also change projects and their parts.
    Editor
    /// May also change members and the display name.
    Admin
    /// May also change the plan and delete the workspace.
    Owner
}

/// An argument of an operation that proves a role.
pub trait RoleProof {
    const ROLE: Role;
}

impl<A: RoleProof> RoleProof for Option<A> {
    const ROLE: Role = A::ROLE;
}

/// A caller whose role in a workspace is `F` or above.
#[derive(Clone, Debug)]
pub struct AuthorizedCaller<F> {
    /// The caller.
    pub caller: Caller,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The caller's role there.
    pub role: Role,
    floor: PhantomData<F>,
}

impl<F: MinimumRole> AuthorizedCaller<F> {
    /// Proves the authority of a caller in a workspace, by the caller's current role.
    ///
    /// # Errors
    /// `Foreign` for a caller that is not a member, `Role` where the role does not suffice; both name the workspace as `named`.
    pub async fn in_workspace(
        workspaces: &Workspaces,
        caller: &Caller,
        workspace: WorkspaceId,
        named: &str,
    ) -> Result<Self, WorkspaceError> {
        let role = workspaces.role_of(caller, workspace).await?;
        let role = role.ok_or_else(|| WorkspaceError::Foreign(named.to_owned()))?;
        Self {
            caller: caller.clone(),
            workspace,
            role,
            floor: PhantomData,
        }
        .verify()
    }

    /// Requires the higher minimum role `G`.
    ///
    /// # Errors
    /// `Role`.
    pub fn require<G: MinimumRole>(self) -> Result<AuthorizedCaller<G>, WorkspaceError> {
        AuthorizedCaller {
            caller: self.caller,
            workspace: self.workspace,
            role: self.role,
            floor: PhantomData,
        }
        .verify()
    }

    fn verify(self) -> Result<Self, WorkspaceError> {
        if self.role >= F::ROLE {
            return Ok(self);
        }
        Err(WorkspaceError::Role {
            has: self.caller.role_name(self.role),
            needs: F::ROLE,
        })
    }
}

impl<F: MinimumRole> RoleProof for AuthorizedCaller<F> {
    const ROLE: Role = F::ROLE;
}

/// A caller with the minimum role in some workspace, who chooses it later: by name, or the only one there is.
#[derive(Clone, Debug)]
pub struct CallerChoosingWorkspace<F> {
    caller: Caller,
    floor: PhantomData<F>,
}

impl<F: MinimumRole> CallerChoosingWorkspace<F> {
    /// Checks that the caller has the role in some workspace: the body, which is not read yet, names which one.
    ///
    /// # Errors
    /// `Role` or `None` where no role of the caller suffices.
    pub async fn new(workspaces: &Workspaces, caller: Caller) -> Result<Self, WorkspaceError> {
        // Every role may read.
        if F::ROLE > Viewer::ROLE {
            let highest = workspaces.highest_role(&caller).await?;
            let has = highest.ok_or(WorkspaceError::NoWorkspace)?;
            if has < F::ROLE {
                return Err(WorkspaceError::Role {
                    has: caller.role_name(has),
                    needs: F::ROLE,
                });
            }
        }
        Ok(Self {
            caller,
            floor: PhantomData,
        })
    }

    /// Returns the caller.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the caller's authority in the workspace that it names by id or slug.
    ///
    /// # Errors
    /// `Unknown` if there is none of that name, `Foreign` if the caller's role there does not suffice.
    pub async fn workspace(
        &self,
        workspaces: &Workspaces,
        named: Option<&str>,
    ) -> Result<AuthorizedCaller<F>, WorkspaceError> {
        let workspace = workspaces.choose_workspace(&self.caller, named).await?;
        AuthorizedCaller::in_workspace(
            workspaces,
            &self.caller,
            workspace,
            named.unwrap_or_default(),
        )
        .await
    }

    /// Returns the workspace that the caller names, or else all of the caller's: every role may read.
    ///
    /// # Errors
    /// Like [`CallerChoosingWorkspace::workspace`].
    pub async fn workspaces(
        &self,
        workspaces: &Workspaces,
        named: Option<&str>,
    ) -> Result<Vec<WorkspaceId>, WorkspaceError> {
        match named {
            Some(_) => Ok(vec![self.workspace(workspaces, named).await?.workspace]),
            None => Ok(workspaces.workspace_ids_of(&self.caller).await?),
        }
    }
}

impl<F: MinimumRole> RoleProof for CallerChoosingWorkspace<F> {
    const ROLE: Role = F::ROLE;
}

impl<F: MinimumRole, S> FromRequestParts<S> for CallerChoosingWorkspace<F>
where
    S: Send + Sync,
    Workspaces: FromRef<S>,
    Arc<Config>: FromRef<S>,
{
    type Rejection = Problem;

    /// Checks in the specification's order: credential, declared length, authority.
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let AuthenticatedCaller(caller) =
            AuthenticatedCaller::from_request_parts(parts, state).await?;
        CheckedBodyLength::from_request_parts(parts, state).await?;
        Ok(Self::new(&Workspaces::from_ref(state), caller).await?)
    }
}
