//! `svc login`, `logout`, `profile`, and which credential goes where.

use std::os::unix::fs::PermissionsExt as _;

use svc_tests::run_command;

use super::{Desk, fed};

#[tokio::test]
async fn a_credential_is_kept_for_its_user_alone() {
    let desk = Desk::new().await;
    let login = desk.bare(&["login", &desk.url()]);
    let output = fed(login, &format!("{}\n", desk.credential)).await;
    assert!(output.success, "{output:?}");
    assert!(!output.stdout.contains(&desk.credential), "{output:?}");
    let path = desk.home.path().join("svc/profiles.toml");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert!(
        std::fs::read_to_string(&path)
            .unwrap()
            .contains(&desk.credential)
    );
    // It is used without being named, and by its name.
    for arguments in [
        &["project", "list", "--json"][..],
        &["project", "list", "--json", "--profile", "default"],
    ] {
        let output = run_command(desk.bare(arguments)).await;
        assert_eq!(output.json()["projects"], serde_json::json!([]));
    }
    // Somebody else's eyes make it unusable.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let output = run_command(desk.bare(&["project", "list"])).await;
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("chmod 600") && !output.stderr.contains(&desk.credential));
}

#[tokio::test]
async fn profiles_are_chosen_and_forgotten() {
    let desk = Desk::new().await;
    for name in ["home", "work"] {
        let login = desk.bare(&["login", &desk.url(), "--profile", name, "--json"]);
        let output = fed(login, &desk.credential).await;
        assert_eq!(output.json()["profile"], name);
    }
    let list = async || run_command(desk.bare(&["profile", "list"])).await.stdout;
    assert!(list().await.contains("*  work"), "{}", list().await);
    assert!(
        run_command(desk.bare(&["profile", "use", "home"]))
            .await
            .success
    );
    assert!(list().await.contains("*  home"));
    // The environment names one to make, and one to forget, as it names one to use.
    let third = async |arguments: &[&str]| {
        let mut command = desk.bare(arguments);
        command.env("SVC_PROFILE", "third");
        fed(command, &desk.credential).await
    };
    let made = third(&["login", &desk.url(), "--json"]).await;
    assert_eq!(made.json()["profile"], "third");
    assert!(
        run_command(desk.bare(&["profile", "use", "home"]))
            .await
            .success
    );
    assert!(third(&["logout"]).await.success);
    assert!(!list().await.contains("third") && list().await.contains("*  home"));
    assert!(
        run_command(desk.bare(&["logout", "--profile", "work"]))
            .await
            .success
    );
    assert!(!list().await.contains("work"));
    for arguments in [
        &["logout", "--profile", "work"][..],
        &["profile", "use", "work"],
        &["project", "list", "--profile", "work"],
    ] {
        let output = run_command(desk.bare(arguments)).await;
        assert_eq!(output.code, Some(4), "{output:?}");
    }
}

#[tokio::test]
async fn what_is_no_credential_is_not_kept() {
    let desk = Desk::new().await;
    for (input, code) in [("svc_wrong\n", 3), ("\n", 1), ("", 1), ("a\u{1}b\n", 3)] {
        let output = fed(desk.bare(&["login", &desk.url()]), input).await;
        assert_eq!(output.code, Some(code), "{input:?}: {output:?}");
        assert!(!desk.home.path().join("svc").exists(), "{input:?}");
    }
    // A credential is no argument.
    let output = run_command(desk.bare(&["login", &desk.url(), &desk.credential])).await;
    assert_eq!(output.code, Some(2), "{output:?}");
    // It would be readable on the way.
    let output = fed(
        desk.bare(&["login", "http://svc.example"]),
        &desk.credential,
    )
    .await;
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("--insecure"), "{output:?}");
}

#[tokio::test]
async fn project_commands_go_where_they_are_sent() {
    let desk = Desk::new().await;
    desk.said(&["project", "create", "Shop"]).await;
    let data = desk.data.path().to_str().unwrap();
    // An operator's, of the data directory: it says whose they are.
    let operators = run_command(desk.bare(&["project", "list", "--data", data, "--json"]))
        .await
        .json();
    assert_eq!(operators["projects"][0]["namespace"], "acme");
    // The owner's, of the server.
    let owners = desk.json(&["project", "list"]).await;
    assert_eq!(owners["projects"][0]["workspace"]["slug"], "acme");
    let mut both = desk.command(&["project", "show", "Shop", "--server", &desk.url(), "--json"]);
    both.env("SVC_DATA", data);
    assert_eq!(run_command(both).await.json()["name"], "Shop");
}
