//! What a workspace is, and who can act for it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::ids::WorkspaceId;

/// What a workspace pays for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Plan {
    /// One project.
    Free,
    /// Five projects.
    Pro,
}

impl Plan {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Pro => "pro",
        }
    }
}

impl FromStr for Plan {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "free" => Ok(Self::Free),
            "pro" => Ok(Self::Pro),
            _ => Err(()),
        }
    }
}

/// An account: what owns projects.
#[derive(Clone, Debug, Serialize)]
pub struct Workspace {
    /// Its identity.
    pub id: WorkspaceId,
    /// Its name in addresses and commands.
    pub slug: String,
    /// Its name for people.
    pub display_name: String,
    /// What it pays for.
    pub plan: Plan,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A key, without its secret.
#[derive(Clone, Debug, Serialize)]
pub struct Key {
    /// The public part of the credential.
    pub key_id: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// Role of a member in a workspace: each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Changes projects and their parts, too.
    Editor,
    /// Changes members and the display name, too.
    Admin,
    /// Changes the plan and ends the workspace, too.
    Owner,
}

impl Role {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }
}

/// Sender of a request that was proven by a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The workspace that the key belongs to.
    pub workspace: WorkspaceId,
    /// The public part of the key.
    pub key_id: String,
}

impl Caller {
    /// The caller's role in a workspace; `None` if it is no member. A key is an editor of its own workspace.
    pub fn role_in(&self, workspace: &WorkspaceId) -> Option<Role> {
        (self.workspace == *workspace).then_some(Role::Editor)
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key:{}", self.key_id)
    }
}
