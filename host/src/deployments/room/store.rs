//! Shares of the caps that are taken, counted in the control database.

use ring::hmac;
use rusqlite::Connection;

use super::Publisher;
use crate::config::{CapHolder, CapPart, CapReached, CapUsage, Limits};
use crate::control;
use crate::deployments::publish::PublishError;
use crate::deployments::store;
use crate::workspaces::Principal;
use svc_base::clock::Timestamp;
use svc_base::ids::WorkspaceId;

/// Bytes of a holder's keyed hash.
const HASH: usize = 16;

/// Holder of a quick share, as its row names it: counted by, and never shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::deployments) struct ShareHolder {
    /// Keyed hash of a client's network or of an owner.
    pub(in crate::deployments) hash: [u8; HASH],
    /// Whether it is an owner's.
    pub(in crate::deployments) is_owners: bool,
}

impl ShareHolder {
    fn named(key: &hmac::Key, name: &str, is_owners: bool) -> Self {
        let mut hash = [0; HASH];
        let signed = hmac::sign(key, name.as_bytes());
        for (to, from) in hash.iter_mut().zip(signed.as_ref()) {
            *to = *from;
        }
        Self { hash, is_owners }
    }
}

/// Numbers and bytes of quick shares.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::deployments) struct ShareCounts {
    /// Number of shares without an owner.
    pub(in crate::deployments) strangers: u64,
    /// Number of shares of one holder.
    pub(in crate::deployments) own: u64,
    /// Bytes of all.
    pub(in crate::deployments) bytes: u64,
    /// Bytes of those without an owner.
    pub(in crate::deployments) strangers_bytes: u64,
    /// Bytes of those of one holder.
    pub(in crate::deployments) own_bytes: u64,
}

/// Counts what is held of the caps, and compares.
#[derive(Clone, Debug)]
pub(in crate::deployments) struct Room {
    pub(super) limits: Limits,
    /// Names holders.
    pub(super) key: hmac::Key,
    pub(super) now: Timestamp,
}

/// A check of whether a workspace has room, such as [`Room::for_frontend`].
pub(in crate::deployments) type RoomCheck =
    fn(&Room, &Connection, &WorkspaceId) -> Result<(), PublishError>;

impl Room {
    /// Refuses a quick share of so many bytes for which there is no room; returns its holder.
    pub(in crate::deployments) fn for_share(
        &self,
        c: &Connection,
        publisher: &Publisher,
        bytes: u64,
    ) -> Result<ShareHolder, PublishError> {
        let principal = match &publisher.caller {
            Some(caller) => Some(Principal::of_caller(c, caller).map_err(control::Error::from)?),
            None => None,
        };
        let holder = match &principal {
            Some(principal) => ShareHolder::named(&self.key, &principal.name, true),
            None => {
                let name = format!("client:{}", publisher.network);
                ShareHolder::named(&self.key, &name, false)
            }
        };
        let shares = self.shares(c, &holder)?;
        let workspaces = principal.map_or_else(Vec::new, |principal| principal.workspaces);
        let frontends = self.frontends(c, &workspaces)?;
        let kind = publisher.kind();
        let number = CapUsage {
            all: self.all(c)?,
            strangers: shares.strangers,
            own: shares.own + frontends,
        };
        self.limits.deployments_cap().check(kind, number, 1)?;
        let held = CapUsage {
            all: shares.bytes,
            strangers: shares.strangers_bytes,
            own: shares.own_bytes,
        };
        self.limits.share_bytes_cap().check(kind, held, bytes)?;
        Ok(holder)
    }

    /// Refuses a frontend for which there is no room.
    pub(in crate::deployments) fn for_frontend(
        &self,
        c: &Connection,
        workspace: &WorkspaceId,
    ) -> Result<(), PublishError> {
        self.for_owner(c, workspace, self.all(c)?)
    }

    /// Refuses to make a share an owner's frontend where the owner has no room; the server has one for it already.
    pub(in crate::deployments) fn for_claim(
        &self,
        c: &Connection,
        workspace: &WorkspaceId,
    ) -> Result<(), PublishError> {
        self.for_owner(c, workspace, 0)
    }

    fn for_owner(
        &self,
        c: &Connection,
        workspace: &WorkspaceId,
        all: u64,
    ) -> Result<(), PublishError> {
        let principal = Principal::of_workspace(c, workspace).map_err(control::Error::from)?;
        let holder = ShareHolder::named(&self.key, &principal.name, true);
        let shares = self.shares(c, &holder)?;
        let own = shares.own + self.frontends(c, &principal.workspaces)?;
        let held = CapUsage {
            all,
            strangers: shares.strangers,
            own,
        };
        let cap = self.limits.deployments_cap();
        cap.check(CapHolder::Owner, held, 1)?;
        self.check_owner_bytes(c, &principal.workspaces)
    }

    /// Refuses new content for an owner whose content takes as much as it may.
    pub(in crate::deployments) fn for_content(
        &self,
        c: &Connection,
        workspace: &WorkspaceId,
    ) -> Result<(), PublishError> {
        let principal = Principal::of_workspace(c, workspace).map_err(control::Error::from)?;
        self.check_owner_bytes(c, &principal.workspaces)
    }

    fn check_owner_bytes(
        &self,
        c: &Connection,
        workspaces: &[WorkspaceId],
    ) -> Result<(), PublishError> {
        let held = store::owner_bytes(c, workspaces).map_err(control::Error::from)?;
        if held >= self.limits.owner_bytes {
            return Err(PublishError::Cap(CapReached {
                key: "owner_bytes",
                part: CapPart::Owner,
            }));
        }
        Ok(())
    }

    fn all(&self, c: &Connection) -> Result<u64, PublishError> {
        let most = self.limits.active_deployments;
        Ok(store::count_active(c, self.now, most).map_err(control::Error::from)?)
    }

    fn shares(&self, c: &Connection, holder: &ShareHolder) -> Result<ShareCounts, PublishError> {
        Ok(store::count_shares(c, self.now, holder).map_err(control::Error::from)?)
    }

    fn frontends(&self, c: &Connection, workspaces: &[WorkspaceId]) -> Result<u64, PublishError> {
        if workspaces.is_empty() {
            return Ok(0);
        }
        Ok(store::count_frontends(c, workspaces, self.now).map_err(control::Error::from)?)
    }
}
