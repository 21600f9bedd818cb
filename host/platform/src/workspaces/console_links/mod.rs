//! One-time links into the owner's console: an operator makes one, and whoever opens it exchanges its code for a key, once.
//!
//! Only the SHA-256 of a code is stored. The writer runs one transaction after the other, so of several exchanges of one code one finds it.

mod store;

use serde::Serialize;

use super::credential::{self, NewCredential};
use super::error::WorkspaceError;
use super::keys::{self, NewKey, NewKeyOptions};
use super::model::{Caller, Role, WorkspaceRef};
use super::service::Workspaces;
use super::store::workspace_by_id;
use crate::content::Digest;
use crate::control::Error;
use crate::control::audit::AuditAction;
use svc_base::clock::Timestamp;

/// Lifetime of a link that an operator's command makes, in seconds.
pub const CONSOLE_LINK_SECONDS: i64 = 15 * 60;
/// Lifetime of the key that a link is exchanged for, in seconds.
const CONSOLE_KEY_SECONDS: i64 = 12 * 3600;
/// Note of such keys.
const CONSOLE_KEY_NOTE: &str = "console";

/// Code of a new link, which is shown only once.
#[derive(Clone)]
pub struct ConsoleCode {
    pub code: String,
    /// Moment from which the code is refused; `None`: the end of the server.
    pub expires_at: Option<Timestamp>,
}

/// Key that a code was exchanged for.
#[derive(Clone, Serialize)]
pub struct ConsoleSession {
    /// The credential, which is shown only once.
    pub credential: String,
    pub workspace: WorkspaceRef,
    pub role: Role,
    /// Moment from which the key is refused.
    pub expires_at: Timestamp,
}

impl Workspaces {
    /// Makes the code of a link into the console for a workspace, valid for `seconds` or, without them, until the server ends.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn create_console_code(
        &self,
        name: &str,
        role: Role,
        seconds: Option<i64>,
    ) -> Result<ConsoleCode, WorkspaceError> {
        let workspace = self.find_by_slug(name).await?;
        let (now, code) = (self.clock.now(), credential::random_secret(&self.random)?);
        let expires_at = seconds.map(|seconds| now.plus_seconds(seconds));
        let digest = Digest::of(code.as_bytes());
        let added: Result<(), Error> = self
            .control
            .write(move |tx| {
                store::delete_ended(tx, now)?;
                store::insert(tx, &digest, (&workspace.id, role), expires_at)
            })
            .await;
        added?;
        Ok(ConsoleCode { code, expires_at })
    }

    /// Exchanges the code of a link for a key of its workspace; `None` if the code is malformed, unknown, used or past its end.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn exchange_console_code(
        &self,
        code: &str,
    ) -> Result<Option<ConsoleSession>, WorkspaceError> {
        if !credential::is_secret(code) {
            return Ok(None);
        }
        let (now, digest) = (self.clock.now(), Digest::of(code.as_bytes()));
        // Guesses cost no transaction that writes.
        if !self
            .control
            .read(move |c| store::exists(c, &digest))
            .await?
        {
            return Ok(None);
        }
        let digest = Digest::of(code.as_bytes());
        let credential = NewCredential::new(&self.random)?;
        let session = self.control.write(move |tx| {
            let Some(link) = store::take(tx, &digest)? else {
                return Ok(None);
            };
            let is_ended = link.expires_at.is_some_and(|end| end <= now);
            let workspace = workspace_by_id(tx, &link.workspace).map_err(Error::from)?;
            let Some(workspace) = workspace.filter(|_| !is_ended) else {
                return Ok(None);
            };
            keys::delete_ended(tx, &workspace.id, CONSOLE_KEY_NOTE, now)?;
            let options = NewKeyOptions {
                role: link.role,
                note: Some(CONSOLE_KEY_NOTE.to_owned()),
                expires_in: Some(CONSOLE_KEY_SECONDS),
            };
            let key = NewKey::new(credential.key_id, options, now);
            let secret = Digest::of(credential.text.as_bytes());
            keys::insert(tx, &workspace.id, &secret, &key)?;
            tx.record_audit(
                AuditAction::KeyCreate,
                Some(&workspace.id),
                &key.key_id,
                now,
            )?;
            Ok::<_, WorkspaceError>(Some(ConsoleSession {
                credential: credential.text,
                workspace: WorkspaceRef {
                    id: workspace.id,
                    slug: workspace.slug,
                },
                role: link.role,
                expires_at: now.plus_seconds(CONSOLE_KEY_SECONDS),
            }))
        });
        session.await
    }

    /// Revokes the key of a caller who came by a link. A key that was made otherwise stays, and so does a token.
    ///
    /// # Errors
    /// The database's.
    pub async fn end_console_session(&self, caller: Caller) -> Result<(), Error> {
        let Caller::Key {
            key_id, workspace, ..
        } = caller
        else {
            return Ok(());
        };
        let now = self.clock.now();
        self.control
            .write(move |tx| {
                if keys::revoke_noted(tx, &key_id, CONSOLE_KEY_NOTE, now)? {
                    tx.record_audit(AuditAction::KeyRevoke, Some(&workspace), &key_id, now)?;
                }
                Ok(())
            })
            .await
    }

    /// Deletes the codes that were valid until an earlier server ended.
    ///
    /// # Errors
    /// The database's.
    pub async fn forget_earlier_console_codes(&self) -> Result<(), Error> {
        if self.control.read(store::has_endless).await? {
            self.control.write(store::delete_endless).await?;
        }
        Ok(())
    }
}
