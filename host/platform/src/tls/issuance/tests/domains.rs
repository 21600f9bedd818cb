//! Tests of issuance to domains: from proof to end, budgets, challenges, and states.

use super::*;
use crate::tls::domains::ServedDomain;

const SHOP: &str = "www.shop.com";

impl World {
    /// Starts an installation whose own host has its certificate.
    async fn with_own_host() -> Self {
        let world = Self::new(1);
        world.renew().await;
        assert_eq!(world.asked(), ["share.example.com"]);
        world.proofs();
        world
    }

    fn serve(&self, name: &str) {
        self.domains.serve(ServedDomain {
            name: name.to_owned(),
            host_label: "one-acme".to_owned(),
            redirect_to: None,
        });
    }

    /// Ends a domain as a running server does.
    fn end(&self, name: &str) {
        self.domains.end(name);
        self.issuance.end_domain(name);
    }

    /// Has DNS not prove a domain, which has a row all the same.
    fn set_inactive(&self, name: &str, is_inactive: bool) {
        let mut inactive = self.known.inactive.lock().unwrap();
        match is_inactive {
            true => inactive.insert(name.to_owned()),
            false => inactive.remove(name),
        };
    }
}

fn refused() -> IssuanceRefusal {
    IssuanceRefusal::Refused("CAA forbids it".into())
}

fn issued(not_after: Timestamp) -> DomainCertificate {
    let detail = None;
    DomainCertificate::Issued { not_after, detail }
}

#[tokio::test]
async fn a_domain_is_asked_for_once_it_is_served_and_deleted_when_it_ends() {
    let world = World::with_own_host().await;
    world.issuance.ensure_certificate(SHOP).await;
    assert!(world.asked().is_empty(), "unproven");
    world.serve(SHOP);
    world.issuance.ensure_certificate(SHOP).await;
    assert!(world.asked().is_empty(), "no handshake orders");
    assert_eq!(world.certificate(SHOP), DomainCertificate::Waiting);
    let elsewhere = world.domains.certificate(SHOP, false, NOW);
    assert_eq!(elsewhere, DomainCertificate::None);
    world.renew().await;
    assert_eq!(world.asked(), [SHOP], "at once, without a handshake");
    let not_after = NOW.plus_seconds(90 * 24 * 60 * 60);
    assert_eq!(world.certificate(SHOP), issued(not_after));
    let world = world.restarted();
    assert!(world.issuance.served.has(SHOP), "kept over a restart");
    assert_eq!(world.certificate(SHOP), issued(not_after));
    world.end(SHOP);
    assert!(!world.issuance.served.has(SHOP), "at once");
    world.renew().await;
    assert!(world.kept().is_empty(), "its file is deleted");
    world.serve(SHOP);
    assert_eq!(world.certificate(SHOP), DomainCertificate::Waiting);
    world.renew().await;
    assert_eq!(world.asked(), [SHOP], "added again, it waits for nothing");
    assert_eq!(world.certificate(SHOP), issued(not_after));
    world.end(SHOP);
    world.serve(SHOP);
    world.renew().await;
    assert!(world.asked().is_empty(), "the file was still there");
    assert_eq!(world.certificate(SHOP), issued(not_after));
}

#[tokio::test]
async fn a_start_deletes_keys_of_ended_domains_and_no_others() {
    let world = World::with_own_host().await;
    let (restored, ended) = ("restored.shop.com", "ended.shop.com");
    world.serve(restored);
    world.serve(ended);
    let text = pem("shop.other-pages.com", NOW);
    let stored = world.issuance.store.put("shop.other-pages.com", &text);
    stored.unwrap();
    world.renew().await;
    assert_eq!(world.asked().len(), 2);
    world.domains.end(restored);
    world.domains.end(ended);
    world.set_inactive(restored, true);
    let world = world.restarted();
    assert_eq!(world.kept(), [restored]);
    assert!(!world.issuance.served.has(restored), "DNS says nothing yet");
    assert!(!world.issuance.served.has("shop.other-pages.com"));
    let own = world.issuance.store.names().unwrap();
    assert!(
        own.contains(&"shop.other-pages.com".to_owned()),
        "settings may be put right again"
    );
    world.set_inactive(restored, false);
    world.serve(restored);
    world.renew().await;
    assert!(world.asked().is_empty(), "it had one");
    assert!(world.issuance.served.has(restored));
}

#[tokio::test]
async fn a_domain_that_ends_before_its_turn_costs_no_order() {
    let world = World::with_own_host().await;
    let turns = world.issuance.orders.acquire_many(4).await.unwrap();
    world.serve(SHOP);
    world.issuance.renew().await;
    assert_eq!(world.issuance.state().pending.len(), 1);
    world.end(SHOP);
    drop(turns);
    world.renew().await;
    assert!(world.asked().is_empty());
}

#[tokio::test]
async fn domains_have_an_hourly_budget_of_which_no_owner_takes_all() {
    let world = World::with_own_host().await;
    for number in 0..20 {
        world.serve(&format!("a{number}.shop.com"));
    }
    world.renew().await;
    assert_eq!(world.asked().len(), 15);
    for number in 0..5 {
        world.serve(&format!("b{number}.other.com"));
    }
    world.renew().await;
    let asked = world.asked();
    assert_eq!(asked.len(), 5, "{asked:?}");
    assert!(asked.iter().all(|name| name.starts_with('b')), "{asked:?}");
    world.renew().await;
    assert!(world.asked().is_empty());
    world
        .issuance
        .ensure_certificate("one-acme.pages.example.com")
        .await;
    assert_eq!(world.asked().len(), 1, "that of projects is not touched");
    world.later(3_600);
    world.renew().await;
    assert_eq!(world.asked().len(), 5);
}

#[tokio::test]
async fn names_that_are_none_of_ours_cost_no_order_and_no_query() {
    let world = World::with_own_host().await;
    world.serve(SHOP);
    world.renew().await;
    world.asked();
    let looked = world.known.looked.load(Ordering::SeqCst);
    for number in 0..10_000 {
        let name = format!("{number}.evil.com");
        world.issuance.ensure_certificate(&name).await;
    }
    world.renew().await;
    assert!(world.asked().is_empty());
    assert_eq!(world.known.looked.load(Ordering::SeqCst), looked);
}

#[tokio::test]
async fn a_refused_domain_rests_and_says_why_over_a_restart() {
    let world = World::with_own_host().await;
    world.serve(SHOP);
    world.refuse(refused());
    world.renew().await;
    assert_eq!(world.asked(), [SHOP]);
    let is_refused = |world: &World| {
        let state = world.certificate(SHOP);
        matches!(state, DomainCertificate::Refused { not_after: None, detail } if detail.contains("CAA"))
    };
    assert!(is_refused(&world));
    world.renew().await;
    assert!(world.asked().is_empty(), "it rests");
    let world = world.restarted();
    world.domains.end(SHOP);
    world.serve(SHOP);
    world.renew().await;
    assert!(world.asked().is_empty(), "it rests");
    assert!(is_refused(&world));
    assert_eq!(world.proofs(), [NameProof::Handshake]);
    world.later(5 * 60);
    world.renew().await;
    assert_eq!(world.asked(), [SHOP]);
    assert_eq!(world.proofs(), [NameProof::Handshake], "no other challenge");
    assert!(world.issuance.served.has(SHOP));
}

#[tokio::test]
async fn plain_http_follows_a_handshake_that_did_not_arrive() {
    let world = World::with_own_host().await;
    world.serve(SHOP);
    world.refuse(IssuanceRefusal::Unproven("no connection".into()));
    world.renew().await;
    assert_eq!(world.certificate(SHOP), DomainCertificate::Waiting);
    world.renew().await;
    assert_eq!(world.proofs(), [NameProof::Handshake, NameProof::Http]);
    assert!(world.issuance.served.has(SHOP));
    world.asked();
    // Hosts of ours are proven by handshakes alone.
    let label = "one-acme.pages.example.com";
    world.refuse(IssuanceRefusal::Unproven("no connection".into()));
    world.issuance.ensure_certificate(label).await;
    world.issuance.ensure_certificate(label).await;
    assert_eq!(world.asked(), [label], "it rests");
}

#[tokio::test]
async fn a_rate_limit_of_a_domain_stops_no_others() {
    let world = World::with_own_host().await;
    world.serve("n1.evil.com");
    world.refuse(busy(false));
    world.renew().await;
    assert_eq!(world.asked(), ["n1.evil.com"]);
    world.serve("n2.evil.com");
    world.serve(SHOP);
    world.renew().await;
    assert_eq!(world.asked(), [SHOP]);
    let state = world.certificate("n2.evil.com");
    assert!(matches!(state, DomainCertificate::Refused { .. }));
    let label = "one-acme.pages.example.com";
    world.issuance.ensure_certificate(label).await;
    assert_eq!(world.asked(), [label]);
    world.later(60 * 60);
    world.renew().await;
    assert_eq!(world.asked().len(), 2);
}

#[tokio::test]
async fn a_refused_renewal_is_said_beside_the_certificate_and_after_its_end() {
    let world = World::with_own_host().await;
    world.serve(SHOP);
    world.renew().await;
    world.asked();
    let ends = NOW.plus_seconds(90 * 24 * 60 * 60);
    world.later(60 * DAY);
    world.refuse(refused());
    world.refuse(refused());
    world.renew().await;
    assert_eq!(world.asked().len(), 2);
    let check = |world: &World, is_valid: bool| match world.certificate(SHOP) {
        DomainCertificate::Issued { not_after, detail } => {
            assert!(is_valid);
            assert_eq!(not_after, ends);
            assert!(detail.unwrap().contains("CAA"));
        }
        DomainCertificate::Refused { not_after, detail } => {
            assert!(!is_valid);
            assert_eq!(not_after, Some(ends));
            assert!(detail.contains("CAA"));
        }
        other => panic!("{other:?}"),
    };
    check(&world, true);
    let world = world.restarted();
    check(&world, true);
    world.later(30 * DAY);
    check(&world, false);
    world.renew().await;
    let state = world.certificate(SHOP);
    assert_eq!(state, issued(ends.plus_seconds(90 * 24 * 60 * 60)));
}

#[tokio::test]
async fn a_failing_domain_keeps_its_certificate_and_gets_no_other() {
    let world = World::with_own_host().await;
    world.serve(SHOP);
    world.set_inactive(SHOP, true);
    world.renew().await;
    assert!(world.asked().is_empty());
    world.set_inactive(SHOP, false);
    world.later(60);
    world.renew().await;
    assert_eq!(world.asked(), [SHOP]);
    world.set_inactive(SHOP, true);
    world.later(60 * DAY);
    world.renew().await;
    assert_eq!(world.asked(), ["share.example.com"]);
    assert!(world.issuance.served.has(SHOP), "served on");
    world.set_inactive(SHOP, false);
    world.renew().await;
    assert_eq!(world.asked(), [SHOP]);
}
