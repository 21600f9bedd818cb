//! Errors of requests about workspaces, keys and members.

use super::model::{Role, UserId};
use crate::control;
use svc_base::pluralize;
use svc_base::random::RandomSourceError;

/// Error of an operation on workspaces, keys or members.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The name cannot be a slug.
    #[error(
        "a namespace's name is 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"
    )]
    BadName,
    /// Another workspace has this slug.
    #[error("there is a namespace `{0}` already")]
    SlugTaken(String),
    /// No workspace has this id or slug.
    #[error("there is no namespace `{0}`")]
    Unknown(String),
    /// The caller is no member of it.
    #[error("this credential is of another namespace than `{0}`")]
    Foreign(String),
    /// The caller's role in it does not suffice.
    #[error("the role in this workspace is {has}, and this takes {}", needs.as_str())]
    Role {
        /// The role that the caller has.
        has: &'static str,
        /// The lowest role that suffices.
        needs: Role,
    },
    /// The caller is a member of several workspaces and names none.
    #[error("several workspaces: {}", .0.join(", "))]
    Ambiguous(Vec<String>),
    /// The caller is a member of no workspace.
    #[error("in no workspace")]
    NoWorkspace,
    /// A key requested an operation that only users may do.
    #[error("a key cannot do this")]
    UsersOnly,
    /// The user owns the maximum number of workspaces.
    #[error("a user owns {} at most", pluralize(.0, "workspace"))]
    TooManyOwned(u64),
    /// The user has the maximum number of free workspaces.
    #[error("{0} workspaces on the free plan are the most that a user makes")]
    TooManyFree(u64),
    /// The workspace has the maximum number of members.
    #[error("the workspace has {0} members, which is the most")]
    TooManyMembers(u64),
    /// The workspace has the maximum number of keys.
    #[error("the workspace has {0} keys, which is the most")]
    TooManyKeys(u64),
    /// No user has this id.
    #[error("there is no user `{0}`")]
    UnknownUser(UserId),
    /// The user is not in the workspace.
    #[error("`{0}` is no member of this workspace")]
    NoMember(UserId),
    /// The old or the new role is above the caller's own.
    #[error("nobody gives or takes a role above their own, which is {}", .0.as_str())]
    AboveOwn(Role),
    /// The change would leave the workspace without an owner.
    #[error("this is the last owner")]
    LastOwner,
    /// The plan cannot be set, for the reason given.
    #[error("{0}")]
    PlanRefused(String),
    /// The workspace has a subscription, which must end first.
    #[error("the namespace `{0}` has a subscription: end it at the payment provider first")]
    Subscribed(String),
    /// The namespace has no such key.
    #[error("the namespace has no key `{0}`")]
    UnknownKey(String),
    /// The control database failed.
    #[error(transparent)]
    Store(#[from] control::Error),
    /// No id or secret could be generated.
    #[error(transparent)]
    Random(#[from] RandomSourceError),
}
