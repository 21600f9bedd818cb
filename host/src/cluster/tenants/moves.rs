//! Places of tenants' databases on the move: claimed here, asked for elsewhere, given back when idle, and given up for another node.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures_util::{StreamExt as _, stream};

use super::super::bases::{BaseError, LiveDatabases};
use super::{
    ClaimWish, DatabaseUsers, LoadFailure, RELEASES_AT_ONCE, Tenant, TenantPlace, TenantState,
    Tenants, handovers,
};
use svc_base::ids::BackendId;
use svc_base::sync::lock;
use svc_database::DatabasePlace;
use svc_ledger::{ClaimOutcome, DatabaseName, Ledger, Place};

/// Pause between two looks for databases that nobody uses.
const RELEASE_EVERY: Duration = Duration::from_secs(2);
/// Longest time that a database which is asked for stays in use until its history is here, or its base is made.
const TURN_WAIT: Duration = Duration::from_secs(2);
/// Longest time that a database which is given up waits for its calls to end.
const CLOSE_WAIT: Duration = Duration::from_secs(5);
/// Pause between two looks whether it is closed.
const CLOSED_EVERY: Duration = Duration::from_millis(10);
/// Times that the file of a deleted database is looked at, and pause in between.
const DROPS: u32 = 60;
const DROP_EVERY: Duration = Duration::from_millis(500);
/// Times that a place is asked for: a third node may claim it in between.
const TRIES: u32 = 3;

impl<L: Ledger> Tenants<L> {
    /// Sets who uses databases besides their calls.
    pub(in crate::cluster) fn set_users(&self, users: Arc<dyn DatabaseUsers>) {
        // It is called once.
        let _ = self.users.set(users);
    }

    pub(super) fn is_used(&self, id: &BackendId) -> bool {
        self.users.get().is_some_and(|users| users.is_used(id))
    }

    /// Has the users of a database go to another node, and closes it.
    pub(super) fn send_away(&self, id: BackendId) {
        if let Some(users) = self.users.get() {
            users.send_away(&id);
        }
    }

    /// Returns the machine that is believed to have a database.
    pub(super) fn place(&self, id: BackendId) -> DatabasePlace {
        let tenant = lock(&self.known).get(&id).cloned();
        if tenant.is_some_and(|tenant| lock(&tenant.state).is_usable()) {
            return DatabasePlace::Here;
        }
        match self.places.holder(DatabaseName::Backend(id)) {
            // It may not have loaded, and no other node can have it.
            Some(run) if run == self.run.id() => DatabasePlace::Here,
            Some(_) => DatabasePlace::Elsewhere,
            None => DatabasePlace::Nobody,
        }
    }

    /// Claims the place of a database. Another run that has it is asked for it, if it is wished for from anybody.
    pub(super) async fn claim(&self, id: BackendId, wish: ClaimWish) -> Result<Place, LoadFailure> {
        let name = DatabaseName::Backend(id);
        let before = self.places.last_holder(name);
        for _ in 0..TRIES {
            let claimed = self.run.ledger().claim(self.run.id(), name).await;
            self.places.forget(name);
            match claimed.map_err(anyhow::Error::from)? {
                ClaimOutcome::Claimed(place) => {
                    // Nobody writes here what it does not show. A run that was buried at an operator's word answers for a while.
                    if let Some(before) = before.filter(|run| *run != self.run.id()) {
                        let silent = self.run.wait_until_silent(before).await;
                        silent.map_err(anyhow::Error::from)?;
                    }
                    return Ok(place);
                }
                ClaimOutcome::Held(_) if wish == ClaimWish::Free => break,
                ClaimOutcome::Held(place) => handovers::ask_for(&self.run, place.run, id).await?,
            }
        }
        Err(LoadFailure::Elsewhere)
    }

    /// Gives back the places of databases that nobody uses, for as long as it is polled.
    pub(in crate::cluster) async fn release_idle(&self, live: &impl LiveDatabases) {
        loop {
            tokio::time::sleep(RELEASE_EVERY).await;
            self.release_unused(live).await;
        }
    }

    /// Gives back the places of databases that nobody uses now.
    pub(in crate::cluster) async fn release_unused(&self, live: &impl LiveDatabases) {
        let now = self.now();
        let idle: Vec<_> = {
            let known = lock(&self.known);
            let idle = known.iter().filter(|(_, tenant)| tenant.is_idle(now));
            let idle = idle.filter(|(id, _)| !self.is_used(id));
            idle.map(|(id, tenant)| (*id, Arc::clone(tenant))).collect()
        };
        let releases = stream::iter(idle).map(|(id, tenant)| async move {
            if let Err(error) = self.release(id, &tenant, live).await {
                tenant.note_use(self.now());
                tracing::warn!(%error, backend = %id, "the place of an idle database is not given back: that is tried again");
            }
        });
        releases
            .buffer_unordered(RELEASES_AT_ONCE)
            .collect::<Vec<()>>()
            .await;
    }

    /// Gives back the place of a database, after a base of a long tail. Its file stays, with its state known: it is used again if no
    /// other run has written meanwhile.
    async fn release(
        &self,
        id: BackendId,
        tenant: &Tenant,
        live: &impl LiveDatabases,
    ) -> Result<(), BaseError> {
        let name = DatabaseName::Backend(id);
        let _turn = tenant.moving.lock().await;
        if !self.bases.store_on_release(name, live).await? {
            return Ok(());
        }
        // It is closed, so its history has all of it.
        if let Some(last) = self.find(id).and_then(|it| it.acknowledged_position()) {
            self.keep_history(id, last).await;
        }
        match tenant.leave(self.now()) {
            true => self.give_place_back(id, tenant).await,
            false => Ok(()),
        }
    }

    /// Gives the place of a database up, since another node needs it: nobody begins to use it from now on, and its calls and sockets end
    /// before. If they do not in time, it stays.
    pub(in crate::cluster) async fn give_up(
        &self,
        id: BackendId,
        live: &impl LiveDatabases,
    ) -> anyhow::Result<()> {
        let tenant = self.tenant(id);
        let _turn = tenant.moving.lock().await;
        if lock(&tenant.state).place == TenantPlace::None {
            // The ledger has it as this run's, as where a release was lost.
            return Ok(self.give_place_back(id, &tenant).await?);
        }
        // Its calls would wait for these without end, once nobody may begin to use it.
        let turn = tokio::time::timeout(TURN_WAIT, self.bases.turn(DatabaseName::Backend(id)));
        let turn = turn.await;
        drop(turn.context("its base is being made, or its history fetched")?);
        lock(&tenant.state).place = TenantPlace::Leaving;
        if !self.wait_until_closed(id, &tenant).await {
            tenant.set_place(TenantPlace::Held);
            bail!("its calls do not end");
        }
        // Nobody makes a base of it from now on, as this run may not name one soon.
        drop(self.bases.turn(DatabaseName::Backend(id)).await);
        if let Err(error) = self
            .bases
            .store_on_release(DatabaseName::Backend(id), live)
            .await
        {
            tracing::warn!(%error, backend = %id, "a database that is given up has no newer base: who gets it reads more commits");
        }
        if let Some(last) = self.find(id).and_then(|it| it.acknowledged_position()) {
            self.keep_history(id, last).await;
        }
        self.give_place_back(id, &tenant).await?;
        lock(&tenant.state).handed_over = Some(self.now());
        Ok(())
    }

    /// Removes the file of a database that was deleted, once this node does not have its place any more: whoever deletes it asks for that.
    /// Does not block.
    pub(in crate::cluster) fn drop_file(self: &Arc<Self>, id: BackendId) {
        let me = Arc::clone(self);
        self.runtime.spawn(async move {
            for _ in 0..DROPS {
                // Where it is deleted, or never was, there is nothing.
                let Some(tenant) = lock(&me.known).get(&id).cloned() else {
                    return;
                };
                let turn = tenant.moving.lock().await;
                if lock(&tenant.state).place == TenantPlace::None {
                    *lock(&tenant.state) = TenantState::default();
                    lock(&me.known).remove(&id);
                    let files = me.files.clone();
                    // What is left goes with the next start.
                    let _ = tokio::task::spawn_blocking(move || files.remove(&id)).await;
                    return;
                }
                drop(turn);
                tokio::time::sleep(DROP_EVERY).await;
            }
        });
    }

    /// Closes a database that nobody may begin to use, and waits until it is closed and everything in it acknowledged. Returns whether it
    /// is.
    async fn wait_until_closed(&self, id: BackendId, tenant: &Tenant) -> bool {
        let begun = self.now();
        loop {
            // Who was about to open it may have done so only now.
            self.send_away(id);
            if lock(&tenant.state).take_place_away() {
                return true;
            }
            if self.now().saturating_sub(begun) >= CLOSE_WAIT {
                return false;
            }
            tokio::time::sleep(CLOSED_EVERY).await;
        }
    }

    /// Gives back the place of a database that is closed.
    pub(super) async fn give_place_back(
        &self,
        id: BackendId,
        tenant: &Tenant,
    ) -> Result<(), BaseError> {
        let name = DatabaseName::Backend(id);
        self.bases.note_released(name, true);
        let ledger = self.run.ledger();
        // Only the claim tells the number of the place. Another run's is not ours to release.
        if let ClaimOutcome::Claimed(place) = ledger.claim(self.run.id(), name).await? {
            ledger.release(place).await?;
        }
        tenant.set_place(TenantPlace::None);
        self.places.forget(name);
        Ok(())
    }
}
