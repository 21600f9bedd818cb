//! Claim of an installation on a directory of content outside of its data. Two installations that shared one would delete each
//! other's objects, and a directory that is not mounted must not be taken for a new one.

use std::fs::{self, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};

use super::local::OPENED_FILE;
use crate::data_lock::create_private_dir;
use svc_base::disk;
use svc_base::file_lock::FileLock;
use svc_base::random::Random;

/// File of the data directory with the name of the installation.
const NAME_FILE: &str = "content.id";
/// File of the claimed directory with the name of the installation that it belongs to.
pub const OWNER_FILE: &str = "installation";

/// A claim, held until it is dropped.
#[derive(Debug)]
pub(super) struct ContentClaim {
    _locked: FileLock,
}

impl ContentClaim {
    /// Claims `directory` for the installation in `data`. One that `is_known` was claimed before; another is new, or has only content
    /// copied from the earlier location.
    ///
    /// # Errors
    /// A directory of another installation, one that lost its claim, or one with foreign files; the disk's.
    pub(super) fn take(
        data: &Path,
        directory: &Path,
        is_known: bool,
        random: &Random,
    ) -> anyhow::Result<Self> {
        let (own, shown) = (installation_name(data, random)?, directory.display());
        let path = directory.join(OWNER_FILE);
        if !path.exists() {
            if is_known {
                bail!("{shown} is not as this installation has left it: is it mounted?");
            }
            create_private_dir(directory)?;
            check_is_for_content(directory)?;
        }
        let locked = FileLock::try_exclusive(FileLock::open_file(&path)?)?;
        let locked = locked.with_context(|| format!("{shown} is in use by another server"))?;
        let (mut file, mut owner) = (&*locked, String::new());
        file.read_to_string(&mut owner)?;
        if owner.is_empty() {
            file.write_all(own.as_bytes())?;
            file.sync_all()?;
            disk::sync_directory(&disk::open_directory(directory)?)?;
        } else if owner != own {
            bail!(
                "{shown} belongs to another installation: name a directory of this one's own, or remove {}, if that installation is no more",
                path.display()
            );
        }
        // A copy made by hand may be readable by others.
        fs::set_permissions(directory, Permissions::from_mode(0o700))?;
        Ok(Self { _locked: locked })
    }
}

/// Reads the name of an installation, which is generated when it is first needed.
pub(super) fn installation_name(data: &Path, random: &Random) -> anyhow::Result<String> {
    let path = data.join(NAME_FILE);
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let own = random.slug(24)?;
            disk::replace_file(&disk::open_directory(data)?, NAME_FILE, own.as_bytes())?;
            Ok(own)
        }
        own => own.with_context(|| format!("reading {}", path.display())),
    }
}

/// Refuses a directory with foreign files.
fn check_is_for_content(directory: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let shard = |name: &str| name.len() == 2 && name.bytes().all(|b| b.is_ascii_hexdigit());
        if !name
            .to_str()
            .is_some_and(|it| it == OPENED_FILE || shard(it))
        {
            bail!(
                "{} has other files, such as {}: name a directory for content alone",
                directory.display(),
                name.display()
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_one_installations_and_for_content_alone() {
        let root = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| root.path().join(name));
        for data in [&one, &other] {
            fs::create_dir(data).unwrap();
        }
        let store = root.path().join("a/store");
        let take = |data: &Path, is_known| {
            ContentClaim::take(data, &store, is_known, &Random::system())
                .map_err(|error| error.to_string())
        };
        let why = |data: &Path, is_known| take(data, is_known).unwrap_err();
        assert!(why(&one, true).contains("is it mounted?"));
        assert!(!store.exists());
        let claim = take(&one, false).unwrap();
        assert!(why(&one, true).contains("in use by another server"));
        drop(claim);
        fs::set_permissions(&store, Permissions::from_mode(0o755)).unwrap();
        take(&one, true).unwrap();
        assert_eq!(
            fs::metadata(&store).unwrap().permissions().mode() & 0o777,
            0o700
        );
        for is_known in [false, true] {
            assert!(why(&other, is_known).contains("belongs to another installation"));
        }
        // Only objects that were copied from the data directory are accepted.
        fs::remove_file(store.join(OWNER_FILE)).unwrap();
        fs::create_dir(store.join("0f")).unwrap();
        fs::write(store.join(OPENED_FILE), "").unwrap();
        take(&other, false).unwrap();
        fs::remove_file(store.join(OWNER_FILE)).unwrap();
        fs::write(store.join("letters"), "").unwrap();
        assert!(why(&one, false).contains("such as letters"));
        assert!(!store.join(OWNER_FILE).exists());
    }
}
