//! Model of workspaces, members, keys and callers.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::config::Limits;
use svc_base::clock::Timestamp;
use svc_base::flow::CallerFlow;
use svc_base::ids::WorkspaceId;
use svc_base::random::{Random, RandomSourceError};

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
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Pro => "pro",
        }
    }
}

impl Plan {
    /// Returns the maximum number of projects of a workspace on this plan.
    pub fn max_projects(self, limits: &Limits) -> u64 {
        match self {
            Self::Free => limits.projects_free,
            Self::Pro => limits.projects_pro,
        }
    }

    /// Returns the maximum number of domains of a project on this plan.
    pub fn max_domains(self, limits: &Limits) -> u64 {
        match self {
            Self::Free => limits.domains_free,
            Self::Pro => limits.domains_pro,
        }
    }

    /// Returns the bounds of a project's files on this plan.
    pub fn file_limits(self, limits: &Limits) -> FileLimits {
        match self {
            Self::Free => FileLimits {
                site_files: limits.site_files_free,
                site_bytes: limits.site_bytes_free,
                file_bytes: limits.file_bytes_free,
                storage_bytes: limits.storage_bytes_free,
            },
            Self::Pro => FileLimits {
                site_files: limits.site_files_pro,
                site_bytes: limits.site_bytes_pro,
                file_bytes: limits.file_bytes_pro,
                storage_bytes: limits.storage_bytes_pro,
            },
        }
    }
}

/// Bounds of a project's files.
#[derive(Clone, Copy, Debug)]
pub struct FileLimits {
    /// Most files of a site.
    pub site_files: u64,
    /// Most bytes of a site's files together.
    pub site_bytes: u64,
    /// Most bytes of one file.
    pub file_bytes: u64,
    /// Most bytes of all files together, each distinct one once.
    pub storage_bytes: u64,
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
    pub id: WorkspaceId,
    /// Name in URLs and commands.
    pub slug: String,
    /// Name for people.
    pub display_name: String,
    pub plan: Plan,
    pub created_at: Timestamp,
}

/// Key, without its secret.
#[derive(Clone, Debug, Serialize)]
pub struct WorkspaceKey {
    pub key_id: String,
    /// Role of the key. Those of admins and owners are made by operators.
    pub role: Role,
    pub created_at: Timestamp,
    /// Moment from which the key is refused.
    pub expires_at: Option<Timestamp>,
    /// Time of the last use, exact to the minute.
    pub last_used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// Purpose of the key.
    #[serde(skip)]
    pub note: Option<String>,
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

/// Identifier of a user: `usr_` and random characters, which tell nothing about the person.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct UserId(Arc<str>);

impl UserId {
    const PREFIX: &str = "usr_";
    /// Number of characters after the prefix, which hold 104 bits.
    const LENGTH: usize = 22;

    /// Generates an id.
    ///
    /// # Errors
    /// No randomness is available.
    pub fn new(random: &Random) -> Result<Self, RandomSourceError> {
        let random = random.slug(Self::LENGTH)?;
        Ok(Self(format!("{}{random}", Self::PREFIX).into()))
    }

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

impl<'de> Deserialize<'de> for UserId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|()| D::Error::custom("this is no id of a user"))
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Authenticated sender of an owner's request. A user's role is not part of it: roles are read when they are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Machine, authenticated by a key.
    Key {
        /// Public part of the key.
        key_id: Arc<str>,
        /// Workspace that the key belongs to.
        workspace: WorkspaceId,
        /// Role of the key in that workspace.
        role: Role,
        /// User who created that workspace, if it is free.
        founder: Option<UserId>,
    },
    /// Person, authenticated by a token of the operator's issuer.
    User(UserId),
}

impl Caller {
    /// Returns the id of the key or of the user, as the audit log records it.
    pub fn id(&self) -> &str {
        match self {
            Self::Key { key_id, .. } => key_id,
            Self::User(id) => id.as_str(),
        }
    }

    /// Returns the name of the principal that the caller's requests and work count for (`principal/mod.rs`), so that neither many
    /// keys nor many free workspaces bring a person more.
    pub fn principal_name(&self) -> String {
        match self {
            Self::User(user)
            | Self::Key {
                founder: Some(user),
                ..
            } => user_principal_name(user),
            Self::Key { workspace, .. } => workspace_principal_name(workspace),
        }
    }

    /// Returns the flow by which callers share the threads of the lanes: one per principal.
    pub fn flow(&self) -> CallerFlow {
        CallerFlow::Owner(self.principal_name().into())
    }

    /// Returns the name of a role as this caller sees it: the role of an editor's key is called `machine`.
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

/// Returns the name of the principal that is a user with the free workspaces that the user created.
pub(super) fn user_principal_name(user: &UserId) -> String {
    format!("user:{user}")
}

/// Returns the name of the principal that is one workspace.
pub(super) fn workspace_principal_name(workspace: &WorkspaceId) -> String {
    format!("workspace:{workspace}")
}

/// Name of the role of keys that are editors; no member can have it.
pub const MACHINE_ROLE: &str = "machine";

/// User who is a member of a workspace.
#[derive(Clone, Debug)]
pub struct WorkspaceMember {
    pub user: UserId,
    /// E-mail address of the user, by the issuer.
    pub email: Option<String>,
    pub role: Role,
    /// When the user became a member.
    pub created_at: Timestamp,
}

/// Workspace, with the caller's role in it.
#[derive(Clone, Debug)]
pub struct WorkspaceAccess {
    pub workspace: Workspace,
    /// Role of the caller in the workspace.
    pub role: Role,
    /// Number of live projects.
    pub projects: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_one_flow_with_the_keys_of_all_free_workspaces() {
        let user: UserId = "usr_1".parse().unwrap();
        let key = |number: u8, founder: Option<&UserId>| Caller::Key {
            key_id: number.to_string().into(),
            workspace: format!("019a0000-0000-7000-8000-00000000000{number}")
                .parse()
                .unwrap(),
            role: Role::Editor,
            founder: founder.cloned(),
        };
        let person = Caller::User(user.clone());
        for number in 1..=2 {
            assert_eq!(key(number, Some(&user)).flow(), person.flow());
        }
        assert_ne!(key(1, None).flow(), person.flow());
        assert_ne!(key(1, None).flow(), key(2, None).flow());
        // What one caller repeats is its own: answers are kept by caller.
        assert_ne!(key(1, Some(&user)).to_string(), person.to_string());
    }
}
