//! Proofs of domains: which records prove one, which do not, and whose it is when several say so.

use serde_json::json;
use svc_tests::dns::DnsManner;

use super::{DomainFixture, NAME};
use crate::owner::text;

#[tokio::test]
async fn either_record_proves_a_domain_at_any_hop() {
    let fixture = DomainFixture::new().await;
    fixture.publish("room").await;
    for (name, record) in [("a.shop.com", 0), ("b.shop.com", 1), ("shop.com", 0)] {
        let added = fixture.add(name).await.expect(201).json();
        fixture.verify(name).await.problem(409, "domain_unproven");
        fixture.dns.set_record(&added["records"][record]);
        let proven = fixture.verify(name).await.expect(200).json();
        assert_eq!(proven["state"], "active", "{name}");
        assert_ne!(proven["verified_at"], json!(null));
        assert_ne!(proven["checked_at"], json!(null));
        assert_eq!(
            fixture.visit(&fixture.host(name), "/room").await.status,
            200
        );
    }
    // Over hops of others, as with a provider in between, and in another case.
    let added = fixture.add(NAME).await.expect(201).json();
    let target = text(&added["records"][0]["value"]).to_uppercase();
    fixture.dns.set_cname(NAME, "edge.cdn.net");
    fixture.dns.set_cname("edge.cdn.net", "other.cdn.net");
    fixture.dns.set_cname("other.cdn.net", &target);
    fixture.verify(NAME).await.expect(200);
    // A long answer comes over TCP.
    fixture.dns.set_manner(DnsManner::Truncated);
    fixture.verify(NAME).await.expect(200);
}

#[tokio::test]
async fn nothing_else_proves_a_domain() {
    let fixture = DomainFixture::new().await;
    let wanted = fixture.add(NAME).await.expect(201).json()["records"].take();
    let target = text(&wanted[0]["value"]);
    let proof = text(&wanted[1]["value"]);
    let other = fixture.owner.project(&fixture.server, "Other").await;
    let others = fixture.add_to(&other, &json!({ "name": NAME })).await;
    let others = text(&others.expect(201).json()["records"][0]["value"]);
    let siblings = fixture.add("shop.com").await.expect(201).json();
    let siblings = text(&siblings["records"][0]["value"]);
    let refused = async |what: &str| {
        let problem = fixture.verify(NAME).await.problem(409, "domain_unproven");
        assert_eq!(problem["records"], wanted, "{what}");
        assert_eq!(fixture.state(NAME).await, "pending", "{what}");
        fixture.dns.clear(NAME);
        problem["seen"].clone()
    };
    assert_eq!(refused("nothing").await, json!([]));
    fixture.dns.set_address(NAME, "127.0.0.1");
    assert_eq!(refused("an address that leads here").await, json!([]));
    fixture.dns.set_cname(NAME, &others);
    let seen = json!([{ "type": "CNAME", "name": NAME, "value": others }]);
    assert_eq!(refused("another project's").await, seen);
    fixture.dns.set_cname(NAME, "pages.localhost");
    refused("a host of ours").await;
    fixture.dns.set_cname(NAME, &format!("x.{target}"));
    refused("below it").await;
    fixture.dns.set_cname(NAME, "loop.shop.com");
    fixture.dns.set_cname("loop.shop.com", NAME);
    refused("a circle").await;
    let name = format!("_svc.{NAME}");
    fixture.dns.set_txt(&name, &["v=spf1 -all", &siblings]);
    let seen = refused("of another name").await;
    assert_eq!(seen[1]["value"], siblings);
    assert_eq!(seen[1]["name"], name);
    fixture.dns.set_txt(NAME, &[&proof]);
    refused("at the wrong name").await;
    // An hour later there are checks again.
    fixture.server.advance(3_601);
    fixture.dns.set_manner(DnsManner::OtherNames);
    fixture.dns.set_cname(NAME, &target);
    fixture.dns.set_txt(&name, &[&proof]);
    refused("records that nobody asked for").await;
    fixture.dns.set_manner(DnsManner::Honest);
    fixture
        .dns
        .set_txt(&name, &["v=spf1 -all", &format!(" \"{proof}\" ")]);
    fixture.verify(NAME).await.expect(200);
}

#[tokio::test]
async fn a_resolver_without_a_usable_answer_changes_nothing() {
    let fixture = DomainFixture::new().await;
    let active = fixture.prove("a.shop.com").await;
    let pending = fixture.add(NAME).await.expect(201).json();
    for manner in [
        DnsManner::Code(2),
        DnsManner::Code(5),
        DnsManner::Garbage,
        DnsManner::Silent,
    ] {
        fixture.dns.set_manner(manner);
        let problem = fixture.verify(NAME).await;
        assert!(problem.header("retry-after").is_some(), "{manner:?}");
        problem.problem(503, "dns_unavailable");
        assert_eq!(fixture.get(NAME).await.json(), pending, "{manner:?}");
        fixture
            .verify("a.shop.com")
            .await
            .problem(503, "dns_unavailable");
        assert_eq!(fixture.get("a.shop.com").await.json(), active, "{manner:?}");
    }
}

#[tokio::test]
async fn a_name_moves_when_dns_proves_another_project_and_no_longer_this_one() {
    let fixture = DomainFixture::new().await;
    fixture.publish("room").await;
    fixture.prove(NAME).await;
    let other = fixture.owner.project(&fixture.server, "Other").await;
    fixture
        .owner
        .frontend(&fixture.server, &other, "hall")
        .await;
    let added = fixture.add_to(&other, &json!({ "name": NAME })).await;
    let records = added.expect(201).json()["records"].take();
    let refused = fixture.verify_of(&other, NAME).await;
    let problem = refused.problem(409, "domain_taken");
    assert_eq!(problem["records"], records);
    assert_eq!(problem["seen"].as_array().unwrap().len(), 1);
    // Both are proven: the first keeps it.
    fixture.dns.set_record(&records[1]);
    fixture
        .verify_of(&other, NAME)
        .await
        .problem(409, "domain_taken");
    let host = fixture.host(NAME);
    assert_eq!(fixture.visit(&host, "/room").await.status, 200);
    assert_eq!(fixture.visit(&host, "/hall").await.status, 404);
    // Only the other is.
    fixture.dns.set_record(&records[0]);
    let moved = fixture.verify_of(&other, NAME).await.expect(200).json();
    assert_eq!(moved["state"], "active");
    assert_eq!(fixture.state(NAME).await, "lost");
    assert_eq!(fixture.visit(&host, "/room").await.status, 404);
    assert_eq!(fixture.visit(&host, "/hall").await.status, 200);
    fixture.verify(NAME).await.problem(409, "domain_taken");
    // The end of the former does not end the other.
    fixture.delete(NAME).await.expect(204);
    assert_eq!(fixture.visit(&host, "/hall").await.status, 200);
}

#[tokio::test]
async fn a_check_of_the_former_moves_the_name_too() {
    let fixture = DomainFixture::new().await;
    fixture.prove(NAME).await;
    let other = fixture.owner.project(&fixture.server, "Other").await;
    fixture
        .owner
        .frontend(&fixture.server, &other, "hall")
        .await;
    let added = fixture.add_to(&other, &json!({ "name": NAME })).await;
    fixture
        .dns
        .set_record(&added.expect(201).json()["records"][0]);
    fixture.verify(NAME).await.problem(409, "domain_unproven");
    assert_eq!(fixture.state(NAME).await, "lost");
    let host = fixture.host(NAME);
    assert_eq!(fixture.visit(&host, "/hall").await.status, 200);
}

#[tokio::test]
async fn one_record_suffices_where_the_other_has_no_answer() {
    let fixture = DomainFixture::new().await;
    let added = fixture.add(NAME).await.expect(201).json();
    fixture.dns.set_manner(DnsManner::CodeForTxt(2));
    fixture.verify(NAME).await.problem(503, "dns_unavailable");
    fixture.dns.set_record(&added["records"][0]);
    fixture.verify(NAME).await.expect(200);
    // Of another project's the missing answer may be the proof.
    let other = fixture.owner.project(&fixture.server, "Other").await;
    let added = fixture.add_to(&other, &json!({ "name": NAME })).await;
    fixture
        .dns
        .set_record(&added.expect(201).json()["records"][0]);
    fixture
        .verify_of(&other, NAME)
        .await
        .problem(503, "dns_unavailable");
    assert_eq!(fixture.state(NAME).await, "active");
}

#[tokio::test]
async fn a_record_that_was_left_behind_serves_nobody_else() {
    let fixture = DomainFixture::new().await;
    fixture.publish("room").await;
    fixture.prove(NAME).await;
    fixture.delete(NAME).await.expect(204);
    let host = fixture.host(NAME);
    fixture
        .visit(&host, "/room")
        .await
        .problem(421, "misdirected");
    let other = fixture.owner.project(&fixture.server, "Other").await;
    fixture
        .add_to(&other, &json!({ "name": NAME }))
        .await
        .expect(201);
    fixture
        .verify_of(&other, NAME)
        .await
        .problem(409, "domain_unproven");
    fixture
        .visit(&host, "/room")
        .await
        .problem(421, "misdirected");
    // For its own project it still counts.
    fixture.add(NAME).await.expect(201);
    fixture.verify(NAME).await.expect(200);
}

#[tokio::test]
async fn of_projects_that_verify_at_once_one_has_the_name() {
    let fixture = DomainFixture::new().await;
    let other = fixture.owner.project(&fixture.server, "Other").await;
    for (project, record) in [(&fixture.project, 0), (&other, 1)] {
        let added = fixture.add_to(project, &json!({ "name": NAME })).await;
        fixture
            .dns
            .set_record(&added.expect(201).json()["records"][record]);
    }
    let verified = tokio::join!(fixture.verify(NAME), fixture.verify_of(&other, NAME));
    let mut statuses = [verified.0.status, verified.1.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
}

#[tokio::test]
async fn checks_of_one_name_at_once_all_find_the_proof() {
    let fixture = DomainFixture::new().await;
    let added = fixture.add(NAME).await.expect(201).json();
    fixture.dns.set_record(&added["records"][0]);
    let checks = (0..10).map(|_| fixture.verify(NAME));
    for verified in futures_util::future::join_all(checks).await {
        verified.expect(200);
    }
}

#[tokio::test]
async fn a_domain_is_checked_ten_times_an_hour() {
    let fixture = DomainFixture::new().await;
    fixture.add(NAME).await.expect(201);
    fixture.add("shop.com").await.expect(201);
    for _ in 0..10 {
        fixture.verify(NAME).await.problem(409, "domain_unproven");
    }
    let asked = fixture.dns.asked();
    let refused = fixture.verify(NAME).await;
    assert_eq!(refused.header("retry-after"), Some("60"));
    refused.problem(429, "rate_limited");
    assert_eq!(fixture.dns.asked(), asked);
    fixture
        .verify("shop.com")
        .await
        .problem(409, "domain_unproven");
    fixture.server.advance(3_601);
    fixture.verify(NAME).await.problem(409, "domain_unproven");
}
