//! Certificates of domains from an authority: by both challenges, refused, deleted, and asked for by nobody else.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use svc::config::{DomainSettings, Settings};
use svc_tests::dns::DnsServer;
use svc_tests::wait_until;

use super::acme::{AcmeInstallation, SHARE, files_with_modes};
use super::pebble::{BLOCKED, Pebble, TestNetwork};
use super::redirect::send_request;

const NAME: &str = "www.shop.com";

/// A server with a project, the DNS that proves its domains, and the authority that issues for them.
struct DomainInstallation {
    at: AcmeInstallation,
    dns: DnsServer,
    credential: String,
    /// Path of the project's domains.
    path: String,
}

impl DomainInstallation {
    /// Starts all, once the API's host has its certificate; `None` without Pebble.
    async fn start(change: impl FnOnce(&mut Settings)) -> Option<Self> {
        let (network, dns) = (TestNetwork::new().await, DnsServer::start().await);
        let pebble = Pebble::start(&network).await?;
        let resolver = Some(dns.address().to_string());
        let at = AcmeInstallation::start_with(network, pebble, None, |settings| {
            settings.domains = Some(DomainSettings { resolver });
            change(settings);
        });
        let at = at.await;
        at.wait_for_certificate(SHARE).await;
        let credential = at.owner().await;
        let body = json!({ "name": "Shop" });
        let project = at.send(&credential, "/api/v1/projects", &body).await;
        let project = project.expect(201).json();
        let path = format!(
            "/api/v1/projects/{}/domains",
            project["id"].as_str().unwrap()
        );
        Some(Self {
            at,
            dns,
            credential,
            path,
        })
    }

    /// Adds a domain that nothing proves yet.
    async fn add(&self, name: &str) -> Value {
        let body = json!({ "name": name });
        let added = self.at.send(&self.credential, &self.path, &body).await;
        added.expect(201).json()
    }

    /// Proves a domain that was added.
    async fn prove(&self, added: &Value) {
        self.dns.set_record(&added["records"][0]);
        let name = added["name"].as_str().unwrap();
        let path = format!("{}/{name}/verify", self.path);
        let proven = self.at.send(&self.credential, &path, &json!({})).await;
        proven.expect(200);
    }

    /// Waits until the certificate of a domain has a state, and returns it as its owner sees it.
    async fn wait_for_state(&self, name: &str, state: &str) -> Value {
        let path = format!("{}/{name}", self.path);
        let (at, credential, none) = (&self.at, &self.credential, json!({}));
        wait_until("the state of a certificate", async || {
            // Reads of an owner are counted, too.
            tokio::time::sleep(Duration::from_millis(50)).await;
            let domain = at.send_by(Method::GET, credential, &path, &none).await;
            let certificate = domain.expect(200).json()["certificate"].clone();
            (certificate["state"] == state).then_some(certificate)
        })
        .await
    }

    /// Counts the files of a name's certificate.
    fn keys(&self, name: &str) -> usize {
        let files = files_with_modes(&self.at.server.data().join("tls")).into_iter();
        let of_name = files.filter(|(path, _)| path.to_string_lossy().contains(name));
        of_name.count()
    }
}

#[tokio::test]
async fn a_domain_has_a_certificate_from_its_proof_to_its_end() {
    let Some(fixture) = DomainInstallation::start(|_| {}).await else {
        return;
    };
    let at = &fixture.at;
    let added = fixture.add(NAME).await;
    assert_eq!(added["certificate"]["state"], "none");
    assert_eq!(at.presented_certificate(NAME).await, None);
    assert_eq!(
        at.pebble.orders(),
        1,
        "a name that nothing proves costs no order"
    );
    fixture.prove(&added).await;
    at.wait_for_certificate(NAME).await;
    assert_eq!(at.pebble.orders(), 2);
    let certificate = fixture.wait_for_state(NAME, "issued").await;
    assert!(certificate["not_after"].is_string(), "{certificate}");
    assert!(certificate["detail"].is_null(), "{certificate}");
    assert_eq!(fixture.keys(NAME), 1);
    let path = format!("{}/{NAME}", fixture.path);
    at.send_by(Method::DELETE, &fixture.credential, &path, &json!({}))
        .await
        .expect(204);
    assert_eq!(
        at.presented_certificate(NAME).await,
        None,
        "before the answer"
    );
    wait_until("the key to be deleted", async || {
        (fixture.keys(NAME) == 0).then_some(())
    })
    .await;
    assert_eq!(at.pebble.orders(), 2);
    // Added again, it does not wait for what was issued before.
    let added = fixture.add(NAME).await;
    fixture.prove(&added).await;
    at.wait_for_certificate(NAME).await;
    assert_eq!(at.pebble.orders(), 3);
}

#[tokio::test]
async fn a_domain_whose_handshakes_end_elsewhere_is_proven_by_plain_http() {
    let fixture = DomainInstallation::start(|settings| {
        settings.redirect_listen = Some(([127, 0, 0, 1], 0).into());
    });
    let Some(fixture) = fixture.await else {
        return;
    };
    let at = &fixture.at;
    let plain = at.server.server().redirect_address().unwrap();
    at.network.route_plain_to(plain);
    at.network.close_handshakes();
    at.network.hold_plain(true);
    let added = fixture.add(NAME).await;
    fixture.prove(&added).await;
    let path = wait_until("the challenge", async || at.network.plain_path()).await;
    let (before, token) = path.rsplit_once('/').unwrap();
    assert_eq!(before, "/.well-known/acme-challenge");
    let ask = async |host: &str, path: &str| {
        send_request(
            plain,
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        )
        .await
    };
    for host in [NAME, "WWW.SHOP.COM:80"] {
        let answer = ask(host, &path).await.expect(200);
        let text = answer.text();
        assert!(text.starts_with(&format!("{token}.")), "{host}: {text}");
    }
    for (host, path, status) in [
        ("other.shop.com", path.as_str(), 421),
        ("shop.com", &path, 421),
        (SHARE, &path, 308),
        (NAME, &format!("{path}x"), 308),
        (NAME, "/.well-known/acme-challenge/", 308),
        (NAME, &format!("/a{path}"), 308),
    ] {
        let answer = ask(host, path).await;
        assert_eq!(answer.status, status, "{host}{path}");
        assert!(!answer.text().contains(token), "{host}{path}");
    }
    at.network.hold_plain(false);
    at.wait_for_certificate(NAME).await;
    assert_eq!(
        at.pebble.orders(),
        3,
        "the host, and one for each challenge"
    );
    let answer = ask(NAME, &path).await;
    assert_eq!(answer.status, 308, "it is answered no longer than needed");
    let certificate = fixture.wait_for_state(NAME, "issued").await;
    assert!(certificate["detail"].is_null(), "{certificate}");
}

#[tokio::test]
async fn both_reasons_are_said_where_no_challenge_arrives() {
    let fixture = DomainInstallation::start(|settings| {
        settings.redirect_listen = Some(([127, 0, 0, 1], 0).into());
    });
    let Some(fixture) = fixture.await else {
        return;
    };
    let at = &fixture.at;
    at.network.close_handshakes();
    let added = fixture.add(NAME).await;
    fixture.prove(&added).await;
    let certificate = fixture.wait_for_state(NAME, "refused").await;
    let detail = certificate["detail"].as_str().unwrap();
    for kind in ["tls-alpn-01", "http-01"] {
        assert!(detail.contains(kind), "{detail}");
    }
    assert_eq!(at.pebble.orders(), 3);
    assert!(at.presented_certificate(SHARE).await.is_some());
}

#[tokio::test]
async fn an_authority_that_refuses_a_domain_is_quoted_to_its_owner() {
    let fixture = DomainInstallation::start(|settings| {
        settings.redirect_listen = Some(([127, 0, 0, 1], 0).into());
    });
    let Some(fixture) = fixture.await else {
        return;
    };
    let added = fixture.add(BLOCKED).await;
    fixture.prove(&added).await;
    let certificate = fixture.wait_for_state(BLOCKED, "refused").await;
    let detail = certificate["detail"].as_str().unwrap();
    assert!(detail.starts_with("the authority refused: "), "{detail}");
    assert!(detail.contains("rejectedIdentifier"), "{detail}");
    assert!(certificate["not_after"].is_null(), "{certificate}");
    assert_eq!(fixture.at.presented_certificate(BLOCKED).await, None);
    // Another one is not kept from its certificate.
    let added = fixture.add(NAME).await;
    fixture.prove(&added).await;
    fixture.at.wait_for_certificate(NAME).await;
}

#[tokio::test]
async fn names_of_strangers_cost_no_order_and_no_question() {
    let Some(fixture) = DomainInstallation::start(|_| {}).await else {
        return;
    };
    let at = &fixture.at;
    let (orders, asked) = (at.pebble.orders(), fixture.dns.asked());
    for batch in 0..25 {
        let names: Vec<String> = (0..20).map(|n| format!("n{batch}-{n}.evil.com")).collect();
        let handshakes = names.iter().map(|name| at.presented_certificate(name));
        let shown = futures_util::future::join_all(handshakes).await;
        assert!(shown.iter().all(Option::is_none));
    }
    assert_eq!(at.pebble.orders(), orders);
    assert_eq!(fixture.dns.asked(), asked);
}
