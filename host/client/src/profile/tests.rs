//! Profiles and the credentials that they choose.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn known() -> Profiles {
    let one = |server: &str, credential: &str| Profile {
        server: parse_server_url(server).unwrap(),
        credential: credential.to_owned(),
    };
    Profiles {
        current: Some("home".to_owned()),
        profiles: [
            ("home".to_owned(), one("https://home.example", "H")),
            ("work".to_owned(), one("https://work.example", "W")),
        ]
        .into(),
    }
}

fn remote(profile: Option<&str>, server: Option<&str>) -> ServerSelectionArgs {
    ServerSelectionArgs {
        profile: profile.map(str::to_owned),
        server: server.map(str::to_owned),
    }
}

#[test]
fn a_credential_goes_to_its_own_server_alone() {
    let environment = |server: Option<&str>, profile: Option<&str>, credential: Option<&str>| {
        EnvironmentSettings {
            server: server.map(str::to_owned),
            profile: profile.map(str::to_owned),
            credential: credential.map(str::to_owned),
            insecure: false,
            environment: None,
        }
    };
    let none = environment(None, None, None);
    for (remote, environment, server, credential) in [
        (
            remote(None, None),
            none.clone(),
            "https://home.example/",
            Some("H"),
        ),
        (
            remote(Some("work"), None),
            none.clone(),
            "https://work.example/",
            Some("W"),
        ),
        (
            remote(None, Some("https://work.example")),
            none.clone(),
            "https://work.example/",
            Some("W"),
        ),
        (
            remote(None, Some("https://third.example")),
            none.clone(),
            "https://third.example/",
            None,
        ),
        (
            remote(None, None),
            environment(None, Some("work"), None),
            "https://work.example/",
            Some("W"),
        ),
        (
            remote(None, None),
            environment(Some("https://third.example"), None, Some("E")),
            "https://third.example/",
            Some("E"),
        ),
        (
            remote(None, Some("https://third.example")),
            environment(None, None, Some("E")),
            "https://third.example/",
            Some("E"),
        ),
        // The environment's credential is only for a server named by it or by the command line, and not for another than it names.
        (
            remote(None, Some("third.example")),
            environment(Some("https://third.example"), None, Some("E")),
            "https://third.example/",
            Some("E"),
        ),
        (
            remote(None, Some("https://work.example")),
            environment(Some("https://third.example"), None, Some("E")),
            "https://work.example/",
            Some("W"),
        ),
        (
            remote(None, Some("https://fourth.example")),
            environment(Some("https://third.example"), None, Some("E")),
            "https://fourth.example/",
            None,
        ),
        (
            remote(None, None),
            environment(None, Some("work"), Some("E")),
            "https://work.example/",
            Some("W"),
        ),
        (
            remote(Some("work"), None),
            environment(Some("https://third.example"), None, Some("E")),
            "https://work.example/",
            Some("W"),
        ),
    ] {
        let found = remote.resolve(environment, || Ok(known())).unwrap();
        let (found_server, found_credential) = (found.server.as_str(), found.credential.as_deref());
        let case = format!("{remote:?}: {found:?} for {server}");
        assert!(
            found_server == server && found_credential == credential,
            "{case}"
        );
    }
    let nobody = remote(None, None).resolve(none.clone(), || Ok(Profiles::default()));
    assert_eq!(nobody.unwrap().server.as_str(), "http://localhost:8080/");
    let unknown = remote(Some("none"), None).resolve(none, || Ok(known()));
    assert!(unknown.is_err());
    // On the default port of this machine anybody may listen, and a login may be for another server.
    for known in [Profiles::default(), known()] {
        let credential = environment(None, None, Some("E"));
        let refused = remote(None, None).resolve(credential, || Ok(known));
        let refused = refused.unwrap_err().to_text();
        assert!(refused.contains("set SVC_SERVER"), "{refused}");
    }
}

/// A folder chooses among the logins, and never sends a credential to a server that the user has not logged in to.
#[test]
fn a_folder_is_for_its_own_server_alone() {
    let target = |server: &str, profile: Option<&str>| FolderTarget {
        server: (!server.is_empty()).then(|| parse_server_url(server).unwrap()),
        profile: profile.map(str::to_owned),
        environment: Some("prod".to_owned()),
    };
    let credential = EnvironmentSettings {
        server: Some("https://third.example".to_owned()),
        credential: Some("E".to_owned()),
        ..EnvironmentSettings::default()
    };
    let none = EnvironmentSettings::default;
    let (home, work) = ("https://home.example", "https://work.example");
    for (remote, environment, folder, expected) in [
        (remote(None, None), none(), target("", None), Ok(Some("H"))),
        (
            remote(None, None),
            none(),
            target(home, None),
            Ok(Some("H")),
        ),
        (
            remote(None, None),
            none(),
            target(work, None),
            Ok(Some("W")),
        ),
        (
            remote(None, None),
            none(),
            target(work, Some("work")),
            Ok(Some("W")),
        ),
        (
            remote(None, None),
            none(),
            target("", Some("work")),
            Ok(Some("W")),
        ),
        (
            remote(None, None),
            none(),
            target(work, Some("home")),
            Err([work, home]),
        ),
        (
            remote(None, None),
            none(),
            target("https://evil.example", None),
            Err(["https://evil.example", home]),
        ),
        (
            remote(Some("home"), None),
            none(),
            target(work, Some("work")),
            Err([work, home]),
        ),
        (
            remote(None, Some(work)),
            none(),
            target(home, None),
            Err([home, work]),
        ),
        (
            remote(None, None),
            credential.clone(),
            target(home, None),
            Err([home, "https://third.example"]),
        ),
        (
            remote(None, None),
            credential,
            target("https://third.example", None),
            Ok(Some("E")),
        ),
    ] {
        let case = format!("{remote:?} {folder:?}");
        let found = remote.resolve_for(&folder, environment, || Ok(known()));
        match (found, expected) {
            (Ok(found), Ok(credential)) => {
                assert_eq!(found.credential.as_deref(), credential, "{case}");
                assert_eq!(found.environment.as_deref(), Some("prod"));
            }
            (Err(failure), Err(named)) => {
                let refused = failure.to_text();
                assert!(
                    named.iter().all(|server| refused.contains(server)),
                    "{refused}"
                );
                assert!(refused.contains("`prod`"), "{refused}");
            }
            (found, expected) => panic!("{case}: {found:?}, {expected:?}"),
        }
    }
    // Without any login, nothing but the address is the folder's.
    let server = target("https://new.example", None);
    let found = remote(None, None).resolve_for(&server, none(), || Ok(Profiles::default()));
    let found = found.unwrap();
    assert_eq!(
        (found.server.as_str(), found.credential),
        ("https://new.example/", None)
    );
    // A credential that names no server goes to none that a folder names.
    let alone = EnvironmentSettings {
        credential: Some("E".to_owned()),
        ..none()
    };
    let refused = remote(None, None).resolve_for(&server, alone, || Ok(known()));
    assert!(refused.unwrap_err().to_text().contains("set SVC_SERVER"));
}

#[test]
fn the_current_profile_of_a_server_is_preferred() {
    for current in ["home", "other"] {
        let mut known = known();
        let mut other = known.profiles["home"].clone();
        other.credential = "O".to_owned();
        known.profiles.insert("other".to_owned(), other);
        known.current = Some(current.to_owned());
        let expected = known.profiles[current].credential.clone();
        let remote = remote(None, Some("https://home.example"));
        let found = remote.resolve(EnvironmentSettings::default(), || Ok(known));
        assert_eq!(found.unwrap().credential, Some(expected), "{current}");
    }
}

/// The settings of a service's user may be another's.
#[test]
fn profiles_that_are_not_needed_are_not_read() {
    let environment = EnvironmentSettings {
        server: Some("https://third.example".to_owned()),
        credential: Some("E".to_owned()),
        ..EnvironmentSettings::default()
    };
    let unreadable = || Err(CliFailure::local("unreadable"));
    let found = remote(None, None).resolve(environment, unreadable);
    assert_eq!(found.unwrap().credential.as_deref(), Some("E"));
    let environment = EnvironmentSettings::default();
    assert!(remote(None, None).resolve(environment, unreadable).is_err());
    // A home directory that is none has no profiles.
    let file = tempfile::NamedTempFile::new().unwrap();
    let none = Profiles::read_from(&file.path().join("svc"));
    assert!(none.unwrap().profiles.is_empty());
}

#[test]
fn who_allows_credentials_without_encryption() {
    let plain = "http://plain.example";
    let mut known = known();
    let server = parse_server_url(plain).unwrap();
    let credential = "P".to_owned();
    let profile = Profile { server, credential };
    known.profiles.insert("plain".to_owned(), profile);
    for (credential, insecure, expected) in [
        // The profile was made with `--insecure`.
        (None, false, true),
        (Some("E"), false, false),
        (Some("E"), true, true),
    ] {
        let environment = EnvironmentSettings {
            server: Some(plain.to_owned()),
            credential: credential.map(str::to_owned),
            insecure,
            profile: None,
            environment: None,
        };
        let profiles = Profiles {
            current: None,
            profiles: known.profiles.clone(),
        };
        let found = remote(None, None).resolve(environment, || Ok(profiles));
        assert_eq!(
            found.unwrap().insecure,
            expected,
            "{credential:?} {insecure}"
        );
    }
}

#[test]
fn addresses_are_those_of_servers() {
    assert_eq!(
        parse_server_url("svc.example").unwrap().as_str(),
        "https://svc.example/"
    );
    for (written, meant) in [
        ("http://[::1]:80/", "http://[::1]/"),
        // This machine has no certificate.
        ("localhost:8080", "http://localhost:8080/"),
        ("shop.localhost", "http://shop.localhost/"),
        ("127.0.0.1:8080", "http://127.0.0.1:8080/"),
        ("https://localhost:8080", "https://localhost:8080/"),
        ("10.0.0.1:80", "https://10.0.0.1:80/"),
        ("localhost.example", "https://localhost.example/"),
    ] {
        assert_eq!(
            parse_server_url(written).unwrap().as_str(),
            meant,
            "{written}"
        );
    }
    for wrong in [
        "",
        "https://",
        "ftp://a.example",
        "https://a.example/x",
        "https://u:p@a.example",
        "https://a.example/?q",
    ] {
        assert!(parse_server_url(wrong).is_err(), "{wrong}");
    }
    for (text, open) in [
        ("http://svc.example", true),
        ("https://svc.example", false),
        ("http://localhost:1", false),
        ("http://127.0.0.1:1", false),
        ("http://[::1]:1", false),
        ("http://10.0.0.1", true),
    ] {
        assert_eq!(
            is_unencrypted(&parse_server_url(text).unwrap()),
            open,
            "{text}"
        );
    }
}

#[test]
fn the_file_is_its_users_alone() {
    let directory = tempfile::tempdir().unwrap();
    let ours = directory.path().join("svc");
    known().write_to(&ours).unwrap();
    let path = ours.join(PROFILES_FILE);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!((mode(&ours), mode(&path)), (0o700, 0o600));
    let read = Profiles::read_from(&ours).unwrap();
    assert_eq!(read.profiles["work"].credential, "W");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let refused = Profiles::read_from(&ours).err().unwrap().to_text();
    // The folder's random name may have the letter.
    let refused = refused.replace(&path.display().to_string(), "");
    assert!(
        refused.contains("0640") && !refused.contains('W'),
        "{refused}"
    );
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&path, "current = \"home\"\ncredential = secret").unwrap();
    let refused = Profiles::read_from(&ours).err().unwrap().to_text();
    assert!(
        refused.contains("line 2") && !refused.contains("secret"),
        "{refused}"
    );
}
