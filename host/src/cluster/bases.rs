//! Bases: copies of databases in the bucket. From one of them and the ledger's commits after it, a database is loaded on any machine.
//!
//! A base is stored in three steps, and a process that dies between two of them loses nothing: the object, then the row that names it,
//! then what the row makes needless is deleted. An object without a row is of a state that was acknowledged, and goes with the next
//! base.
//!
//! The base before the newest stays with all commits after it, so that a newest base that is damaged costs nothing but time. Once the
//! newest is a day old and was read again, it stays alone: what was deleted before is then in neither.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::task::spawn_blocking;

use super::bucket::{Bucket, BucketError, StoredObject};
use super::histories;
use super::loads::{LoadTarget, LoadedDatabase, blocking, fetch, load_database};
use super::schedule::{BaseSchedule, DueBase};
use svc_base::clock::{Clock, Timestamp};
use svc_base::positions::{Checksum, CommitPosition};
use svc_base::sync::lock;
use svc_base::{disk, fault};
use svc_database::{BaseSnapshot, DatabaseLoader, DatabaseState, LoadError};
use svc_ledger::{Base, DatabaseName, KeptBases, Ledger, LedgerError, RunId};

/// Prefix of bases.
pub(super) const PREFIX: &str = "bases";
/// Pause between two looks at what is due, and after a failure.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(10);
/// Most bases that are made at once.
const AT_ONCE: usize = 4;
/// Pause between two looks whether a database's base is made.
const TURN_EVERY: Duration = Duration::from_millis(50);

/// A base cannot be made, or a database not be loaded from one.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    /// The ledger has no base of the database.
    #[error("the ledger has no base of database {0}")]
    Missing(DatabaseName),
    /// The ledger refuses.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The bucket cannot be used.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// The objects that are there do not lead to the state that they should.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The disk's.
    #[error("a base cannot be written: {0}")]
    Io(#[from] io::Error),
}

/// Databases that are open on this node.
pub trait LiveDatabases: Send + Sync + 'static {
    /// Begins to read a database at its last commit; `None` if it is not open here any more.
    fn snapshot(
        &self,
        database: DatabaseName,
    ) -> impl Future<Output = io::Result<Option<BaseSnapshot>>> + Send;

    /// Waits until a commit is acknowledged; `false` if it never will be.
    fn acknowledged(
        &self,
        database: DatabaseName,
        position: CommitPosition,
    ) -> impl Future<Output = bool> + Send;

    /// Copies the history of a database up to an acknowledged commit, as far as it can be, since the ledger will forget commits. It fails
    /// nothing.
    fn keep_history(
        &self,
        database: DatabaseName,
        acknowledged: CommitPosition,
    ) -> impl Future<Output = ()> + Send;
}

/// Bases of the databases that a run owns.
#[derive(Debug)]
pub struct Bases<L> {
    ledger: Arc<L>,
    run: RunId,
    bucket: Bucket,
    schedule: BaseSchedule,
    clock: Clock,
    /// Directory for files on their way to the bucket.
    tmp: PathBuf,
    /// Databases that get a base just now.
    making: Mutex<HashSet<DatabaseName>>,
}

/// Right to make the base of a database, which nobody else makes meanwhile.
#[derive(Debug)]
pub(super) struct BaseTurn<'b> {
    making: &'b Mutex<HashSet<DatabaseName>>,
    database: DatabaseName,
}

impl Drop for BaseTurn<'_> {
    fn drop(&mut self) {
        lock(self.making).remove(&self.database);
    }
}

impl<L: Ledger> Bases<L> {
    /// Makes the keeper of a run's bases. `tmp` is a directory of the run's own.
    pub fn new(ledger: Arc<L>, run: RunId, bucket: Bucket, tmp: PathBuf, clock: Clock) -> Self {
        Self {
            ledger,
            run,
            bucket,
            schedule: BaseSchedule::new(clock.clone()),
            clock,
            tmp,
            making: Mutex::default(),
        }
    }

    /// Takes the turn to make the base of a database; `None` if somebody has it.
    fn take_turn(&self, database: DatabaseName) -> Option<BaseTurn<'_>> {
        let is_free = lock(&self.making).insert(database);
        is_free.then(|| BaseTurn {
            making: &self.making,
            database,
        })
    }

    /// Waits for the turn to make the base of a database: until it is dropped, none is made, so that the ledger forgets nothing.
    pub(super) async fn turn(&self, database: DatabaseName) -> BaseTurn<'_> {
        loop {
            match self.take_turn(database) {
                Some(turn) => return turn,
                None => tokio::time::sleep(TURN_EVERY).await,
            }
        }
    }

    /// Loads a database whose place the run has.
    ///
    /// # Errors
    /// [`BaseError`].
    pub async fn load(
        &self,
        database: DatabaseName,
        to: &LoadTarget,
    ) -> Result<LoadedDatabase, BaseError> {
        let run = Some(self.run);
        let loaded = load_database(&*self.ledger, run, &self.bucket, database, to).await?;
        let base = (loaded.base.bytes, self.age_of(&loaded.base));
        self.schedule.note_base(database, base, loaded.tail_bytes);
        if loaded.is_newest_damaged {
            self.schedule.note_damaged_base(database);
        }
        Ok(loaded)
    }

    /// Notes that this run has the place of control, whose file is here by another way than a load: it is as if something had changed
    /// since its newest base. If the ledger does not say how old that is, it is as if it were new.
    pub(super) async fn note_control(&self) {
        let control = DatabaseName::Control;
        let bases = self.ledger.bases(Some(self.run), control).await;
        let newest = bases.unwrap_or_default();
        let newest = newest.iter().max_by_key(|base| base.position);
        let base = newest.map_or((0, Duration::ZERO), |base| (base.bytes, self.age_of(base)));
        self.schedule.note_base(control, base, 1);
    }

    /// Returns the age of a base, by the clocks of the machines.
    fn age_of(&self, base: &Base) -> Duration {
        let age = self.clock.now().0.saturating_sub(base.at.0);
        Duration::from_millis(u64::try_from(age).unwrap_or(0))
    }

    /// Notes an acknowledged commit by the bytes of its body.
    pub fn note_commit(&self, database: DatabaseName, bytes: u64) {
        self.schedule.note_commit(database, bytes);
    }

    /// Returns the bytes of the commits that no base has yet.
    pub fn tail_bytes(&self) -> u64 {
        self.schedule.tail_bytes()
    }

    /// Notes whether the place of a database is released, whose file stays here.
    pub fn note_released(&self, database: DatabaseName, is_released: bool) {
        self.schedule.note_released(database, is_released);
    }

    /// Makes bases as they become due, for as long as it is polled.
    pub async fn run(&self, databases: &impl LiveDatabases) {
        loop {
            let due = stream::iter(self.schedule.due());
            let made = due.map(|due| async move {
                let stored = self.store_due(due, databases).await;
                stored.inspect_err(|error| {
                    let database = due.database;
                    tracing::warn!(%database, %error, "a base is not made: it is tried again");
                })
            });
            let made: Vec<_> = made.buffer_unordered(AT_ONCE).collect().await;
            let pause = match made.iter().any(Result::is_err) {
                true => PAUSE_AFTER_FAILURE,
                false => LOOK_EVERY,
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Makes a base of a database that is about to be released, if enough has changed. Returns whether it has one, or needs none: not
    /// while its base is being made, or its writer is busy.
    ///
    /// # Errors
    /// [`BaseError`]; the place may be released all the same.
    pub async fn store_on_release(
        &self,
        database: DatabaseName,
        databases: &impl LiveDatabases,
    ) -> Result<bool, BaseError> {
        if let Some(due) = self.schedule.due_on_release(database) {
            self.store_due(due, databases).await?;
        }
        let is_being_made = lock(&self.making).contains(&database);
        Ok(!is_being_made && self.schedule.due_on_release(database).is_none())
    }

    async fn store_due(
        &self,
        due: DueBase,
        databases: &impl LiveDatabases,
    ) -> Result<(), BaseError> {
        let database = due.database;
        let Some(_turn) = self.take_turn(database) else {
            return Ok(());
        };
        let Some(snapshot) = databases.snapshot(database).await? else {
            return Ok(());
        };
        let at = self.clock.now();
        let file = self.tmp.join(format!("base-{database}"));
        let state = write_base(snapshot, &file).await?;
        if !databases.acknowledged(database, state.position()).await {
            return remove_file(&file).await.map_err(Into::into);
        }
        let base = upload(&self.bucket, database, &state, &file, at).await?;
        databases.keep_history(database, state.position()).await;
        name_base(&*self.ledger, self.run, &self.bucket, &base).await?;
        self.schedule.note_made(due, base.bytes);
        Ok(())
    }

    /// Stores the first base of a database that was made just now: `file` is what [`BaseSnapshot::write_to`] has written. The file is
    /// removed.
    ///
    /// # Errors
    /// [`BaseError`].
    pub async fn store_first(
        &self,
        database: DatabaseName,
        state: &DatabaseState,
        file: &Path,
    ) -> Result<(), BaseError> {
        let base = upload(&self.bucket, database, state, file, self.clock.now()).await?;
        name_base(&*self.ledger, self.run, &self.bucket, &base).await?;
        self.schedule
            .note_base(database, (base.bytes, Duration::ZERO), 0);
        Ok(())
    }

    /// Has a database whose place the run has keep its newest base alone, if that was made before `before` and is whole, and if the
    /// bucket has the moments that only the ledger had otherwise.
    ///
    /// # Errors
    /// [`BaseError`]; nothing is deleted if the base is damaged.
    pub(super) async fn drop_older(
        &self,
        database: DatabaseName,
        before: Timestamp,
    ) -> Result<(), BaseError> {
        let _turn = self.turn(database).await;
        let bases = self.ledger.bases(Some(self.run), database).await?;
        let [newest, _, ..] = bases.as_slice() else {
            return Ok(());
        };
        let is_kept = match database {
            DatabaseName::Control => true,
            DatabaseName::Backend(id) => {
                histories::reaches(&self.bucket, &id, newest.position).await?
            }
        };
        if newest.at > before || !is_kept {
            return Ok(());
        }
        let dir = disk::open_directory(&self.tmp)?;
        let packed = fetch(&self.bucket, newest, &dir, &format!("check-{database}")).await?;
        let (position, state) = (newest.position, newest.state);
        blocking(move || DatabaseLoader::check(&*packed, position, state)).await?;
        let kept = KeptBases::Newest;
        self.ledger.trim(self.run, database, kept).await?;
        delete_objects(&self.bucket, database, |it| it.position < position).await?;
        Ok(())
    }

    /// Deletes a database that is gone: its place, its commits and bases, then its objects, those of its history included.
    ///
    /// # Errors
    /// [`BaseError`]; it may be repeated.
    pub async fn forget(&self, database: DatabaseName) -> Result<(), BaseError> {
        self.schedule.note_closed(database);
        self.ledger.forget(self.run, database).await?;
        delete_objects(&self.bucket, database, |_| true).await?;
        if let DatabaseName::Backend(id) = database {
            histories::delete_all(&self.bucket, &id).await?;
        }
        Ok(())
    }
}

/// Returns the prefix of the bases of a database.
fn prefix(database: DatabaseName) -> String {
    format!("{PREFIX}/{database}")
}

/// Returns the name of the base of a database in a state. Names are in the order of the commits.
fn object_name(database: DatabaseName, position: CommitPosition, state: Checksum) -> String {
    format!("{}/{:020}-{:016x}", prefix(database), position.0, state.0)
}

/// Reads a base off an object; `None` if the object is none.
pub(super) fn parse(object: &StoredObject) -> Option<Base> {
    let name = object.name.strip_prefix(PREFIX)?.strip_prefix('/')?;
    let (database, name) = name.split_once('/')?;
    let (position, state) = name.split_once('-')?;
    Some(Base {
        database: database.parse().ok()?,
        position: CommitPosition(position.parse().ok()?),
        state: Checksum(u64::from_str_radix(state, 16).ok()?),
        object: object.name.clone(),
        bytes: object.bytes,
        at: object.at,
    })
}

/// Returns the bases of each database, the newest first, by the objects of the bucket alone. Their times are those of the store's clock.
///
/// # Errors
/// The bucket's.
pub async fn stored_bases(
    bucket: &Bucket,
) -> Result<BTreeMap<DatabaseName, Vec<Base>>, BucketError> {
    let objects = bucket.list(PREFIX).await?;
    let mut found = BTreeMap::<_, Vec<Base>>::new();
    // Objects are listed in the order of their names, so the newest comes last.
    for base in objects.iter().rev().filter_map(parse) {
        found.entry(base.database).or_default().push(base);
    }
    Ok(found)
}

/// Writes a base to a file.
///
/// # Errors
/// Errors of the database or of the disk.
pub async fn write_base(snapshot: BaseSnapshot, file: &Path) -> io::Result<DatabaseState> {
    let file = file.to_owned();
    spawn_blocking(move || snapshot.write_to(&file)).await?
}

async fn remove_file(file: &Path) -> io::Result<()> {
    let file = file.to_owned();
    spawn_blocking(move || std::fs::remove_file(file)).await?
}

/// Stores the object of a base from a file, which is removed, and returns the base. No row names it yet.
///
/// # Errors
/// The bucket's or the disk's.
pub async fn upload(
    bucket: &Bucket,
    database: DatabaseName,
    state: &DatabaseState,
    file: &Path,
    at: Timestamp,
) -> Result<Base, BaseError> {
    let (position, state) = (state.position(), state.checksum());
    let path = file.to_owned();
    let from = spawn_blocking(move || {
        let file = File::open(&path);
        // It stays readable until it is closed.
        std::fs::remove_file(&path).and(file)
    });
    let from = from.await.map_err(io::Error::from)??;
    let base = Base {
        database,
        position,
        state,
        object: object_name(database, position, state),
        bytes: from.metadata()?.len(),
        at,
    };
    fault::point("cluster.base_written");
    bucket.put_file(&base.object, from).await?;
    fault::point("cluster.base_stored");
    Ok(base)
}

/// Names a stored base in the ledger, and deletes what it makes needless. May be repeated.
///
/// # Errors
/// The ledger's, or the bucket's once the row is there.
pub async fn name_base<L: Ledger>(
    ledger: &L,
    run: RunId,
    bucket: &Bucket,
    base: &Base,
) -> Result<(), BaseError> {
    ledger.add_base(run, base).await?;
    fault::point("cluster.base_named");
    ledger.trim(run, base.database, KeptBases::Two).await?;
    fault::point("cluster.trimmed");
    // A base with a row that is newer makes these needless, whoever looks: a row of theirs is gone, or was never there.
    let named = ledger.bases(Some(run), base.database).await?;
    let is_needless = |other: &Base| {
        let is_named = named.iter().any(|kept| kept.object == other.object);
        other.position < base.position && !is_named
    };
    delete_objects(bucket, base.database, is_needless).await?;
    Ok(())
}

/// Deletes the bases of a database that `is_needless` chooses.
///
/// # Errors
/// The bucket's.
pub async fn delete_objects(
    bucket: &Bucket,
    database: DatabaseName,
    is_needless: impl Fn(&Base) -> bool,
) -> Result<(), BucketError> {
    let objects = bucket.list(&prefix(database)).await?;
    let needless = objects.iter().filter_map(parse).filter(is_needless);
    for base in needless.collect::<Vec<_>>() {
        bucket.delete(&base.object).await?;
    }
    Ok(())
}
