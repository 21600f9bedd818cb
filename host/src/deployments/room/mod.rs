//! Room for what is published: the disk, and the caps that all share.
//!
//! Each cap is looked at twice: before anything is rendered, and in the transaction that adds the row, where the count is certain.

mod store;

use std::net::IpAddr;

use super::Deployments;
use super::publish::PublishError;
use crate::config::{CapHolder, CapPart, CapReached};
use crate::workspaces::Caller;
use svc_base::disk;
use svc_base::ids::WorkspaceId;

use store::RoomCheck;
pub(super) use store::{Room, ShareCounts, ShareHolder};

/// Publisher of a quick share.
#[derive(Clone, Debug)]
pub struct Publisher {
    network: IpAddr,
    caller: Option<Caller>,
}

impl Publisher {
    /// Makes the publisher of a request that has come from a network, and from a caller if it has a credential.
    pub fn new(network: IpAddr, caller: Option<Caller>) -> Self {
        Self { network, caller }
    }

    fn kind(&self) -> CapHolder {
        match self.caller {
            Some(_) => CapHolder::Owner,
            None => CapHolder::Client,
        }
    }
}

impl Deployments {
    /// Refuses to begin when the disk is nearly full: whatever stores content asks first.
    ///
    /// # Errors
    /// `Capacity`.
    pub fn check_disk(&self) -> Result<(), PublishError> {
        if self.free_disk()? < self.config.limits.free_disk_bytes {
            return Err(PublishError::disk_full());
        }
        Ok(())
    }

    fn free_disk(&self) -> Result<u64, PublishError> {
        let free = disk::free_bytes(&self.config.data)?;
        Ok(match &self.config.content_url {
            Some(_) => free.min(self.content.free_bytes()?),
            None => free,
        })
    }

    /// Returns what counts and compares, as of now.
    pub(super) fn room(&self) -> Room {
        Room {
            limits: self.config.limits.clone(),
            key: self.secrets.holders.clone(),
            now: self.clock.now(),
        }
    }

    /// Refuses to begin when there is no room for one more quick share.
    pub(super) async fn check_share_room(&self, publisher: &Publisher) -> Result<(), PublishError> {
        self.check_disk()?;
        let limits = &self.config.limits;
        let least = limits
            .free_disk_bytes
            .saturating_add(limits.free_disk_owners_bytes);
        if publisher.kind() == CapHolder::Client && self.free_disk()? < least {
            return Err(PublishError::Cap(CapReached {
                key: "free_disk_owners_bytes",
                part: CapPart::Strangers,
            }));
        }
        let (room, publisher) = (self.room(), publisher.clone());
        let checking = self
            .control
            .read(move |c| Ok(room.for_share(c, &publisher, 0).map(drop)));
        checking.await?
    }

    /// Refuses to begin when a workspace has no room by a check: for one more frontend, or for more content of those it has.
    pub(super) async fn check_room(
        &self,
        workspace: WorkspaceId,
        check: RoomCheck,
    ) -> Result<(), PublishError> {
        self.check_disk()?;
        let room = self.room();
        let checking = self.control.read(move |c| Ok(check(&room, c, &workspace)));
        checking.await?
    }
}
