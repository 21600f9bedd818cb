//! Folders as they are read: what is published, what is left out and said, and what is refused.

use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;

use super::*;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn paths(site: &SiteFolder) -> Vec<&str> {
    site.files.keys().map(String::as_str).collect()
}

#[test]
fn files_are_published_and_what_is_hidden_is_left_out() {
    let folder = folder(&[
        ("index.html", "<p>"),
        ("assets/a.js", "run()"),
        (".well-known/assetlinks.json", "[]"),
        (".env", "KEY"),
        (".git/config", "x"),
        ("assets/.DS_Store", "x"),
        ("node_modules/x/index.js", "x"),
        ("docs/node_modules/y.js", "x"),
        ("svc.toml", "project = \"a\""),
        ("docs/svc.toml", "kept"),
    ]);
    let site = SiteFolder::read(&folder.path().join("")).unwrap();
    let expected = [
        ".well-known/assetlinks.json",
        "assets/a.js",
        "docs/svc.toml",
        "index.html",
    ];
    assert_eq!(paths(&site), expected);
    assert_eq!(site.bytes(), 2 + 5 + 4 + 3);
    assert!(
        site.notes[0].contains(".env") && site.notes[0].contains("node_modules"),
        "{:?}",
        site.notes
    );
    assert_eq!(site.read_file("assets/a.js").unwrap(), b"run()");
    std::fs::write(folder.path().join("assets/a.js"), "run!!").unwrap();
    let changed = site.read_file("assets/a.js").unwrap_err();
    assert!(changed.to_text().contains("was written"), "{changed:?}");
}

#[test]
fn links_lead_to_files_of_the_site_or_nowhere() {
    let folder = folder(&[
        ("site/index.html", "<p>"),
        ("site/v2/a.html", "a"),
        ("site/v2/b/c.html", "c"),
        ("site/.env", "KEY"),
        ("key", "secret"),
    ]);
    let root = folder.path().join("site");
    for (link, target) in [
        ("latest", "v2"),
        ("home.html", "index.html"),
        ("v2/up.html", "../index.html"),
        ("env.txt", ".env"),
        ("key.txt", "../key"),
        ("absolute", "/etc/passwd"),
        ("self", "."),
        ("v2/loop", ".."),
        ("gone", "nothing"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    let site = SiteFolder::read(&root).unwrap();
    let found = paths(&site);
    for path in [
        "home.html",
        "latest/a.html",
        "latest/b/c.html",
        "v2/up.html",
    ] {
        assert!(found.contains(&path), "{path}: {found:?}");
    }
    for path in ["env.txt", "key.txt", "absolute", "gone"] {
        assert!(!found.contains(&path), "{path}: {found:?}");
    }
    assert!(
        !found
            .iter()
            .any(|path| path.starts_with("self/") || path.starts_with("v2/loop/")),
        "{found:?}"
    );
    assert!(
        site.notes[1].contains("env.txt is a link"),
        "{:?}",
        site.notes
    );
    assert_eq!(site.read_file("latest/b/c.html").unwrap(), b"c");
    for (path, target) in [
        ("index.html", Some("index.html")),
        ("home.html", Some("index.html")),
        ("latest/new.html", Some("v2/new.html")),
        ("v2/new.html", Some("v2/new.html")),
        ("absolute", None),
        ("absolute/x", None),
    ] {
        assert_eq!(site.linked_path(path).as_deref(), target, "{path}");
    }
}

#[test]
fn paths_that_no_folder_publishes_are_told() {
    for (path, expected) in [
        ("index.html", false),
        (".well-known/x", false),
        ("docs/svc.toml", false),
        ("svc.toml", true),
        ("node_modules/x.js", true),
        ("a/node_modules/b/x.js", true),
        ("a/.env", true),
    ] {
        assert_eq!(is_path_left_out(path), expected, "{path}");
    }
}

#[test]
fn names_that_no_address_has_are_refused_or_made_normal() {
    let normal = folder(&[("u\u{308}.html", "x")]);
    let site = SiteFolder::read(normal.path()).unwrap();
    assert_eq!(paths(&site), ["ü.html"]);
    assert!(site.notes[0].contains("NFC"), "{:?}", site.notes);
    assert_eq!(site.name_of("ü.html"), Some(Path::new("u\u{308}.html")));
    assert_eq!(site.read_file("ü.html").unwrap(), b"x");
    for (files, said) in [
        (&[("u\u{308}", "a"), ("ü", "b")][..], "normal form"),
        (&[("a\\b", "a")], "backslash"),
        (&[("a\nb", "a")], "control character"),
        (&[("_svc/runtime.js", "a")], "platform"),
        (&[], "no file"),
        (&[(".env", "a")], "no file"),
    ] {
        let folder = folder(files);
        let refused = SiteFolder::read(folder.path()).unwrap_err().to_text();
        assert!(refused.contains(said), "{said}: {refused}");
    }
    let bytes = folder(&[]);
    let name = std::ffi::OsString::from_vec(b"a\xff".to_vec());
    std::fs::write(bytes.path().join(name), "x").unwrap();
    let refused = SiteFolder::read(bytes.path()).unwrap_err().to_text();
    assert!(refused.contains("UTF-8"), "{refused}");
}

#[test]
fn a_link_to_a_folder_is_no_folder() {
    let folder = folder(&[("site/index.html", "<p>")]);
    symlink("site", folder.path().join("link")).unwrap();
    for (name, expected) in [
        ("site", true),
        ("site/", true),
        ("link", false),
        ("link/", false),
        ("site/index.html", false),
        ("none", false),
    ] {
        assert_eq!(is_folder(&folder.path().join(name)), expected, "{name}");
    }
}
