//! Tests of issuance with a fake authority: eligible names, rate limits, and stored state.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use url::Url;

use super::*;
use crate::config::{Limits, Settings};
use crate::tls::domains::ServedDomain;
use svc_base::clock::Timestamp;

const NOW: Timestamp = Timestamp(1_795_176_000_000);
const DAY: u64 = 24 * 60 * 60;

/// An authority that issues for ninety days, unless it was told to refuse, and writes down what it is asked for.
#[derive(Clone, Debug)]
struct Fake(Arc<Told>);

#[derive(Debug)]
struct Told {
    clock: Clock,
    asked: Mutex<Vec<String>>,
    refusals: Mutex<VecDeque<IssuanceRefusal>>,
    /// Orders wait for it.
    gate: Semaphore,
}

impl CertificateAuthority for Fake {
    fn issue<'a>(
        &'a self,
        name: &'a str,
        _: NameProof,
    ) -> BoxFuture<'a, Result<String, IssuanceRefusal>> {
        Box::pin(async move {
            self.0.asked.lock().unwrap().push(name.to_owned());
            let _open = self.0.gate.acquire().await.unwrap();
            match self.0.refusals.lock().unwrap().pop_front() {
                Some(refusal) => Err(refusal),
                None => Ok(pem(name, self.0.clock.now())),
            }
        })
    }
}

/// A key and a certificate for ninety days.
fn pem(name: &str, now: Timestamp) -> String {
    let at = |now: Timestamp| time::OffsetDateTime::from_unix_timestamp(now.0 / 1_000).unwrap();
    let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = at(now);
    params.not_after = at(now.plus_seconds(90 * 24 * 60 * 60));
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    format!("{}{}", key.serialize_pem(), certificate.pem())
}

/// An installation of `share.example.com` with the projects `one-acme` and `two-acme`.
struct World {
    data: TempDir,
    clock: Clock,
    fake: Fake,
    looked: Arc<AtomicUsize>,
    /// Labels that have a project.
    labels: Arc<Mutex<Vec<&'static str>>>,
    domains: Arc<ServedDomains>,
    per_week: u32,
    issuance: Arc<CertificateIssuance>,
}

impl World {
    fn new(per_week: u32) -> Self {
        let clock = Clock::manual(NOW);
        let fake = Fake(Arc::new(Told {
            clock: clock.clone(),
            asked: Mutex::default(),
            refusals: Mutex::default(),
            gate: Semaphore::new(100),
        }));
        let data = TempDir::new().unwrap();
        let labels = Arc::new(Mutex::new(vec!["one-acme", "two-acme"]));
        let (looked, domains) = (Arc::default(), Arc::default());
        let projects = (&labels, &domains);
        let issuance = open(&data, &clock, &fake, &looked, projects, per_week);
        Self {
            data,
            clock,
            fake,
            looked,
            labels,
            domains,
            per_week,
            issuance,
        }
    }

    /// Restarts the installation.
    fn restarted(self) -> Self {
        let issuance = open(
            &self.data,
            &self.clock,
            &self.fake,
            &self.looked,
            (&self.labels, &self.domains),
            self.per_week,
        );
        Self { issuance, ..self }
    }

    fn refuse(&self, why: IssuanceRefusal) {
        self.fake.0.refusals.lock().unwrap().push_back(why);
    }

    /// Names that the authority was asked for since the last time.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.fake.0.asked.lock().unwrap())
    }

    /// Renews, and waits for the end of what that began.
    async fn renew(&self) {
        self.issuance.renew().await;
        loop {
            let under_way = self.issuance.state().pending.values().next().cloned();
            let Some(mut ended) = under_way else { return };
            let _ = ended.changed().await;
            tokio::task::yield_now().await;
        }
    }

    fn later(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

/// The owner of all projects here.
fn acme() -> LabelOwner {
    LabelOwner {
        principal: "acme".into(),
        is_free_tier: false,
    }
}

fn open(
    data: &TempDir,
    clock: &Clock,
    fake: &Fake,
    looked: &Arc<AtomicUsize>,
    (labels, domains): (&Arc<Mutex<Vec<&'static str>>>, &Arc<ServedDomains>),
    per_week: u32,
) -> Arc<CertificateIssuance> {
    let toml = "cache = '/c'\nhttps = true\nbase_url = 'https://share.example.com'\nsites_domain = 'pages.example.com'";
    let settings: Settings = toml::from_str(toml).unwrap();
    let names = Names::new(&settings.resolve("0.0.0.0:443".parse().unwrap()).unwrap());
    let (looked, labels) = (Arc::clone(looked), Arc::clone(labels));
    let find_owner: FindLabelOwnerFn = Arc::new(move |label| {
        looked.fetch_add(1, Ordering::SeqCst);
        let is_there = labels.lock().unwrap().contains(&label.as_str());
        Box::pin(async move { Ok(is_there.then(acme)) })
    });
    let authority = Url::parse("https://acme.example/directory").unwrap();
    let issuance = CertificateIssuance::open(IssuanceDependencies {
        names,
        served: Arc::new(ServedCertificates::new("share.example.com")),
        store: AuthorityDirectory::open(data.path(), &authority).unwrap(),
        authority: Box::new(fake.clone()),
        find_owner,
        domains: Arc::clone(domains),
        clock: clock.clone(),
        per_week: Limits::default().divide_cap("projects_per_week", per_week.into()),
    });
    Arc::new(issuance.unwrap())
}

#[tokio::test]
async fn only_hosts_of_ours_and_projects_that_exist_are_asked_for() {
    let world = World::new(40);
    for (name, is_asked, is_looked_up) in [
        ("share.example.com", true, false),
        ("one-acme.pages.example.com", true, true),
        ("none-acme.pages.example.com", false, true),
        ("pages.example.com", false, false),
        ("a.one-acme.pages.example.com", false, false),
        ("*.pages.example.com", false, false),
        ("evil.example", false, false),
        ("192.0.2.1", false, false),
        ("", false, false),
    ] {
        let before = world.looked.load(Ordering::SeqCst);
        world.issuance.ensure_certificate(name).await;
        let asked = world.asked();
        assert_eq!(asked == [name], is_asked, "{name}: {asked:?}");
        assert_eq!(asked.is_empty(), !is_asked, "{name}: {asked:?}");
        assert_eq!(world.issuance.served.has(name), is_asked, "{name}");
        let looked = world.looked.load(Ordering::SeqCst) > before;
        assert_eq!(looked, is_looked_up, "{name}");
        world.issuance.ensure_certificate(name).await;
        assert!(world.asked().is_empty(), "{name} is remembered");
    }
    let world = world.restarted();
    world
        .issuance
        .ensure_certificate("one-acme.pages.example.com")
        .await;
    assert!(world.asked().is_empty(), "over a restart, too");
}

#[tokio::test]
async fn handshakes_of_one_name_wait_for_one_order() {
    let world = World::new(40);
    let gate = world.fake.0.gate.acquire_many(100).await.unwrap();
    let handshakes: Vec<_> = (0..50)
        .map(|_| {
            let issuance = Arc::clone(&world.issuance);
            tokio::spawn(async move {
                issuance
                    .ensure_certificate("one-acme.pages.example.com")
                    .await;
            })
        })
        .collect();
    while world.fake.0.asked.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(gate);
    for handshake in handshakes {
        handshake.await.unwrap();
    }
    assert_eq!(world.asked().len(), 1);
    assert!(world.issuance.served.has("one-acme.pages.example.com"));
}

#[tokio::test]
async fn projects_get_so_many_certificates_a_week_and_hosts_of_ours_always() {
    let world = World::new(1);
    world
        .issuance
        .ensure_certificate("one-acme.pages.example.com")
        .await;
    assert_eq!(world.asked().len(), 1);
    world
        .issuance
        .ensure_certificate("two-acme.pages.example.com")
        .await;
    let world = world.restarted();
    world
        .issuance
        .ensure_certificate("two-acme.pages.example.com")
        .await;
    assert!(world.asked().is_empty(), "the week's one is spent");
    world.issuance.ensure_certificate("share.example.com").await;
    assert_eq!(world.asked(), ["share.example.com"]);
    world.later(7 * DAY);
    world
        .issuance
        .ensure_certificate("two-acme.pages.example.com")
        .await;
    assert_eq!(world.asked(), ["two-acme.pages.example.com"]);
}

#[tokio::test]
async fn what_was_refused_rests_over_restarts_and_is_asked_for_again() {
    let world = World::new(40);
    let name = "one-acme.pages.example.com";
    world.refuse(IssuanceRefusal::Refused("no such address".into()));
    world.issuance.ensure_certificate(name).await;
    assert_eq!(world.asked(), [name]);
    world.issuance.ensure_certificate(name).await;
    let world = world.restarted();
    world.issuance.ensure_certificate(name).await;
    assert!(world.asked().is_empty(), "it rests");
    world.later(5 * 60);
    world.issuance.ensure_certificate(name).await;
    assert_eq!(world.asked(), [name]);
    assert!(world.issuance.served.has(name));
}

#[tokio::test]
async fn a_busy_authority_is_asked_for_nothing() {
    let world = World::new(40);
    world.refuse(IssuanceRefusal::Busy("too many".into()));
    world
        .issuance
        .ensure_certificate("one-acme.pages.example.com")
        .await;
    world.asked();
    world
        .issuance
        .ensure_certificate("two-acme.pages.example.com")
        .await;
    world.renew().await;
    assert!(world.asked().is_empty());
    world.later(60 * 60);
    world.renew().await;
    assert_eq!(world.asked(), ["share.example.com"]);
}

#[tokio::test]
async fn certificates_are_renewed_after_two_thirds_and_only_where_they_are_needed() {
    let world = World::new(2);
    world.renew().await;
    assert_eq!(world.asked(), ["share.example.com"], "at the start");
    for name in ["one-acme.pages.example.com", "two-acme.pages.example.com"] {
        world.issuance.ensure_certificate(name).await;
    }
    world.asked();
    world.later(60 * DAY - 1);
    world.renew().await;
    assert!(world.asked().is_empty());
    world
        .labels
        .lock()
        .unwrap()
        .retain(|label| *label == "one-acme");
    world.later(1);
    world.renew().await;
    let mut asked = world.asked();
    asked.sort();
    assert_eq!(asked, ["one-acme.pages.example.com", "share.example.com"]);
    let gone = "two-acme.pages.example.com";
    assert!(!world.issuance.served.has(gone), "its project is gone");
    let world = world.restarted();
    assert!(!world.issuance.served.has(gone), "its file, too");
    world.renew().await;
    assert!(world.asked().is_empty(), "they are new again");
    world.refuse(IssuanceRefusal::Refused("no such address".into()));
    world.refuse(IssuanceRefusal::Refused("no such address".into()));
    world.later(60 * DAY);
    world.renew().await;
    assert_eq!(world.asked().len(), 2);
    assert!(
        world.issuance.served.has("share.example.com"),
        "what was refused anew serves to its end"
    );
    world.renew().await;
    assert!(world.asked().is_empty(), "and rests");
}

#[tokio::test]
async fn so_many_names_are_under_way() {
    let world = World::new(1_000);
    let gate = world.fake.0.gate.acquire_many(100).await.unwrap();
    for number in 0..2 * MAX_PENDING_NAMES {
        world.issuance.start_order(
            &format!("{number}.pages.example.com"),
            OrderBudget::Label(acme()),
        );
    }
    assert_eq!(world.issuance.state().pending.len(), MAX_PENDING_NAMES);
    drop(gate);
}

fn domain(name: &str) -> ServedDomain {
    ServedDomain {
        name: name.to_owned(),
        host_label: "one-acme".to_owned(),
        redirect_to: None,
    }
}

#[tokio::test]
async fn a_domain_is_asked_for_once_it_is_served_and_deleted_when_it_ends() {
    let world = World::new(1);
    world.renew().await;
    world.asked();
    let name = "www.shop.com";
    world.issuance.ensure_certificate(name).await;
    assert!(world.asked().is_empty(), "unproven");
    world.domains.serve(domain(name));
    let state = |world: &World| world.domains.certificate(name, true);
    assert_eq!(state(&world), DomainCertificate::Waiting);
    assert_eq!(
        world.domains.certificate(name, false),
        DomainCertificate::None
    );
    world.renew().await;
    assert_eq!(world.asked(), [name], "at once, without a handshake");
    let not_after = NOW.plus_seconds(90 * 24 * 60 * 60);
    assert_eq!(state(&world), DomainCertificate::Issued { not_after });
    let world = world.restarted();
    assert!(world.issuance.served.has(name), "kept over a restart");
    world.domains.end(name);
    world.issuance.end_domain(name);
    assert!(!world.issuance.served.has(name), "at once");
    world.renew().await;
    world.domains.serve(domain(name));
    let world = world.restarted();
    assert!(!world.issuance.served.has(name), "its file is deleted");
    assert_eq!(state(&world), DomainCertificate::Waiting);
}

#[tokio::test]
async fn a_domain_that_ended_while_nobody_looked_leaves_no_key() {
    let world = World::new(1);
    world.domains.serve(domain("www.shop.com"));
    world.renew().await;
    world.domains.end("www.shop.com");
    let world = world.restarted();
    world.domains.serve(domain("www.shop.com"));
    let world = world.restarted();
    assert!(!world.issuance.served.has("www.shop.com"));
}

#[tokio::test]
async fn domains_have_an_hourly_budget_of_their_own_and_rest_when_they_are_refused() {
    let world = World::new(1);
    world.renew().await;
    world.asked();
    for number in 0..40 {
        world.domains.serve(domain(&format!("{number}.shop.com")));
    }
    world.renew().await;
    assert_eq!(world.asked().len(), 30);
    world.later(3_600);
    world.renew().await;
    assert_eq!(world.asked().len(), 10);
    world.renew().await;
    assert!(world.asked().is_empty());
    world
        .issuance
        .ensure_certificate("one-acme.pages.example.com")
        .await;
    assert_eq!(world.asked().len(), 1, "that of projects is not touched");
    world.later(3_600);
    world.refuse(IssuanceRefusal::Refused("no such address".into()));
    world.domains.serve(domain("www.shop.com"));
    world.renew().await;
    assert_eq!(world.asked(), ["www.shop.com"]);
    let state = world.domains.certificate("www.shop.com", true);
    assert!(matches!(state, DomainCertificate::Refused { detail } if detail.contains("address")));
    world.renew().await;
    assert!(world.asked().is_empty(), "it rests");
}
