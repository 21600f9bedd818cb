//! Cache of compiled guests, which outlives the process.
//!
//! Loading compiled code means running it, and nothing checks it for manipulations. So the directory must belong to the user and
//! be closed to everyone else. A damaged file (a full disk, an interrupted copy) is noticed by its checksum and compiled again.
//!
//! `<engine>-<component>.cwasm` holds the code, and `….crc32` beside it eight hexadecimal digits. One lock for each tier keeps
//! two processes from compiling the same guest at once. `<engine>` is a hash of the engine's version, its settings with the tier,
//! and the processor's features; `<component>` is the component's SHA-256. Any file may be deleted at any time. Beyond a size
//! limit, the least recently loaded code is deleted.

use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context as _;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::compiler::{CompilerCores, GuestCompiler, OptimizationTier};
use super::component::GuestComponent;
use super::values::GuestDigest;
use svc_base::Stopwatch;

/// Size limit of the cache, in bytes. Several data directories and versions of the host share it.
const MAX_CODE_BYTES: u64 = 512 << 20;

/// How code is compiled, and the engine that runs it.
#[derive(Debug)]
pub(super) struct CompilerJob<'e> {
    pub(super) tier: OptimizationTier,
    pub(super) cores: CompilerCores,
    pub(super) engine: &'e Engine,
}

/// The directory of compiled guests.
#[derive(Debug)]
pub(super) struct CompiledGuestCache {
    dir: PathBuf,
    compiler: GuestCompiler,
}

impl CompiledGuestCache {
    /// Opens the directory, and creates it where it is missing.
    ///
    /// # Errors
    ///
    /// The directory cannot be created, is not a directory, belongs to another user, or is open to others.
    pub(super) fn open(dir: PathBuf, compiler: GuestCompiler) -> anyhow::Result<Self> {
        create_directory(&dir)
            .with_context(|| format!("cannot make the cache {}", dir.display()))?;
        let found = fs::symlink_metadata(&dir)
            .with_context(|| format!("cannot look at the cache {}", dir.display()))?;
        let user = rustix::process::geteuid().as_raw();
        let refused = if !found.is_dir() {
            "is not a directory"
        } else if found.uid() != user {
            "belongs to another user"
        } else if found.mode() & 0o777 != 0o700 {
            "must have mode 0700"
        } else {
            return Ok(Self { dir, compiler });
        };
        anyhow::bail!(
            "the cache {} {refused}: compiled guests are run as they are found there, so it must be yours alone \
             (repair it with chmod, or name another one with `cache`)",
            dir.display()
        )
    }

    /// Finds the compiled code of `component`; `None` if it was not compiled yet.
    pub(super) fn find(&self, engine: &Engine, component: GuestComponent<'_>) -> Option<Component> {
        read_code(engine, &self.path(engine, component))
    }

    /// Returns the compiled code of `component`; compiles and stores it where the cache has none.
    ///
    /// # Errors
    ///
    /// The component does not compile. A failure of the cache is only logged.
    pub(super) fn load(
        &self,
        job: &CompilerJob<'_>,
        component: GuestComponent<'_>,
    ) -> anyhow::Result<Component> {
        if let Some(found) = self.find(job.engine, component) {
            return Ok(found);
        }
        // The lock is held until the end: processes that waited for it find the file. Without the lock, both compile.
        let _lock = lock_file(&self.dir.join(lock_file_name(job.tier)));
        if let Some(found) = self.find(job.engine, component) {
            return Ok(found);
        }
        let (stopwatch, tier) = (Stopwatch::start(), job.tier.as_str());
        tracing::info!(
            tier,
            bytes = component.bytes.len(),
            "compiling a guest for the first time on this machine; pages are served meanwhile"
        );
        let code = self
            .compiler
            .compile((job.tier, job.cores), component.bytes)
            .context("it does not compile")?;
        tracing::info!(
            tier,
            code_bytes = code.len(),
            milliseconds = stopwatch.elapsed().as_millis(),
            "compiled a guest"
        );
        let path = self.path(job.engine, component);
        if let Err(error) = write_code(&path, &code) {
            let path = path.display();
            tracing::warn!(%path, %error, "cannot keep a compiled guest; the next start compiles it again");
        } else if let Some(found) = read_code(job.engine, &path) {
            self.prune(MAX_CODE_BYTES);
            // The file is mapped instead of `code`: the system can share and drop its pages.
            return Ok(found);
        }
        deserialize(job.engine, &code)
            .map_err(anyhow::Error::from)
            .context("it does not load")
    }

    /// Removes the compiled code of `component`, if the cache has it.
    pub(super) fn remove(&self, engine: &Engine, component: GuestComponent<'_>) {
        remove(&self.path(engine, component));
    }

    fn path(&self, engine: &Engine, component: GuestComponent<'_>) -> PathBuf {
        self.dir.join(file_name(engine, component.digest))
    }

    /// Removes the least recently loaded code beyond a number of bytes.
    fn prune(&self, kept: u64) {
        let Ok(entries) = fs::read_dir(&self.dir) else {
            return;
        };
        let mut found: Vec<(SystemTime, u64, PathBuf)> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "cwasm"))
            .filter_map(|path| {
                let data = fs::metadata(&path).ok()?;
                Some((data.modified().ok()?, data.len(), path))
            })
            .collect();
        found.sort_by(|one, other| other.cmp(one));
        let mut bytes = 0;
        for (_, length, path) in found {
            bytes += length;
            if bytes <= kept {
                continue;
            }
            remove(&path);
        }
    }
}

/// Removes code with its checksum. Processes that have mapped the file go on with it.
fn remove(path: &Path) {
    for extension in ["cwasm", "crc32"] {
        let _ = fs::remove_file(path.with_extension(extension));
    }
}

fn create_directory(dir: &Path) -> io::Result<()> {
    if let Some(parent) = dir.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Returns the name of a tier's lock file. A server without code does not wait for the optimised code of another.
const fn lock_file_name(tier: OptimizationTier) -> &'static str {
    match tier {
        OptimizationTier::Baseline => "baseline.lock",
        OptimizationTier::Optimised => "compile.lock",
    }
}

fn file_name(engine: &Engine, digest: GuestDigest) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    let compatible = hasher.finish();
    format!("{compatible:016x}-{digest}.cwasm")
}

fn lock_file(path: &Path) -> Option<File> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .ok()?;
    file.lock().ok()?;
    Some(file)
}

/// Loads the component in `path`; `None` if the file is missing, damaged, or made for another engine.
fn read_code(engine: &Engine, path: &Path) -> Option<Component> {
    match try_read_code(engine, path) {
        Ok(found) => found,
        Err(error) => {
            let path = path.display();
            tracing::warn!(%path, error = format!("{error:#}"), "a compiled guest is unusable; compiling it again");
            None
        }
    }
}

fn try_read_code(engine: &Engine, path: &Path) -> anyhow::Result<Option<Component>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let expected = fs::read_to_string(path.with_extension("crc32")).context("its checksum")?;
    let found = file_checksum(&mut file)?;
    anyhow::ensure!(
        expected.trim() == found,
        "its checksum is {found}, not {}",
        expected.trim()
    );
    let component = deserialize_file(engine, path)?;
    // The modification time says when the code was last used. If it cannot be set, the code is pruned earlier.
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    let _ = futimens(&file, &times);
    Ok(Some(component))
}

fn file_checksum(file: &mut File) -> io::Result<String> {
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(format!("{:08x}", hasher.finalize())),
            length => hasher.update(&buffer[..length]),
        }
    }
}

/// Writes code and checksum. After a crash between the two, the checksum does not match.
fn write_code(path: &Path, code: &[u8]) -> io::Result<()> {
    let checksum = format!("{:08x}\n", crc32fast::hash(code));
    replace_file(&path.with_extension("crc32"), checksum.as_bytes())?;
    replace_file(path, code)?;
    path.parent()
        .map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = File::create(&temporary)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[allow(
    unsafe_code,
    reason = "the file lies in a directory that only this user can write, and its checksum is that of code this program compiled"
)]
fn deserialize_file(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    // SAFETY: `CompiledGuestCache::open` refuses a directory that anyone else can write, files are replaced and never changed in
    // place, and the engine itself refuses the code of another version or other settings.
    unsafe { Component::deserialize_file(engine, path) }
}

#[allow(
    unsafe_code,
    reason = "the bytes are what this program has just compiled"
)]
fn deserialize(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the code is from this program, as it is or started once more with the same settings (`compiler.rs`), and the engine
    // refuses code of other settings.
    unsafe { Component::deserialize(engine, code) }
}

#[cfg(test)]
mod tests;
