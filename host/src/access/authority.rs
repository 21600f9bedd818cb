//! Authority as a value: what an operation takes can only be had from a caller whose role suffices.
//!
//! The floor of an operation is the type of its first argument, so that it stands in one place and no door can forget to
//! check it: [`Authority<Editor>`] is a caller who is at least an editor of a workspace.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use http::request::Parts;

use super::identity::Authenticated;
use crate::http::problem::Problem;
use crate::ids::WorkspaceId;
use crate::workspaces::{Caller, Role, WorkspaceError, Workspaces};

/// The least role that an operation takes, as a type.
pub trait Floor: Clone + Copy + std::fmt::Debug + Send + Sync + 'static {
    /// The role.
    const ROLE: Role;
}

macro_rules! floors {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Floor for $name {
            const ROLE: Role = Role::$name;
        }
    )+};
}

floors! {
    /// Reads.
    Viewer
    /// Changes projects and their parts, too.
    Editor
    /// Changes members and the display name, too.
    Admin
    /// Changes the plan and ends the workspace, too.
    Owner
}

/// An argument of an operation that proves a role.
pub trait HasFloor {
    /// The role.
    const ROLE: Role;
}

impl<A: HasFloor> HasFloor for Option<A> {
    const ROLE: Role = A::ROLE;
}

/// A caller whose role in a workspace is `F` or above.
#[derive(Clone, Debug)]
pub struct Authority<F> {
    /// The caller.
    pub caller: Caller,
    /// The workspace.
    pub workspace: WorkspaceId,
    floor: PhantomData<F>,
}

impl<F: Floor> Authority<F> {
    /// The authority of a caller in a workspace; `None` where its role does not suffice.
    pub fn of(caller: &Caller, workspace: WorkspaceId) -> Option<Self> {
        let role = caller.role_in(&workspace)?;
        (role >= F::ROLE).then(|| Self {
            caller: caller.clone(),
            workspace,
            floor: PhantomData,
        })
    }
}

impl<F: Floor> HasFloor for Authority<F> {
    const ROLE: Role = F::ROLE;
}

/// A caller who asks for something in a workspace that the request names, or in the only one that it has.
#[derive(Clone, Debug)]
pub struct Asking<F> {
    caller: Caller,
    floor: PhantomData<F>,
}

impl<F: Floor> Asking<F> {
    /// What a caller asks for.
    pub fn new(caller: Caller) -> Self {
        Self {
            caller,
            floor: PhantomData,
        }
    }

    /// The caller.
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
        let workspace = workspaces.chosen(&self.caller, named).await?;
        Authority::of(&self.caller, workspace)
            .ok_or_else(|| WorkspaceError::Foreign(named.unwrap_or_default().to_owned()))
    }
}

impl<F: Floor> HasFloor for Asking<F> {
    const ROLE: Role = F::ROLE;
}

impl<F: Floor, S: Send + Sync> FromRequestParts<S> for Asking<F> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, state).await?;
        Ok(Self::new(caller))
    }
}
