//! Requests about workspaces, members and keys, and their checks: for REST and for tools alike.

use serde::Deserialize;
use svc_base::names::is_slug;
use utoipa::ToSchema;

use crate::http::extract::{check_characters, invalid_request};
use crate::http::problem::{Problem, ProblemCode};
use crate::workspaces::model::MACHINE_ROLE;
use crate::workspaces::{MAX_KEY_SECONDS, NewKeyOptions, Plan, Role, UserId, WorkspaceChanges};
use svc_base::ids::WorkspaceId;
use svc_base::numbers::optional_whole_number;

/// Maximum length of a display name, in characters.
const MAX_NAME_CHARS: usize = 100;
/// Maximum length of a key's note, in characters.
const MAX_NOTE_CHARS: usize = 1_000;

/// Query of the list of workspaces, which has no parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListWorkspacesQuery {}

/// A workspace to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateWorkspace {
    /// Name for people.
    #[schema(min_length = 1, max_length = 100, example = "Acme Inc.")]
    pub display_name: String,
    /// Name in addresses; made of the display name, if absent.
    #[schema(
        min_length = 1,
        max_length = 63,
        pattern = "^[a-z0-9]([a-z0-9\\-]*[a-z0-9])?$"
    )]
    pub slug: Option<String>,
}

/// Changes of a workspace.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateWorkspace {
    /// A new name for people; takes an admin.
    #[schema(min_length = 1, max_length = 100)]
    pub display_name: Option<String>,
    /// `free`, which takes an owner; `pro` is bought.
    pub plan: Option<Plan>,
}

/// A user to add, and what the user may do.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddMember {
    /// The user's id, which `GET /api/v1/me` shows to the user.
    #[schema(
        pattern = "^usr_[A-Za-z0-9_-]{1,64}$",
        example = "usr_7k2m9xq4w8t3z5b6c2d9fg"
    )]
    pub user_id: String,
    /// Role of the user.
    #[schema(value_type = Role)]
    pub role: String,
}

/// Role of a member from now on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetRole {
    /// The role.
    #[schema(value_type = Role)]
    pub role: String,
}

/// A key to make.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateKey {
    /// Role of the key; `editor` if absent.
    pub role: Option<KeyRole>,
    /// After how many seconds it ends; never, if absent.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub expires_in: Option<u64>,
    /// Purpose of the key.
    #[schema(max_length = 1000)]
    pub note: Option<String>,
}

/// Role of a key that an admin makes.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyRole {
    /// Only reads.
    Viewer,
    /// Changes projects and their parts, too.
    Editor,
}

/// Request about a subscription, which the route says completely.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BillingRequest {}

impl CreateWorkspace {
    /// Returns the display name and the requested slug.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<(String, Option<String>), Problem> {
        check_name(&self.display_name)?;
        if let Some(slug) = &self.slug {
            check_slug(slug)?;
        }
        Ok((self.display_name, self.slug))
    }
}

impl UpdateWorkspace {
    /// Returns the requested changes.
    ///
    /// # Errors
    /// `nothing_to_update` or `invalid_request`.
    pub fn checked(self) -> Result<WorkspaceChanges, Problem> {
        if self.display_name.is_none() && self.plan.is_none() {
            return Err(Problem::new(
                ProblemCode::NothingToUpdate,
                "Nothing to update: send `display_name` or `plan`.",
            ));
        }
        if let Some(name) = &self.display_name {
            check_name(name)?;
        }
        Ok(WorkspaceChanges {
            display_name: self.display_name,
            plan: self.plan,
        })
    }
}

impl AddMember {
    /// Returns the user and the role.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<(UserId, Role), Problem> {
        Ok((parse_user_id(&self.user_id)?, parse_role(&self.role)?))
    }
}

impl SetRole {
    /// Returns the role.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<Role, Problem> {
        parse_role(&self.role)
    }
}

impl CreateKey {
    /// Returns the properties of the requested key.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn checked(self) -> Result<NewKeyOptions, Problem> {
        check_characters("note", self.note.as_deref(), MAX_NOTE_CHARS)?;
        if self
            .expires_in
            .is_some_and(|seconds| !(1..=MAX_KEY_SECONDS).contains(&seconds))
        {
            return Err(invalid_request(format!(
                "`expires_in` must be from 1 to {MAX_KEY_SECONDS}."
            )));
        }
        Ok(NewKeyOptions {
            role: match self.role {
                Some(KeyRole::Viewer) => Role::Viewer,
                Some(KeyRole::Editor) | None => Role::Editor,
            },
            note: self.note,
            expires_in: self
                .expires_in
                .and_then(|seconds| i64::try_from(seconds).ok()),
        })
    }
}

/// Parses the id of a user.
///
/// # Errors
/// `invalid_request` for a text that is not the id of a user, such as a key's.
pub fn parse_user_id(id: &str) -> Result<UserId, Problem> {
    id.parse().map_err(|()| {
        invalid_request("`user_id` must be the id of a user, such as usr_7k2m9xq4w8t3z5b6c2d9fg: GET /api/v1/me shows it to the user. A key is no member.")
    })
}

fn parse_role(name: &str) -> Result<Role, Problem> {
    name.parse().map_err(|()| match name {
        MACHINE_ROLE => invalid_request("`role` is `machine`, which only keys have: POST /api/v1/workspaces/{id}/keys makes one."),
        _ => invalid_request("`role` must be one of owner, admin, editor, viewer."),
    })
}

/// Refuses an empty name and one that is too long.
fn check_name(name: &str) -> Result<(), Problem> {
    if name.trim().is_empty() {
        return Err(invalid_request(
            "`display_name` is empty: give the workspace a name.",
        ));
    }
    check_characters("display_name", Some(name), MAX_NAME_CHARS)
}

fn check_slug(slug: &str) -> Result<(), Problem> {
    if !is_slug(slug) {
        return Err(invalid_request(
            "`slug` must be 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit.",
        ));
    }
    if slug.parse::<WorkspaceId>().is_ok() {
        return Err(invalid_request(
            "`slug` looks like an id. Choose another one.",
        ));
    }
    Ok(())
}
