//! Tests of issuance with a fake authority: eligible names, rate limits, and stored state.

mod domains;

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use url::Url;

use super::*;
use crate::config::{Limits, Settings};
use crate::tls::budget::{DOMAIN_ORDERS_PER_HOUR, RateLimit};
use crate::tls::domains::DomainCertificate;
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
    proofs: Mutex<Vec<NameProof>>,
    refusals: Mutex<VecDeque<IssuanceRefusal>>,
    /// Orders wait for it.
    gate: Semaphore,
}

impl CertificateAuthority for Fake {
    fn issue<'a>(
        &'a self,
        name: &'a str,
        proof: NameProof,
    ) -> BoxFuture<'a, Result<String, IssuanceRefusal>> {
        Box::pin(async move {
            self.0.asked.lock().unwrap().push(name.to_owned());
            self.0.proofs.lock().unwrap().push(proof);
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
    fake: Fake,
    known: Known,
    per_week: u32,
    issuance: Arc<CertificateIssuance>,
    clock: Clock,
    domains: Arc<ServedDomains>,
}

/// Rows of an installation.
#[derive(Clone, Default)]
struct Known {
    looked: Arc<AtomicUsize>,
    /// Labels that have a project.
    labels: Arc<Mutex<Vec<&'static str>>>,
    /// Domains that fail or are pending, and that have a row all the same.
    inactive: Arc<Mutex<HashSet<String>>>,
    domains: Arc<ServedDomains>,
}

impl World {
    fn new(per_week: u32) -> Self {
        let clock = Clock::manual(NOW);
        let fake = Fake(Arc::new(Told {
            clock: clock.clone(),
            asked: Mutex::default(),
            proofs: Mutex::default(),
            refusals: Mutex::default(),
            gate: Semaphore::new(100),
        }));
        let data = TempDir::new().unwrap();
        let known = Known::default();
        *known.labels.lock().unwrap() = vec!["one-acme", "two-acme"];
        let issuance = open(&data, &clock, &fake, &known, per_week);
        Self {
            data,
            fake,
            domains: Arc::clone(&known.domains),
            known,
            per_week,
            issuance,
            clock,
        }
    }

    /// Restarts the installation.
    fn restarted(self) -> Self {
        let issuance = open(
            &self.data,
            &self.clock,
            &self.fake,
            &self.known,
            self.per_week,
        );
        Self { issuance, ..self }
    }

    /// Names that have a file of a domain.
    fn kept(&self) -> Vec<String> {
        self.issuance.domain_store.names().unwrap()
    }

    fn certificate(&self, name: &str) -> DomainCertificate {
        self.domains.certificate(name, true, self.clock.now())
    }

    fn proofs(&self) -> Vec<NameProof> {
        std::mem::take(&mut *self.fake.0.proofs.lock().unwrap())
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
fn acme() -> NameOwner {
    NameOwner {
        principal: "acme".into(),
        is_free_tier: false,
    }
}

/// Looks owners up: all labels of projects and all active domains are those of one.
fn certified(known: &Known) -> CertifiedNames {
    let kept_domains = known.inactive.lock().unwrap().clone();
    let (of_labels, of_domains) = (known.clone(), known.clone());
    CertifiedNames {
        find_label_owner: Arc::new(move |label| {
            of_labels.looked.fetch_add(1, Ordering::SeqCst);
            let labels = of_labels.labels.lock().unwrap();
            let is_there = labels.contains(&label.as_str());
            Box::pin(async move { Ok(is_there.then(acme)) })
        }),
        find_domain_owner: Arc::new(move |name| {
            of_domains.looked.fetch_add(1, Ordering::SeqCst);
            let is_active = !of_domains.inactive.lock().unwrap().contains(&name);
            // Of two tenants; the second one's names begin so.
            let owner = NameOwner {
                principal: name.chars().take(1).collect(),
                is_free_tier: true,
            };
            Box::pin(async move { Ok(is_active.then_some(owner)) })
        }),
        domains: Arc::clone(&known.domains),
        kept_domains,
        has_http: true,
    }
}

fn open(
    data: &TempDir,
    clock: &Clock,
    fake: &Fake,
    known: &Known,
    per_week: u32,
) -> Arc<CertificateIssuance> {
    let toml = "cache = '/c'\nhttps = true\nbase_url = 'https://share.example.com'\nsites_domain = 'pages.example.com'";
    let settings: Settings = toml::from_str(toml).unwrap();
    let names = Names::new(&settings.resolve("0.0.0.0:443".parse().unwrap()).unwrap());
    let authority = Url::parse("https://acme.example/directory").unwrap();
    let cap = |key, whole| Limits::default().divide_cap(key, whole);
    let issuance = CertificateIssuance::open(IssuanceDependencies {
        names,
        served: Arc::new(ServedCertificates::new("share.example.com")),
        store: AuthorityDirectory::open(data.path(), &authority).unwrap(),
        authority: Box::new(fake.clone()),
        certified: certified(known),
        clock: clock.clone(),
        per_week: cap("projects_per_week", per_week.into()),
        per_hour: cap("domain_orders_per_hour", DOMAIN_ORDERS_PER_HOUR),
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
        let before = world.known.looked.load(Ordering::SeqCst);
        world.issuance.ensure_certificate(name).await;
        let asked = world.asked();
        assert_eq!(asked == [name], is_asked, "{name}: {asked:?}");
        assert_eq!(asked.is_empty(), !is_asked, "{name}: {asked:?}");
        assert_eq!(world.issuance.served.has(name), is_asked, "{name}");
        let looked = world.known.looked.load(Ordering::SeqCst) > before;
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

/// A rate limit of everything, or of names.
fn busy(is_for_all: bool) -> IssuanceRefusal {
    IssuanceRefusal::Busy(RateLimit {
        detail: "too many".into(),
        wait_seconds: None,
        is_for_all,
    })
}

#[tokio::test]
async fn a_busy_authority_is_asked_for_nothing() {
    let world = World::new(40);
    world.refuse(busy(true));
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
        .known
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
