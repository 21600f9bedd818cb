//! The components in a folder of guests: written by a command, or put there by hand.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::Context as _;

use super::record::InstalledGuest;
use svc_base::clock::Timestamp;
use svc_sandbox::{GuestDigest, World};

/// Whether a component was installed by a command: it serves when a record says so, and never because of its name.
pub(super) fn is_installed_by_command(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str());
    name.and_then(GuestDigest::from_hex).is_some()
}

/// How the name of a component ends that is being written.
pub(super) const TEMPORARY_SUFFIX: &str = ".wasm.new";

/// Refuses a folder of somebody else's: what is made in it could not be read, or locked, by whoever serves.
pub(super) fn check_owner(path: &Path) -> anyhow::Result<()> {
    let there = path.ancestors().find(|path| path.exists());
    let Some(there) = there else { return Ok(()) };
    let data = there
        .metadata()
        .with_context(|| format!("looking at {}", there.display()))?;
    anyhow::ensure!(
        data.uid() == rustix::process::geteuid().as_raw(),
        "{} is another user's: run this as the user that the server runs as",
        there.display()
    );
    Ok(())
}

/// A component that was put there by hand; one that cannot be read is named in the log.
pub(super) fn installed_by_hand(world: World, path: &Path) -> Option<InstalledGuest> {
    let look = || {
        let bytes = svc_sandbox::read_component(path)?;
        let since = path.metadata()?.modified()?;
        // What was made before anything was is as old as can be.
        let since = since
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        let name = path.file_name().and_then(|name| name.to_str());
        anyhow::Ok(InstalledGuest {
            digest: GuestDigest::of(&bytes),
            file: name.context("its name is not UTF-8")?.to_owned(),
            bytes: bytes.len() as u64,
            installed_at: Timestamp(i64::try_from(since.as_millis())?),
            from: path.display().to_string(),
        })
    };
    look()
        .inspect_err(|error| tracing::error!(guest = %world, from = %path.display(), error = format!("{error:#}"), "a guest cannot serve"))
        .ok()
}
