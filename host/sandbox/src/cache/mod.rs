//! Compiled guests, kept between starts.
//!
//! Loading compiled code is running it: nothing in it is checked that an attacker could not have changed. So the
//! directory must be the user's own and closed to everyone else, and a file that is not whole (a full disk, a
//! torn copy) is noticed by its checksum and compiled again.
//!
//! `<engine>-<component>.cwasm` holds the code, `….crc32` beside it eight hexadecimal digits, and one lock for each tier keeps two
//! processes from compiling the same guest at once. `<engine>` is a hash of the engine's version, its settings with the tier, and
//! the processor's features; `<component>` is the component's SHA-256. Anything may be deleted at any time; what has not been loaded for longest is, once there is too much.

use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context as _;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::values::GuestDigest;
use svc_base::Stopwatch;

/// How much code is kept, in bytes: several data directories and versions of the host share it.
const MAX_CODE_BYTES: u64 = 512 << 20;

/// How much work the compiler puts into code. Fuel, memory, time and stack are bounded alike in both.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Tier {
    /// Code that is ready soon: for a server that has none yet.
    Baseline,
    /// Code that is fast.
    Optimised,
}

impl Tier {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Optimised => "optimised",
        }
    }

    /// The name of its lock: a server that has no code yet does not wait for another's optimised code.
    const fn lock_file_name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline.lock",
            Self::Optimised => "compile.lock",
        }
    }
}

/// The engine that compiles code of a tier, and the one that runs it: their settings differ in nothing that running depends on.
#[derive(Debug)]
pub(super) struct Compiler<'e> {
    pub(super) tier: Tier,
    pub(super) compiling_engine: &'e Engine,
    pub(super) running_engine: &'e Engine,
}

/// The directory of compiled guests.
#[derive(Debug)]
pub(super) struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// Opens the directory, making it where it is missing.
    ///
    /// # Errors
    ///
    /// It cannot be made, is not a directory, is not the user's own, or is open to others.
    pub(super) fn open(dir: PathBuf) -> anyhow::Result<Self> {
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
            return Ok(Self { dir });
        };
        anyhow::bail!(
            "the cache {} {refused}: compiled guests are run as they are found there, so it must be yours alone \
             (repair it with chmod, or name another one with `cache`)",
            dir.display()
        )
    }

    /// Finds the compiled form of `component`; `None` where it has yet to be compiled.
    pub(super) fn find(&self, compiler: &Compiler<'_>, component: &[u8]) -> Option<Component> {
        read_code(compiler.running_engine, &self.path(compiler, component))
    }

    /// The compiled form of `component`, from the cache where it has one and into it where it has not.
    ///
    /// # Errors
    ///
    /// The component does not compile. A cache that fails is a warning in the log.
    pub(super) fn load(
        &self,
        compiler: &Compiler<'_>,
        component: &[u8],
    ) -> anyhow::Result<Component> {
        if let Some(found) = self.find(compiler, component) {
            return Ok(found);
        }
        // Held until the end: who waited for it finds the file. Without it the work is done twice, and no worse.
        let _lock = lock_file(&self.dir.join(compiler.tier.lock_file_name()));
        if let Some(found) = self.find(compiler, component) {
            return Ok(found);
        }
        let (stopwatch, tier) = (Stopwatch::start(), compiler.tier.as_str());
        tracing::info!(
            tier,
            bytes = component.len(),
            "compiling a guest for the first time on this machine; pages are served meanwhile"
        );
        let code =
            catch_compiler_panic(|| compiler.compiling_engine.precompile_component(component))
                .context("it does not compile")?;
        tracing::info!(
            tier,
            code_bytes = code.len(),
            milliseconds = stopwatch.elapsed().as_millis(),
            "compiled a guest"
        );
        let path = self.path(compiler, component);
        if let Err(error) = write_code(&path, &code) {
            let path = path.display();
            tracing::warn!(%path, %error, "cannot keep a compiled guest; the next start compiles it again");
        } else if let Some(found) = read_code(compiler.running_engine, &path) {
            self.prune(MAX_CODE_BYTES);
            // From the file rather than from `code`: the system then shares and drops its pages.
            return Ok(found);
        }
        deserialize(compiler.running_engine, &code)
            .map_err(anyhow::Error::from)
            .context("it does not load")
    }

    /// Removes the compiled form of `component`, where there is one.
    pub(super) fn remove(&self, compiler: &Compiler<'_>, component: &[u8]) {
        remove(&self.path(compiler, component));
    }

    fn path(&self, compiler: &Compiler<'_>, component: &[u8]) -> PathBuf {
        self.dir
            .join(file_name(compiler.compiling_engine, component))
    }

    /// Removes the code that has not been loaded for longest, beyond so many bytes.
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

/// Removes code with its checksum. Processes that have mapped the file keep it.
fn remove(path: &Path) {
    for extension in ["cwasm", "crc32"] {
        let _ = fs::remove_file(path.with_extension(extension));
    }
}

/// Runs a compiler. One that gives up on a strange component by a panic takes nothing with it but that component.
fn catch_compiler_panic(
    compile: impl FnOnce() -> wasmtime::Result<Vec<u8>>,
) -> anyhow::Result<Vec<u8>> {
    // It keeps nothing of its own between components that a panic could leave half done.
    match panic::catch_unwind(AssertUnwindSafe(compile)) {
        Ok(result) => result.map_err(anyhow::Error::from),
        Err(_) => anyhow::bail!("the compiler gave up on it"),
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

fn file_name(engine: &Engine, component: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    let compatible = hasher.finish();
    let digest = GuestDigest::of(component);
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

/// The component in `path`, or `None` where there is none that is whole and fits the engine.
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
    let found = checksum(&mut file)?;
    anyhow::ensure!(
        expected.trim() == found,
        "its checksum is {found}, not {}",
        expected.trim()
    );
    let component = deserialize_file(engine, path)?;
    // Its time says when it was last of use. Where that cannot be noted it only goes earlier.
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

fn checksum(file: &mut File) -> io::Result<String> {
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(format!("{:08x}", hasher.finalize())),
            length => hasher.update(&buffer[..length]),
        }
    }
}

/// Writes the code and its checksum so that either both are whole or the checksum tells.
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
    // SAFETY: `Cache::open` refuses a directory that anyone else can write, files are replaced and never changed in
    // place, and the engine itself refuses the code of another version or other settings.
    unsafe { Component::deserialize_file(engine, path) }
}

#[allow(
    unsafe_code,
    reason = "the bytes are what this engine has just compiled"
)]
fn deserialize(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: `code` comes straight from `precompile_component` of the same engine.
    unsafe { Component::deserialize(engine, code) }
}

#[cfg(test)]
mod tests;
