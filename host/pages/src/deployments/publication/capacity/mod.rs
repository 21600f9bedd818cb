//! Capacity for publications: the disk, and the shared caps.
//!
//! Each cap is looked at twice: before anything is rendered, and in the transaction that adds the row, where the count is certain.

mod store;

use std::net::IpAddr;
use std::sync::Arc;

use ring::hmac;

use super::PublishError;
use crate::config::{CapHolderKind, CapReached, DividedCapPart};
use crate::content::ContentStore;
use crate::infra::Infra;
use crate::workspaces::Caller;
use svc_base::disk;
use svc_base::ids::WorkspaceId;

pub(in crate::deployments) use store::{CapUsageChecker, FrontendsToCount, ShareCapHolder};

/// Publisher of a quick share.
#[derive(Clone, Debug)]
pub struct SharePublisher {
    network: IpAddr,
    caller: Option<Caller>,
}

impl SharePublisher {
    /// Makes the publisher of a request that has come from a network, and from a caller if it has a credential.
    pub fn new(network: IpAddr, caller: Option<Caller>) -> Self {
        Self { network, caller }
    }

    fn kind(&self) -> CapHolderKind {
        match self.caller {
            Some(_) => CapHolderKind::Owner,
            None => CapHolderKind::Client,
        }
    }
}

/// Checks whether there is room for more content. Clones share their state.
#[derive(Clone, Debug)]
pub struct CapacityChecker {
    infra: Infra,
    content: ContentStore,
    /// Names holders of shares.
    holder_key: hmac::Key,
}

impl CapacityChecker {
    /// Makes the checks of an installation; `holder_key` names the holders of quick shares, for counting.
    pub fn new(infra: Infra, content: ContentStore, holder_key: hmac::Key) -> Self {
        Self {
            infra,
            content,
            holder_key,
        }
    }

    /// Refuses to begin when the disk is nearly full: all that stores content asks first.
    ///
    /// # Errors
    /// `Capacity`.
    pub fn check_disk(&self) -> Result<(), PublishError> {
        self.checked_free_disk().map(drop)
    }

    /// Returns the free bytes of the disk, if it is not nearly full.
    fn checked_free_disk(&self) -> Result<u64, PublishError> {
        let free = self.free_disk()?;
        match free < self.infra.config.limits.free_disk_bytes {
            true => Err(PublishError::disk_full()),
            false => Ok(free),
        }
    }

    fn free_disk(&self) -> Result<u64, PublishError> {
        let config = &self.infra.config;
        let free = disk::free_bytes(&config.data)?;
        Ok(match &config.content_url {
            Some(_) => free.min(self.content.free_bytes()?),
            None => free,
        })
    }

    /// Returns the check of the caps as of now, for a transaction.
    pub(in crate::deployments) fn cap_check(&self) -> CapUsageChecker {
        CapUsageChecker {
            config: Arc::clone(&self.infra.config),
            key: self.holder_key.clone(),
            now: self.infra.clock.now(),
        }
    }

    /// Refuses what strangers send where so many bytes of it would take what the disk has for owners.
    fn check_strangers_disk(&self, bytes: u64) -> Result<(), PublishError> {
        let free = self.checked_free_disk()?;
        let limits = &self.infra.config.limits;
        let least = limits
            .free_disk_bytes
            .saturating_add(limits.free_disk_owners_bytes);
        if free < least.saturating_add(bytes) {
            return Err(PublishError::Cap(CapReached {
                key: "free_disk_owners_bytes",
                part: DividedCapPart::Strangers,
            }));
        }
        Ok(())
    }

    /// Refuses an upload of a visitor's where the disk has no room for all that are under way, of so many bytes together: each is there twice
    /// for a moment, as it has arrived and as it is kept.
    pub(in crate::deployments) fn check_uploads(&self, bytes: u64) -> Result<(), PublishError> {
        self.check_strangers_disk(bytes.saturating_mul(2))
    }

    /// Refuses to begin when there is no room for one more quick share.
    pub(in crate::deployments) async fn check_share(
        &self,
        publisher: &SharePublisher,
    ) -> Result<(), PublishError> {
        match publisher.kind() {
            CapHolderKind::Client => self.check_strangers_disk(0)?,
            _ => self.check_disk()?,
        }
        let publisher = publisher.clone();
        self.cap_check()
            .run(&self.infra.control, move |caps, c| {
                caps.check_share(c, &publisher, 0).map(drop)
            })
            .await
    }

    /// Refuses to begin when there is no room for one more frontend of a workspace.
    pub(in crate::deployments) async fn check_frontend(
        &self,
        workspace: WorkspaceId,
    ) -> Result<(), PublishError> {
        self.check_disk()?;
        self.cap_check()
            .run(&self.infra.control, move |caps, c| {
                caps.check_frontend(c, &workspace)
            })
            .await
    }

    /// Refuses to begin when there is no room for new frontends of a workspace, once others have ended.
    pub(in crate::deployments) async fn check_frontends(
        &self,
        workspace: WorkspaceId,
        count: FrontendsToCount,
    ) -> Result<(), PublishError> {
        self.check_disk()?;
        self.cap_check()
            .run(&self.infra.control, move |caps, c| {
                caps.check_frontends(c, &workspace, count)
            })
            .await
    }

    /// Refuses to begin when there is no room for more content of a workspace's frontends.
    pub(in crate::deployments) async fn check_content(
        &self,
        workspace: WorkspaceId,
    ) -> Result<(), PublishError> {
        self.check_disk()?;
        self.cap_check()
            .run(&self.infra.control, move |caps, c| {
                caps.check_content(c, &workspace)
            })
            .await
    }
}
