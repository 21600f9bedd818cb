//! Directories that hold secrets are closed to other users, whoever made them and however.
//!
//! A directory that exists keeps its mode: `mkdir` and systemd's `StateDirectory` give 0755. So every command works under a umask of
//! 077, and closes what it opens with everything of ours in it.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// What other users may do: nothing of it.
const OTHERS: u32 = 0o077;
/// The mode of a directory that belongs to everybody, as `/tmp` does.
const STICKY: u32 = 0o1000;
/// How many names a message has.
const NAMED: usize = 5;

/// What a directory is made of, by the names in it.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// What it is called in messages.
    pub what: &'static str,
    /// The file that tells it from other directories.
    pub mark: &'static str,
    /// The names in it.
    pub names: &'static [&'static str],
    /// How further names begin.
    pub prefixes: &'static [&'static str],
    /// Those that the user who works on it must own.
    pub owned: &'static [&'static str],
}

impl Layout {
    fn has(&self, name: &str) -> bool {
        self.names.contains(&name) || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}

/// Lets nobody else read what the process makes from now on.
pub fn begin() {
    use rustix::fs::Mode;
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Closes a directory and everything of ours in it to other users; answers the mode that it had if it was open. What is in it and
/// not ours is left as it is, since nobody else reaches it any more.
///
/// # Errors
/// When it belongs to somebody else, or is plainly no directory of this kind, or the disk's.
pub fn close(directory: &Path, layout: &Layout) -> anyhow::Result<Option<u32>> {
    let shown = directory.display();
    let found = fs::metadata(directory).with_context(|| format!("looking at {shown}"))?;
    if !found.is_dir() {
        bail!("{shown} is not a directory");
    }
    check_owner(&found, &format!("the {} {shown}", layout.what))?;
    let was_open = found.mode() & OTHERS != 0;
    if was_open && !is_one(directory, &found, layout)? {
        bail!(
            "{shown} holds other things and is open to other users (mode {:04o}): choose a directory of its own for the {}",
            found.mode() & 0o7777,
            layout.what
        );
    }
    // The door first: what is behind it is out of reach from then on.
    tighten(directory, &found)?;
    for (path, entry) in entries(directory)? {
        let name = name_of(&path);
        if !layout.has(&name) {
            continue;
        }
        if layout.owned.contains(&name.as_str()) {
            check_owner(&entry, &format!("{name} in {shown}"))?;
        }
        close_below(&path, &entry)?;
    }
    Ok(was_open.then_some(found.mode() & 0o7777))
}

/// What other users can reach of a directory: a sentence, or nothing when it is closed.
///
/// # Errors
/// The disk's.
pub fn opening(directory: &Path, layout: &Layout) -> io::Result<Option<String>> {
    let found = fs::metadata(directory)?;
    if found.mode() & OTHERS == 0 {
        return Ok(None);
    }
    let mut reached = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(inner) = open.pop() {
        for (path, entry) in entries(&inner)? {
            let ours = inner != *directory || layout.has(&name_of(&path));
            if !ours || entry.is_symlink() || entry.mode() & OTHERS == 0 {
                continue;
            }
            if entry.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap_or(&path);
                reached.push(name.display().to_string());
            }
        }
    }
    reached.sort_unstable();
    let more = reached.len().saturating_sub(NAMED);
    reached.truncate(NAMED);
    let files = match (reached.is_empty(), more) {
        (true, _) => "no file in it".to_owned(),
        (false, 0) => reached.join(", "),
        (false, more) => format!("{} and {more} more", reached.join(", ")),
    };
    Ok(Some(format!(
        "the {} is open to other users (mode {:04o}), who can read {files}",
        layout.what,
        found.mode() & 0o7777
    )))
}

/// Whether a directory is of this kind, or will be: it has the mark, or nothing that is not ours.
fn is_one(directory: &Path, found: &Metadata, layout: &Layout) -> io::Result<bool> {
    if directory.join(layout.mark).exists() {
        return Ok(true);
    }
    let everybodys = found.mode() & STICKY != 0;
    let mut names = entries(directory)?
        .into_iter()
        .map(|(path, _)| name_of(&path));
    // The root of a file system has one.
    Ok(!everybodys && names.all(|name| layout.has(&name) || name == "lost+found"))
}

fn check_owner(found: &Metadata, what: &str) -> anyhow::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user {
        bail!(
            "{what} belongs to user {} and this runs as user {user}: run it as that user, or give everything there to this one (chown)",
            found.uid()
        );
    }
    Ok(())
}

fn close_below(path: &Path, found: &Metadata) -> anyhow::Result<()> {
    let mut open: Vec<(PathBuf, Metadata)> = vec![(path.to_owned(), found.clone())];
    let user = rustix::process::geteuid().as_raw();
    while let Some((path, found)) = open.pop() {
        // A link has no mode, and leads to what is perhaps not ours.
        if found.is_symlink() || found.uid() != user {
            continue;
        }
        tighten(&path, &found)?;
        if found.is_dir() {
            open.extend(entries(&path)?);
        }
    }
    Ok(())
}

fn tighten(path: &Path, found: &Metadata) -> anyhow::Result<()> {
    if found.mode() & OTHERS == 0 {
        return Ok(());
    }
    let mode = found.mode() & 0o7777 & !OTHERS;
    match fs::set_permissions(path, Permissions::from_mode(mode)) {
        // Beside a server, files go away.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.with_context(|| format!("closing {} to other users", path.display())),
    }
}

/// What is in a directory; what goes away meanwhile is left out.
fn entries(directory: &Path) -> io::Result<Vec<(PathBuf, Metadata)>> {
    let listed = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut found = Vec::new();
    for entry in listed {
        let path = entry?.path();
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            metadata => found.push((path, metadata?)),
        }
    }
    Ok(found)
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout {
        what: "data directory",
        mark: "control.db",
        names: &["control.db", "content"],
        prefixes: &["before-"],
        owned: &["control.db"],
    };

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn everything_of_ours_is_closed_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("content/ab")).unwrap();
        fs::create_dir_all(at("before-restore/once")).unwrap();
        for name in [
            "control.db",
            "content/ab/page",
            "before-restore/once/x",
            "notes",
        ] {
            fs::write(at(name), "x").unwrap();
            set(&at(name), 0o644);
        }
        for name in ["", "content", "content/ab", "before-restore"] {
            set(&at(name), 0o755);
        }
        std::os::unix::fs::symlink("/etc/hostname", at("content/link")).unwrap();
        let said = opening(root.path(), &LAYOUT).unwrap().unwrap();
        for part in ["mode 0755", "control.db", "content/ab/page"] {
            assert!(said.contains(part), "{said}");
        }
        assert!(!said.contains("notes"), "{said}");
        assert_eq!(close(root.path(), &LAYOUT).unwrap(), Some(0o755));
        for name in ["", "content", "content/ab", "before-restore"] {
            assert_eq!(mode(&at(name)), 0o700, "{name}");
        }
        for name in ["control.db", "content/ab/page", "before-restore/once/x"] {
            assert_eq!(mode(&at(name)), 0o600, "{name}");
        }
        assert_eq!(mode(&at("notes")), 0o644);
        assert_eq!(opening(root.path(), &LAYOUT).unwrap(), None);
        // Behind a closed door, too.
        set(&at("control.db"), 0o664);
        assert_eq!(close(root.path(), &LAYOUT).unwrap(), None);
        assert_eq!(mode(&at("control.db")), 0o600);
    }

    #[test]
    fn a_directory_of_other_things_is_not_touched() {
        let root = tempfile::tempdir().unwrap();
        let photos = root.path().join("holiday.jpg");
        fs::write(&photos, "x").unwrap();
        set(root.path(), 0o755);
        let refused = close(root.path(), &LAYOUT).unwrap_err().to_string();
        assert!(refused.contains("of its own"), "{refused}");
        assert_eq!(mode(root.path()), 0o755);
        fs::remove_file(photos).unwrap();
        set(root.path(), 0o1777);
        assert!(close(root.path(), &LAYOUT).is_err(), "everybody's");
        // Empty, it may become one; closed, it is whoever's it is.
        set(root.path(), 0o755);
        assert_eq!(close(root.path(), &LAYOUT).unwrap(), Some(0o755));
        fs::write(root.path().join("svc.toml"), "").unwrap();
        assert_eq!(close(root.path(), &LAYOUT).unwrap(), None);
    }

    #[test]
    fn what_belongs_to_somebody_else_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("control.db");
        fs::write(&file, "x").unwrap();
        std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
        let refused = close(root.path(), &LAYOUT).unwrap_err().to_string();
        assert!(refused.contains("control.db"), "{refused}");
        assert!(refused.contains("user 65534"), "{refused}");
        std::os::unix::fs::chown(root.path(), Some(65_534), None).unwrap();
        let refused = close(root.path(), &LAYOUT).unwrap_err().to_string();
        assert!(refused.contains("the data directory"), "{refused}");
    }
}
