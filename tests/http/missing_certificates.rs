//! A machine without certificates of authorities: everything but HTTPS works there, and what needs it says what is missing.

use serde_json::json;
use svc_tests::{run_command, wait_until};
use tempfile::TempDir;

use crate::svc;

/// A variable that names the file of authorities; it has none.
const NO_AUTHORITIES: (&str, &str) = ("SSL_CERT_FILE", "/dev/null");

#[tokio::test]
async fn a_server_starts_and_warns_without_authorities() {
    let data = TempDir::new().unwrap();
    let server = svc()
        .serve_with_environment(&[NO_AUTHORITIES], &[], data.path(), &[])
        .await;
    let warned = wait_until("the warning", async || {
        let said = server.stderr();
        said.lines()
            .find(|line| line.contains("ca-certificates"))
            .map(str::to_owned)
    });
    let warned = warned.await;
    assert!(warned.contains("WARN") && warned.contains("SSL_CERT_FILE"));
    let share = json!({"type": "markdown", "content": "# Here", "name": "here"});
    let publish = async || {
        let answer = server.json("/api/v1/deploy", &share).await;
        (answer.status == 201).then_some(())
    };
    wait_until("the guests to load", publish).await;
    assert!(server.get("/here").await.expect(200).text().contains("<h1"));
}

#[tokio::test]
async fn calls_without_authorities_name_what_is_missing() {
    let data = TempDir::new().unwrap();
    let settings = data.path().join("svc.toml");
    let provider =
        "[[providers]]\nname = 'acme'\nissuer = 'https://127.0.0.1:1'\nclient_id = 'me'\n";
    std::fs::write(&settings, provider).unwrap();
    let settings = settings.to_str().unwrap();
    let run = async |arguments: &[&str]| {
        let mut command = svc().command();
        command.args(arguments).env("XDG_CONFIG_HOME", data.path());
        command.env(NO_AUTHORITIES.0, NO_AUTHORITIES.1);
        run_command(command).await
    };

    let check = ["provider", "check", "acme", "--config", settings];
    let checked = run(&check).await;
    assert_eq!(checked.code, Some(1), "{checked:?}");
    assert!(checked.stdout.contains("ca-certificates"), "{checked:?}");

    let list = |server| ["project", "list", "--server", server];
    let by_https = run(&list("https://127.0.0.1:1")).await;
    assert_eq!(by_https.code, Some(6), "{by_https:?}");
    assert!(by_https.stderr.contains("ca-certificates"), "{by_https:?}");
    // HTTP takes no authority: it gets as far as the address, where nobody listens.
    let by_http = run(&list("http://127.0.0.1:1")).await;
    assert_eq!(by_http.code, Some(6), "{by_http:?}");
    assert!(!by_http.stderr.contains("ca-certificates"), "{by_http:?}");
}
