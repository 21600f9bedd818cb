//! Certificates in files: served over both versions of HTTP, replaced without a restart, refused where they are no pair.

use std::net::SocketAddr;
use std::path::Path;

use http::Version;
use rustls::pki_types::CertificateDer;
use serde_json::json;
use svc_tests::tls::{CertificateFiles, client_config, connect};
use svc_tests::{Process, ReadAnswer, TestServer, wait_until};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::local;
use crate::svc;

/// Starts the command on a pair.
async fn serve(pair: &CertificateFiles, data: &Path) -> Process {
    let (cert, key) = (
        pair.cert().display().to_string(),
        pair.key().display().to_string(),
    );
    let arguments = ["--https", "--tls-cert", &cert, "--tls-key", &key];
    svc().serve(data, &arguments).await
}

/// The certificate that a server shows to who believes these.
async fn presented_certificate(server: SocketAddr, roots: &str) -> Option<CertificateDer<'static>> {
    let config = client_config(roots, &["http/1.1"]);
    let stream = connect(server, "localhost", config).await.ok()?;
    let certificates = stream.get_ref().1.peer_certificates()?;
    certificates.first().map(|one| one.clone().into_owned())
}

#[tokio::test]
async fn pages_are_published_and_seen_in_both_versions_of_http() {
    let pair = local();
    let server = TestServer::builder().https(&pair).start().await;
    let made = server
        .deploy(&json!({ "content": "# Over TLS", "type": "markdown" }))
        .await;
    let url = made["url"].as_str().unwrap();
    let port = server.address().port();
    assert!(
        url.starts_with(&format!("https://localhost:{port}/")),
        "{url}"
    );
    let root = reqwest::Certificate::from_pem(pair.pem().as_bytes()).unwrap();
    let client = || {
        svc_tests::http_client()
            .no_proxy()
            .tls_certs_only([root.clone()])
    };
    for (client, version) in [
        (client().build().unwrap(), Version::HTTP_2),
        (client().http1_only().build().unwrap(), Version::HTTP_11),
    ] {
        // One connection for several requests.
        for _ in 0..3 {
            let response = client.get(url).send().await.unwrap();
            assert_eq!(response.version(), version);
            assert_eq!(response.status(), 200);
            assert!(response.headers().contains_key("x-request-id"));
            assert!(response.text().await.unwrap().contains("Over TLS"));
        }
    }
    let body = json!({ "content": "# Secret", "type": "markdown", "password": "open sesame" });
    let slug = server.publish_slug(&body).await;
    let unlock = json!({ "password": "open sesame" });
    let answer = server
        .json(&format!("/api/v1/auth/{slug}"), &unlock)
        .answer()
        .await;
    let cookie = answer.expect(200);
    let cookie = cookie.header("set-cookie").unwrap();
    assert!(cookie.contains("Secure"), "{cookie}");
}

#[tokio::test]
async fn whether_it_is_well_is_asked_over_tls() {
    let (pair, data) = (local(), TempDir::new().unwrap());
    let server = serve(&pair, data.path()).await;
    let send_request = async || svc().run(data.path(), &["healthcheck"]).await;
    let well = async || Some(send_request().await).filter(|said| said.success);
    let well = wait_until("the guests to load", well).await;
    assert_eq!(well.stdout, "ready\n");
    server.kill().await;
    assert_eq!(send_request().await.code, Some(1));
}

#[tokio::test]
async fn files_that_are_replaced_are_served_without_a_restart() {
    let mut pair = local();
    let data = TempDir::new().unwrap();
    let process = serve(&pair, data.path()).await;
    let address = process.address();
    let first = pair.pem().to_owned();
    let before = presented_certificate(address, &first).await.unwrap();
    // A key that is not the certificate's: the pair before goes on.
    let key = std::fs::read(pair.key()).unwrap();
    std::fs::write(pair.key(), std::fs::read(local().key()).unwrap()).unwrap();
    let noticed = async || process.stderr().contains("does not belong").then_some(());
    wait_until("the server to notice a wrong key", noticed).await;
    assert_eq!(
        presented_certificate(address, &first).await.unwrap(),
        before
    );
    std::fs::write(pair.key(), key).unwrap();
    // A connection that is open stays.
    let config = client_config(&first, &["http/1.1"]);
    let mut open = connect(address, "localhost", config).await.unwrap();
    let second = pair.replace().to_owned();
    let after = wait_until("the server to serve the new pair", async || {
        presented_certificate(address, &second).await
    });
    assert_ne!(after.await, before);
    let host = format!("localhost:{}", address.port());
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    open.write_all(request.as_bytes()).await.unwrap();
    open.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
}

#[tokio::test]
async fn what_is_no_pair_stops_the_start_before_anything_is_made() {
    let (one, other) = (local(), local());
    let root = TempDir::new().unwrap();
    let missing = root.path().join("missing.pem");
    for (cert, key, says) in [
        (one.cert(), other.key(), ["tls_key", "does not belong"]),
        (one.cert(), one.cert(), ["tls_key", "no private key"]),
        (one.key(), one.key(), ["tls_cert", "no certificate"]),
        (missing.clone(), one.key(), ["tls_cert", "missing.pem"]),
        (one.cert(), missing.clone(), ["tls_key", "missing.pem"]),
    ] {
        let data = root.path().join("data");
        let (cert, key) = (cert.display().to_string(), key.display().to_string());
        let arguments = ["serve", "--https", "--tls-cert", &cert, "--tls-key", &key];
        let arguments = [&arguments[..], &["--listen", "127.0.0.1:0"]].concat();
        let output = svc().run(&data, &arguments).await;
        assert_eq!(output.code, Some(1), "{output:?}");
        for part in says {
            assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
        }
        assert!(!data.exists(), "nothing is made");
        assert!(!output.stderr.contains("BEGIN"), "{}", output.stderr);
    }
}

#[tokio::test]
async fn the_command_says_where_it_is_ready_and_who_else_can_read_the_key() {
    let pair = local();
    let permissions: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(pair.key(), permissions).unwrap();
    let data = TempDir::new().unwrap();
    let process = serve(&pair, data.path()).await;
    assert!(
        process.stderr().contains("chmod o-rwx"),
        "{}",
        process.stderr()
    );
    let config = client_config(pair.pem(), &["h2"]);
    let stream = connect(process.address(), "localhost", config)
        .await
        .unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    process.signal(rustix::process::Signal::TERM);
    let (status, stdout) = process.wait_for_exit().await;
    assert!(status.success());
    assert!(stdout.starts_with("ready https://127.0.0.1:"), "{stdout}");
}

#[tokio::test]
async fn a_certificate_answers_every_name_and_none() {
    let pair = CertificateFiles::new(&["share.example.test", "localhost"]);
    let server = TestServer::builder().https(&pair).start().await;
    let config = client_config(pair.pem(), &[]);
    for name in ["share.example.test", "localhost"] {
        let stream = connect(server.address(), name, config.clone()).await;
        assert_eq!(stream.unwrap().get_ref().1.alpn_protocol(), None, "{name}");
    }
    let refused = connect(server.address(), "other.example.test", config).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("not valid for name"), "{refused}");
}
