//! Domains that owners bring for their projects: proven by DNS, served as the project's origin, and lost.

mod checks;
mod hosts;
mod names;
mod operators;
mod proofs;
mod sites;
mod visitors;

use http::Method;
use serde_json::{Value, json};
use svc::config::{DomainSettings, Settings};
use svc_tests::dns::DnsServer;
use svc_tests::{Answer, TestServer};

use crate::owner::{Owner, text};

/// The domain of most tests.
const NAME: &str = "www.shop.com";

/// Has a server look proofs up at a DNS server of the test.
pub(crate) fn use_dns(settings: &mut Settings, dns: &DnsServer) {
    settings.domains = Some(DomainSettings {
        resolver: Some(dns.address().to_string()),
    });
}

/// A server with a project, and the DNS that it asks.
struct DomainFixture {
    dns: DnsServer,
    server: TestServer,
    owner: Owner,
    project: String,
}

impl DomainFixture {
    async fn new() -> Self {
        Self::with_settings(|_| {}).await
    }

    async fn with_settings(change: impl FnOnce(&mut Settings)) -> Self {
        let dns = DnsServer::start().await;
        let builder = TestServer::builder().settings(|settings| use_dns(settings, &dns));
        let server = builder.settings(change).start().await;
        let owner = Owner::new(&server, "acme").await;
        let project = owner.project(&server, "Shop").await;
        Self {
            dns,
            server,
            owner,
            project,
        }
    }

    async fn add(&self, name: &str) -> Answer {
        self.add_to(&self.project, &json!({ "name": name })).await
    }

    async fn add_to(&self, project: &str, body: &Value) -> Answer {
        let path = format!("/{project}/domains");
        self.owner.post(&self.server, &path, body).await
    }

    async fn get(&self, name: &str) -> Answer {
        let path = format!("/{}/domains/{name}", self.project);
        self.owner.get(&self.server, &path).await
    }

    async fn delete(&self, name: &str) -> Answer {
        let path = format!("/{}/domains/{name}", self.project);
        self.owner.delete(&self.server, &path).await
    }

    async fn patch(&self, name: &str, body: &Value) -> Answer {
        let path = format!("/{}/domains/{name}", self.project);
        self.owner
            .send(&self.server, Method::PATCH, &path, body)
            .await
    }

    async fn verify(&self, name: &str) -> Answer {
        self.verify_of(&self.project, name).await
    }

    async fn verify_of(&self, project: &str, name: &str) -> Answer {
        let path = format!("/api/v1/projects/{project}/domains/{name}/verify");
        self.owner
            .send_request(&self.server, Method::POST, &path, None)
            .await
    }

    /// Adds a domain to a project and proves it by its first record.
    async fn prove_in(&self, project: &str, name: &str) -> Value {
        let added = self.add_to(project, &json!({ "name": name })).await;
        self.dns.set_record(&added.expect(201).json()["records"][0]);
        self.verify_of(project, name).await.expect(200).json()
    }

    async fn prove(&self, name: &str) -> Value {
        self.prove_in(&self.project, name).await
    }

    async fn state(&self, name: &str) -> String {
        text(&self.get(name).await.expect(200).json()["state"])
    }

    /// Asks a host for a path.
    async fn visit(&self, host: &str, path: &str) -> Answer {
        self.server.get_raw(host, path).await
    }

    /// The domain as visitors of the test's server name it.
    fn host(&self, name: &str) -> String {
        format!("{name}:{}", self.server.address().port())
    }

    async fn publish(&self, slug: &str) {
        self.owner.frontend(&self.server, &self.project, slug).await;
    }
}
