//! Which components are to serve: what an operator chose, in the order in which it is tried.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::values::{GuestDigest, World};

/// Where a component comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GuestOrigin {
    /// The one in this program.
    BuiltIn,
    /// A file.
    File {
        /// Where it is.
        path: PathBuf,
        /// Digest that the file must have; any other file is refused.
        digest: Option<GuestDigest>,
    },
}

/// The components of a world: the first that can serve does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GuestChoice {
    /// In the order in which they are tried.
    pub origins: Vec<GuestOrigin>,
    /// Whether the next that can serve stands by, to be asked where the first one fails; see `trial.rs`.
    pub on_trial: bool,
}

impl Default for GuestChoice {
    /// The one in this program.
    fn default() -> Self {
        Self {
            origins: vec![GuestOrigin::BuiltIn],
            on_trial: false,
        }
    }
}

/// The components of both worlds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct GuestChoices {
    /// Choice of renderers.
    pub render: GuestChoice,
    /// Choice of gates.
    pub gate: GuestChoice,
}

impl GuestChoices {
    /// The choice of a world.
    pub fn of(&mut self, world: World) -> &mut GuestChoice {
        match world {
            World::Render => &mut self.render,
            World::Gate => &mut self.gate,
        }
    }
}

/// The components that lie in a folder, the newest first; none where there is no folder. Of several the one whose name sorts last is
/// the newest, so names begin with a number of fixed width; names that begin with a dot are not looked at, so that a file may be written
/// under such a name and then renamed.
#[must_use]
pub fn components_newest_first(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension() == Some(OsStr::new("wasm")))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."))
        })
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_component_has_the_last_name() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "000001-a.wasm",
            "000002-b.wasm",
            ".000003.wasm",
            "notes.txt",
        ] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let found = components_newest_first(dir.path());
        let names: Vec<_> = found.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(names, ["000002-b.wasm", "000001-a.wasm"]);
        assert!(components_newest_first(&dir.path().join("none")).is_empty());
    }
}
