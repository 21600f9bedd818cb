//! Errors of requests about workspaces, keys and members.

use super::model::{Role, UserId};
use crate::control;
use svc_base::pluralize;
use svc_base::random::NoRandomness;

/// Why something about a workspace could not be done.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// No slug can be made of the name.
    #[error(
        "a namespace's name is 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"
    )]
    BadName,
    /// There is one already.
    #[error("there is a namespace `{0}` already")]
    SlugTaken(String),
    /// There is none.
    #[error("there is no namespace `{0}`")]
    Unknown(String),
    /// The caller is no member of it.
    #[error("this credential is of another namespace than `{0}`")]
    Foreign(String),
    /// The caller's role in it does not suffice.
    #[error("the role in this workspace is {has}, and this takes {}", needs.as_str())]
    Role {
        /// The caller's.
        has: &'static str,
        /// The least that suffices.
        needs: Role,
    },
    /// The caller is in several and names none.
    #[error("several workspaces: {}", .0.join(", "))]
    Ambiguous(Vec<String>),
    /// The caller is in none.
    #[error("in no workspace")]
    NoWorkspace,
    /// A key asks for what only a person does.
    #[error("a key cannot do this")]
    UsersOnly,
    /// The user has made as many workspaces as one may.
    #[error("a user owns {} at most", pluralize(.0, "workspace"))]
    TooManyOwned(u64),
    /// The user has made as many free workspaces as one may.
    #[error("{0} workspaces on the free plan are the most that a user makes")]
    TooManyFree(u64),
    /// The workspace has as many members as it may.
    #[error("the workspace has {0} members, which is the most")]
    TooManyMembers(u64),
    /// The workspace has as many keys as it may.
    #[error("the workspace has {0} keys, which is the most")]
    TooManyKeys(u64),
    /// Nobody has this id.
    #[error("there is no user `{0}`")]
    UnknownUser(UserId),
    /// The user is not in the workspace.
    #[error("`{0}` is no member of this workspace")]
    NoMember(UserId),
    /// The role given or taken is above the caller's.
    #[error("nobody gives or takes a role above their own, which is {}", .0.as_str())]
    AboveOwn(Role),
    /// The workspace would be nobody's.
    #[error("this is the last owner")]
    LastOwner,
    /// The plan is not the caller's to choose.
    #[error("{0}")]
    PlanRefused(String),
    /// A subscription has to end first.
    #[error("the namespace `{0}` has a subscription: end it at the payment provider first")]
    Subscribed(String),
    /// The namespace has no such key.
    #[error("the namespace has no key `{0}`")]
    UnknownKey(String),
    /// The database's.
    #[error(transparent)]
    Store(#[from] control::Error),
    /// No id or secret could be made.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}
