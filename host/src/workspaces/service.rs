//! Making workspaces and keys, and telling who calls.

use serde::Serialize;
use svc_base::names::is_slug;

use super::credential::{self, Credential};
use super::model::{Caller, Key, Plan, Workspace};
use super::store;
use crate::clock::{Clock, Timestamp};
use crate::content::Digest;
use crate::control::{Control, Error, Tx};
use crate::ids::WorkspaceId;
use crate::random::{NoRandomness, Random};

/// `last_used_at` is exact to this many milliseconds, so that a busy key is not a write a call.
const TOUCH_EVERY: i64 = 60_000;
/// The longest display name, in characters.
const NAME: usize = 100;
/// How long a UUID is with its hyphens, in characters.
const ID: usize = 36;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// No slug can be made of the name.
    #[error(
        "a namespace's name is 1 to 63 of a-z, 0-9 and -, beginning and ending with a letter or digit"
    )]
    BadName,
    /// There is one already.
    #[error("there is a namespace `{0}` already")]
    Taken(String),
    /// There is none.
    #[error("there is no namespace `{0}`")]
    Unknown(String),
    /// The caller is no member of it.
    #[error("this credential is of another namespace than `{0}`")]
    Foreign(String),
    /// The namespace has no such key.
    #[error("the namespace has no key `{0}`")]
    UnknownKey(String),
    /// The database's.
    #[error(transparent)]
    Store(#[from] Error),
    /// No id or secret could be made.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}

/// A new workspace, with its first credential.
#[derive(Serialize)]
pub struct NewWorkspace {
    /// Its identity.
    pub id: WorkspaceId,
    /// Its name.
    pub slug: String,
    /// What it pays for.
    pub plan: Plan,
    /// The credential, shown this once.
    pub credential: String,
}

/// A new key, with its credential.
#[derive(Serialize)]
pub struct NewKey {
    /// Its public part.
    pub key_id: String,
    /// The credential, shown this once.
    pub credential: String,
}

/// The workspaces of an installation, as commands and the server see them.
#[derive(Clone, Debug)]
pub struct Workspaces {
    control: Control,
    clock: Clock,
    random: Random,
}

impl Workspaces {
    /// The workspaces in a control database.
    pub fn new(control: Control, clock: Clock, random: Random) -> Self {
        Self {
            control,
            clock,
            random,
        }
    }

    /// Refuses a name that no workspace can have.
    ///
    /// # Errors
    /// `BadName`.
    pub fn check_name(name: &str) -> Result<(), WorkspaceError> {
        if !is_slug(name) || name.len() > NAME {
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
                    return Err(WorkspaceError::Taken(workspace.slug));
                }
                store::insert_workspace(tx, &workspace)?;
                let digest = Digest::of(credential.text.as_bytes());
                store::insert_key(
                    tx,
                    &workspace.id,
                    &credential.key_id,
                    &digest,
                    workspace.created_at,
                )?;
                Ok(())
            })
            .await?;
        Ok(made)
    }

    /// All workspaces, oldest first.
    ///
    /// # Errors
    /// The database's.
    pub async fn list(&self) -> Result<Vec<Workspace>, WorkspaceError> {
        Ok(self.control.read(store::workspaces).await?)
    }

    /// Changes what a workspace pays for.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn set_plan(&self, name: &str, plan: Plan) -> Result<Workspace, WorkspaceError> {
        let mut workspace = self.named(name).await?;
        let id = workspace.id;
        let changed: Result<(), Error> = self
            .control
            .write(move |tx| store::set_plan(tx, &id, plan))
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
    pub async fn begin_end(
        &self,
        name: &str,
        members: fn(&Tx<'_>, &WorkspaceId) -> Result<usize, Error>,
    ) -> Result<(Workspace, usize), WorkspaceError> {
        let workspace = self.named(name).await?;
        let id = workspace.id;
        let ended: Result<usize, Error> = self
            .control
            .write(move |tx| {
                store::begin_end(tx, &id)?;
                members(tx, &id)
            })
            .await;
        Ok((workspace, ended?))
    }

    /// Removes what is left of workspaces whose end has begun and whose projects have gone.
    ///
    /// # Errors
    /// The database's.
    pub async fn remove_ended(&self) -> Result<(), Error> {
        if self.control.read(store::some_end).await? {
            self.control.write(store::remove_ended).await?;
        }
        Ok(())
    }

    /// Adds a key to a workspace.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn create_key(&self, name: &str) -> Result<NewKey, WorkspaceError> {
        let workspace = self.named(name).await?;
        let credential = Credential::new(&self.random)?;
        let (key_id, now) = (credential.key_id.clone(), self.clock.now());
        let digest = Digest::of(credential.text.as_bytes());
        self.control
            .write(move |tx| store::insert_key(tx, &workspace.id, &key_id, &digest, now))
            .await
            .map_err(|error: Error| WorkspaceError::Store(error))?;
        Ok(NewKey {
            key_id: credential.key_id,
            credential: credential.text,
        })
    }

    /// The keys of a workspace, oldest first.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn keys(&self, name: &str) -> Result<Vec<Key>, WorkspaceError> {
        let workspace = self.named(name).await?;
        Ok(self
            .control
            .read(move |c| store::keys(c, &workspace.id))
            .await?)
    }

    /// Revokes a key: the next request with it is refused.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn revoke_key(&self, name: &str, key_id: &str) -> Result<(), WorkspaceError> {
        let workspace = self.named(name).await?;
        let (key, now) = (key_id.to_owned(), self.clock.now());
        let revoked: Result<bool, Error> = self
            .control
            .write(move |tx| store::revoke_key(tx, &workspace.id, &key, now))
            .await;
        if revoked? {
            Ok(())
        } else {
            Err(WorkspaceError::UnknownKey(key_id.to_owned()))
        }
    }

    /// A workspace.
    ///
    /// # Errors
    /// The database's.
    pub async fn by_id(&self, id: WorkspaceId) -> Result<Option<Workspace>, Error> {
        self.control
            .read(move |c| store::workspace_by_id(c, &id))
            .await
    }

    /// The workspace that a caller means: the one they name (by id or slug), or their only one.
    ///
    /// # Errors
    /// `Unknown` if there is none of that name, `Foreign` if the caller is no member of it.
    pub async fn chosen(
        &self,
        caller: &Caller,
        named: Option<&str>,
    ) -> Result<WorkspaceId, WorkspaceError> {
        let Some(name) = named else {
            return Ok(caller.workspace);
        };
        // A slug may be 32 hexadecimal digits, so only the form with hyphens is an id.
        let workspace = match name.parse() {
            Ok(id) if name.len() == ID => self
                .by_id(id)
                .await?
                .ok_or_else(|| WorkspaceError::Unknown(name.to_owned()))?,
            _ => self.named(name).await?,
        };
        if workspace.id == caller.workspace {
            Ok(workspace.id)
        } else {
            Err(WorkspaceError::Foreign(name.to_owned()))
        }
    }

    async fn named(&self, name: &str) -> Result<Workspace, WorkspaceError> {
        let slug = name.to_owned();
        let found = self
            .control
            .read(move |c| store::workspace_by_slug(c, &slug))
            .await?;
        found.ok_or_else(|| WorkspaceError::Unknown(name.to_owned()))
    }

    /// Who a credential belongs to; `None` if it is malformed, unknown or revoked.
    ///
    /// # Errors
    /// The database's.
    pub async fn authenticate(&self, token: &str) -> Result<Option<Caller>, Error> {
        let Some(key_id) = credential::key_id(token) else {
            return Ok(None);
        };
        let key_id = key_id.to_owned();
        let wanted = key_id.clone();
        let found = self
            .control
            .read(move |c| store::live_key(c, &wanted))
            .await?;
        let Some((workspace, secret, last_used)) = found else {
            return Ok(None);
        };
        if !secret.is_digest_of(token.as_bytes()) {
            return Ok(None);
        }
        self.touch(&key_id, last_used);
        Ok(Some(Caller { workspace, key_id }))
    }

    /// Notes that a key was used, now and then and behind the request.
    fn touch(&self, key_id: &str, last_used: Option<Timestamp>) {
        let now = self.clock.now();
        if last_used.is_some_and(|at| now.0 - at.0 < TOUCH_EVERY) {
            return;
        }
        let (control, key_id) = (self.control.clone(), key_id.to_owned());
        tokio::spawn(async move {
            let noted: Result<(), Error> = control
                .write(move |tx| store::touch_key(tx, &key_id, now))
                .await;
            if let Err(error) = noted {
                tracing::warn!(%error, "the use of a key was not noted");
            }
        });
    }
}
