//! Component files in a folder of guests: installed by a command, or copied there by hand.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::Context as _;

use super::record::InstalledGuest;
use svc_base::clock::Timestamp;
use svc_sandbox::{GuestDigest, World};

/// Whether a command installed the component. It serves only if the record says so, whatever its name is.
pub(super) fn is_installed_by_command(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str());
    name.and_then(GuestDigest::from_hex).is_some()
}

/// Suffix of a component that is being written.
pub(super) const TEMPORARY_SUFFIX: &str = ".wasm.new";

/// Fails if the folder belongs to another user: the server could not read or lock the files created in it.
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

/// Describes a component that was copied there by hand; an unreadable one is logged.
pub(super) fn installed_by_hand(world: World, path: &Path) -> Option<InstalledGuest> {
    let look = || {
        let bytes = svc_sandbox::read_component(path)?;
        let since = path.metadata()?.modified()?;
        // A time before the epoch counts as the epoch.
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
