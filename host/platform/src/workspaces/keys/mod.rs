//! Keys, by which machines act for a workspace.

mod store;

use serde::{Deserialize, Serialize};

use super::credential::{self, NewCredential};
use super::error::WorkspaceError;
use super::members;
use super::model::{Caller, Role, WorkspaceKey};
use super::service::Workspaces;
use crate::content::Digest;
use crate::control::audit::AuditAction;
use crate::control::{ErrandWork, Error, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;

pub(super) use store::{delete_ended, insert, revoke_noted};

/// Least time between two updates of `last_used_at`, in milliseconds, so that a busy key does not cause a write per call.
const TOUCH_INTERVAL_MS: i64 = 60_000;
/// Maximum number of keys of a workspace that are not revoked.
const MAX_KEYS: u64 = 100;
/// Maximum lifetime of a key that expires, in seconds: a year.
pub const MAX_KEY_SECONDS: u64 = 31_536_000;

/// Key to store.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub key_id: String,
    pub role: Role,
    /// Purpose of the key.
    pub note: Option<String>,
    /// Moment from which the key is refused.
    pub expires_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

impl NewKey {
    /// Returns the first key of a namespace: with the role `editor`, and without expiry.
    pub(super) fn first(key_id: String, created_at: Timestamp) -> Self {
        let options = NewKeyOptions {
            role: Role::Editor,
            note: None,
            expires_in: None,
        };
        Self::new(key_id, options, created_at)
    }

    /// Makes a key with the wanted properties.
    pub(super) fn new(key_id: String, wanted: NewKeyOptions, created_at: Timestamp) -> Self {
        let expires_in = wanted.expires_in;
        Self {
            key_id,
            role: wanted.role,
            note: wanted.note,
            expires_at: expires_in.map(|seconds| created_at.plus_seconds(seconds)),
            created_at,
        }
    }
}

/// Properties of a key to create.
#[derive(Clone, Debug)]
pub struct NewKeyOptions {
    pub role: Role,
    /// Purpose of the key.
    pub note: Option<String>,
    /// Lifetime in seconds; unlimited if absent.
    pub expires_in: Option<i64>,
}

/// New key, with its credential.
#[derive(Serialize)]
pub struct IssuedKey {
    pub key_id: String,
    /// The credential, which is shown only once.
    pub credential: String,
}

/// Errand: a key was used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyUse {
    pub key_id: String,
    pub at: Timestamp,
}

impl ErrandWork for KeyUse {
    const KIND: &'static str = "key_use";
    type Answer = ();

    fn perform(self, tx: &Tx<'_>) -> Result<(), Error> {
        store::touch(tx, &self.key_id, self.at)
    }
}

impl Workspaces {
    /// Adds a key of any role to a workspace, for an operator.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn create_key(
        &self,
        name: &str,
        wanted: NewKeyOptions,
    ) -> Result<IssuedKey, WorkspaceError> {
        let workspace = self.find_by_slug(name).await?;
        let credential = NewCredential::new(&self.random)?;
        let key = NewKey::new(credential.key_id.clone(), wanted, self.clock.now());
        let digest = Digest::of(credential.text.as_bytes());
        let added: Result<(), Error> = self
            .control
            .write(move |tx| {
                store::insert(tx, &workspace.id, &digest, &key)?;
                let (id, now) = (&workspace.id, key.created_at);
                tx.record_audit(AuditAction::KeyCreate, Some(id), &key.key_id, now)
            })
            .await;
        added?;
        Ok(IssuedKey {
            key_id: credential.key_id,
            credential: credential.text,
        })
    }

    /// Adds a key, for an admin of the workspace; returns it with its credential, which is shown only once.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn add_key(
        &self,
        workspace: WorkspaceId,
        by: Caller,
        wanted: NewKeyOptions,
    ) -> Result<(NewKey, String), WorkspaceError> {
        let (now, credential) = (self.clock.now(), NewCredential::new(&self.random)?);
        let key = NewKey::new(credential.key_id, wanted, now);
        let (digest, made) = (Digest::of(credential.text.as_bytes()), key.clone());
        self.control
            .write(move |tx| {
                members::require_role(tx, &by, &workspace, Role::Admin)?;
                if store::count(tx, &workspace).map_err(Error::from)? >= MAX_KEYS {
                    return Err(WorkspaceError::TooManyKeys(MAX_KEYS));
                }
                store::insert(tx, &workspace, &digest, &key)?;
                tx.record_audit(AuditAction::KeyCreate, Some(&workspace), &key.key_id, now)?;
                Ok(())
            })
            .await?;
        Ok((made, credential.text))
    }

    /// Lists the keys of a workspace by its slug, oldest first, revoked keys included.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn keys(&self, name: &str) -> Result<Vec<WorkspaceKey>, WorkspaceError> {
        let workspace = self.find_by_slug(name).await?;
        Ok(self.keys_of(workspace.id).await?)
    }

    /// Lists the keys of a workspace by its id.
    pub async fn keys_of(&self, workspace: WorkspaceId) -> Result<Vec<WorkspaceKey>, Error> {
        self.control.read(move |c| store::list(c, &workspace)).await
    }

    /// Revokes a key, for an operator: the next request with it is refused.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn revoke_key(&self, name: &str, key_id: &str) -> Result<(), WorkspaceError> {
        let workspace = self.find_by_slug(name).await?;
        self.revoke(workspace.id, None, key_id).await
    }

    /// Revokes a key, for an admin of the workspace, or for an operator if `by` is `None`.
    ///
    /// # Errors
    /// `UnknownKey`; `AboveOwn` if the role of the key is above the caller's.
    pub async fn revoke(
        &self,
        workspace: WorkspaceId,
        by: Option<Caller>,
        key_id: &str,
    ) -> Result<(), WorkspaceError> {
        let (key, now) = (key_id.to_owned(), self.clock.now());
        self.control
            .write(move |tx| {
                let own = members::max_assignable_role(tx, by.as_ref(), &workspace)?;
                let role = store::role_of(tx, &workspace, &key).map_err(Error::from)?;
                let Some(role) = role else {
                    return Err(WorkspaceError::UnknownKey(key));
                };
                if role > own {
                    return Err(WorkspaceError::AboveOwn(own));
                }
                if store::revoke(tx, &key, now)? {
                    tx.record_audit(AuditAction::KeyRevoke, Some(&workspace), &key, now)?;
                }
                Ok(())
            })
            .await
    }

    /// Returns the caller of a credential; `None` if the credential is malformed, unknown, revoked or expired.
    pub async fn authenticate(&self, token: &str) -> Result<Option<Caller>, Error> {
        let Some(key_id) = credential::parse_key_id(token) else {
            return Ok(None);
        };
        let (wanted, now) = (key_id.to_owned(), self.clock.now());
        let found = self
            .control
            .read(move |c| store::find_usable(c, &wanted, now))
            .await?;
        let Some(live) = found else {
            return Ok(None);
        };
        if !live.secret.is_digest_of(token.as_bytes()) {
            return Ok(None);
        }
        self.touch(key_id, live.last_used_at);
        Ok(Some(Caller::Key {
            key_id: key_id.into(),
            workspace: live.workspace,
            role: live.role,
            founder: live.founder,
        }))
    }

    /// Updates when a key was last used, at most once a minute and in the background: nobody waits for it.
    fn touch(&self, key_id: &str, last_used: Option<Timestamp>) {
        let now = self.clock.now();
        if last_used.is_some_and(|at| now.0 - at.0 < TOUCH_INTERVAL_MS) {
            return;
        }
        let control = self.control.clone();
        let errand = KeyUse {
            key_id: key_id.to_owned(),
            at: now,
        };
        tokio::spawn(async move {
            if let Err(error) = control.run_errand(errand).await {
                tracing::warn!(%error, "the use of a key was not noted");
            }
        });
    }
}
