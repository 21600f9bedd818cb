//! Folders as they are read, and what no manifest can say.

use super::*;

fn folder(manifest: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(MANIFEST_FILE), manifest).unwrap();
    folder
}

fn read(folder: &tempfile::TempDir) -> Result<ProjectFolder> {
    ProjectFolder::read(
        &DirectoryHandle::open(folder.path())?,
        AcceptedOwners::default(),
    )
}

#[test]
fn a_folder_is_read_in_order() {
    let folder = folder(
        "project = \"Book\"\nhome = \"book\"\n[pages]\nbook = \"a.html\"\nnews = { file = \"n.md\", title = \"News\" }\n",
    );
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("migrations")).unwrap();
    for (name, text) in [
        ("a.html", "<h1>A"),
        ("n.md", "# N"),
        ("migrations/0002_b.sql", "B"),
        ("migrations/0001_a.sql", "A"),
        ("migrations/notes.txt", "no"),
    ] {
        std::fs::write(at(name), text).unwrap();
    }
    let read = read(&folder).unwrap();
    let names: Vec<_> = read
        .migrations
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["0001_a.sql", "0002_b.sql"]);
    assert_eq!(read.pages[1].title.as_deref(), Some("News"));
    assert!(read.actions.is_empty());
}

#[test]
fn what_no_manifest_can_say_is_refused() {
    for (text, said) in [
        ("", "project"),
        ("project = \"a\"\npage = 1", "page"),
        ("project = \"a\"\nserver = \"ftp://b.example\"", "server"),
        ("project = \"a\"\n[env.b]\nproject = \"b\"", "server"),
        (
            "project = \"a\"\n[env.b]\nserver = \"https://b.example\"\nhome = \"c\"",
            "home",
        ),
        (
            "project = \"a\"\n[env.\"b c\"]\nserver = \"https://b.example\"",
            "`b c`",
        ),
        (
            "project = \"a\"\n[[prices]]\nkey = \"price_a\"\nproduct = \"A\"\nlabel = \"A\"\namount = 1\ncurrency = \"eur\"",
            "price_a",
        ),
        (
            "project = \"a\"\n[[prices]]\nkey = \"a\"\nproduct = \"A\"\nlabel = \"A\"\namount = 1\ncurrency = \"eur\"\nrecurring = \"week\"",
            "recurring",
        ),
        (
            "project = \"a\"\ndomains = [\"https://b.example\"]",
            "no host name",
        ),
        (
            "project = \"a\"\n[env.b]\nserver = \"https://b.example\"\ndomains = [\"c.example\", \"C.example\"]",
            "named twice",
        ),
        ("project = \"a\"\n[pages]\nA = \"a.md\"", "`A`"),
        ("project = \"a\"\nhome = \"b\"", "home"),
        ("project = \"a\"\n[pages]\na = 5", "a file's name"),
        ("project = \"a\"\n[pages]\na = \"/etc/hostname\"", "Outside"),
        ("project = \"a\"\nactions = \"..\"", "Outside"),
        ("project = \"a\"\nactions = \".git/hooks\"", "is hidden"),
        ("project = \"a\"\nmigrations = \"a/.b\"", "is hidden"),
        ("project = \"a\"\nactions = \"\u{200c}.git\"", "is hidden"),
        (
            "project = \"a\"\n[pages]\na = \"GIT~1/config\"",
            "is hidden",
        ),
        ("project = \"a\"\n[pages]\na = \"missing.md\"", "missing.md"),
    ] {
        let refused = read(&folder(text)).unwrap_err().to_text();
        assert!(refused.contains(said), "{text}: {refused}");
    }
}

#[test]
fn what_is_wrong_with_a_manifest_has_its_place() {
    for (text, place) in [
        ("project = \"a\"\n[pages]\nA = \"a.md\"\n", "svc.toml:3:1: "),
        ("project = \"a\"\nhome = \"b\"\n", "svc.toml:2:8: "),
        (
            "project = \"a\"\nserver = \"ftp://b.example\"\n",
            "svc.toml:2:10: ",
        ),
        (
            "project = \"a\"\n[pages]\na = \"missing.md\"\n",
            "svc.toml:3:5: ",
        ),
        ("project = \"a\"\n[pages]\na = \".env\"\n", "svc.toml:3:5: "),
        (
            "project = \"a\"\n[[prices]]\nkey = \"b\"\nproduct = \"A\"\nlabel = \"A\"\namount = 0\ncurrency = \"eur\"\n",
            "svc.toml:3:7: ",
        ),
        (
            "project = \"a\"\n[env.\"b c\"]\nserver = \"https://b.example\"\n",
            "svc.toml:2:6: ",
        ),
    ] {
        let refused = read(&folder(text)).unwrap_err().to_text();
        assert!(refused.contains(place), "{text}: {refused}");
    }
}

#[test]
fn a_manifest_is_the_users_or_roots() {
    let check = |any_owner: bool, owner: u32| {
        let owners = AcceptedOwners { any_owner };
        owners.check(owner, Path::new(MANIFEST_FILE), "Name the project.")
    };
    let user = rustix::process::geteuid().as_raw();
    assert!(check(false, user).is_ok() && check(false, 0).is_ok());
    assert!(check(true, user + 1).is_ok());
    let refused = check(false, user + 1).unwrap_err().to_text();
    assert!(
        refused.contains("svc.toml") && refused.ends_with("Name the project."),
        "{refused}"
    );
}

#[test]
fn sudo_keeps_the_users_own_manifests() {
    for (owner, user, sudo_user, expected) in [
        (1000, 0, Some(1000), true),
        (1001, 0, Some(1000), false),
        (1000, 0, None, false),
        // Only root believes the variable.
        (1000, 1001, Some(1000), false),
    ] {
        let trusted = is_trusted_owner(owner, user, sudo_user);
        assert_eq!(trusted, expected, "{owner} {user} {sudo_user:?}");
    }
}

/// A few names may stand for more than the memory holds.
#[test]
fn a_folder_has_a_bound() {
    let folder = folder("project = \"a\"");
    std::fs::write(folder.path().join("a.md"), "1234").unwrap();
    let handle = DirectoryHandle::open(folder.path()).unwrap();
    for (files, bytes, expected) in [(2, 8, 2), (1, 8, 1), (2, 7, 1), (9, 3, 0)] {
        let mut budget = FolderBudget { files, bytes };
        let reads = std::iter::repeat_with(|| budget.read(&handle, Path::new("a.md")));
        let read = reads.take_while(Result::is_ok).take(9).count();
        assert_eq!(read, expected, "{files} {bytes}");
    }
    let long = format!("project = \"a\"\n{}", " ".repeat(1 << 20));
    std::fs::write(folder.path().join(MANIFEST_FILE), long).unwrap();
    let refused = read(&folder).unwrap_err().to_text();
    assert!(refused.contains("svc.toml has 1 MB or more"), "{refused}");
}

#[test]
fn a_link_is_not_followed() {
    let folder = folder("project = \"a\"\n[pages]\na = \"a.md\"");
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("a.md")).unwrap();
    let refused = read(&folder).unwrap_err().to_text();
    assert!(refused.contains("symbolic link"), "{refused}");
}
