//! Loads: a database from a base in the bucket and the ledger's commits after it.

use std::fs::File;
use std::io;
use std::sync::Arc;

use cap_std::fs::Dir;
use tokio::task::spawn_blocking;

use super::bases::BaseError;
use super::bucket::{Bucket, BucketError};
use svc_base::disk;
use svc_database::{DatabaseLoader, DatabaseState, LoadError};
use svc_ledger::{Base, DatabaseName, Ledger, RunId};

/// Bytes of commits that are read at once.
pub(super) const TAIL_PIECE_BYTES: usize = 8 << 20;
/// How often a load begins anew because the owner has made another base meanwhile.
const LOADS: u32 = 3;
/// Bytes that a base may have beyond twice those of its row.
const MORE_BYTES: u64 = 1 << 20;

/// A database that was loaded.
#[derive(Clone, Debug)]
pub struct LoadedDatabase {
    /// State of the database.
    pub state: DatabaseState,
    /// Base from which it was loaded.
    pub base: Base,
    /// Bytes of the commits after the base.
    pub tail_bytes: u64,
    /// Whether a newer base did not load.
    pub is_newest_damaged: bool,
}

/// File that a database is loaded into.
#[derive(Debug)]
pub struct LoadTarget {
    /// Directory of the file.
    pub dir: Dir,
    /// Name of the file.
    pub name: String,
}

/// Loads a database as the ledger has it: from its newest base and all commits after that, or from an older base if the newest does
/// not lead to where it should. Nothing is skipped. `reader` is as for [`Ledger::tail`].
///
/// # Errors
/// [`BaseError`]; no file is made then.
pub async fn load_database<L: Ledger>(
    ledger: &L,
    reader: Option<RunId>,
    bucket: &Bucket,
    database: DatabaseName,
    to: &LoadTarget,
) -> Result<LoadedDatabase, BaseError> {
    let mut failure = BaseError::Missing(database);
    for _ in 0..LOADS {
        let bases = ledger.bases(reader, database).await?;
        for (older, base) in bases.into_iter().enumerate() {
            let object = base.object.clone();
            match load_from(ledger, reader, bucket, base, to).await {
                Err(error) if is_damage(&error) => {
                    tracing::error!(
                        %database, object, %error,
                        "a database does not load from its base: an older base with more commits is tried"
                    );
                    failure = error;
                }
                Ok(loaded) => {
                    let is_newest_damaged = older > 0;
                    return Ok(LoadedDatabase {
                        is_newest_damaged,
                        ..loaded
                    });
                }
                Err(error) => return Err(error),
            }
        }
        if matches!(failure, BaseError::Missing(_)) {
            break;
        }
    }
    Err(failure)
}

/// Whether a failure is the base's or its commits', so that an older base may lead further. This machine's disk is not.
pub fn is_damage(error: &BaseError) -> bool {
    match error {
        BaseError::Load(LoadError::Io(_)) => false,
        BaseError::Load(_)
        | BaseError::Bucket(BucketError::Missing(_) | BucketError::TooLarge(_)) => true,
        _ => false,
    }
}

/// Loads a database from a base and the commits after it.
async fn load_from<L: Ledger>(
    ledger: &L,
    reader: Option<RunId>,
    bucket: &Bucket,
    base: Base,
    to: &LoadTarget,
) -> Result<LoadedDatabase, BaseError> {
    let mut loader = start(bucket, &base, to).await?;
    let (mut last, mut tail_bytes) = (base.position, 0);
    loop {
        let tail = ledger.tail(reader, base.database, last, TAIL_PIECE_BYTES);
        let tail = tail.await?;
        let Some(newest) = tail.last() else { break };
        last = newest.position;
        tail_bytes += tail
            .iter()
            .map(|entry| entry.body.len() as u64)
            .sum::<u64>();
        loader = blocking(move || loader.apply(&tail)).await?;
    }
    Ok(LoadedDatabase {
        state: blocking(move || loader.finish()).await?,
        base,
        tail_bytes,
        is_newest_damaged: false,
    })
}

/// Loads a database as it is in a base, without the commits after it.
///
/// # Errors
/// [`BaseError`]; no file is made then.
pub async fn load_base(
    bucket: &Bucket,
    base: &Base,
    to: &LoadTarget,
) -> Result<DatabaseState, BaseError> {
    let loader = start(bucket, base, to).await?;
    blocking(move || loader.finish()).await
}

async fn start(bucket: &Bucket, base: &Base, to: &LoadTarget) -> Result<DatabaseLoader, BaseError> {
    let (dir, name) = (to.dir.try_clone()?, to.name.clone());
    let (position, state) = (base.position, base.state);
    let packed = fetch(bucket, base, &dir, &format!(".{name}.packed")).await?;
    blocking(move || DatabaseLoader::start(dir, &name, &*packed, position, state)).await
}

/// Reads a base into a file of this name, which is gone when it is closed: a base may be large.
pub(super) async fn fetch(
    bucket: &Bucket,
    base: &Base,
    dir: &Dir,
    name: &str,
) -> Result<Arc<File>, BaseError> {
    let packed = Arc::new(unnamed_file(dir, name)?);
    // One that was stored again may be packed otherwise.
    let most = base.bytes.saturating_mul(2).saturating_add(MORE_BYTES);
    bucket.get_to(&base.object, &packed, most).await?;
    Ok(packed)
}

/// Creates a private file that is gone when it is closed.
fn unnamed_file(dir: &Dir, name: &str) -> io::Result<File> {
    disk::remove_file(dir, name)?;
    let file = dir.open_with(name, disk::private_file_options().read(true))?;
    disk::remove_file(dir, name)?;
    Ok(file.into_std())
}

/// Runs a step of a load on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    step: impl FnOnce() -> Result<T, LoadError> + Send + 'static,
) -> Result<T, BaseError> {
    Ok(spawn_blocking(step).await.map_err(io::Error::from)??)
}
