//! Counts the usage of the caps and compares it with their limits, inside a transaction or a read.

use std::sync::Arc;

use ring::hmac;
use rusqlite::{Connection, params};

use super::SharePublisher;
use crate::config::{CapHolderKind, CapReached, CapUsage, Config, DividedCapPart};
use crate::control::{self, ControlDatabase};
use crate::deployments::publication::PublishError;
use crate::workspaces::Principal;
use svc_base::clock::Timestamp;
use svc_base::ids::{ProjectId, WorkspaceId};

/// Bytes of a holder's keyed hash.
const HASH_BYTES: usize = 16;

/// Holder of a quick share, as its row names it: counted by, and never shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::deployments) struct ShareCapHolder {
    /// Keyed hash of a client's network or of an owner.
    pub(in crate::deployments) hash: [u8; HASH_BYTES],
    /// Whether the publication is an owner's.
    pub(in crate::deployments) is_owners: bool,
}

impl ShareCapHolder {
    fn from_name(key: &hmac::Key, name: &str, is_owners: bool) -> Self {
        let mut hash = [0; HASH_BYTES];
        let signed = hmac::sign(key, name.as_bytes());
        for (to, from) in hash.iter_mut().zip(signed.as_ref()) {
            *to = *from;
        }
        Self { hash, is_owners }
    }
}

/// Numbers and bytes of quick shares.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::deployments) struct ShareUsage {
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

/// Numbers of frontends that a change adds and ends.
#[derive(Clone, Copy, Debug)]
pub(in crate::deployments) struct FrontendsToCount {
    pub(in crate::deployments) new: u64,
    pub(in crate::deployments) ending: u64,
}

/// Counts the usage of the caps, and compares it with the limits.
#[derive(Clone, Debug)]
pub(in crate::deployments) struct CapUsageChecker {
    pub(super) config: Arc<Config>,
    /// Key of the hashes that name holders.
    pub(super) key: hmac::Key,
    pub(super) now: Timestamp,
}

impl CapUsageChecker {
    /// Runs a check on a reader, before a transaction runs it for certain.
    pub(super) async fn run(
        self,
        control: &ControlDatabase,
        check: impl FnOnce(&Self, &Connection) -> Result<(), PublishError> + Send + 'static,
    ) -> Result<(), PublishError> {
        control.read(move |c| Ok(check(&self, c))).await?
    }

    /// Refuses a quick share of so many bytes for which there is no room; returns its holder.
    pub(in crate::deployments) fn check_share(
        &self,
        c: &Connection,
        publisher: &SharePublisher,
        bytes: u64,
    ) -> Result<ShareCapHolder, PublishError> {
        let principal = match &publisher.caller {
            Some(caller) => Some(Principal::of_caller(c, caller).map_err(control::Error::from)?),
            None => None,
        };
        let holder = match &principal {
            Some(principal) => ShareCapHolder::from_name(&self.key, &principal.name, true),
            None => {
                let name = format!("client:{}", publisher.network);
                ShareCapHolder::from_name(&self.key, &name, false)
            }
        };
        let shares = self.share_usage(c, &holder)?;
        let workspaces = principal.map_or_else(Vec::new, |principal| principal.workspaces);
        let frontends = self.count_frontends(c, &workspaces)?;
        let kind = publisher.kind();
        let number = CapUsage {
            all: self.count_all(c)?,
            strangers: shares.strangers,
            own: shares.own + frontends,
        };
        let limits = &self.config.limits;
        limits.deployments_cap().check(kind, number, 1)?;
        let held = CapUsage {
            all: shares.bytes,
            strangers: shares.strangers_bytes,
            own: shares.own_bytes,
        };
        limits.share_bytes_cap().check(kind, held, bytes)?;
        Ok(holder)
    }

    /// Refuses a frontend for which there is no room.
    pub(in crate::deployments) fn check_frontend(
        &self,
        c: &Connection,
        workspace: &WorkspaceId,
    ) -> Result<(), PublishError> {
        self.check_frontends(c, workspace, FrontendsToCount { new: 1, ending: 0 })
    }

    /// Refuses frontends for which there is no room, once others have ended.
    pub(in crate::deployments) fn check_frontends(
        &self,
        c: &Connection,
        workspace: &WorkspaceId,
        count: FrontendsToCount,
    ) -> Result<(), PublishError> {
        // Counted up to the cap and no further, so what ends is added to it.
        let most = self.config.limits.active_deployments;
        let all = count_active(c, self.now, most.saturating_add(count.ending));
        let all = all.map_err(control::Error::from)?;
        self.check_owner(c, workspace, all, count)
    }

    /// Refuses to make a share an owner's frontend if the owner has no room for it; the server has counted it already.
    pub(in crate::deployments) fn check_claim(
        &self,
        c: &Connection,
        workspace: &WorkspaceId,
    ) -> Result<(), PublishError> {
        self.check_owner(c, workspace, 0, FrontendsToCount { new: 1, ending: 0 })
    }

    fn check_owner(
        &self,
        c: &Connection,
        workspace: &WorkspaceId,
        all: u64,
        count: FrontendsToCount,
    ) -> Result<(), PublishError> {
        let principal = Principal::of_workspace(c, workspace).map_err(control::Error::from)?;
        let holder = ShareCapHolder::from_name(&self.key, &principal.name, true);
        let shares = self.share_usage(c, &holder)?;
        let own = shares.own + self.count_frontends(c, &principal.workspaces)?;
        let held = CapUsage {
            all: all.saturating_sub(count.ending),
            strangers: shares.strangers,
            own: own.saturating_sub(count.ending),
        };
        let cap = self.config.limits.deployments_cap();
        cap.check(CapHolderKind::Owner, held, count.new)?;
        self.check_owner_bytes(c, &principal.workspaces)
    }

    /// Refuses new content for an owner whose content takes as much as it may.
    pub(in crate::deployments) fn check_content(
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
        let held = owner_bytes(c, workspaces).map_err(control::Error::from)?;
        if held >= self.config.limits.owner_bytes {
            return Err(PublishError::Cap(CapReached {
                key: "owner_bytes",
                part: DividedCapPart::Owner,
            }));
        }
        Ok(())
    }

    fn count_all(&self, c: &Connection) -> Result<u64, PublishError> {
        let most = self.config.limits.active_deployments;
        Ok(count_active(c, self.now, most).map_err(control::Error::from)?)
    }

    fn share_usage(
        &self,
        c: &Connection,
        holder: &ShareCapHolder,
    ) -> Result<ShareUsage, PublishError> {
        Ok(count_shares(c, self.now, holder).map_err(control::Error::from)?)
    }

    fn count_frontends(
        &self,
        c: &Connection,
        workspaces: &[WorkspaceId],
    ) -> Result<u64, PublishError> {
        if workspaces.is_empty() {
            return Ok(0);
        }
        Ok(count_frontends(c, workspaces, self.now).map_err(control::Error::from)?)
    }
}

/// Counts the deployments that live, up to `most`.
fn count_active(c: &Connection, now: Timestamp, most: u64) -> rusqlite::Result<u64> {
    c.prepare_cached(
        "SELECT count(*) FROM (
            SELECT 1 FROM deployments WHERE expires_at > ?1 OR expires_at IS NULL LIMIT ?2)",
    )?
    .query_row(
        params![now, i64::try_from(most).unwrap_or(i64::MAX)],
        |row| row.get::<_, i64>(0).map(i64::unsigned_abs),
    )
}

/// Counts quick shares that live: all, those of strangers, and those of one holder.
fn count_shares(
    c: &Connection,
    now: Timestamp,
    holder: &ShareCapHolder,
) -> rusqlite::Result<ShareUsage> {
    c.prepare_cached(&format!(
        "SELECT count(*) FILTER (WHERE is_owners = 0), count(*) FILTER (WHERE holder = ?2), sum(bytes),
            sum(bytes) FILTER (WHERE is_owners = 0), sum(bytes) FILTER (WHERE holder = ?2)
         FROM deployments WHERE project_id = '{}' AND expires_at > ?1",
        ProjectId::QUICK_SHARES
    ))?
    .query_row(params![now, holder.hash], |row| {
        let number = |column| row.get::<_, Option<i64>>(column).map(|n| n.unwrap_or(0).unsigned_abs());
        Ok(ShareUsage {
            strangers: number(0)?,
            own: number(1)?,
            bytes: number(2)?,
            strangers_bytes: number(3)?,
            own_bytes: number(4)?,
        })
    })
}

/// Composes the condition for frontends of workspaces, and the JSON array of their ids that it takes. It leaves the free project out, so that
/// the index of frontends serves.
fn workspace_condition(workspaces: &[WorkspaceId]) -> rusqlite::Result<(String, String)> {
    let list = serde_json::to_string(workspaces)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let condition = format!(
        "d.project_id <> '{}' AND d.project_id IN
            (SELECT p.id FROM json_each(?1) w JOIN projects p ON p.workspace_id = w.value)",
        ProjectId::QUICK_SHARES
    );
    Ok((condition, list))
}

/// Counts the frontends of workspaces, whatever their state.
fn count_frontends(
    c: &Connection,
    workspaces: &[WorkspaceId],
    now: Timestamp,
) -> rusqlite::Result<u64> {
    let (condition, list) = workspace_condition(workspaces)?;
    c.prepare_cached(&format!(
        "SELECT count(*) FROM deployments d
         WHERE {condition} AND (d.expires_at > ?2 OR d.expires_at IS NULL)"
    ))?
    .query_row(params![list, now], |row| {
        row.get::<_, i64>(0).map(i64::unsigned_abs)
    })
}

/// Adds up the bytes of the frontends of workspaces, and of their revisions.
fn owner_bytes(c: &Connection, workspaces: &[WorkspaceId]) -> rusqlite::Result<u64> {
    let (condition, list) = workspace_condition(workspaces)?;
    c.prepare_cached(&format!(
        "SELECT coalesce(sum(d.bytes + coalesce(
            (SELECT sum(r.bytes) FROM revisions r WHERE r.deployment_id = d.id), 0)), 0)
         FROM deployments d WHERE {condition}"
    ))?
    .query_row([list], |row| row.get::<_, i64>(0).map(i64::unsigned_abs))
}
