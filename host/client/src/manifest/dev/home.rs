//! Hidden folder `.svc` beside svc.toml: the data of the folder's server, and what stays the same over its starts.

use std::fs::DirBuilder;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::{is_trusted_owner, sudo_user};
use crate::error::{CliFailure, FailureExitCode, Result};
use crate::files::{DirectoryHandle, PRIVATE_MODE};

/// Name of the hidden folder. Hidden files are never published.
const HOME: &str = ".svc";
/// Data directory of the server, in the hidden folder.
const DATA: &str = "dev";
/// File of the state, beside the data directory, so that `--fresh` keeps the port.
const STATE_FILE: &str = "dev.json";
/// The most bytes of the state.
const MAX_STATE_BYTES: u64 = 4096;

/// Hidden folder of a project's folder.
#[derive(Debug)]
pub(super) struct DevHome {
    path: PathBuf,
    handle: DirectoryHandle,
    inode: u64,
}

/// State that stays the same over starts, so that open pages and other shells find the server again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct DevState {
    /// Port of the last start.
    pub(super) port: Option<u16>,
    /// Credential of the workspace.
    pub(super) credential: Option<String>,
    /// Inode of the hidden folder. A repository or an archive may bring data whose credential its author knows; it cannot know this.
    #[serde(default)]
    home: Option<u64>,
}

impl DevHome {
    /// Opens the hidden folder of a folder, and makes it where there is none.
    ///
    /// # Errors
    /// When it cannot be made, is no folder, or is another user's: whoever owns it could have planted what the server loads.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let folder = folder
            .canonicalize()
            .map_err(|error| CliFailure::file_system("Reading", folder, &error))?;
        let path = folder.join(HOME);
        let is_new = match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(CliFailure::file_system("Making", &path, &error)),
        };
        let inode = check_own(&path)?;
        let handle = DirectoryHandle::open(&path)?;
        if is_new {
            // A folder that `svc init` has not made may have no `.gitignore` of its own, and a credential is kept in here.
            handle.write(Path::new(".gitignore"), b"*\n", false)?;
        }
        Ok(Self {
            path,
            handle,
            inode,
        })
    }

    /// Data directory of the server, which is to begin anew if `is_fresh`.
    ///
    /// # Errors
    /// When something else has its name, or when it was not made here.
    pub(super) fn data(&self, is_fresh: bool) -> Result<PathBuf> {
        let data = self.path.join(DATA);
        match data.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Marks data that is made from here on as this folder's, however the start ends.
                self.keep(&self.state())?;
                return Ok(data);
            }
            _ => check_own(&data)?,
        };
        if is_fresh || self.read_state().home == Some(self.inode) {
            return Ok(data);
        }
        Err(CliFailure::new(
            FailureExitCode::Failed,
            "Not your data",
            format!(
                "{} came with the folder, from another copy or another machine, and whoever made it knows its credential. `svc dev --fresh` begins anew without it.",
                data.display()
            ),
        ))
    }

    /// Reads the state; one that cannot be read, or was not made here, is empty, because all of it can be made anew.
    pub(super) fn state(&self) -> DevState {
        let state = self.read_state();
        match state.home == Some(self.inode) {
            true => DevState {
                home: None,
                ..state
            },
            false => DevState::default(),
        }
    }

    fn read_state(&self) -> DevState {
        let read = self
            .handle
            .read_with_owner(Path::new(STATE_FILE), MAX_STATE_BYTES);
        let bytes = read.ok().flatten().map(|(bytes, _)| bytes);
        bytes
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    /// Keeps the state, for the user alone.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn keep(&self, state: &DevState) -> Result<()> {
        let name = Path::new(STATE_FILE);
        let state = DevState {
            home: Some(self.inode),
            ..state.clone()
        };
        let bytes =
            serde_json::to_vec(&state).map_err(|error| CliFailure::local(error.to_string()))?;
        let mut draft = self.handle.create_temporary(name, PRIVATE_MODE)?;
        let written = draft.file.write_all(&bytes);
        written
            .map_err(|error| CliFailure::file_system("Writing", &self.path.join(name), &error))?;
        draft.persist(true)
    }
}

impl DevState {
    /// State of a server that runs.
    pub(super) fn new(port: Option<u16>, credential: String) -> Self {
        Self {
            port,
            credential: Some(credential),
            home: None,
        }
    }

    /// Address to listen on: on the port of the last start if that is free, else on a free one.
    pub(super) fn address(&self) -> SocketAddr {
        let at = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let kept = self.port.map(at);
        kept.filter(|address| TcpListener::bind(address).is_ok())
            .unwrap_or(at(0))
    }
}

/// Checks that a path is a folder of the user, and no link to one; returns its inode.
fn check_own(path: &Path) -> Result<u64> {
    let found = path
        .symlink_metadata()
        .map_err(|error| CliFailure::file_system("Reading", path, &error))?;
    let user = rustix::process::geteuid().as_raw();
    if found.is_dir() && is_trusted_owner(found.uid(), user, sudo_user()) {
        return Ok(found.ino());
    }
    let what = match found.is_dir() {
        true => format!("belongs to the user {}", found.uid()),
        false => "is no folder".to_owned(),
    };
    Err(CliFailure::new(
        FailureExitCode::Failed,
        "Not your folder",
        format!(
            "{} {what}, and `svc dev` keeps its data there: move it out of the way, or work in a copy of the folder.",
            path.display()
        ),
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_state_is_the_users_alone_and_what_is_no_state_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let home = DevHome::open(folder.path()).unwrap();
        assert_eq!(home.state(), DevState::default());
        let state = DevState::new(Some(1), "c".to_owned());
        home.keep(&state).unwrap();
        home.keep(&state).unwrap();
        let home = DevHome::open(folder.path()).unwrap();
        assert_eq!(home.state(), state);
        let mode = |name: &str| {
            let found = std::fs::metadata(folder.path().join(name)).unwrap();
            found.permissions().mode() & 0o777
        };
        assert_eq!(
            [mode(".svc"), mode(".svc/dev.json")],
            [0o700, 0o600],
            "nobody else reads it"
        );
        let ignored = std::fs::read_to_string(folder.path().join(".svc/.gitignore")).unwrap();
        assert_eq!(ignored, "*\n");
        std::fs::write(folder.path().join(".svc/dev.json"), "{").unwrap();
        assert_eq!(home.state(), DevState::default());
    }

    #[test]
    fn a_link_is_no_place_for_data() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join(".svc")).unwrap();
        let refused = DevHome::open(folder.path()).unwrap_err().to_text();
        assert!(refused.contains(".svc is no folder"), "{refused}");
        std::fs::remove_file(folder.path().join(".svc")).unwrap();
        let home = DevHome::open(folder.path()).unwrap();
        assert!(home.data(false).is_ok());
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join(".svc/dev")).unwrap();
        assert!(home.data(false).is_err());
        assert!(home.data(true).is_err());
    }

    #[test]
    fn data_that_came_with_the_folder_is_not_used() {
        let (author, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let home = DevHome::open(author.path()).unwrap();
        std::fs::create_dir(home.data(false).unwrap()).unwrap();
        home.keep(&DevState::new(Some(1), "known".to_owned()))
            .unwrap();
        assert!(home.data(false).is_ok());

        // As a repository brings it.
        std::fs::create_dir_all(user.path().join(".svc/dev")).unwrap();
        let brought = user.path().join(".svc/dev.json");
        std::fs::copy(author.path().join(".svc/dev.json"), brought).unwrap();
        let home = DevHome::open(user.path()).unwrap();
        assert_eq!(home.state(), DevState::default());
        let refused = home.data(false).unwrap_err().to_text();
        assert!(refused.contains("--fresh"), "{refused}");
        assert!(home.data(true).is_ok());
        // It is not taken for the user's own by being looked at.
        assert!(home.data(false).is_err());
    }

    #[test]
    fn a_port_that_is_taken_is_left() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let state = DevState::new(Some(port), "c".to_owned());
        assert_eq!(state.address().port(), 0);
        drop(taken);
        assert_eq!(state.address().port(), port);
        assert_eq!(DevState::default().address().port(), 0);
    }
}
