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
        // The environment's credential is only for a server named by it or by the command line.
        (
            remote(None, None),
            environment(None, None, Some("E")),
            "https://home.example/",
            Some("H"),
        ),
        (
            remote(Some("work"), None),
            environment(Some("https://third.example"), None, Some("E")),
            "https://work.example/",
            Some("W"),
        ),
    ] {
        let expected = ServerWithCredential {
            server: Url::parse(server).unwrap(),
            credential: credential.map(str::to_owned),
        };
        let found = remote.resolve(environment, &known()).unwrap();
        assert!(found == expected, "{remote:?}: {found:?} for {server}");
    }
    let nobody = remote(None, None).resolve(none.clone(), &Profiles::default());
    assert_eq!(nobody.unwrap().server.as_str(), "http://localhost:8080/");
    assert!(remote(Some("none"), None).resolve(none, &known()).is_err());
    // On the default port of this machine anybody may listen.
    let credential = environment(None, None, Some("E"));
    let refused = remote(None, None).resolve(credential, &Profiles::default());
    let refused = refused.unwrap_err().to_text();
    assert!(refused.contains("set SVC_SERVER"), "{refused}");
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
