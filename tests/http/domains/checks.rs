//! Checks in time: a pending domain is found or ends, a proof that goes is waited for, and is missed in the end.

use serde_json::json;
use svc_tests::dns::DnsManner;
use svc_tests::wait_until;

use super::{DomainFixture, NAME};

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

impl DomainFixture {
    /// Moves the clock on, and waits for the check that is due then.
    async fn pass(&self, seconds: u64) {
        let before = self.get(NAME).await.json()["checked_at"].clone();
        self.server.advance(seconds);
        let checked = async || {
            let now = self.get(NAME).await;
            (now.status == 404 || now.json()["checked_at"] != before).then_some(())
        };
        wait_until("the domain to be checked", checked).await;
    }
}

#[tokio::test]
async fn a_pending_domain_is_found_by_itself() {
    let fixture = DomainFixture::new().await;
    let added = fixture.add(NAME).await.expect(201).json();
    for seconds in [60, 240, 600] {
        fixture.pass(seconds).await;
        assert_eq!(fixture.state(NAME).await, "pending");
    }
    fixture.dns.set_record(&added["records"][0]);
    fixture.pass(2_700).await;
    assert_eq!(fixture.state(NAME).await, "active");
}

#[tokio::test]
async fn a_pending_domain_ends_after_seven_days() {
    let fixture = DomainFixture::new().await;
    fixture.add(NAME).await.expect(201);
    fixture.pass(7 * DAY - HOUR).await;
    assert_eq!(fixture.state(NAME).await, "pending");
    fixture.pass(HOUR).await;
    fixture.get(NAME).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_pending_domain_ends_though_dns_gives_no_answer() {
    let fixture = DomainFixture::new().await;
    fixture.add(NAME).await.expect(201);
    fixture.dns.set_manner(DnsManner::Code(2));
    fixture.pass(7 * DAY).await;
    fixture.get(NAME).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_proof_that_is_gone_is_waited_for_and_then_missed() {
    let fixture = DomainFixture::new().await;
    fixture.publish("room").await;
    let records = fixture.prove(NAME).await["records"].take();
    let host = fixture.host(NAME);
    fixture.dns.clear(NAME);
    fixture.pass(DAY).await;
    assert_eq!(fixture.state(NAME).await, "failing");
    assert_eq!(
        fixture.visit(&host, "/room").await.status,
        200,
        "served still"
    );
    // It comes back.
    fixture.dns.set_record(&records[0]);
    fixture.pass(HOUR).await;
    assert_eq!(fixture.state(NAME).await, "active");
    // It goes, as its owner notices, and stays away.
    fixture.dns.clear(NAME);
    fixture.verify(NAME).await.problem(409, "domain_unproven");
    assert_eq!(fixture.state(NAME).await, "failing");
    fixture.pass(71 * HOUR).await;
    assert_eq!(fixture.state(NAME).await, "failing");
    assert_eq!(fixture.visit(&host, "/room").await.status, 200);
    fixture.pass(HOUR).await;
    assert_eq!(fixture.state(NAME).await, "lost");
    fixture
        .visit(&host, "/room")
        .await
        .problem(421, "misdirected");
    // It is back when it is proven again.
    fixture.dns.set_record(&records[0]);
    fixture.verify(NAME).await.expect(200);
    assert_eq!(fixture.visit(&host, "/room").await.status, 200);
}

#[tokio::test]
async fn dns_that_fails_loses_no_domain() {
    let fixture = DomainFixture::new().await;
    fixture.publish("room").await;
    fixture.prove(NAME).await;
    fixture.dns.clear(NAME);
    fixture.verify(NAME).await.problem(409, "domain_unproven");
    fixture.dns.set_manner(DnsManner::Code(2));
    let asked = fixture.dns.asked();
    fixture.server.advance(80 * HOUR);
    let looked = async || (fixture.dns.asked() > asked).then_some(());
    wait_until("a check", looked).await;
    assert_eq!(fixture.state(NAME).await, "failing");
    assert_eq!(
        fixture.visit(&fixture.host(NAME), "/room").await.status,
        200
    );
}

#[tokio::test]
async fn a_name_moves_by_itself_to_who_waits_for_it() {
    let fixture = DomainFixture::new().await;
    let other = fixture.owner.project(&fixture.server, "Other").await;
    fixture.prove_in(&other, NAME).await;
    let added = fixture.add(NAME).await.expect(201).json();
    fixture.dns.set_record(&added["records"][0]);
    fixture.pass(60).await;
    assert_eq!(fixture.state(NAME).await, "active");
    let path = format!("/{other}/domains/{NAME}");
    let former = fixture.owner.get(&fixture.server, &path).await;
    assert_eq!(former.json()["state"], json!("lost"));
}
