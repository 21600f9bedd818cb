//! Users and their roles in workspaces. A role is read at each request, so that a change is effective from the next request on.

mod changes;
mod store;

use std::sync::Arc;

use quick_cache::sync::Cache;
use serde::{Deserialize, Serialize};

use super::error::WorkspaceError;
use super::model::{Caller, Role, UserId, WorkspaceMember};
use super::service::Workspaces;
use crate::control::{ErrandWork, Error, Tx};
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;

pub(super) use changes::{insert_first_owner, max_assignable_role, require_role};

/// Maximum number of workspaces that are listed to a caller who must choose one.
const MAX_CHOICES: u64 = 1_000;
/// Capacity of the cache of users.
const USER_CACHE_CAPACITY: usize = 10_000;
/// Least time between two updates of a user's e-mail address, in milliseconds.
const EMAIL_UPDATE_INTERVAL_MS: i64 = 60_000;

/// Person, as described by a token of the operator's issuer.
#[derive(Clone, Copy, Debug)]
pub struct TokenHolder<'a> {
    pub issuer: &'a str,
    /// Identifier of the person at the issuer.
    pub subject: &'a str,
    pub email: Option<&'a str>,
}

/// Errand: a person was authenticated by the operator's issuer. Answers the id of the user, who is created if there is none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UserSeen {
    pub issuer: String,
    /// Identifier of the person at the issuer.
    pub subject: String,
    pub email: Option<String>,
    /// Identifier of the user, if there is none yet.
    pub fresh: UserId,
    pub at: Timestamp,
}

impl ErrandWork for UserSeen {
    const KIND: &'static str = "user_seen";
    type Answer = UserId;

    fn perform(self, tx: &Tx<'_>) -> Result<UserId, Error> {
        let email = self.email.as_deref();
        // A concurrent request of the same person may have created the user.
        let Some((id, _)) = store::find_user_by_subject(tx, &self.issuer, &self.subject)? else {
            let person = (self.issuer.as_str(), self.subject.as_str(), email);
            store::insert_user(tx, &self.fresh, person, self.at)?;
            return Ok(self.fresh);
        };
        store::set_email(tx, &id, email)?;
        Ok(id)
    }
}

/// Cache of users by issuer and subject. It follows no changes: a subject's user never changes, and the address is the token's.
#[derive(Clone, Debug)]
pub(super) struct UserCache(Arc<Cache<String, CachedUser>>);

#[derive(Clone, Debug)]
struct CachedUser {
    id: UserId,
    email: Option<String>,
    /// Time at which the address was last compared with the stored one.
    at: Timestamp,
}

impl Default for UserCache {
    fn default() -> Self {
        Self(Arc::new(Cache::new(USER_CACHE_CAPACITY)))
    }
}

impl Workspaces {
    /// Returns the user of an issuer's subject, and creates the user if there is none.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn find_or_create_user(
        &self,
        person: TokenHolder<'_>,
    ) -> Result<UserId, WorkspaceError> {
        // An issuer is a URL, which contains no space.
        let name = format!("{} {}", person.issuer, person.subject);
        let now = self.clock.now();
        if let Some(known) = self.user_cache.0.get(&name) {
            let same = known.email.as_deref() == person.email;
            if same || now.0 - known.at.0 < EMAIL_UPDATE_INTERVAL_MS {
                return Ok(known.id);
            }
        }
        let id = self.upsert_user(person).await?;
        let known = CachedUser {
            id: id.clone(),
            email: person.email.map(str::to_owned),
            at: now,
        };
        self.user_cache.0.insert(name, known);
        Ok(id)
    }

    async fn upsert_user(&self, person: TokenHolder<'_>) -> Result<UserId, WorkspaceError> {
        let (issuer, subject) = (person.issuer.to_owned(), person.subject.to_owned());
        let email = person.email.map(str::to_owned);
        let (wanted, of) = (issuer.clone(), subject.clone());
        let found = self
            .control
            .read(move |c| store::find_user_by_subject(c, &wanted, &of))
            .await?;
        match found {
            Some((id, known)) if known == email => return Ok(id),
            _ => {}
        }
        let seen = UserSeen {
            issuer,
            subject,
            email,
            fresh: UserId::new(&self.random)?,
            at: self.clock.now(),
        };
        Ok(self.control.run_errand(seen).await?)
    }

    /// Returns the e-mail address of a user, as the issuer last stated it.
    pub async fn email(&self, user: &UserId) -> Result<Option<String>, Error> {
        let user = user.clone();
        let found = self
            .control
            .read(move |c| store::find_email(c, &user))
            .await?;
        Ok(found.flatten())
    }

    /// Returns the current role of a caller in a workspace.
    pub async fn role_of(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
    ) -> Result<Option<Role>, Error> {
        match caller {
            Caller::Key {
                workspace: own,
                role,
                ..
            } => Ok((*own == workspace).then_some(*role)),
            Caller::User(user) => {
                let user = user.clone();
                self.control
                    .read(move |c| store::role_of(c, &workspace, &user))
                    .await
            }
        }
    }

    /// Returns the highest role that a caller has in any workspace; `None` without a membership.
    pub async fn highest_role(&self, caller: &Caller) -> Result<Option<Role>, Error> {
        match caller {
            Caller::Key { role, .. } => Ok(Some(*role)),
            Caller::User(user) => {
                let user = user.clone();
                let roles = self.control.read(move |c| store::roles_of(c, &user));
                Ok(roles.await?.into_iter().max())
            }
        }
    }

    /// Returns the workspace that a caller names by id or slug; without a name, the caller's only workspace.
    ///
    /// # Errors
    /// `Unknown` if no workspace has the name; without a name, `Ambiguous` or `NoWorkspace` if the caller is not in exactly one.
    pub async fn choose_workspace(
        &self,
        caller: &Caller,
        named: Option<&str>,
    ) -> Result<WorkspaceId, WorkspaceError> {
        match (named, caller) {
            (Some(name), _) => Ok(self.find(name).await?.id),
            (None, Caller::Key { workspace, .. }) => Ok(*workspace),
            (None, Caller::User(user)) => {
                let mut found = self.workspaces_of(user, MAX_CHOICES).await?;
                match (found.pop(), found.len()) {
                    (None, _) => Err(WorkspaceError::NoWorkspace),
                    (Some((only, _)), 0) => Ok(only),
                    (Some(last), _) => {
                        let all = found.into_iter().chain([last]);
                        Err(WorkspaceError::Ambiguous(
                            all.map(|(_, slug)| slug).collect(),
                        ))
                    }
                }
            }
        }
    }

    /// Lists all workspaces of a caller, oldest first.
    pub async fn workspace_ids_of(&self, caller: &Caller) -> Result<Vec<WorkspaceId>, Error> {
        match caller {
            Caller::Key { workspace, .. } => Ok(vec![*workspace]),
            Caller::User(user) => {
                let all = self.workspaces_of(user, u64::MAX).await?;
                Ok(all.into_iter().map(|(id, _)| id).collect())
            }
        }
    }

    async fn workspaces_of(
        &self,
        user: &UserId,
        most: u64,
    ) -> Result<Vec<(WorkspaceId, String)>, Error> {
        let user = user.clone();
        self.control
            .read(move |c| store::workspaces_of(c, &user, most))
            .await
    }

    /// Lists the members of a workspace, oldest first.
    pub async fn members(&self, workspace: WorkspaceId) -> Result<Vec<WorkspaceMember>, Error> {
        self.control.read(move |c| store::list(c, &workspace)).await
    }
}
