//! Creates, finds, changes and deletes workspaces.

use serde::Serialize;
use svc_base::names::is_slug;

use super::credential::NewCredential;
use super::error::WorkspaceError;
use super::keys::{self, NewKey};
use super::members::UserCache;
use super::model::{Plan, Workspace};
use super::{store, subscriptions};
use crate::content::Digest;
use crate::control::audit::AuditAction;
use crate::control::{ControlDatabase, Error, Tx};
use svc_base::clock::{Clock, Timestamp};
use svc_base::ids::WorkspaceId;
use svc_base::random::Random;

/// Maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 100;

/// New workspace, with its first credential.
#[derive(Serialize)]
pub struct NewWorkspace {
    pub id: WorkspaceId,
    pub slug: String,
    pub plan: Plan,
    /// The credential, which is shown only once.
    pub credential: String,
}

/// Service of workspaces, for commands and for the server.
#[derive(Clone, Debug)]
pub struct Workspaces {
    pub(super) control: ControlDatabase,
    pub(super) clock: Clock,
    pub(super) random: Random,
    pub(super) user_cache: UserCache,
}

impl Workspaces {
    /// Creates the service on a control database.
    pub fn new(control: ControlDatabase, clock: Clock, random: Random) -> Self {
        Self {
            control,
            clock,
            random,
            user_cache: UserCache::default(),
        }
    }

    /// Checks that a name can be the slug of a workspace.
    ///
    /// # Errors
    /// `BadName`.
    pub fn check_name(name: &str) -> Result<(), WorkspaceError> {
        if !is_slug(name) || name.len() > MAX_NAME_CHARS {
            return Err(WorkspaceError::BadName);
        }
        Ok(())
    }

    /// Creates a workspace with one machine key.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn create(&self, name: &str, plan: Plan) -> Result<NewWorkspace, WorkspaceError> {
        Self::check_name(name)?;
        let workspace = Workspace {
            id: WorkspaceId::new(&self.clock, &self.random)?,
            slug: name.to_owned(),
            display_name: name.to_owned(),
            plan,
            created_at: self.clock.now(),
        };
        let credential = NewCredential::new(&self.random)?;
        let made = NewWorkspace {
            id: workspace.id,
            slug: workspace.slug.clone(),
            plan,
            credential: credential.text.clone(),
        };
        self.control
            .write(move |tx| {
                if store::workspace_by_slug(tx, &workspace.slug)
                    .map_err(Error::from)?
                    .is_some()
                {
                    return Err(WorkspaceError::SlugTaken(workspace.slug));
                }
                store::insert_workspace(tx, &workspace)?;
                let digest = Digest::of(credential.text.as_bytes());
                let key = NewKey::first(credential.key_id, workspace.created_at);
                keys::insert(tx, &workspace.id, &digest, &key)?;
                let (id, now) = (workspace.id, workspace.created_at);
                tx.record_audit(AuditAction::WorkspaceCreate, Some(&id), &id, now)?;
                Ok(())
            })
            .await?;
        Ok(made)
    }

    /// Lists all workspaces, oldest first.
    pub async fn list(&self) -> Result<Vec<Workspace>, WorkspaceError> {
        Ok(self.control.read(store::workspaces).await?)
    }

    /// Sets the plan of a workspace.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn set_plan(&self, name: &str, plan: Plan) -> Result<Workspace, WorkspaceError> {
        let mut workspace = self.find_by_slug(name).await?;
        let id = workspace.id;
        let now = self.clock.now();
        let changed: Result<(), Error> = self
            .control
            .write(move |tx| {
                store::set_plan(tx, &id, plan)?;
                tx.record_audit(AuditAction::WorkspaceUpdate, Some(&id), &id, now)
            })
            .await;
        changed?;
        workspace.plan = plan;
        Ok(workspace)
    }

    /// Starts the deletion of a workspace: its keys are refused from now on, and its slug is free. `members` starts the deletion of
    /// its projects in the same transaction; the result of `members` is returned.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn begin_deletion(
        &self,
        name: &str,
        members: fn(&Tx<'_>, &WorkspaceId) -> Result<usize, Error>,
    ) -> Result<(Workspace, usize), WorkspaceError> {
        let workspace = self.find_by_slug(name).await?;
        let (id, now) = (workspace.id, self.clock.now());
        let named = name.to_owned();
        let ended = self.control.write(move |tx| {
            // An operator's command cannot tell the payment provider to end subscriptions.
            if !subscriptions::active_subscriptions(tx, &id)?.is_empty() {
                return Err(WorkspaceError::Subscribed(named));
            }
            Ok(begin_deletion_in(tx, &id, now, members)?)
        });
        Ok((workspace, ended.await?))
    }

    /// Removes the rows of workspaces in deletion that have no projects left.
    pub async fn remove_ended(&self) -> Result<(), Error> {
        if self.control.read(store::any_deleting).await? {
            self.control.write(store::remove_ended).await?;
        }
        Ok(())
    }

    /// Finds a workspace by its id.
    pub async fn find_by_id(&self, id: WorkspaceId) -> Result<Option<Workspace>, Error> {
        self.control
            .read(move |c| store::workspace_by_id(c, &id))
            .await
    }

    /// Finds a workspace by an id or slug, as the caller wrote it.
    ///
    /// # Errors
    /// `Unknown`.
    pub async fn find(&self, name: &str) -> Result<Workspace, WorkspaceError> {
        match name.parse() {
            Ok(id) => self
                .find_by_id(id)
                .await?
                .ok_or_else(|| WorkspaceError::Unknown(name.to_owned())),
            Err(_) => self.find_by_slug(name).await,
        }
    }

    pub(super) async fn find_by_slug(&self, name: &str) -> Result<Workspace, WorkspaceError> {
        let slug = name.to_owned();
        let found = self
            .control
            .read(move |c| store::workspace_by_slug(c, &slug))
            .await?;
        found.ok_or_else(|| WorkspaceError::Unknown(name.to_owned()))
    }
}

/// Starts the deletion of a workspace and, by `members`, of its projects.
pub(super) fn begin_deletion_in(
    tx: &Tx<'_>,
    id: &WorkspaceId,
    now: Timestamp,
    members: fn(&Tx<'_>, &WorkspaceId) -> Result<usize, Error>,
) -> Result<usize, Error> {
    store::mark_deleting(tx, id, now)?;
    tx.record_audit(AuditAction::WorkspaceDelete, Some(id), id, now)?;
    members(tx, id)
}
