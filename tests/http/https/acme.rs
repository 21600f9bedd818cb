//! Certificates from an authority: issued at the start and at the first handshake, renewed, refused, and kept.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use http::Method;
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};
use svc::config::{AcmeSettings, Settings};
use svc::workspaces::Plan;
use svc_base::clock::{Clock, Timestamp};
use svc_tests::tls::{client_config, connect};
use svc_tests::{Answer, Builder, ReadAnswer, TestServer, wait_until};

use super::pebble::{ACCOUNT, CERTIFICATE_DAYS, Pebble, TestNetwork};
use crate::svc;

pub(super) const SHARE: &str = "share.example.test";
const DAY: u64 = 24 * 60 * 60;

/// A server whose certificates Pebble issues.
pub(super) struct AcmeInstallation {
    pub(super) network: TestNetwork,
    pub(super) pebble: Pebble,
    root: String,
    pub(super) server: TestServer,
}

impl AcmeInstallation {
    /// Starts both; `None` without Pebble.
    async fn start() -> Option<Self> {
        let network = TestNetwork::new().await;
        let pebble = Pebble::start(&network).await?;
        Some(Self::start_with(network, pebble, None, |_| {}).await)
    }

    /// Starts a server that has an account at the authority.
    pub(super) async fn start_with(
        network: TestNetwork,
        pebble: Pebble,
        account: Option<(&str, &str)>,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let root = pebble.root().await;
        let server = builder(&network, |settings| {
            settings.acme = Some(AcmeSettings {
                directory: pebble.directory().parse().unwrap(),
                contact: Some("tls@example.test".to_owned()),
                root: Some(pebble.own.cert()),
                eab_kid: account.map(|(kid, _)| kid.to_owned()),
                eab_hmac_key: account.map(|(_, key)| key.to_owned()),
                ..AcmeSettings::default()
            });
            change(settings);
        });
        let server = server.start().await;
        network.route_names_to(server.address());
        Self {
            network,
            pebble,
            root,
            server,
        }
    }

    /// The certificate of a handshake for a name; `None` if the server has none.
    pub(super) async fn presented_certificate(
        &self,
        name: &str,
    ) -> Option<CertificateDer<'static>> {
        let config = client_config(&self.root, &["h2"]);
        let stream = match connect(self.network.front, name, config).await {
            Ok(stream) => stream,
            Err(error) => {
                // Refused by the server, not by the client.
                let error = error.to_string();
                assert!(!error.contains("invalid peer certificate"), "{error}");
                return None;
            }
        };
        let certificates = stream.get_ref().1.peer_certificates()?;
        certificates.first().map(|one| one.clone().into_owned())
    }

    /// Waits for the certificate of a name.
    pub(super) async fn wait_for_certificate(&self, name: &str) -> CertificateDer<'static> {
        wait_until("a certificate", async || {
            self.presented_certificate(name).await
        })
        .await
    }

    /// Makes a project; answers the host of its origin.
    async fn project(&self, credential: &str, name: &str) -> String {
        let body = json!({ "name": name });
        let project = self.send(credential, "/api/v1/projects", &body).await;
        let project: Value = project.expect(201).json();
        let label = project["host_label"].as_str().unwrap();
        format!("{label}.pages.example.test")
    }

    pub(super) async fn send(&self, credential: &str, path: &str, body: &Value) -> Answer {
        self.send_by(Method::POST, credential, path, body).await
    }

    pub(super) async fn send_by(
        &self,
        method: Method,
        credential: &str,
        path: &str,
        body: &Value,
    ) -> Answer {
        let root = reqwest::Certificate::from_pem(self.root.as_bytes()).unwrap();
        let client = svc_tests::http_client().no_proxy().tls_certs_only([root]);
        let client = client.resolve(SHARE, self.network.front).build().unwrap();
        let url = format!("https://{SHARE}:{}{path}", self.network.front.port());
        let request = client.request(method, url).bearer_auth(credential);
        request.json(body).answer().await
    }

    pub(super) async fn owner(&self) -> String {
        let made = self
            .server
            .server()
            .app()
            .workspaces
            .create("acme", Plan::Pro)
            .await;
        made.unwrap().credential
    }
}

/// A server for the names of a world, at the time of day: certificates are of today.
fn builder(network: &TestNetwork, change: impl FnOnce(&mut Settings)) -> Builder {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = Timestamp(i64::try_from(now.as_millis()).unwrap());
    let port = network.front.port();
    let builder = TestServer::builder().clock(Clock::manual(now));
    let builder = builder.settings(|settings| {
        settings.https = Some(true);
        settings.base_url = Some(format!("https://{SHARE}:{port}").parse().unwrap());
        settings.sites_domain = Some(format!("pages.example.test:{port}"));
    });
    builder.settings(change)
}

/// Everything in a directory and below it, with the modes.
pub(super) fn files_with_modes(directory: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(path) = open.pop() {
        let metadata = std::fs::metadata(&path).unwrap();
        if metadata.is_dir() {
            open.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        found.push((path, metadata.permissions().mode() & 0o7777));
    }
    found
}

#[tokio::test]
async fn certificates_are_issued_kept_and_asked_for_by_nobody_else() {
    let Some(at) = AcmeInstallation::start().await else {
        return;
    };
    let first = at.wait_for_certificate(SHARE).await;
    assert_eq!(at.pebble.orders(), 1, "the API's host, at the start");
    // Names that are not ours, and labels that no project has.
    for name in [
        "evil.example.test",
        "pages.example.test",
        "nobody-acme.pages.example.test",
        "a.b.pages.example.test",
        "localhost",
    ] {
        assert_eq!(at.presented_certificate(name).await, None, "{name}");
    }
    assert_eq!(at.pebble.orders(), 1, "a stranger's name asks for nothing");
    let credential = at.owner().await;
    let shop = at.project(&credential, "Shop").await;
    assert_eq!(at.pebble.orders(), 1, "a project alone asks for nothing");
    // Many at once, one order.
    let handshakes = (0..20).map(|_| at.presented_certificate(&shop));
    let shown = futures_util::future::join_all(handshakes).await;
    let one = shown[0]
        .clone()
        .expect("it is issued while the handshake waits");
    assert!(shown.iter().all(|other| other.as_ref() == Some(&one)));
    assert_eq!(at.pebble.orders(), 2);
    // Over a restart nothing is asked for again.
    let AcmeInstallation {
        network,
        pebble,
        root,
        server,
    } = at;
    let server = server.restart().await;
    network.route_names_to(server.address());
    let at = AcmeInstallation {
        network,
        pebble,
        root,
        server,
    };
    assert_eq!(at.wait_for_certificate(SHARE).await, first);
    assert_eq!(at.wait_for_certificate(&shop).await, one);
    assert_eq!(at.pebble.orders(), 2);
    // Keys are the server's alone; a backup has none of them, and closes what was opened.
    let tls = at.server.data().join("tls");
    for (path, mode) in files_with_modes(&tls) {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{}", path.display());
    }
    let files = files_with_modes(&tls).len();
    assert_eq!(
        files,
        3 + 4,
        "three directories, the account, what was spent, two certificates"
    );
    let key = files_with_modes(&tls)
        .into_iter()
        .find(|(path, _)| path.ends_with(format!("{shop}.pem")));
    let (key, _) = key.unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let backup = tempfile::tempdir().unwrap();
    let directory = backup.path().display().to_string();
    let output = at.server.command(&svc(), &["backup", &directory]).await;
    assert!(output.success, "{output:?}");
    assert!(
        files_with_modes(backup.path())
            .iter()
            .all(|(path, _)| !path.ends_with("tls"))
    );
    assert!(
        files_with_modes(&tls)
            .iter()
            .all(|(_, mode)| mode & 0o077 == 0)
    );
    let output = at.server.command(&svc(), &["check"]).await;
    assert!(output.success, "{output:?}");
}

#[tokio::test]
async fn certificates_are_renewed_before_they_end() {
    let Some(at) = AcmeInstallation::start().await else {
        return;
    };
    let before = at.wait_for_certificate(SHARE).await;
    at.server.advance((CERTIFICATE_DAYS * 2 / 3 - 5) * DAY);
    assert_eq!(at.wait_for_certificate(SHARE).await, before);
    assert_eq!(at.pebble.orders(), 1);
    at.server.advance(10 * DAY);
    let renewed = async || {
        at.presented_certificate(SHARE)
            .await
            .filter(|shown| *shown != before)
    };
    let after = wait_until("the next certificate", renewed).await;
    assert_eq!(at.pebble.orders(), 2);
    // For this clock it is due already: it is not asked for again and again.
    let server = at.server;
    let server = server.restart().await;
    at.network.route_names_to(server.address());
    let at = AcmeInstallation { server, ..at };
    assert_eq!(at.wait_for_certificate(SHARE).await, after);
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    assert_eq!(at.pebble.orders(), 2, "ticks come once a second");
}

#[tokio::test]
async fn what_the_authority_refuses_rests_and_is_asked_for_again() {
    let Some(at) = AcmeInstallation::start().await else {
        return;
    };
    at.wait_for_certificate(SHARE).await;
    let credential = at.owner().await;
    let lost = at.project(&credential, "Lost").await;
    at.network.drop_names(Some("lost"));
    assert_eq!(
        at.presented_certificate(&lost).await,
        None,
        "nothing leads there"
    );
    assert_eq!(at.pebble.orders(), 2);
    for _ in 0..5 {
        assert_eq!(at.presented_certificate(&lost).await, None);
    }
    assert_eq!(at.pebble.orders(), 2, "it rests");
    assert!(
        at.presented_certificate(SHARE).await.is_some(),
        "others are served"
    );
    at.network.drop_names(None);
    at.server.advance(5 * 60);
    at.wait_for_certificate(&lost).await;
    assert_eq!(at.pebble.orders(), 3);
}

#[tokio::test]
async fn an_authority_that_has_forgotten_the_account_gets_another() {
    let Some(at) = AcmeInstallation::start().await else {
        return;
    };
    at.wait_for_certificate(SHARE).await;
    let credential = at.owner().await;
    let shop = at.project(&credential, "Shop").await;
    let data = at.server.data().to_owned();
    let account = files_with_modes(&data.join("tls"))
        .into_iter()
        .find(|(path, _)| path.ends_with("account.json"));
    let (account, _) = account.unwrap();
    let text = std::fs::read_to_string(&account).unwrap();
    let mut kept: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(kept["contact"], "mailto:tls@example.test");
    let id = kept["credentials"]["id"].as_str().unwrap().to_owned();
    kept["credentials"]["id"] = json!(format!("{id}0000"));
    let forget = async |_: &Path| std::fs::write(&account, kept.to_string()).unwrap();
    let server = at.server.restart_after_change(forget).await;
    at.network.route_names_to(server.address());
    let at = AcmeInstallation { server, ..at };
    at.wait_for_certificate(&shop).await;
    let text = std::fs::read_to_string(&account).unwrap();
    let now: Value = serde_json::from_str(&text).unwrap();
    assert_ne!(now["credentials"]["id"], kept["credentials"]["id"]);
}

#[tokio::test]
async fn an_authority_that_wants_an_account_issues_for_it_alone() {
    for (account, is_known) in [
        (Some(ACCOUNT), true),
        (
            Some((ACCOUNT.0, "c29tZWJvZHkgZWxzZSdzIGtleSBvZiAzMiBieXRlcw")),
            false,
        ),
        (None, false),
    ] {
        let network = TestNetwork::new().await;
        let Some(pebble) = Pebble::start_for(&network, true).await else {
            return;
        };
        let at = AcmeInstallation::start_with(network, pebble, account, |_| {}).await;
        if is_known {
            at.wait_for_certificate(SHARE).await;
            continue;
        }
        wait_until("a refusal", async || {
            let kept = files_with_modes(&at.server.data().join("tls")).into_iter();
            let spent = kept.filter(|(path, _)| path.ends_with("budget.json"));
            let spent: String = spent
                .map(|(path, _)| std::fs::read_to_string(path).unwrap())
                .collect();
            spent.contains(SHARE).then_some(())
        })
        .await;
        assert_eq!(at.presented_certificate(SHARE).await, None, "{account:?}");
        assert_eq!(at.pebble.orders(), 0, "{account:?}");
    }
}

#[tokio::test]
async fn a_server_starts_without_its_authority() {
    let network = TestNetwork::new().await;
    let server = builder(&network, |settings| {
        settings.acme = Some(AcmeSettings {
            directory: "https://127.0.0.1:1/dir".parse().unwrap(),
            ..AcmeSettings::default()
        });
    });
    let server = server.start().await;
    let config = client_config("", &["h2"]);
    let refused = connect(server.address(), SHARE, config).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("alert"), "{refused}");
    server.stop().await;
}
