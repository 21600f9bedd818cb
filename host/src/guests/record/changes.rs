//! Changes of a record: those of operators, and the rollback of a guest that failed.

use super::{
    GuestChangeCause, GuestRecord, GuestRecordError, InstalledGuest, MAX_CHANGES, ROLLBACK_DEPTH,
    ServingGuestChange,
};
use svc_base::clock::Timestamp;
use svc_sandbox::{GuestDigest, World};

impl GuestRecord {
    /// Makes a component serve that is stored.
    ///
    /// # Errors
    /// [`GuestRecordError::AlreadyServing`]; then nothing is changed.
    pub fn choose(&mut self, installed: InstalledGuest) -> Result<(), GuestRecordError> {
        let current = self.current_guest();
        if current.is_some_and(|top| top.digest == installed.digest) {
            return Err(GuestRecordError::AlreadyServing);
        }
        let now = installed.installed_at;
        self.serving.push(installed);
        let old = self.serving.len().saturating_sub(ROLLBACK_DEPTH);
        self.serving.drain(..old);
        self.add_change(GuestChangeCause::Install, now, None);
        Ok(())
    }

    /// Makes the previous guest serve again, or the built-in one. With `only`, it fails unless that guest serves.
    ///
    /// # Errors
    /// [`GuestRecordError::NoPreviousGuest`] or [`GuestRecordError::OtherGuestServes`]; then nothing is changed.
    pub fn roll_back(
        &mut self,
        world: World,
        only: Option<GuestDigest>,
        now: Timestamp,
    ) -> Result<(), GuestRecordError> {
        let top = self.current_guest().map(|top| top.digest);
        let top = top.ok_or(GuestRecordError::NoPreviousGuest(world))?;
        if only.is_some_and(|digest| digest != top) {
            return Err(GuestRecordError::OtherGuestServes);
        }
        self.serving.pop();
        self.add_change(GuestChangeCause::Rollback, now, None);
        Ok(())
    }

    /// Removes guests that were rolled back automatically, at any depth; returns whether there was one.
    pub fn remove_fallen(
        &mut self,
        fell: impl Fn(&InstalledGuest) -> bool,
        why: &str,
        now: Timestamp,
    ) -> bool {
        let before = self.serving.len();
        self.serving.retain(|one| !fell(one));
        if self.serving.len() == before {
            return false;
        }
        self.add_change(GuestChangeCause::Automatic, now, Some(why.to_owned()));
        true
    }

    fn add_change(&mut self, kind: GuestChangeCause, at: Timestamp, why: Option<String>) {
        self.sequence += 1;
        let digest = self.current_guest().map(|top| top.digest);
        self.history.push(ServingGuestChange {
            at,
            kind,
            digest,
            why,
        });
        let old = self.history.len().saturating_sub(MAX_CHANGES);
        self.history.drain(..old);
    }
}
