//! Hostile names from a foreign server, and a folder beside files that no command may touch.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Stands for the folder that holds the victim.
const ROOT: &str = "ROOT";

/// Names that are none: paths, options, commands, what steers a terminal, what other systems reserve, and what is no name at all.
pub(super) const INVALID_NAMES: [&str; 60] = [
    "../settings",
    "../../victim/settings",
    "../../../victim/settings",
    "nope/../../../victim/settings",
    "nope/../../victim/settings",
    "./../../victim/settings",
    "..//..//victim//settings",
    "link/settings",
    "link/../victim/settings",
    "ROOT/victim/settings",
    "//ROOT/victim/settings",
    "/etc/svc-was-here",
    "/proc/self/cwd/../../victim/settings",
    "/dev/null",
    ".",
    "..",
    "../",
    "/",
    "a/b",
    "a/",
    "/a",
    "a//b",
    "./a",
    ".git/hooks/post-checkout",
    ".bashrc",
    ".svc-draft",
    "~",
    "~/.bashrc",
    "$HOME/.bashrc",
    "..\\..\\victim\\settings",
    "C:\\victim\\settings",
    "\\\\host\\share",
    "CON",
    "NUL.txt",
    "a.",
    "a ",
    " a",
    "a:b",
    "%2e%2e%2f%2e%2e%2fvictim%2fsettings",
    "..%2f..%2fvictim%2fsettings",
    "..;/victim/settings",
    "\u{ff0e}\u{ff0e}\u{ff0f}victim\u{ff0f}settings",
    "\u{2025}/victim/settings",
    "--force",
    "-rf",
    "-o/tmp/svc-was-here",
    "a\0b",
    "../../victim/settings\0",
    "a\nb",
    "a\r\nb",
    "\u{1b}[2J\u{1b}]0;owned\u{7}",
    "\u{9b}2J",
    "\u{202e}dm.a",
    "a\u{7f}",
    "a\"]\n[pages.b]\nfile = \"../victim/settings.md",
    "$(touch svc-was-here)",
    "`touch svc-was-here`",
    "a;touch svc-was-here",
    "*",
    "",
];

/// A folder to work in, with a folder of the user's files, beside what nobody may touch.
pub(super) struct VictimFolder {
    pub(super) root: TempDir,
}

/// Mode, content and times of everything below a folder.
type FolderSnapshot = BTreeMap<PathBuf, (u32, Vec<u8>, i64, i64)>;

impl VictimFolder {
    pub(super) fn new() -> Self {
        let root = TempDir::new().unwrap();
        let trap = Self { root };
        for extension in ["md", "sql", "db", "toml", "txt"] {
            trap.write(&format!("victim/settings.{extension}"), "mine");
            trap.write(&format!("work/settings.{extension}"), "mine");
            trap.write(&format!("settings.{extension}"), "mine");
        }
        trap.write("victim/settings", "mine");
        trap.write("work/copy/page.md", "# Mine\n");
        trap.write("work/copy/actions/keep.sql", "SELECT 'mine'\n");
        trap.write("work/copy/out.md", "mine");
        std::os::unix::fs::symlink("../../victim", trap.path_of("work/copy/link")).unwrap();
        std::os::unix::fs::symlink("../victim", trap.path_of("work/link")).unwrap();
        trap
    }

    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(super) fn work(&self) -> PathBuf {
        self.path_of("work")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path_of(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The names, with the place of the victim in them.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        let root = self.root.path().to_str().unwrap().to_owned();
        INVALID_NAMES.iter().map(move |name| {
            name.replace(ROOT, root.trim_start_matches('/')).replacen(
                // One of them begins at the root of the file system.
                root.trim_start_matches('/'),
                &root,
                usize::from(name.starts_with(ROOT)),
            )
        })
    }

    /// All that is there now.
    pub(super) fn snapshot(&self) -> FolderSnapshot {
        let mut tree = BTreeMap::new();
        walk_folder(self.root.path(), &mut tree);
        tree
    }
}

fn walk_folder(path: &Path, tree: &mut FolderSnapshot) {
    let found = std::fs::symlink_metadata(path).unwrap();
    let content = match (found.is_file(), found.is_symlink()) {
        (true, _) => std::fs::read(path).unwrap(),
        (_, true) => {
            let link = std::fs::read_link(path).unwrap();
            link.into_os_string().into_encoded_bytes()
        }
        _ => Vec::new(),
    };
    // A folder's own time changes with a draft in it, which is gone again.
    let (seconds, nanoseconds) = match found.is_dir() {
        true => (0, 0),
        false => (found.mtime(), found.mtime_nsec()),
    };
    tree.insert(
        path.to_owned(),
        (found.mode(), content, seconds, nanoseconds),
    );
    if found.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            walk_folder(&entry.unwrap().path(), tree);
        }
    }
}

/// Asserts that an output has no control characters for a terminal.
pub(super) fn assert_terminal_safe(text: &str, case: &str) {
    let steers = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202a}'..='\u{202e}')
    };
    assert!(!text.chars().any(steers), "{case}: {text:?}");
}
