//! Files of a folder that somebody else may have filled.

use std::os::unix::fs::symlink;

use rustix::fs::{FileType, Mode};

use super::*;

/// A folder, with a file beside it that must not be touched.
struct FolderWithVictim {
    root: tempfile::TempDir,
    folder: DirectoryHandle,
}

impl FolderWithVictim {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("victim"), "mine").unwrap();
        let folder = DirectoryHandle::create(&root.path().join("folder")).unwrap();
        Self { root, folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().join("folder").join(name)
    }
}

#[test]
fn names_that_lead_elsewhere_are_neither_read_nor_written() {
    let trap = FolderWithVictim::new();
    symlink("..", trap.at("up")).unwrap();
    symlink(trap.root.path(), trap.at("absolute")).unwrap();
    let absolute = trap.root.path().join("victim");
    for name in [
        "../victim",
        "a/../../victim",
        "a/../b",
        "up/victim",
        "absolute/victim",
        absolute.to_str().unwrap(),
    ] {
        let name = Path::new(name);
        let compared = trap.folder.compare(name, b"mine");
        assert!(!matches!(
            compared,
            Ok(FileComparison::Same | FileComparison::Different)
        ));
        for failure in [
            trap.folder.read(name).unwrap_err(),
            trap.folder.write(name, b"theirs", true).unwrap_err(),
        ] {
            let said = failure.to_text();
            let is_named = ["Outside of the folder", "symbolic link"]
                .iter()
                .any(|words| said.contains(words));
            assert!(is_named, "{name:?}: {said}");
        }
    }
    let kept = std::fs::read_to_string(trap.root.path().join("victim")).unwrap();
    assert_eq!(kept, "mine");
}

/// A link to a folder inside may lead to hidden files behind a name that is not hidden.
#[test]
fn a_link_is_followed_in_no_part_of_a_name() {
    let trap = FolderWithVictim::new();
    std::fs::create_dir_all(trap.at(".git/objects")).unwrap();
    std::fs::write(trap.at(".git/config"), "secret").unwrap();
    std::fs::create_dir(trap.at("real")).unwrap();
    symlink(".git", trap.at("pub")).unwrap();
    symlink("../.git", trap.at("real/deep")).unwrap();
    symlink("nowhere", trap.at("dangling")).unwrap();
    for name in [
        "pub/config",
        "pub/commondir",
        "./pub/objects/new",
        "real/deep/config",
        "dangling/new",
    ] {
        let name = Path::new(name);
        for failure in [
            trap.folder.read_if_exists(name).unwrap_err(),
            trap.folder.compare(name, b"").unwrap_err(),
            trap.folder.write(name, b"theirs", false).unwrap_err(),
            trap.folder.write(name, b"theirs", true).unwrap_err(),
            trap.folder.list(name.parent().unwrap(), "sql").unwrap_err(),
        ] {
            let said = failure.to_text();
            assert!(said.contains("is a symbolic link"), "{name:?}: {said}");
        }
    }
    let left = std::fs::read_dir(trap.at(".git")).unwrap().flatten();
    assert_eq!(left.count(), 2, "nothing was written");
}

#[test]
fn a_private_file_stays_private() {
    let trap = FolderWithVictim::new();
    let name = Path::new("svc.toml");
    trap.folder.write(name, b"one", false).unwrap();
    let private = Permissions::from_mode(0o600);
    std::fs::set_permissions(trap.at("svc.toml"), private).unwrap();
    trap.folder.write(name, b"two", true).unwrap();
    let kept = std::fs::metadata(trap.at("svc.toml")).unwrap();
    assert_eq!(kept.permissions().mode() & 0o777, 0o600);
}

#[test]
fn only_regular_files_are_read_and_replaced() {
    let trap = FolderWithVictim::new();
    std::fs::write(trap.at("real"), "real").unwrap();
    symlink("real", trap.at("inside")).unwrap();
    symlink("../victim", trap.at("outside")).unwrap();
    symlink("nowhere", trap.at("dangling")).unwrap();
    std::fs::create_dir(trap.at("folder")).unwrap();
    let fifo = FileType::Fifo;
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, trap.at("pipe"), fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(trap.at("socket")).unwrap();
    for (name, what) in [
        ("inside", "symbolic link"),
        ("outside", "symbolic link"),
        ("dangling", "symbolic link"),
        ("folder", "directory"),
        ("pipe", "named pipe"),
        ("socket", "socket"),
    ] {
        let name = Path::new(name);
        for failure in [
            trap.folder.read(name).unwrap_err(),
            trap.folder.compare(name, b"").unwrap_err(),
            trap.folder.write(name, b"new", true).unwrap_err(),
            trap.folder.write(name, b"new", false).unwrap_err(),
        ] {
            let said = failure.to_text();
            assert!(said.contains(what), "{name:?}: {said}");
        }
    }
    assert_eq!(std::fs::read_to_string(trap.at("real")).unwrap(), "real");
    let left = std::fs::read_dir(trap.at("")).unwrap().flatten();
    assert_eq!(left.count(), 7, "no draft is left");
}

#[test]
fn a_file_is_replaced_only_where_that_is_wanted() {
    let trap = FolderWithVictim::new();
    let name = Path::new("below/a.md");
    assert_eq!(
        trap.folder.compare(name, b"one").unwrap(),
        FileComparison::Missing
    );
    trap.folder.write(name, b"one", false).unwrap();
    assert_eq!(
        trap.folder.compare(name, b"one").unwrap(),
        FileComparison::Same
    );
    assert_eq!(
        trap.folder.compare(name, b"two").unwrap(),
        FileComparison::Different
    );
    assert!(trap.folder.write(name, b"two", false).is_err());
    // A file that appears after the check.
    let draft = trap
        .folder
        .create_temporary(Path::new("late"), DEFAULT_FILE_MODE)
        .unwrap();
    std::fs::write(trap.at("late"), "theirs").unwrap();
    assert!(draft.rename_without_replacing().is_err());
    drop(draft);
    assert_eq!(std::fs::read_to_string(trap.at("late")).unwrap(), "theirs");
    // A hard link to the same file keeps its content, too.
    std::fs::hard_link(trap.at("below/a.md"), trap.at("other")).unwrap();
    trap.folder.write(name, b"two", true).unwrap();
    assert_eq!(std::fs::read_to_string(trap.at("other")).unwrap(), "one");
    assert_eq!(trap.folder.read(name).unwrap(), b"two");
}
