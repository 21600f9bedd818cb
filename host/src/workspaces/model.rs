//! Model of a workspace, and of those who can act for it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::config::Limits;
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;
use svc_base::random::{NoRandomness, Random};
use svc_sandbox::Flow;

/// Plan of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Plan {
    /// One project.
    Free,
    /// Five projects.
    Pro,
}

impl Plan {
    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Pro => "pro",
        }
    }
}

impl Plan {
    /// How many projects a workspace may have on it.
    pub fn max_projects(self, limits: &Limits) -> u64 {
        match self {
            Self::Free => limits.projects_free,
            Self::Pro => limits.projects_pro,
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

/// A workspace, by its names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct WorkspaceRef {
    /// Identifier of the workspace.
    #[schema(value_type = String, format = "uuid")]
    pub id: WorkspaceId,
    /// Name in addresses.
    pub slug: String,
}

/// Account that owns projects.
#[derive(Clone, Debug, Serialize)]
pub struct Workspace {
    /// Identifier of the workspace.
    pub id: WorkspaceId,
    /// Name in addresses and commands.
    pub slug: String,
    /// Name for people.
    pub display_name: String,
    /// Plan of the workspace.
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
    /// Role of the key: editor or viewer.
    #[serde(skip)]
    pub role: Role,
    /// Purpose of the key.
    #[serde(skip)]
    pub note: Option<String>,
    /// When it ends by itself.
    #[serde(skip)]
    pub expires_at: Option<Timestamp>,
}

/// Role of a member in a workspace: each may do what those before it may.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    ToSchema,
    clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Only reads.
    Viewer,
    /// Changes projects and their parts, too.
    Editor,
    /// Changes members and the display name, too.
    Admin,
    /// Changes the plan and ends the workspace, too.
    Owner,
}

impl Role {
    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }
}

impl FromStr for Role {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "viewer" => Ok(Self::Viewer),
            "editor" => Ok(Self::Editor),
            "admin" => Ok(Self::Admin),
            "owner" => Ok(Self::Owner),
            _ => Err(()),
        }
    }
}

/// Id of a user: `usr_` and letters and digits. Nothing in it says who the user is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct UserId(Arc<str>);

impl UserId {
    const PREFIX: &str = "usr_";
    /// Characters after the prefix: 104 bits.
    const LENGTH: usize = 22;

    /// A new one.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn new(random: &Random) -> Result<Self, NoRandomness> {
        let random = random.slug(Self::LENGTH)?;
        Ok(Self(format!("{}{random}", Self::PREFIX).into()))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserId {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let id = text.strip_prefix(Self::PREFIX).ok_or(())?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let formed = (1..=64).contains(&id.len()) && id.bytes().all(plain);
        formed.then(|| Self(text.into())).ok_or(())
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Sender of an owner's request, proven by its credential. What it may is not in it: a user's role is read where it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A machine, proven by a key.
    Key {
        /// The public part of the key.
        key_id: Arc<str>,
        /// The workspace that the key belongs to.
        workspace: WorkspaceId,
        /// The role of the key there.
        role: Role,
    },
    /// A person, proven by a token of the operator's issuer.
    User(UserId),
}

impl Caller {
    /// The caller in the audit: the id of the key or of the user.
    pub fn id(&self) -> &str {
        match self {
            Self::Key { key_id, .. } => key_id,
            Self::User(id) => id.as_str(),
        }
    }

    /// Returns the flow of this caller's work, which shares the threads that pages are made on: the user's, or that of the key's
    /// workspace, which may have any number of keys.
    pub fn flow(&self) -> Flow {
        Flow::Owner(match self {
            Self::Key { workspace, .. } => workspace.to_string().into(),
            Self::User(id) => Arc::clone(&id.0),
        })
    }

    /// The name of a role of this caller: an editor's key is called a machine.
    pub fn role_name(&self, role: Role) -> &'static str {
        match (self, role) {
            (Self::Key { .. }, Role::Editor) => MACHINE_ROLE,
            _ => role.as_str(),
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { key_id, .. } => write!(f, "key:{key_id}"),
            Self::User(id) => write!(f, "user:{id}"),
        }
    }
}

/// The name of the role of keys that are editors: nobody is given it.
pub const MACHINE_ROLE: &str = "machine";

/// A user in a workspace.
#[derive(Clone, Debug)]
pub struct Member {
    /// Identifier of the user.
    pub user: UserId,
    /// E-mail address of the user, by the issuer.
    pub email: Option<String>,
    /// Role of the user.
    pub role: Role,
    /// Since when.
    pub created_at: Timestamp,
}

/// A workspace as a caller sees it.
#[derive(Clone, Debug)]
pub struct WorkspaceAccess {
    /// The workspace.
    pub workspace: Workspace,
    /// The caller's role in it.
    pub role: Role,
    /// How many live projects it has.
    pub projects: u64,
}
