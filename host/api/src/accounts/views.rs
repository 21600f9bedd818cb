//! Views of workspaces, members and keys.

use serde::Serialize;
use utoipa::ToSchema;

use crate::workspaces::model::WorkspaceKey;
use crate::workspaces::{
    Caller, NewKey, Plan, Role, UserId, WorkspaceAccess, WorkspaceMember, WorkspaceRef,
};
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;

/// A workspace, as the caller sees it.
#[derive(Debug, Serialize, ToSchema)]
pub struct WorkspaceView {
    /// Identifier of the workspace.
    #[schema(value_type = String, format = "uuid")]
    id: WorkspaceId,
    /// Name in addresses.
    slug: String,
    /// Name for people.
    display_name: String,
    /// The caller's role in it; an editor's key is a `machine`.
    #[schema(value_type = SeenRole)]
    role: &'static str,
    /// Plan that the workspace has.
    plan: Plan,
    /// How many projects it has.
    project_count: u64,
    /// When it was made.
    #[schema(value_type = String, format = "date-time")]
    created_at: Timestamp,
}

/// A role that a caller can have.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(dead_code, reason = "for the description alone")]
pub enum SeenRole {
    /// May do everything.
    Owner,
    /// Members and the display name, too.
    Admin,
    /// Projects and their parts, too.
    Editor,
    /// Only reads.
    Viewer,
    /// An editor that is no person.
    Machine,
}

/// The caller's workspaces.
#[derive(Debug, Serialize, ToSchema)]
pub struct WorkspaceList {
    /// Oldest first.
    workspaces: Vec<WorkspaceView>,
}

/// A workspace with its members.
#[derive(Debug, Serialize, ToSchema)]
pub struct WorkspaceDetail {
    #[serde(flatten)]
    workspace: WorkspaceView,
    /// Members, oldest first. Keys are none.
    members: Vec<MemberView>,
}

/// A user in a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemberView {
    /// Identifier of the user.
    #[schema(value_type = String)]
    user_id: UserId,
    /// The user's address, where the issuer of tokens says that it is verified.
    email: Option<String>,
    /// Role of the user.
    role: Role,
    /// Since when.
    #[schema(value_type = String, format = "date-time")]
    created_at: Timestamp,
}

/// All members of a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemberList {
    /// Oldest first.
    members: Vec<MemberView>,
}

/// A key, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyView {
    /// The public part of the credential.
    key_id: String,
    /// Role of the key.
    role: Role,
    /// Purpose of the key.
    note: Option<String>,
    /// When it ends by itself.
    #[schema(value_type = Option<String>, format = "date-time")]
    expires_at: Option<Timestamp>,
    /// When it was made.
    #[schema(value_type = String, format = "date-time")]
    created_at: Timestamp,
    /// When it was last used, to the minute.
    #[schema(value_type = Option<String>, format = "date-time")]
    last_used_at: Option<Timestamp>,
}

/// The keys of a workspace that are not revoked.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyList {
    /// Oldest first.
    keys: Vec<KeyView>,
}

/// A new key.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewKeyView {
    /// The public part of the credential.
    key_id: String,
    /// The credential, shown this once.
    credential: String,
    /// Role of the caller.
    role: Role,
    /// When it ends by itself.
    #[schema(value_type = Option<String>, format = "date-time")]
    expires_at: Option<Timestamp>,
}

/// Caller of the request.
#[derive(Debug, Serialize, ToSchema)]
pub struct Me {
    /// Kind of credential: the token of a user, or a key.
    kind: Kind,
    /// The user's id, by which others add the user to workspaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    user_id: Option<UserId>,
    /// The user's address, where the issuer of tokens says that it is verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    /// The caller's workspaces, oldest first.
    memberships: Vec<Membership>,
}

/// Kind of credential.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The access token of a person.
    User,
    /// A key.
    Machine,
}

/// A workspace of the caller's.
#[derive(Debug, Serialize, ToSchema)]
pub struct Membership {
    /// Which one.
    workspace: WorkspaceRef,
    /// The caller's role in it.
    #[schema(value_type = SeenRole)]
    role: &'static str,
}

/// A page of the payment provider.
#[derive(Debug, Serialize, ToSchema)]
pub struct BillingView {
    /// Where the user goes.
    #[schema(format = "uri")]
    pub url: String,
}

impl WorkspaceView {
    /// Returns a workspace as the caller sees it.
    pub fn new(seen: &WorkspaceAccess, caller: &Caller) -> Self {
        let workspace = &seen.workspace;
        Self {
            id: workspace.id,
            slug: workspace.slug.clone(),
            display_name: workspace.display_name.clone(),
            role: caller.role_name(seen.role),
            plan: workspace.plan,
            project_count: seen.projects,
            created_at: workspace.created_at,
        }
    }
}

impl WorkspaceList {
    /// Returns workspaces as the caller sees them.
    pub fn new(all: &[WorkspaceAccess], caller: &Caller) -> Self {
        let workspaces = all.iter().map(|seen| WorkspaceView::new(seen, caller));
        Self {
            workspaces: workspaces.collect(),
        }
    }
}

impl WorkspaceDetail {
    /// Returns a workspace with its members as the caller sees it.
    pub fn new(seen: &WorkspaceAccess, members: Vec<WorkspaceMember>, caller: &Caller) -> Self {
        Self {
            workspace: WorkspaceView::new(seen, caller),
            members: members.into_iter().map(MemberView::from).collect(),
        }
    }
}

impl From<WorkspaceMember> for MemberView {
    fn from(member: WorkspaceMember) -> Self {
        Self {
            user_id: member.user,
            email: member.email,
            role: member.role,
            created_at: member.created_at,
        }
    }
}

impl From<Vec<WorkspaceMember>> for MemberList {
    fn from(members: Vec<WorkspaceMember>) -> Self {
        let members = members.into_iter().map(MemberView::from);
        Self {
            members: members.collect(),
        }
    }
}

impl From<Vec<WorkspaceKey>> for KeyList {
    fn from(keys: Vec<WorkspaceKey>) -> Self {
        let live = keys.into_iter().filter(|key| key.revoked_at.is_none());
        let keys = live.map(|key| KeyView {
            key_id: key.key_id,
            role: key.role,
            note: key.note,
            expires_at: key.expires_at,
            created_at: key.created_at,
            last_used_at: key.last_used_at,
        });
        Self {
            keys: keys.collect(),
        }
    }
}

impl NewKeyView {
    /// Returns a new key with its credential.
    pub fn new(key: NewKey, credential: String) -> Self {
        Self {
            key_id: key.key_id,
            credential,
            role: key.role,
            expires_at: key.expires_at,
        }
    }
}

impl Me {
    /// Returns the caller with its workspaces.
    pub fn new(caller: &Caller, email: Option<String>, all: &[WorkspaceAccess]) -> Self {
        let memberships = all.iter().map(|seen| Membership {
            workspace: WorkspaceRef {
                id: seen.workspace.id,
                slug: seen.workspace.slug.clone(),
            },
            role: caller.role_name(seen.role),
        });
        let (kind, user_id) = match caller {
            Caller::Key { .. } => (Kind::Machine, None),
            Caller::User(user) => (Kind::User, Some(user.clone())),
        };
        Self {
            kind,
            user_id,
            email,
            memberships: memberships.collect(),
        }
    }
}
