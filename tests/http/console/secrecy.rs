//! Secrets of the console stay with whoever has them: no log has a code, a credential, or the address that an issuer leads back to.

use http::{Method, header};
use serde_json::{Value, json};
use svc_tests::{ReadAnswer, wait_until};
use tempfile::TempDir;

use super::SESSION_PATH;
use crate::svc;

#[tokio::test]
async fn no_log_has_a_secret() {
    let data = TempDir::new().unwrap();
    let made = svc()
        .run(data.path(), &["namespace", "create", "acme"])
        .await;
    assert!(made.success, "{made:?}");
    let verbose = [("SVC_LOG", "info,svc=trace")];
    let server = svc()
        .serve_with_environment(&verbose, &[], data.path(), &["--access-log"])
        .await;
    let link = svc().run(data.path(), &["console", "acme", "--json"]).await;
    assert!(link.success, "{link:?}");
    let link: Value = serde_json::from_str(&link.stdout).unwrap();
    assert!(link["expires_at"].is_string(), "{link}");
    let url = link["url"].as_str().unwrap();
    let (address, code) = url.split_once("/login#").unwrap();
    let host = address.strip_prefix("http://").unwrap();
    let port = server.address().port();
    assert_eq!(host, format!("console.localhost:{port}"));
    let request = |method: Method, path: &str| {
        let request = server.client().request(method, server.url(path));
        request.header(header::HOST, host)
    };
    let session = request(Method::POST, SESSION_PATH).json(&json!({ "code": code }));
    let session = session.answer().await.expect(200).json();
    let credential = session["credential"].as_str().unwrap();
    for path in [
        "/api/v1/me",
        "/api/v1/projects",
        "/api/v1/workspaces/acme/keys",
        "/api/v1/nothing",
    ] {
        let answer = request(Method::GET, path).bearer_auth(credential);
        answer.answer().await;
    }
    let back = "/callback?code=sesame-of-the-issuer&state=state-of-the-tab";
    request(Method::GET, back).answer().await.expect(200);
    let again = request(Method::POST, SESSION_PATH).json(&json!({ "code": code }));
    again.answer().await.problem(401, "unauthorized");
    let said = async || server.stderr().contains("/callback").then_some(());
    wait_until("the access log to have the last request", said).await;
    let log = server.stderr();
    assert!(log.contains("console acme --role owner"), "{log}");
    for secret in [code, credential, "sesame-of-the-issuer", "state-of-the-tab"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
    server.kill().await;
}

#[tokio::test]
async fn a_command_makes_links_without_a_server_for_the_next_one() {
    let data = TempDir::new().unwrap();
    let run = async |arguments: &[&str]| svc().run(data.path(), arguments).await;
    assert!(run(&["namespace", "create", "acme"]).await.success);
    // Before the first start it is where a server without settings has it.
    let first = run(&["console", "acme"]).await;
    let at_home = "http://console.localhost:8080/login#";
    assert!(first.stdout.contains(at_home), "{first:?}");
    let nobody = ["console", "nobody", "--console-url", "http://a.localhost"];
    let nobody = run(&nobody).await;
    assert!(nobody.stderr.contains("no namespace"), "{nobody:?}");
    let named = ["console", "acme", "--role", "viewer", "--console-url"];
    let named = run(&[&named[..], &["http://console.localhost:1/"]].concat()).await;
    let named = named.stdout.trim();
    let (address, code) = named.split_once("/login#").unwrap();
    assert_eq!(address, "http://console.localhost:1");
    let server = svc().serve(data.path(), &[]).await;
    let host = format!("console.localhost:{}", server.address().port());
    let session = server.client().post(server.url(SESSION_PATH));
    let session = session.header(header::HOST, host);
    let session = session.json(&json!({ "code": code })).answer().await;
    assert_eq!(session.expect(200).json()["role"], "viewer");
    server.kill().await;
    // The last server's console is known by now.
    let last = run(&["console", "acme"]).await;
    assert!(last.stdout.contains("/login#"), "{last:?}");
}

#[tokio::test]
async fn a_server_for_trying_out_prints_a_link() {
    let data = TempDir::new().unwrap();
    let server = svc().serve(data.path(), &["--dev"]).await;
    let printed = async || {
        let log = server.stderr();
        let mut lines = log.lines();
        let link = lines.find_map(|line| line.strip_prefix("  Console: "));
        link.map(str::to_owned)
    };
    let link = wait_until("the link", printed).await;
    let (address, code) = link.split_once("/login#").unwrap();
    let host = address.strip_prefix("http://").unwrap();
    let exchange = async || {
        let request = server.client().post(server.url(SESSION_PATH));
        let request = request.header(header::HOST, host);
        request.json(&json!({ "code": code })).answer().await
    };
    let session = exchange().await.expect(200).json();
    assert_eq!(session["workspace"]["slug"], "dev");
    assert_eq!(session["role"], "owner");
    exchange().await.problem(401, "unauthorized");
    server.kill().await;
}
