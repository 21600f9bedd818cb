//! `svc login`, `logout`, `profile`, and which credential goes where.

use std::os::unix::fs::PermissionsExt as _;

use svc_tests::run_command;

use super::{ClientFixture, run_with_input};

#[tokio::test]
async fn a_credential_is_kept_for_its_user_alone() {
    let fixture = ClientFixture::new().await;
    let login = fixture.command_without_credential(&["login", &fixture.url()]);
    let output = run_with_input(login, &format!("{}\n", fixture.credential)).await;
    assert!(output.success, "{output:?}");
    assert!(!output.stdout.contains(&fixture.credential), "{output:?}");
    let path = fixture.home.path().join("svc/profiles.toml");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert!(
        std::fs::read_to_string(&path)
            .unwrap()
            .contains(&fixture.credential)
    );
    // It is used without being named, and by its name.
    for arguments in [
        &["project", "list", "--json"][..],
        &["project", "list", "--json", "--profile", "default"],
    ] {
        let output = run_command(fixture.command_without_credential(arguments)).await;
        assert_eq!(output.json()["projects"], serde_json::json!([]));
    }
    // A file that others can read is refused.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let output = run_command(fixture.command_without_credential(&["project", "list"])).await;
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("chmod 600") && !output.stderr.contains(&fixture.credential));
}

#[tokio::test]
async fn profiles_are_chosen_and_forgotten() {
    let fixture = ClientFixture::new().await;
    for name in ["home", "work"] {
        let login = fixture.command_without_credential(&[
            "login",
            &fixture.url(),
            "--profile",
            name,
            "--json",
        ]);
        let output = run_with_input(login, &fixture.credential).await;
        assert_eq!(output.json()["profile"], name);
    }
    let list = async || {
        run_command(fixture.command_without_credential(&["profile", "list"]))
            .await
            .stdout
    };
    assert!(list().await.contains("*  work"), "{}", list().await);
    assert!(
        run_command(fixture.command_without_credential(&["profile", "use", "home"]))
            .await
            .success
    );
    assert!(list().await.contains("*  home"));
    // The environment names one to make, and one to forget, as it names one to use.
    let third = async |arguments: &[&str]| {
        let mut command = fixture.command_without_credential(arguments);
        command.env("SVC_PROFILE", "third");
        run_with_input(command, &fixture.credential).await
    };
    let made = third(&["login", &fixture.url(), "--json"]).await;
    assert_eq!(made.json()["profile"], "third");
    assert!(
        run_command(fixture.command_without_credential(&["profile", "use", "home"]))
            .await
            .success
    );
    assert!(third(&["logout"]).await.success);
    assert!(!list().await.contains("third") && list().await.contains("*  home"));
    assert!(
        run_command(fixture.command_without_credential(&["logout", "--profile", "work"]))
            .await
            .success
    );
    assert!(!list().await.contains("work"));
    for arguments in [
        &["logout", "--profile", "work"][..],
        &["profile", "use", "work"],
        &["project", "list", "--profile", "work"],
    ] {
        let output = run_command(fixture.command_without_credential(arguments)).await;
        assert_eq!(output.code, Some(4), "{output:?}");
    }
}

#[tokio::test]
async fn what_is_no_credential_is_not_kept() {
    let fixture = ClientFixture::new().await;
    for (input, code) in [("svc_wrong\n", 3), ("\n", 1), ("", 1), ("a\u{1}b\n", 3)] {
        let output = run_with_input(
            fixture.command_without_credential(&["login", &fixture.url()]),
            input,
        )
        .await;
        assert_eq!(output.code, Some(code), "{input:?}: {output:?}");
        assert!(!fixture.home.path().join("svc").exists(), "{input:?}");
    }
    // A credential is no argument.
    let output = run_command(fixture.command_without_credential(&[
        "login",
        &fixture.url(),
        &fixture.credential,
    ]))
    .await;
    assert_eq!(output.code, Some(2), "{output:?}");
    // It would be readable on the way.
    let output = run_with_input(
        fixture.command_without_credential(&["login", "http://svc.example"]),
        &fixture.credential,
    )
    .await;
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("--insecure"), "{output:?}");
}

/// A credential of the environment goes to a server that is named, and to no other.
#[tokio::test]
async fn a_credential_without_a_server_is_sent_nowhere() {
    let fixture = ClientFixture::new().await;
    for is_logged_in in [false, true] {
        if is_logged_in {
            let login = fixture.command_without_credential(&["login", &fixture.url()]);
            let output = run_with_input(login, &fixture.credential).await;
            assert!(output.success, "{output:?}");
        }
        let mut unnamed = fixture.command(&["project", "list"]);
        unnamed.env_remove("SVC_SERVER");
        let output = run_command(unnamed).await;
        assert_eq!(output.code, Some(1), "{output:?}");
        let is_told = output.stderr.contains("SVC_CREDENTIAL is set")
            && output.stderr.contains("set SVC_SERVER")
            && !output.stderr.contains(&fixture.credential);
        assert!(is_told, "{output:?}");
    }
    let mut named = fixture.command(&["project", "list", "--server", &fixture.url()]);
    named.env_remove("SVC_SERVER");
    let output = run_command(named).await;
    assert!(output.success, "{output:?}");
}

#[tokio::test]
async fn a_credential_is_not_sent_in_the_clear() {
    let fixture = ClientFixture::new().await;
    for arguments in [&["project", "list"][..], &["apply"], &["unpublish", "a"]] {
        fixture.write("svc.toml", "project = \"Shop\"\n");
        let mut command = fixture.command(arguments);
        command.env("SVC_SERVER", "http://svc.example");
        let output = run_with_input(command, "token\n").await;
        assert_eq!(output.code, Some(1), "{arguments:?}: {output:?}");
        assert!(output.stderr.contains("SVC_INSECURE=1"), "{output:?}");
    }
}

#[tokio::test]
async fn a_credential_is_trimmed_or_refused() {
    let fixture = ClientFixture::new().await;
    // As a secret from a file often is.
    let line = format!("{}\n", fixture.credential);
    for (credential, code) in [(line.as_str(), Some(0)), ("svc_a\nb", Some(3))] {
        let mut command = fixture.command(&["project", "list"]);
        command.env("SVC_CREDENTIAL", credential);
        let output = run_command(command).await;
        assert_eq!(output.code, code, "{output:?}");
        let is_told = output.success || output.stderr.contains("Nothing was sent");
        assert!(is_told, "{output:?}");
    }
}

#[tokio::test]
async fn project_commands_go_where_they_are_sent() {
    let fixture = ClientFixture::new().await;
    fixture.run_for_stdout(&["project", "create", "Shop"]).await;
    let data = fixture.data.path().to_str().unwrap();
    // An operator's, of the data directory: it says whose they are.
    let operators = run_command(
        fixture.command_without_credential(&["project", "list", "--data", data, "--json"]),
    )
    .await
    .json();
    assert_eq!(operators["projects"][0]["namespace"], "acme");
    // A name steers no terminal that shows the failure.
    let unknown = format!("{data}/\u{202e}");
    let list = ["project", "list", "--data", &unknown, "--json"];
    let failed = run_command(fixture.command_without_credential(&list)).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stdout.contains("\\u202e"), "{failed:?}");
    // The owner's, of the server.
    let owners = fixture.json(&["project", "list"]).await;
    assert_eq!(owners["projects"][0]["workspace"]["slug"], "acme");
    let mut both = fixture.command(&[
        "project",
        "show",
        "Shop",
        "--server",
        &fixture.url(),
        "--json",
    ]);
    both.env("SVC_DATA", data);
    assert_eq!(run_command(both).await.json()["name"], "Shop");
}
