//! Choices of components that are to serve, in the order in which they are tried.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::values::{GuestDigest, World};

/// Source of a component.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GuestOrigin {
    /// The component built into this program.
    BuiltIn,
    /// A file.
    File {
        /// Path of the file.
        path: PathBuf,
        /// Digest that the file must have; any other file is refused.
        digest: Option<GuestDigest>,
    },
}

/// Components of a world; the first one that can serve does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GuestCandidates {
    /// Components in the order in which they are tried.
    pub origins: Vec<GuestOrigin>,
    /// Whether the next component that can serve stands by, for calls that fail with the first; see `trial.rs`.
    pub on_trial: bool,
}

impl Default for GuestCandidates {
    /// Chooses the built-in component.
    fn default() -> Self {
        Self {
            origins: vec![GuestOrigin::BuiltIn],
            on_trial: false,
        }
    }
}

/// The components of both worlds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct GuestCandidatesByWorld {
    /// Choice of renderers.
    pub render: GuestCandidates,
    /// Choice of gates.
    pub gate: GuestCandidates,
}

impl GuestCandidatesByWorld {
    /// Returns the choice of a world.
    pub fn of(&mut self, world: World) -> &mut GuestCandidates {
        match world {
            World::Render => &mut self.render,
            World::Gate => &mut self.gate,
        }
    }
}

/// Lists the components in a folder, the newest first; empty if there is no folder. The name that sorts last is the newest, so
/// names begin with a number of fixed width. Names that begin with a dot are ignored: a file may be written under such a name and
/// then renamed.
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
