//! Authority as a value: what an operation takes can only be had from a caller whose role suffices.
//!
//! The floor of an operation is the type of its second argument, so that it stands in one place and no door can forget to
//! check it: [`Authority<Editor>`] is a caller who is at least an editor of a workspace.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use http::request::Parts;

use super::identity::Authenticated;
use crate::config::Config;
use crate::http::extract::DeclaredLength;
use crate::http::problem::Problem;
use crate::workspaces::{Caller, Role, WorkspaceError, Workspaces};
use svc_base::ids::WorkspaceId;

/// The least role that an operation takes, as a type.
pub trait MinimumRole: Clone + Copy + std::fmt::Debug + Send + Sync + 'static {
    /// The role.
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
    /// Role of a caller who only reads.
    Viewer
    /// Changes projects and their parts, too.
    Editor
    /// Changes members and the display name, too.
    Admin
    /// Changes the plan and ends the workspace, too.
    Owner
}

/// An argument of an operation that proves a role.
pub trait HasMinimumRole {
    /// The role.
    const ROLE: Role;
}

impl<A: HasMinimumRole> HasMinimumRole for Option<A> {
    const ROLE: Role = A::ROLE;
}

/// A caller whose role in a workspace is `F` or above.
#[derive(Clone, Debug)]
pub struct Authority<F> {
    /// The caller.
    pub caller: Caller,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The caller's role there.
    pub role: Role,
    floor: PhantomData<F>,
}

impl<F: MinimumRole> Authority<F> {
    /// The authority of a caller in a workspace, by the role that the caller has now.
    ///
    /// # Errors
    /// `Foreign` where it is no member, `Role` where its role does not suffice; both name the workspace as `named`.
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

    /// Requires the caller's role to suffice for `G`.
    ///
    /// # Errors
    /// `Role`.
    pub fn require<G: MinimumRole>(self) -> Result<Authority<G>, WorkspaceError> {
        Authority {
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

impl<F: MinimumRole> HasMinimumRole for Authority<F> {
    const ROLE: Role = F::ROLE;
}

/// A caller who asks for something in a workspace that the request names, or in the only one that it has.
#[derive(Clone, Debug)]
pub struct WorkspaceChooser<F> {
    caller: Caller,
    floor: PhantomData<F>,
}

impl<F: MinimumRole> WorkspaceChooser<F> {
    /// Makes the request of a caller, who may do it in some workspace: which one is in the body, and is looked at by then.
    ///
    /// # Errors
    /// `Role` or `None` where no role of the caller's suffices.
    pub async fn new(workspaces: &Workspaces, caller: Caller) -> Result<Self, WorkspaceError> {
        // Whatever a role is, it reads.
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

    /// The caller's authority in the workspace that it names by id or slug.
    ///
    /// # Errors
    /// `Unknown` if there is none of that name, `Foreign` if the caller's role there does not suffice.
    pub async fn workspace(
        &self,
        workspaces: &Workspaces,
        named: Option<&str>,
    ) -> Result<Authority<F>, WorkspaceError> {
        let workspace = workspaces.choose_workspace(&self.caller, named).await?;
        Authority::in_workspace(
            workspaces,
            &self.caller,
            workspace,
            named.unwrap_or_default(),
        )
        .await
    }

    /// The workspace that the caller names, or else all that it is in: whatever a role is, it reads.
    ///
    /// # Errors
    /// Like [`WorkspaceChooser::workspace`].
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

impl<F: MinimumRole> HasMinimumRole for WorkspaceChooser<F> {
    const ROLE: Role = F::ROLE;
}

impl<F: MinimumRole, S> FromRequestParts<S> for WorkspaceChooser<F>
where
    S: Send + Sync,
    Workspaces: FromRef<S>,
    Arc<Config>: FromRef<S>,
{
    type Rejection = Problem;

    /// In the specification's order: credential, declared length, authority.
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, state).await?;
        DeclaredLength::from_request_parts(parts, state).await?;
        Ok(Self::new(&Workspaces::from_ref(state), caller).await?)
    }
}
