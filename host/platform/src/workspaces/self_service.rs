//! Operations of users on workspaces: create, read, change, delete. Roles are checked inside the transaction of
//! each operation.

use svc_base::names::{append_suffix_within_limit, numbered_slugs, slugify};

use super::error::WorkspaceError;
use super::members::{insert_first_owner, require_role};
use super::model::{Caller, Plan, Role, UserId, Workspace, WorkspaceAccess};
use super::service::{Workspaces, begin_deletion_in};
use super::{store, subscriptions};
use crate::control::audit::AuditAction;
use crate::control::kept_answers::AnswerRecorder;
use crate::control::{Error, Tx};
use svc_base::ids::WorkspaceId;
use svc_base::pluralize;

/// Slug of a workspace whose display name contains no usable character.
const FALLBACK_SLUG: &str = "workspace";

/// Changes of a workspace; `None` leaves a field as it is.
#[derive(Clone, Debug)]
pub struct WorkspaceChanges {
    pub display_name: Option<String>,
    pub plan: Option<Plan>,
}

/// Limits on the workspaces of one user.
#[derive(Clone, Copy, Debug)]
pub struct WorkspaceOwnershipLimits {
    /// Maximum number of owned workspaces, on any plan.
    pub all: u64,
    /// Maximum number of free workspaces that the user has created.
    pub free: u64,
}

impl Workspaces {
    /// Starts the deletion of a workspace, for an owner. `told` lists the subscriptions that the provider was told to end. Changes nothing
    /// if another subscription has started since.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn begin_deletion_as_owner(
        &self,
        workspace: WorkspaceId,
        by: Caller,
        told: Vec<String>,
        members: fn(&Tx<'_>, &WorkspaceId) -> Result<usize, Error>,
    ) -> Result<(), WorkspaceError> {
        let now = self.clock.now();
        self.control
            .write(move |tx| {
                require_role(tx, &by, &workspace, Role::Owner)?;
                let living = subscriptions::active_subscriptions(tx, &workspace)?;
                if living.iter().any(|one| !told.contains(&one.id)) {
                    return Err(WorkspaceError::PlanRefused(
                        "A subscription of the workspace has begun just now. Send the request again.".to_owned(),
                    ));
                }
                subscriptions::mark_ends_sent(tx, &told)?;
                begin_deletion_in(tx, &workspace, now, members)?;
                Ok(())
            })
            .await
    }

    /// Creates a workspace that is owned by a user, within limits.
    ///
    /// # Errors
    /// `SlugTaken` for a requested slug that is in use, `TooManyOwned`, `TooManyFree`.
    pub async fn create_for_user(
        &self,
        user: UserId,
        display_name: String,
        slug: Option<String>,
        most: WorkspaceOwnershipLimits,
        keep: AnswerRecorder<WorkspaceAccess>,
    ) -> Result<WorkspaceAccess, WorkspaceError> {
        let mut workspace = Workspace {
            id: WorkspaceId::new(&self.clock, &self.random)?,
            slug: String::new(),
            display_name,
            plan: Plan::Free,
            created_at: self.clock.now(),
        };
        let spare = self.random.slug(6)?;
        self.control
            .write(move |tx| {
                let free = store::count_free_workspaces(tx, &user).map_err(Error::from)?;
                if free >= most.free {
                    return Err(WorkspaceError::TooManyFree(most.free));
                }
                workspace.slug = choose_slug(tx, slug, &workspace.display_name, &spare)?;
                store::insert_workspace(tx, &workspace)?;
                let (id, now) = (workspace.id, workspace.created_at);
                insert_first_owner(tx, &id, &user, most.all, now)?;
                store::set_founder(tx, &id, &user)?;
                tx.record_audit(AuditAction::WorkspaceCreate, Some(&id), &id, now)?;
                let seen = WorkspaceAccess {
                    workspace,
                    role: Role::Owner,
                    projects: 0,
                };
                keep.store(tx, &seen)?;
                Ok(seen)
            })
            .await
    }

    /// Returns a workspace as a member with this role sees it.
    ///
    /// # Errors
    /// `Unknown`.
    pub async fn get_with_role(
        &self,
        id: WorkspaceId,
        role: Role,
    ) -> Result<WorkspaceAccess, WorkspaceError> {
        let now = self.clock.now();
        let found = self
            .control
            .read(move |c| store::with_project_count(c, &id, now))
            .await?;
        let (workspace, projects) = found.ok_or_else(|| WorkspaceError::Unknown(id.to_string()))?;
        Ok(WorkspaceAccess {
            workspace,
            role,
            projects,
        })
    }

    /// Lists the workspaces of a caller, oldest first.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn list_accessible(
        &self,
        caller: &Caller,
    ) -> Result<Vec<WorkspaceAccess>, WorkspaceError> {
        match caller {
            Caller::Key {
                workspace, role, ..
            } => Ok(vec![self.get_with_role(*workspace, *role).await?]),
            Caller::User(user) => {
                let (user, now) = (user.clone(), self.clock.now());
                let found = self
                    .control
                    .read(move |c| store::list_accessible(c, &user, now))
                    .await?;
                Ok(found)
            }
        }
    }

    /// Changes a workspace. The display name requires an admin, the plan requires an owner. Only the free plan can be set, on a workspace
    /// with at most `most` projects.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn change(
        &self,
        id: WorkspaceId,
        by: Caller,
        changes: WorkspaceChanges,
        most: u64,
    ) -> Result<WorkspaceAccess, WorkspaceError> {
        let now = self.clock.now();
        self.control
            .write(move |tx| {
                let needs = changes.plan.map_or(Role::Admin, |_| Role::Owner);
                let role = require_role(tx, &by, &id, needs)?;
                let found = store::with_project_count(tx, &id, now).map_err(Error::from)?;
                let (mut workspace, projects) =
                    found.ok_or_else(|| WorkspaceError::Unknown(id.to_string()))?;
                if let Some(plan) = changes.plan {
                    let lives = !subscriptions::active_subscriptions(tx, &id)?.is_empty();
                    check_plan(plan, lives, projects, most)?;
                    store::set_plan(tx, &id, plan)?;
                    workspace.plan = plan;
                }
                if let Some(name) = changes.display_name {
                    store::set_display_name(tx, &id, &name)?;
                    workspace.display_name = name;
                }
                tx.record_audit(AuditAction::WorkspaceUpdate, Some(&id), &id, now)?;
                Ok(WorkspaceAccess {
                    workspace,
                    role,
                    projects,
                })
            })
            .await
    }
}

/// Chooses the slug of a new workspace: the requested one, or an unused one that is derived from the display name.
fn choose_slug(
    tx: &Tx<'_>,
    wanted: Option<String>,
    display_name: &str,
    spare: &str,
) -> Result<String, WorkspaceError> {
    let taken = |slug: &str| store::slug_taken(tx, slug).map_err(Error::from);
    if let Some(slug) = wanted {
        return match taken(&slug)? {
            true => Err(WorkspaceError::SlugTaken(slug)),
            false => Ok(slug),
        };
    }
    let made = slugify(display_name);
    // A slug in the form of an id could be mistaken for the id of another workspace.
    let made = match made.as_str() {
        "" => FALLBACK_SLUG.to_owned(),
        id if id.parse::<WorkspaceId>().is_ok() => append_suffix_within_limit(FALLBACK_SLUG, spare),
        _ => made,
    };
    let last = append_suffix_within_limit(&made, spare);
    for slug in std::iter::once(made.clone()).chain(numbered_slugs(&made)) {
        if !taken(&slug)? {
            return Ok(slug);
        }
    }
    Ok(last)
}

/// Refuses a plan that an owner cannot set.
fn check_plan(
    wanted: Plan,
    subscribed: bool,
    projects: u64,
    most: u64,
) -> Result<(), WorkspaceError> {
    let refused = match wanted {
        Plan::Pro => {
            "The plan `pro` is bought, not set: POST /api/v1/workspaces/{id}/billing/checkout answers where."
                .to_owned()
        }
        Plan::Free if subscribed => {
            "The workspace has a subscription. End it first: POST /api/v1/workspaces/{id}/billing/portal answers where. Its end sets the plan `free`."
                .to_owned()
        }
        Plan::Free if projects > most => format!(
            "The workspace has {}, and the plan `free` allows {most}. Delete some first.",
            pluralize(projects, "project")
        ),
        Plan::Free => return Ok(()),
    };
    Err(WorkspaceError::PlanRefused(refused))
}
