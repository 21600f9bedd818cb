//! Operators look at domains and take them down; backups bring rows, and DNS is asked before they are served.

use serde_json::{Value, json};
use svc_tests::wait_until;
use tempfile::TempDir;

use super::{DomainFixture, NAME};
use crate::svc;

#[tokio::test]
async fn an_operator_takes_a_domain_down_everywhere() {
    let fixture = DomainFixture::new().await;
    fixture.publish("room").await;
    fixture.prove(NAME).await;
    let run = async |arguments: &[&str]| -> Value {
        let arguments = [arguments, &["--json"]].concat();
        fixture.server.command(&svc(), &arguments).await.json()
    };
    let listed = run(&["domain", "list"]).await;
    assert_eq!(listed["domains"][0]["name"], NAME);
    assert_eq!(listed["domains"][0]["disabled"], false);
    let done = run(&["domain", "disable", "WWW.shop.com"]).await;
    assert_eq!(done, json!({ "name": NAME, "disabled": true }));
    fixture
        .visit(NAME, "/room")
        .await
        .problem(421, "misdirected");
    assert_eq!(fixture.state(NAME).await, "lost");
    fixture.verify(NAME).await.problem(403, "disabled");
    let other = fixture.owner.project(&fixture.server, "Other").await;
    let body = json!({ "name": NAME });
    fixture.add_to(&other, &body).await.problem(403, "disabled");
    let listed = run(&["domain", "list"]).await;
    assert_eq!(listed["domains"][0]["disabled"], true);
    run(&["domain", "enable", NAME]).await;
    // DNS is asked first.
    let served = async || (fixture.state(NAME).await == "active").then_some(());
    wait_until("the domain to be proven again", served).await;
    assert_eq!(fixture.visit(NAME, "/room").await.status, 200);
    let refused = fixture
        .server
        .command(&svc(), &["domain", "disable", "co.uk"])
        .await;
    assert!(!refused.success);
}

#[tokio::test]
async fn a_restored_domain_is_checked_before_it_is_served() {
    let fixture = DomainFixture::new().await;
    fixture.publish("room").await;
    fixture.prove(NAME).await;
    let backup = TempDir::new().unwrap();
    let backup = backup.path().join("backup");
    let backup = backup.to_str().unwrap();
    let made = fixture.server.command(&svc(), &["backup", backup]).await;
    assert!(made.success, "{made:?}");
    // Meanwhile DNS says something else.
    fixture.dns.clear(NAME);
    let asked = fixture.dns.asked();
    let DomainFixture {
        dns,
        server,
        owner,
        project,
    } = fixture;
    let server = server
        .restart_after_change(async |data| {
            let restored = svc().run(data, &["restore", backup]).await;
            assert!(restored.success, "{restored:?}");
        })
        .await;
    let fixture = DomainFixture {
        dns,
        server,
        owner,
        project,
    };
    fixture
        .visit(NAME, "/room")
        .await
        .problem(421, "misdirected");
    let looked = async || (fixture.dns.asked() > asked).then_some(());
    wait_until("a check", looked).await;
    assert_eq!(fixture.state(NAME).await, "pending");
    let records = fixture.get(NAME).await.json()["records"].take();
    fixture.dns.set_record(&records[0]);
    fixture.verify(NAME).await.expect(200);
    assert_eq!(fixture.visit(NAME, "/room").await.status, 200);
}
