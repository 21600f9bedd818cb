//! Which guests are installed: a folder for each world, with the components and one small file that says which of them serves.
//!
//! A component is written and synced before the record names it, and the record is replaced by a rename: whenever a process dies, what
//! served before serves, or what was chosen. Changes take turns by a lock of the operating system's. Where there is no record, the
//! component whose name sorts last serves, so that one may be put there by hand before a first start.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::sandbox::{Choice, Choices, GuestDigest, Origin, World, newest_first};
use crate::{disk, fault};

/// The name of the record.
const RECORD: &str = "installed.json";
/// The form of the record that this version reads and writes.
const FORMAT: u32 = 1;
/// The name of the lock. Backups leave out what begins with a dot.
const LOCK: &str = ".lock";
/// How many guests can be rolled back one after the other; the components of earlier ones are removed.
const DEPTH: usize = 8;
/// How many changes are remembered.
const HISTORY: usize = 100;
/// How long a guest is on trial, in seconds: a day.
const TRIAL: i64 = 24 * 3600;

/// What was chosen for a world.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    format: u32,
    /// Counts the changes, so that a server can say which one it follows.
    pub sequence: u64,
    /// Who serves, last, and whom it took the place of. Empty while the built-in one serves.
    pub serving: Vec<Installed>,
    /// The latest changes, oldest first.
    pub history: Vec<Change>,
}

/// A component that was installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Installed {
    /// Its SHA-256.
    pub digest: GuestDigest,
    /// The name of its file in the folder.
    pub file: String,
    /// How large that is.
    pub bytes: u64,
    /// Since when it serves.
    pub installed_at: Timestamp,
    /// Where it came from.
    pub from: String,
}

/// Something that changed who serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When.
    pub at: Timestamp,
    /// How.
    pub kind: ChangeKind,
    /// Who serves since; absent for the built-in one.
    pub digest: Option<GuestDigest>,
    /// Why, if nobody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// How it came that another guest serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// An operator installed it.
    Install,
    /// An operator put back the one before.
    Rollback,
    /// The one before took its place back, because the newer one failed where it does not.
    Automatic,
}

impl Record {
    /// Who serves; `None` for the built-in one.
    pub fn top(&self) -> Option<&Installed> {
        self.serving.last()
    }

    /// Until when who serves is on trial.
    pub fn trial_until(&self) -> Option<Timestamp> {
        let top = self.top().filter(|_| self.sequence > 0)?;
        let tried = matches!(self.history.last(), Some(last) if last.kind == ChangeKind::Install);
        tried.then(|| top.installed_at.plus_seconds(TRIAL))
    }

    fn changed(&mut self, kind: ChangeKind, at: Timestamp, why: Option<String>) {
        self.sequence += 1;
        let digest = self.top().map(|top| top.digest);
        self.history.push(Change {
            at,
            kind,
            digest,
            why,
        });
        let old = self.history.len().saturating_sub(HISTORY);
        self.history.drain(..old);
    }
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It is what serves.
    #[error("this guest serves already")]
    Serves,
    /// Nothing was installed, or all of it was rolled back.
    #[error("the built-in {0} guest serves: there is none before it")]
    NothingBefore(World),
    /// Who was to lose its place has lost it.
    #[error("another guest serves meanwhile")]
    Another,
    /// The disk's, or a record that nobody can read.
    #[error(transparent)]
    Broken(#[from] anyhow::Error),
}

impl From<io::Error> for RecordError {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.into())
    }
}

/// The folder of a world's guests.
#[derive(Clone, Debug)]
pub struct Folder {
    world: World,
    path: PathBuf,
}

impl Folder {
    /// That of `world` below the directory of guests; nothing need be there.
    pub fn new(guests: &Path, world: World) -> Self {
        Self {
            world,
            path: guests.join(world.as_str()),
        }
    }

    /// Where the record is.
    pub fn record_path(&self) -> PathBuf {
        self.path.join(RECORD)
    }

    /// What is chosen.
    ///
    /// # Errors
    /// The disk's, or a record that is none.
    pub fn read(&self) -> anyhow::Result<Record> {
        let path = self.record_path();
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(self.placed()),
            text => text.with_context(|| format!("reading {}", path.display()))?,
        };
        let record: Record =
            serde_json::from_slice(&text).with_context(|| format!("in {}", path.display()))?;
        anyhow::ensure!(
            record.format == FORMAT,
            "{} is of another version of this program",
            path.display()
        );
        Ok(record)
    }

    /// What serves where there is no record: what was put there by hand.
    fn placed(&self) -> Record {
        let mut serving: Vec<Installed> = newest_first(&self.path)
            .into_iter()
            .filter(|path| !is_ours(path))
            .take(DEPTH)
            .filter_map(|path| installed_by_hand(&path))
            .collect();
        serving.reverse();
        Record {
            format: FORMAT,
            serving,
            ..Record::default()
        }
    }

    /// What the sandbox is to try.
    pub fn choice(&self, record: &Record, now: Timestamp) -> Choice {
        let files = record.serving.iter().rev().map(|installed| Origin::File {
            path: self.path.join(&installed.file),
            digest: Some(installed.digest),
        });
        Choice {
            origins: files.chain([Origin::BuiltIn]).collect(),
            on_trial: record.trial_until().is_some_and(|until| now < until),
        }
    }

    /// Lets a component serve from now on. Durable when it answers.
    ///
    /// # Errors
    /// [`RecordError::Serves`], or the disk's.
    pub fn install(
        &self,
        component: &[u8],
        from: String,
        now: Timestamp,
    ) -> Result<Record, RecordError> {
        make(&self.path)?;
        let dir = disk::open(&self.path)?;
        let _turn = self.lock()?;
        let mut record = self.read()?;
        let digest = GuestDigest::of(component);
        if record.top().is_some_and(|top| top.digest == digest) {
            return Err(RecordError::Serves);
        }
        let file = format!("{digest}.wasm");
        write_component(&dir, &file, component)?;
        fault::point("install.stored");
        record.serving.push(Installed {
            digest,
            file,
            bytes: component.len() as u64,
            installed_at: now,
            from,
        });
        let old = record.serving.len().saturating_sub(DEPTH);
        record.serving.drain(..old);
        record.changed(ChangeKind::Install, now, None);
        self.write(&dir, &record)?;
        fault::point("install.recorded");
        self.tidy(&dir, &record);
        Ok(record)
    }

    /// Lets the guest that served before serve again, or the built-in one. Durable when it answers.
    ///
    /// # Errors
    /// [`RecordError::NothingBefore`]; with `only`, [`RecordError::Another`] unless that guest serves; or the disk's.
    pub fn roll_back(
        &self,
        only: Option<(GuestDigest, String)>,
        now: Timestamp,
    ) -> Result<Record, RecordError> {
        if !self.path.is_dir() {
            return Err(RecordError::NothingBefore(self.world));
        }
        let dir = disk::open(&self.path)?;
        let _turn = self.lock()?;
        let mut record = self.read()?;
        let top = record
            .serving
            .pop()
            .ok_or(RecordError::NothingBefore(self.world))?;
        let (kind, why) = match only {
            Some((digest, _)) if digest != top.digest => return Err(RecordError::Another),
            Some((_, why)) => (ChangeKind::Automatic, Some(why)),
            None => (ChangeKind::Rollback, None),
        };
        record.changed(kind, now, why);
        self.write(&dir, &record)?;
        self.tidy(&dir, &record);
        Ok(record)
    }

    /// Keeps what is there as it is until it is dropped; `None` where there is no folder. Blocks.
    ///
    /// # Errors
    /// The disk's.
    pub fn hold(&self) -> io::Result<Option<File>> {
        match self.lock() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            held => held.map(Some),
        }
    }

    fn lock(&self) -> io::Result<File> {
        let mut options = File::options();
        let options = options.create(true).truncate(false).write(true);
        let file = options.open(self.path.join(LOCK))?;
        file.lock()?;
        Ok(file)
    }

    fn write(&self, dir: &Dir, record: &Record) -> Result<(), RecordError> {
        let text = serde_json::to_vec_pretty(record).map_err(anyhow::Error::from)?;
        Ok(disk::replace(dir, RECORD, &text)?)
    }

    /// Removes components that nothing names any more. What cannot be removed is removed with the next change.
    fn tidy(&self, dir: &Dir, record: &Record) {
        let Ok(entries) = dir.entries() else { return };
        for name in entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
        {
            let named = record.serving.iter().any(|kept| kept.file == name);
            if (is_ours(Path::new(&name)) || name.ends_with(NEW)) && !named {
                let _ = disk::remove_file(dir, &name);
            }
        }
    }
}

/// Whether a component was installed by a command: it serves when a record says so, and never because of its name.
fn is_ours(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str());
    name.and_then(GuestDigest::from_hex).is_some()
}

/// How the name of a component ends that is being written.
const NEW: &str = ".wasm.new";

/// Writes a component under a name of its own, then under its digest.
fn write_component(dir: &Dir, name: &str, component: &[u8]) -> io::Result<()> {
    let new = format!(".{name}.new");
    disk::remove_file(dir, &new)?;
    let mut file = dir.open_with(&new, &disk::new_file())?;
    file.write_all(component)?;
    file.sync_all()?;
    dir.rename(&new, dir, name)?;
    disk::sync(dir)
}

/// Makes the folder, and makes that durable.
fn make(path: &Path) -> io::Result<()> {
    crate::data_lock::make_private(path)?;
    for made in path.ancestors().skip(1).take(2) {
        File::open(made)?.sync_all()?;
    }
    Ok(())
}

fn installed_by_hand(path: &Path) -> Option<Installed> {
    let data = std::fs::metadata(path).ok()?;
    let digest = GuestDigest::of(&std::fs::read(path).ok()?);
    let since = data.modified().ok()?.duration_since(std::time::UNIX_EPOCH);
    let millis = i64::try_from(since.ok()?.as_millis()).ok()?;
    Some(Installed {
        digest,
        file: path.file_name()?.to_str()?.to_owned(),
        bytes: data.len(),
        installed_at: Timestamp(millis),
        from: path.display().to_string(),
    })
}

/// What is installed below the directory of guests, for a sandbox that starts. A record that cannot be read is named in the
/// log, and the built-in guest serves.
pub fn choices(guests: &Path, now: Timestamp) -> Choices {
    let mut choices = Choices::default();
    for world in World::ALL {
        let folder = Folder::new(guests, world);
        match folder.read() {
            Ok(record) => *choices.of(world) = folder.choice(&record, now),
            Err(error) => {
                tracing::error!(guest = %world, error = format!("{error:#}"), "it is not known which guest is installed");
            }
        }
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_795_176_000_000);

    fn folder() -> (tempfile::TempDir, Folder) {
        let guests = tempfile::tempdir().unwrap();
        let folder = Folder::new(&guests.path().join("guests"), World::Gate);
        (guests, folder)
    }

    fn install(folder: &Folder, component: &[u8]) -> Record {
        folder.install(component, "here".to_owned(), NOW).unwrap()
    }

    fn serving(record: &Record) -> Vec<GuestDigest> {
        record.serving.iter().map(|one| one.digest).collect()
    }

    fn components(folder: &Folder) -> usize {
        newest_first(&folder.path).len()
    }

    #[test]
    fn who_served_before_serves_again() {
        let (_guests, folder) = folder();
        assert_eq!(folder.read().unwrap().serving, []);
        let none = folder.roll_back(None, NOW);
        assert!(matches!(none, Err(RecordError::NothingBefore(World::Gate))));
        let [a, b, c] = [b"a", b"b", b"c"].map(|bytes| GuestDigest::of(bytes));
        install(&folder, b"a");
        assert_eq!(serving(&install(&folder, b"b")), [a, b]);
        let again = folder.install(b"b", String::new(), NOW);
        assert!(matches!(again, Err(RecordError::Serves)));
        assert_eq!(serving(&folder.roll_back(None, NOW).unwrap()), [a]);
        assert_eq!(serving(&install(&folder, b"c")), [a, c]);
        assert_eq!(components(&folder), 2);
        let other = folder.roll_back(Some((b, "late".to_owned())), NOW);
        assert!(matches!(other, Err(RecordError::Another)));
        let fallen = folder.roll_back(Some((c, "trap".to_owned())), NOW).unwrap();
        assert_eq!(serving(&fallen), [a]);
        let built_in = folder.roll_back(None, NOW).unwrap();
        assert_eq!(folder.read().unwrap(), built_in);
        assert_eq!(
            folder.choice(&built_in, NOW).origins,
            [Origin::BuiltIn],
            "{built_in:?}"
        );
        let kinds: Vec<_> = built_in
            .history
            .iter()
            .map(|change| (change.kind, change.digest))
            .collect();
        use ChangeKind::{Automatic, Install, Rollback};
        assert_eq!(
            kinds,
            [
                (Install, Some(a)),
                (Install, Some(b)),
                (Rollback, Some(a)),
                (Install, Some(c)),
                (Automatic, Some(a)),
                (Rollback, None),
            ]
        );
        assert_eq!(built_in.sequence, 6);
        assert_eq!(components(&folder), 0);
    }

    #[test]
    fn a_guest_is_on_trial_for_a_day_after_it_was_installed() {
        let (_guests, folder) = folder();
        install(&folder, b"a");
        let record = install(&folder, b"b");
        assert!(folder.choice(&record, NOW).on_trial);
        assert!(folder.choice(&record, NOW.plus_seconds(TRIAL - 1)).on_trial);
        assert!(!folder.choice(&record, NOW.plus_seconds(TRIAL)).on_trial);
        let back = folder.roll_back(None, NOW).unwrap();
        assert!(!folder.choice(&back, NOW).on_trial, "it has served before");
    }

    #[test]
    fn only_the_latest_are_kept() {
        let (_guests, folder) = folder();
        for number in 0..HISTORY + 5 {
            install(&folder, number.to_string().as_bytes());
        }
        let record = folder.read().unwrap();
        assert_eq!(record.serving.len(), DEPTH);
        assert_eq!(components(&folder), DEPTH);
        assert_eq!(record.history.len(), HISTORY);
        assert_eq!(record.sequence, (HISTORY + 5) as u64);
    }

    #[test]
    fn what_was_put_there_by_hand_serves_until_something_is_installed() {
        let (_guests, folder) = folder();
        std::fs::create_dir_all(&folder.path).unwrap();
        for name in ["000001.wasm", "000002.wasm"] {
            std::fs::write(folder.path.join(name), name).unwrap();
        }
        // What a command has left that died is none of them.
        let left = format!("{}.wasm", GuestDigest::of(b"left"));
        std::fs::write(folder.path.join(left), "left").unwrap();
        let record = folder.read().unwrap();
        assert_eq!(record.top().unwrap().file, "000002.wasm");
        assert!(!folder.choice(&record, NOW).on_trial);
        install(&folder, b"a");
        let back = folder.roll_back(None, NOW).unwrap();
        assert_eq!(back.top().unwrap().file, "000002.wasm");
        assert_eq!(components(&folder), 2, "what is not ours stays");
    }

    #[test]
    fn a_record_that_is_none_is_named() {
        let (guests, folder) = folder();
        install(&folder, b"a");
        for text in [
            "",
            "{",
            r#"{"format":2,"sequence":1,"serving":[],"history":[]}"#,
        ] {
            std::fs::write(folder.record_path(), text).unwrap();
            let error = format!("{:#}", folder.read().unwrap_err());
            assert!(error.contains(RECORD), "{error}");
            assert!(folder.install(b"b", String::new(), NOW).is_err());
            let mut choices = choices(&guests.path().join("guests"), NOW);
            assert_eq!(*choices.of(World::Gate), Choice::default());
        }
    }
}
