//! A certificate of one's own, by the commands of the guide: the server shows it, and the client believes it where it is told to.

use std::process::{Command, Stdio};

use svc_tests::run_command;
use tempfile::TempDir;

use crate::client::run_with_input;
use crate::svc;

const GUIDE: &str = include_str!("../../../docs/operate.md");

#[tokio::test]
async fn the_guides_certificate_works_with_login() {
    let (here, data) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let make = GUIDE.lines().find(|line| line.starts_with("openssl req"));
    let mut openssl = Command::new("sh");
    openssl
        .args(["-euc", make.unwrap()])
        .current_dir(here.path());
    let made = run_command(openssl).await;
    assert!(made.success, "{made:?}");
    let [cert, key] =
        ["cert.pem", "key.pem"].map(|name| here.path().join(name).display().to_string());

    let namespace = ["namespace", "create", "acme", "--json"];
    let credential = svc().run(data.path(), &namespace).await.json()["credential"].clone();
    let options = [
        "--https",
        "--tls-cert",
        &cert,
        "--tls-key",
        &key,
        "--listen",
        "localhost:0",
    ];
    let server = svc().serve(data.path(), &options).await;
    let url = format!("https://localhost:{}", server.address().port());
    let login = |believed: Option<&str>| {
        let mut login = svc().command();
        login.args(["login", &url]).current_dir(here.path());
        login
            .env("XDG_CONFIG_HOME", here.path())
            .stdin(Stdio::null());
        if let Some(believed) = believed {
            login.env("SSL_CERT_FILE", believed);
        }
        login
    };
    let shown = GUIDE
        .lines()
        .find(|line| line.contains("svc login https://localhost"));
    let file = shown.unwrap().split_once(' ').unwrap().0;
    let file = file.strip_prefix("SSL_CERT_FILE=").unwrap();
    let credential = credential.as_str().unwrap();
    let unknown = run_with_input(login(None), credential).await;
    assert_eq!(unknown.code, Some(6), "{unknown:?}");
    let believed = run_with_input(login(Some(file)), credential).await;
    assert!(believed.success, "{believed:?}");
}
