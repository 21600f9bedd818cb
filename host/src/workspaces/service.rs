//! Making, finding, changing and ending workspaces.

use serde::Serialize;
use svc_base::names::is_slug;

use super::credential::Credential;
use super::error::WorkspaceError;
use super::keys::{self, NewKey};
use super::members::UserCache;
use super::model::{Plan, Workspace};
use super::{store, subscriptions};
use crate::content::Digest;
use crate::control::audit::AuditAction;
use crate::control::{Control, Error, Tx};
use svc_base::clock::{Clock, Timestamp};
use svc_base::ids::WorkspaceId;
use svc_base::random::Random;

/// The longest name, in characters.
const MAX_NAME_CHARS: usize = 100;

/// A new workspace, with its first credential.
#[derive(Serialize)]
pub struct NewWorkspace {
    /// Identifier of the workspace.
    pub id: WorkspaceId,
    /// Name of the workspace.
    pub slug: String,
    /// Plan of the workspace.
    pub plan: Plan,
    /// The credential, shown this once.
    pub credential: String,
}

/// The workspaces of an installation, as commands and the server see them.
#[derive(Clone, Debug)]
pub struct Workspaces {
    pub(super) control: Control,
    pub(super) clock: Clock,
    pub(super) random: Random,
    pub(super) user_cache: UserCache,
}

impl Workspaces {
    /// The workspaces in a control database.
    pub fn new(control: Control, clock: Clock, random: Random) -> Self {
        Self {
            control,
            clock,
            random,
            user_cache: UserCache::default(),
        }
    }

    /// Refuses a name that no workspace can have.
    ///
    /// # Errors
    /// `BadName`.
    pub fn check_name(name: &str) -> Result<(), WorkspaceError> {
        if !is_slug(name) || name.len() > MAX_NAME_CHARS {
            return Err(WorkspaceError::BadName);
        }
        Ok(())
    }

    /// Makes a workspace with one machine key.
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
        let credential = Credential::new(&self.random)?;
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
                let key = NewKey::for_machine(credential.key_id, workspace.created_at);
                keys::insert(tx, &workspace.id, &digest, &key)?;
                let (id, now) = (workspace.id, workspace.created_at);
                tx.record_audit(AuditAction::WorkspaceCreate, Some(&id), &id, now)?;
                Ok(())
            })
            .await?;
        Ok(made)
    }

    /// All workspaces, oldest first.
    pub async fn list(&self) -> Result<Vec<Workspace>, WorkspaceError> {
        Ok(self.control.read(store::workspaces).await?)
    }

    /// Changes what a workspace pays for.
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

    /// Begins the end of a workspace: its keys are refused from now on, and its name is free. `members` begins the end of
    /// what it owns, in the same transaction, and its answer is returned.
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
            // A command has nobody who could tell the provider.
            if !subscriptions::active_subscriptions(tx, &id)?.is_empty() {
                return Err(WorkspaceError::Subscribed(named));
            }
            Ok(begin_deletion_in(tx, &id, now, members)?)
        });
        Ok((workspace, ended.await?))
    }

    /// Removes what is left of workspaces whose end has begun and whose projects have gone.
    pub async fn remove_ended(&self) -> Result<(), Error> {
        if self.control.read(store::any_deleting).await? {
            self.control.write(store::remove_ended).await?;
        }
        Ok(())
    }

    /// A workspace.
    pub async fn by_id(&self, id: WorkspaceId) -> Result<Option<Workspace>, Error> {
        self.control
            .read(move |c| store::workspace_by_id(c, &id))
            .await
    }

    /// The workspace of an id or slug as somebody wrote it.
    ///
    /// # Errors
    /// `Unknown`.
    pub async fn find(&self, name: &str) -> Result<Workspace, WorkspaceError> {
        match name.parse() {
            Ok(id) => self
                .by_id(id)
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

/// Begins the end of a workspace and, by `members`, of what it owns.
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
