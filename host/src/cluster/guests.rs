//! Guests of a cluster. Rows of control say which are installed, the bucket has their components, and the folder of each node follows
//! both.
//!
//! A component is in the bucket before a row names it. Control's owner alone changes the rows, and removes components that no row names.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::bucket::{Bucket, BucketError};
use crate::control::audit::AuditAction;
use crate::control::{self, ControlDatabase};
use crate::guests::record::{ComponentLock, InstalledGuest};
use crate::guests::shared::{self, GuestFell};
use crate::guests::watch::FollowedRecords;
use crate::guests::{GuestRecord, GuestRecordError, WorldFolder};
use svc_base::clock::{Clock, Timestamp};
use svc_sandbox::{GuestDigest, RolledBackGuest, World};

/// Prefix of components.
const PREFIX: &str = "guests";

/// Guests that all nodes have.
#[derive(Debug)]
pub struct ClusterGuests {
    bucket: Bucket,
    /// Turn of an installation, or of a removal of components.
    turn: Mutex<()>,
}

impl ClusterGuests {
    pub(super) fn new(bucket: Bucket) -> Self {
        Self {
            bucket,
            turn: Mutex::default(),
        }
    }

    /// Stores a component of a folder of this node in the bucket.
    ///
    /// # Errors
    /// Those of the disk and of the bucket.
    pub async fn upload(&self, folder: &WorldFolder, digest: GuestDigest) -> anyhow::Result<()> {
        let component = read_stored(folder, digest).await?;
        let name = object_name(&digest);
        Ok(self.bucket.put(&name, component.into()).await?)
    }

    /// Makes a component serve at all nodes, at the node that has control. The component is in a folder of this node, or another one has
    /// stored it in the bucket.
    ///
    /// # Errors
    /// Refusals, and those of the bucket, the disk and control; then nothing is changed.
    pub async fn install(
        &self,
        control: &ControlDatabase,
        folder: &WorldFolder,
        (digest, from): (GuestDigest, String),
        now: Timestamp,
    ) -> Result<GuestRecord, GuestRecordError> {
        let _turn = self.turn.lock().await;
        if let Ok(component) = read_stored(folder, digest).await {
            let name = object_name(&digest);
            let put = self.bucket.put(&name, component.into()).await;
            put.map_err(anyhow::Error::from)?;
        }
        let fetched = fetch(&self.bucket, folder, digest).await?;
        let (bytes, _held) = fetched.ok_or(GuestRecordError::ComponentMissing(digest))?;
        let installed = InstalledGuest::of_stored(digest, bytes, from, now);
        let world = folder.world();
        let changed = control.write(move |tx| {
            let record = shared::change(tx, world, |record| record.choose(installed))?;
            tx.record_audit(AuditAction::GuestSwitch, None, &world, now)?;
            Ok(record)
        });
        changed.await
    }

    /// Makes the guest before `from` serve again at all nodes, at the node that has control.
    ///
    /// # Errors
    /// Refusals, and those of control; then nothing is changed.
    pub async fn roll_back(
        &self,
        control: &ControlDatabase,
        world: World,
        from: GuestDigest,
        now: Timestamp,
    ) -> Result<GuestRecord, GuestRecordError> {
        let changed = control.write(move |tx| {
            let roll_back = |record: &mut GuestRecord| record.roll_back(world, Some(from), now);
            let record = shared::change(tx, world, roll_back)?;
            tx.record_audit(AuditAction::GuestSwitch, None, &world, now)?;
            Ok(record)
        });
        changed.await
    }

    /// Removes components as old as `before` that no row names, at the node that has control.
    ///
    /// # Errors
    /// Those of the bucket and of control; the next call goes on.
    pub async fn remove_unnamed(
        &self,
        control: &ControlDatabase,
        before: Timestamp,
    ) -> anyhow::Result<()> {
        // The turn keeps installations from naming a component meanwhile. A component that is stored again is new again.
        let _turn = self.turn.lock().await;
        let stored = self.bucket.list(PREFIX).await?;
        let mut named = HashSet::new();
        for world in World::ALL {
            let record = shared::read(control, world).await?;
            named.extend(record.serving.iter().map(|one| object_name(&one.digest)));
        }
        for object in stored {
            if object.at <= before && !named.contains(&object.name) {
                self.bucket.delete(&object.name).await?;
            }
        }
        Ok(())
    }
}

/// Follower of the rows: the folders of this node become as they say.
pub struct GuestFollower {
    bucket: Bucket,
    control: ControlDatabase,
    clock: Clock,
    worlds: [FollowingFolder; 2],
    fallen: Vec<FallenGuest>,
}

/// Folder of a world, and its state.
struct FollowingFolder {
    folder: WorldFolder,
    /// Record that the folder has taken from control.
    record: Option<GuestRecord>,
    /// Reason why it does not follow.
    failure: Option<String>,
}

/// Guest that was rolled back at this node, and that the row still lists.
struct FallenGuest {
    guest: RolledBackGuest,
    installed_at: Timestamp,
    /// Whether the node that has control has removed it.
    is_removed: bool,
}

impl fmt::Debug for GuestFollower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuestFollower").finish_non_exhaustive()
    }
}

impl GuestFollower {
    /// Makes the follower of a node whose guests are in a directory.
    pub(super) fn new(
        bucket: Bucket,
        control: &ControlDatabase,
        guests: &Path,
        clock: &Clock,
    ) -> Self {
        Self {
            bucket,
            control: control.clone(),
            clock: clock.clone(),
            worlds: World::ALL.map(|world| FollowingFolder {
                folder: WorldFolder::new(guests, world),
                record: None,
                failure: None,
            }),
            fallen: Vec::new(),
        }
    }

    /// Follows once. `fallen` are the guests that were rolled back here since the last call: no node has them serve any more, then. Every
    /// failure is tried again with the next call.
    pub async fn follow(&mut self, fallen: Vec<RolledBackGuest>) {
        for world in &mut self.worlds {
            world.follow(&self.bucket, &self.control).await;
        }
        for guest in fallen {
            // A record that does not list it was changed meanwhile.
            if let Some(installed_at) = self.installation_of(&guest) {
                self.fallen.push(FallenGuest {
                    guest,
                    installed_at,
                    is_removed: false,
                });
            }
        }
        let mut fallen = std::mem::take(&mut self.fallen);
        fallen.retain(|one| self.is_listed(one));
        for one in fallen.iter_mut().filter(|one| !one.is_removed) {
            let RolledBackGuest {
                world, guest, why, ..
            } = one.guest.clone();
            let fell = GuestFell {
                world,
                guest,
                installed_at: one.installed_at,
                why,
                at: self.clock.now(),
            };
            match self.control.run_errand(fell).await {
                Ok(()) => one.is_removed = true,
                Err(error) => {
                    tracing::warn!(%guest, %error, "a guest that was rolled back is still installed at the other nodes: that is tried again");
                }
            }
        }
        self.fallen = fallen;
    }

    /// Returns the state of the folders.
    pub fn followed(&self) -> FollowedRecords {
        let fallen = self.fallen.iter().map(|one| one.guest.clone());
        let failures = self.worlds.iter().filter_map(|world| {
            let why = world.failure.clone()?;
            Some((world.folder.world(), why))
        });
        FollowedRecords {
            fallen: fallen.collect(),
            failures: failures.collect(),
        }
    }

    /// Returns the latest installation of a guest that was rolled back, if it is listed.
    fn installation_of(&self, fallen: &RolledBackGuest) -> Option<Timestamp> {
        let listed = self.listed(fallen.world);
        let listed = listed.filter(|one| one.digest == fallen.guest);
        listed.map(|one| one.installed_at).max()
    }

    fn is_listed(&self, fallen: &FallenGuest) -> bool {
        let (digest, installed_at) = (fallen.guest.guest, fallen.installed_at);
        let mut listed = self.listed(fallen.guest.world);
        listed.any(|one| one.digest == digest && one.installed_at <= installed_at)
    }

    fn listed(&self, world: World) -> impl Iterator<Item = &InstalledGuest> {
        let of_world = self
            .worlds
            .iter()
            .filter(move |one| one.folder.world() == world);
        of_world
            .filter_map(|one| one.record.as_ref())
            .flat_map(|record| &record.serving)
    }
}

impl FollowingFolder {
    async fn follow(&mut self, bucket: &Bucket, control: &ControlDatabase) {
        let followed = self.try_follow(bucket, control).await;
        let failure = match followed {
            Ok(()) => None,
            // This node hears nothing new: it goes on with what it has.
            Err(error) if is_stale(&error) => return,
            Err(error) => Some(format!("this node does not follow the others: {error:#}")),
        };
        if let Some(error) = &failure
            && self.failure != failure
        {
            tracing::error!(guest = %self.folder.world(), error, "what serves goes on");
        }
        self.failure = failure;
    }

    async fn try_follow(
        &mut self,
        bucket: &Bucket,
        control: &ControlDatabase,
    ) -> anyhow::Result<()> {
        let record = shared::read(control, self.folder.world()).await?;
        if self.record.as_ref() != Some(&record) {
            bring_into_folder(bucket, &self.folder, &record).await?;
            self.record = Some(record);
        }
        Ok(())
    }
}

/// Whether this node may lack what control's owner has written.
fn is_stale(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(control::Error::Stale))
}

/// Has a folder be as a record says. A component that the bucket lacks is left out; the sandbox says that it cannot serve.
async fn bring_into_folder(
    bucket: &Bucket,
    folder: &WorldFolder,
    record: &GuestRecord,
) -> anyhow::Result<()> {
    let (looking, wanted) = (folder.clone(), record.clone());
    let look = move || {
        let is_same = looking.read().is_ok_and(|there| there == wanted);
        (is_same, looking.missing_components(&wanted))
    };
    let (is_same, missing) = spawn_blocking(look).await?;
    // They stay until the record names them.
    let mut held = Vec::new();
    for one in missing {
        match fetch(bucket, folder, one.digest).await? {
            Some((_, lock)) => held.push(lock),
            None => {
                tracing::error!(digest = %one.digest, "the bucket has no such guest");
            }
        }
    }
    if !is_same {
        let (folder, record) = (folder.clone(), record.clone());
        spawn_blocking(move || folder.adopt(&record)).await??;
    }
    Ok(())
}

/// Fetches a component into a folder, which keeps it until the lock is dropped; returns its size. `None` if the bucket does not have it, or
/// has it damaged.
async fn fetch(
    bucket: &Bucket,
    folder: &WorldFolder,
    digest: GuestDigest,
) -> anyhow::Result<Option<(u64, ComponentLock)>> {
    let component = match bucket.get(&object_name(&digest)).await {
        Err(BucketError::Missing(_)) => return Ok(None),
        component => component?,
    };
    let folder = folder.clone();
    let store = move || -> anyhow::Result<_> {
        if GuestDigest::of(&component) != digest {
            return Ok(None);
        }
        let held = folder.store(&component)?;
        Ok(Some((component.len() as u64, held)))
    };
    spawn_blocking(store).await?
}

/// Reads a component that a command has stored in a folder.
async fn read_stored(folder: &WorldFolder, digest: GuestDigest) -> anyhow::Result<Vec<u8>> {
    // Only the digest and the name that follows from it matter.
    let stored = InstalledGuest::of_stored(digest, 0, String::new(), Timestamp(0));
    let folder = folder.clone();
    spawn_blocking(move || folder.read_component(&stored)).await?
}

/// Brings the guests of one machine into a cluster: components into the bucket, then records into control.
pub(super) async fn bring_installed(
    bucket: &Bucket,
    control: &ControlDatabase,
    guests: &Path,
) -> anyhow::Result<()> {
    for world in World::ALL {
        let folder = WorldFolder::new(guests, world);
        let reading = folder.clone();
        let mut record = spawn_blocking(move || reading.read()).await??;
        for one in &mut record.serving {
            let (folder, installed) = (folder.clone(), one.clone());
            let component = spawn_blocking(move || folder.read_component(&installed)).await??;
            let name = object_name(&one.digest);
            bucket.put(&name, component.into()).await?;
            // One that was copied there by hand has another name.
            let from = std::mem::take(&mut one.from);
            *one = InstalledGuest::of_stored(one.digest, one.bytes, from, one.installed_at);
        }
        let brought: Result<_, GuestRecordError> = control
            .write(move |tx| {
                shared::change(tx, world, |there| {
                    *there = record;
                    Ok(())
                })
            })
            .await;
        brought?;
    }
    Ok(())
}

/// Brings the guests of a cluster into the directory of one machine, whose folders decide from then on. Returns what is missing.
///
/// # Errors
/// Those of the bucket, of control and of the disk.
pub async fn restore_installed(
    bucket: &Bucket,
    control: &ControlDatabase,
    guests: &Path,
) -> anyhow::Result<Vec<String>> {
    let mut missing = Vec::new();
    for world in World::ALL {
        let record = shared::read(control, world).await?;
        if record == GuestRecord::new() {
            continue;
        }
        let folder = WorldFolder::new(guests, world);
        bring_into_folder(bucket, &folder, &record).await?;
        let lost = spawn_blocking(move || folder.missing_components(&record)).await?;
        missing.extend(lost.iter().map(|one| {
            let digest = one.digest;
            format!("{world} guest {digest} is missing or damaged in the bucket")
        }));
    }
    shared::remove_all(control).await?;
    Ok(missing)
}

/// Returns the name of a component in the bucket.
fn object_name(digest: &GuestDigest) -> String {
    format!("{PREFIX}/{digest}")
}
