//! Visitors on a domain: they sign in there, call actions, and meet in rooms, and other hosts of the project have no part in it.

use http::{HeaderMap, HeaderName, Method};
use serde_json::json;
use svc_tests::browser::{Browser, location};
use svc_tests::dns::DnsServer;

use super::use_dns;
use crate::visitors::GuestBook;

const NAME: &str = "www.shop.com";
const ADA: &str = "name=Ada&email=ada%40example.com";

/// A guest book on a domain of its project.
struct DomainGuestBook {
    book: GuestBook,
    _dns: DnsServer,
    /// Origin of the domain.
    origin: String,
}

impl DomainGuestBook {
    async fn new() -> Self {
        let dns = DnsServer::start().await;
        let book = GuestBook::with_settings(|settings| {
            settings.dev = true;
            use_dns(settings, &dns);
        });
        let book = book.await;
        let at = &book.fixture;
        let path = format!("/{}/domains", at.project);
        let added = at
            .owner
            .post(&at.server, &path, &json!({ "name": NAME }))
            .await;
        dns.set_record(&added.expect(201).json()["records"][0]);
        let path = format!("{path}/{NAME}/verify");
        at.owner
            .post(&at.server, &path, &json!({}))
            .await
            .expect(200);
        let origin = format!("http://{NAME}:{}", at.server.address().port());
        Self {
            book,
            _dns: dns,
            origin,
        }
    }

    fn url(&self, below: &str) -> String {
        format!("{}/room{below}", self.origin)
    }

    async fn sign_in(&self, browser: &mut Browser) -> String {
        let (at, page) = browser
            .open(&self.url("/auth/login?return_to=/room?a=b"))
            .await;
        assert!(page.expect(200).text().contains("no real sign-in"));
        let form = ADA;
        let sent = browser.submit(&at, form).await.expect(303);
        browser.follow(&at, sent).await.0
    }

    async fn user(&self, browser: &mut Browser, origin: &str) -> serde_json::Value {
        let url = format!("{origin}/room/auth/status");
        browser.get(&url).await.expect(200).json()["user"].clone()
    }

    async fn sign(&self, browser: &mut Browser, origin: &str) -> u16 {
        let headers = [(HeaderName::from_static("origin"), origin.parse().unwrap())];
        let body = json!({ "action": "sign", "params": { "words": "hello" } });
        let url = self.url("/api/op");
        let headers = HeaderMap::from_iter(headers);
        let answer = browser.send_request(Method::POST, &url, headers, Some(body.to_string()));
        answer.await.status
    }
}

#[tokio::test]
async fn visitors_sign_in_on_the_domain_that_they_are_on() {
    let at = DomainGuestBook::new().await;
    let mut browser = at.book.browser();
    assert_eq!(at.sign_in(&mut browser).await, at.url("?a=b"));
    assert_ne!(at.user(&mut browser, &at.origin).await, json!(null));
    // The project's own origin is another one, and so are its cookies.
    assert_eq!(at.user(&mut browser, &at.book.origin).await, json!(null));
    // Only pages of the domain act for who is signed in there.
    assert_eq!(at.sign(&mut browser, &at.origin).await, 200);
    for origin in [
        at.book.origin.as_str(),
        "http://evil.com",
        &at.book.sites,
        "null",
    ] {
        assert_eq!(at.sign(&mut browser, origin).await, 401, "{origin}");
    }
    let headers = [(
        HeaderName::from_static("origin"),
        at.book.origin.parse().unwrap(),
    )];
    let url = at.url("/auth/logout");
    let out = browser.send_request(Method::POST, &url, HeaderMap::from_iter(headers), None);
    out.await.problem(403, "origin_refused");
    let headers = [(
        HeaderName::from_static("origin"),
        at.origin.parse().unwrap(),
    )];
    let out = browser.send_request(Method::POST, &url, HeaderMap::from_iter(headers), None);
    out.await.expect(204);
    assert_eq!(at.user(&mut browser, &at.origin).await, json!(null));
}

#[tokio::test]
async fn a_ticket_counts_on_the_host_where_its_sign_in_began() {
    let at = DomainGuestBook::new().await;
    let mut browser = at.book.browser();
    let (page, _) = browser.open(&at.url("/auth/login")).await;
    let sent = browser.submit(&page, ADA).await;
    let callback = location(&page, &sent.expect(303));
    let answer = browser.get(&callback).await.expect(302);
    let complete = location(&callback, &answer);
    assert!(
        complete.starts_with(&at.url("/auth/complete?ticket=")),
        "{complete}"
    );
    let elsewhere = complete.replace(&at.origin, &at.book.origin);
    let answer = browser.get(&elsewhere).await.expect(302);
    assert!(location(&elsewhere, &answer).contains("auth_error=ticket_invalid"));
    assert_eq!(at.user(&mut browser, &at.book.origin).await, json!(null));
}

#[tokio::test]
async fn a_sign_in_on_a_domain_that_ends_meanwhile_leads_nowhere() {
    let at = DomainGuestBook::new().await;
    let mut browser = at.book.browser();
    let (page, _) = browser.open(&at.url("/auth/login")).await;
    let fixture = &at.book.fixture;
    let path = format!("/{}/domains/{NAME}", fixture.project);
    fixture
        .owner
        .delete(&fixture.server, &path)
        .await
        .expect(204);
    let sent = browser.submit(&page, ADA).await;
    let callback = location(&page, &sent.expect(303));
    assert_eq!(browser.get(&callback).await.status, 404);
}

#[tokio::test]
async fn rooms_and_live_queries_are_at_home_on_a_domain() {
    let at = DomainGuestBook::new().await;
    let fixture = &at.book.fixture;
    let on = json!({ "realtime": true });
    fixture.send(Method::PATCH, "", &on).await.expect(200);
    let host = format!("{NAME}:{}", fixture.server.address().port());
    let path = "/room/ws?room=a";
    let open = async |origin: &str| {
        let headers = [("host", host.as_str()), ("origin", origin)];
        fixture.server.socket(path, &headers).await.map(drop)
    };
    assert_eq!(open(&at.origin).await, Ok(()));
    for origin in [at.book.origin.as_str(), "http://evil.com"] {
        assert_eq!(open(origin).await, Err(403), "{origin}");
    }
}
