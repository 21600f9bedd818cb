//! Visitors on a domain: they sign in there, call actions, buy, and meet in rooms, and other hosts of the project have no part in it.

use http::{HeaderMap, HeaderName, Method, header};
use serde_json::{Value, json};
use svc::config::{Settings, SignInSettings, SmtpSettings};
use svc_tests::authenticator::{Authenticator, PasskeyPrompt};
use svc_tests::browser::{Browser, location};
use svc_tests::dns::DnsServer;
use svc_tests::fake_smtp::FakeSmtp;
use svc_tests::{ReadAnswer, Socket};

use super::{NAME, use_dns};
use crate::live::{next_rows, subscribe_and_read_first};
use crate::owner::text;
use crate::svc;
use crate::visitors::GuestBook;

const ADA: &str = "name=Ada&email=ada%40example.com";

/// A guest book on a domain of its project.
struct DomainGuestBook {
    book: GuestBook,
    dns: DnsServer,
    /// Origin of the domain.
    origin: String,
}

impl DomainGuestBook {
    async fn new() -> Self {
        Self::with_settings(|settings| settings.dev = true).await
    }

    async fn with_settings(change: impl FnOnce(&mut Settings)) -> Self {
        let dns = DnsServer::start().await;
        let book = GuestBook::with_settings(|settings| {
            change(settings);
            use_dns(settings, &dns);
        });
        let book = book.await;
        let origin = format!("http://{NAME}:{}", book.fixture.server.address().port());
        let at = Self { book, dns, origin };
        at.prove_for(&at.book.fixture.project).await;
        at
    }

    /// Has DNS prove the domain for a project, and for no other.
    async fn prove_for(&self, project: &str) {
        let at = &self.book.fixture;
        let path = format!("/{project}/domains");
        let body = json!({ "name": NAME });
        let added = at.owner.post(&at.server, &path, &body).await.expect(201);
        self.dns.clear(NAME);
        self.dns.set_record(&added.json()["records"][0]);
        let path = format!("{path}/{NAME}/verify");
        let verified = at.owner.post(&at.server, &path, &json!({})).await;
        verified.expect(200);
    }

    /// The path of the domain for its owner.
    fn path(&self) -> String {
        format!("/{}/domains/{NAME}", self.book.fixture.project)
    }

    async fn remove(&self) {
        let at = &self.book.fixture;
        at.owner.delete(&at.server, &self.path()).await.expect(204);
    }

    /// Takes the domain down as the operator, or lets it be proven again.
    async fn switch(&self, enabled: bool) {
        let verb = if enabled { "enable" } else { "disable" };
        let server = &self.book.fixture.server;
        let done = server.command(&svc(), &["domain", verb, NAME]).await;
        assert!(done.success, "{done:?}");
    }

    async fn redirect_to(&self, host: Option<&str>) {
        let at = &self.book.fixture;
        let body = json!({ "redirect_to": host });
        let path = self.path();
        let changed = at.owner.send(&at.server, Method::PATCH, &path, &body);
        changed.await.expect(200);
    }

    /// Asks a host who is signed in, with a cookie of whichever host.
    async fn user_with(&self, origin: &str, cookie: &str) -> Value {
        let host = origin.strip_prefix("http://").unwrap();
        let status = self.book.fixture.server.get("/room/auth/status");
        let status = status
            .header(header::HOST, host)
            .header(header::COOKIE, cookie);
        status.answer().await.expect(200).json()["user"].take()
    }

    /// Asks a host what was bought, with a cookie of whichever host.
    async fn bought_with(&self, origin: &str, cookie: &str) -> Vec<Value> {
        let host = origin.strip_prefix("http://").unwrap();
        let status = self.book.fixture.server.get("/room/payments/status");
        let status = status
            .header(header::HOST, host)
            .header(header::COOKIE, cookie);
        let payments = status.answer().await.expect(200).json()["payments"].take();
        payments.as_array().unwrap().clone()
    }

    /// Counts the sessions that are stored.
    fn sessions(&self) -> i64 {
        let sql = "SELECT count(*) FROM visitor_sessions";
        let control = &self.book.fixture.server.server().app().control;
        let counted = control.read_blocking(|c| c.query_row(sql, [], |row| row.get(0)));
        counted.unwrap()
    }

    /// Opens a socket as a page of an origin does.
    async fn socket(&self, path: &str, origin: &str, cookie: &str) -> Socket {
        let host = origin.strip_prefix("http://").unwrap();
        let headers = [("host", host), ("origin", origin), ("cookie", cookie)];
        let opened = self.book.fixture.server.socket(path, &headers);
        opened.await.unwrap()
    }

    async fn switch_realtime_on(&self) {
        let on = json!({ "realtime": true });
        let fixture = &self.book.fixture;
        fixture.send(Method::PATCH, "", &on).await.expect(200);
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
        let body = json!({ "action": "sign", "params": { "words": "hello" } });
        let (url, headers) = (self.url("/api/op"), origin_header(origin));
        let answer = browser.send_request(Method::POST, &url, headers, Some(body.to_string()));
        answer.await.status
    }
}

/// The headers of a call from a page of an origin.
fn origin_header(origin: &str) -> HeaderMap {
    let name = HeaderName::from_static("origin");
    HeaderMap::from_iter([(name, origin.parse().unwrap())])
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
    let url = at.url("/auth/logout");
    let out = browser.send_request(Method::POST, &url, origin_header(&at.book.origin), None);
    out.await.problem(403, "origin_refused");
    let out = browser.send_request(Method::POST, &url, origin_header(&at.origin), None);
    out.await.expect(204);
    assert_eq!(at.user(&mut browser, &at.origin).await, json!(null));
}

#[tokio::test]
async fn a_code_signs_in_on_the_domain_that_its_visitor_is_on() {
    let smtp = FakeSmtp::start().await;
    let settings = SmtpSettings {
        url: smtp.url(),
        from: "codes@sender.example".to_owned(),
        name: None,
    };
    let at = DomainGuestBook::with_settings(|all| all.smtp = Some(settings)).await;
    let mut browser = at.book.browser();
    let (page, form) = browser
        .open(&at.url("/auth/login?return_to=/room?a=b"))
        .await;
    let begins = format!("{}/_svc/auth/email?state=", at.book.sites);
    assert!(page.starts_with(&begins), "{page}");
    let form = form.expect(200);
    let policy = form.header("content-security-policy").unwrap();
    assert!(policy.contains(&at.origin), "{policy}");
    let asked = browser.submit(&page, "email=ada%40example.com").await;
    asked.expect(200);
    let mail = smtp.newest();
    assert!(mail.content.contains(NAME), "{}", mail.content);
    let sent = browser
        .submit(&page, &format!("code={}", mail.code()))
        .await;
    let (end, _) = browser.follow(&page, sent.expect(303)).await;
    assert_eq!(end, at.url("?a=b"));
    let user = at.user(&mut browser, &at.origin).await;
    assert_eq!(user["email"], "ada@example.com");
    assert_eq!(at.user(&mut browser, &at.book.origin).await, json!(null));
}

impl DomainGuestBook {
    /// Makes an account on the domain with a device; returns the browser that it signed in.
    async fn create_passkey(&self, device: &mut Authenticator) -> Browser {
        let mut browser = self.book.browser();
        let (page, shown) = browser.open(&self.url("/auth/login")).await;
        let prompt = PasskeyPrompt::find(shown.expect(200).text(), "create");
        let made = device.create(&prompt.options, &self.book.sites);
        let sent = browser
            .submit(&page, &prompt.form(Some("Ada"), &made))
            .await;
        let (end, _) = browser.follow(&page, sent.expect(303)).await;
        assert_eq!(end, self.url(""));
        browser
    }
}

#[tokio::test]
async fn a_session_of_a_domain_alone_opens_no_account_of_passkeys() {
    let on = SignInSettings { passkeys: true };
    let at = DomainGuestBook::with_settings(|settings| settings.sign_in = on).await;
    let (mut ada, mut eve) = (Authenticator::default(), Authenticator::default());
    let mut browser = at.create_passkey(&mut ada).await;
    at.create_passkey(&mut eve).await;
    let user = at.user(&mut browser, &at.origin).await;
    assert_eq!(user["provider"], "passkey");
    // Who has the domain can have the cookie, and with it what the visitor has here; the account is not theirs.
    let (visit, shown) = browser.open(&at.url("/auth/passkeys")).await;
    let shown = shown.expect(200);
    assert!(
        !shown.text().contains("name=\"remove\""),
        "{}",
        shown.text()
    );
    assert!(!shown.text().contains("data-passkey=\"create\""));
    let refused = browser.submit(&visit, "remove=AAAA").await;
    refused.problem(400, "invalid_request");
    let sites = &at.book.sites;
    let prompt = PasskeyPrompt::find(shown.text(), "get");
    let form = prompt.form(None, &eve.get(&prompt.options, sites));
    let refused = browser.submit(&visit, &form).await.expect(303);
    let back = location(&visit, &refused);
    assert_eq!(back, at.url("?auth_error=token_invalid"));
    // A passkey of the account opens it.
    let shown = browser.get(&visit).await.expect(200);
    let prompt = PasskeyPrompt::find(shown.text(), "get");
    let form = prompt.form(None, &ada.get(&prompt.options, sites));
    let opened = browser.submit(&visit, &form).await.expect(303);
    let (account, shown) = browser.follow(&visit, opened).await;
    let shown = shown.expect(200);
    assert!(shown.text().contains("name=\"remove\""), "{}", shown.text());
    let prompt = PasskeyPrompt::find(shown.text(), "create");
    let mut second = Authenticator::default();
    let form = prompt.form(None, &second.create(&prompt.options, sites));
    let added = browser.submit(&account, &form).await.expect(303);
    let (_, shown) = browser.follow(&account, added).await;
    let passkeys = shown.expect(200);
    assert_eq!(passkeys.text().matches("name=\"remove\"").count(), 2);
    // The visit ends with the domain.
    at.remove().await;
    assert_eq!(browser.get(&account).await.status, 404);
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
    at.remove().await;
    let sent = browser.submit(&page, ADA).await;
    let callback = location(&page, &sent.expect(303));
    assert_eq!(browser.get(&callback).await.status, 404);
}

#[tokio::test]
async fn a_session_counts_on_the_host_that_it_began_on() {
    let at = DomainGuestBook::new().await;
    let (mut here, mut there) = (at.book.browser(), at.book.browser());
    at.sign_in(&mut here).await;
    at.book.sign_in(&mut there, ADA, "").await;
    let on_domain = here.cookie(&at.url("/auth/status")).unwrap();
    let on_own = there.cookie(&at.book.url("/auth/status")).unwrap();
    for (origin, cookie, is_known) in [
        (&at.origin, &on_domain, true),
        (&at.book.origin, &on_domain, false),
        (&at.book.sites, &on_domain, false),
        (&at.book.origin, &on_own, true),
        (&at.origin, &on_own, false),
    ] {
        // The second time the session is in memory.
        for _ in 0..2 {
            let user = at.user_with(origin, cookie).await;
            assert_eq!(user.is_object(), is_known, "{origin} {cookie}");
        }
    }
    // An action does not know it, either, whatever the rest of the request says.
    let host = at.book.origin.strip_prefix("http://").unwrap();
    let body = json!({ "action": "sign", "params": { "words": "hello" } });
    let call = at.book.fixture.server.json("/room/api/op", &body);
    let call = call
        .header(header::HOST, host)
        .header(header::ORIGIN, &at.book.origin)
        .header(header::COOKIE, &on_domain);
    call.answer().await.problem(401, "identity_required");
}

#[tokio::test]
async fn sessions_end_with_the_domain_of_their_project() {
    let at = DomainGuestBook::new().await;
    let fixture = &at.book.fixture;
    let other = fixture.owner.project(&fixture.server, "Other").await;
    let mut own = at.book.browser();
    at.book.sign_in(&mut own, ADA, "").await;
    for end in ["removed", "moved", "disabled"] {
        let mut browser = at.book.browser();
        at.sign_in(&mut browser).await;
        let cookie = browser.cookie(&at.url("/auth/status")).unwrap();
        assert!(at.user_with(&at.origin, &cookie).await.is_object(), "{end}");
        assert_eq!(at.sessions(), 2, "{end}");
        match end {
            "removed" => at.remove().await,
            "moved" => at.prove_for(&other).await,
            _ => {
                at.switch(false).await;
                at.switch(true).await;
            }
        }
        assert_eq!(at.sessions(), 1, "{end}");
        // It is the project's again, and nobody is signed in there.
        if end == "moved" {
            let path = format!("/{other}/domains/{NAME}");
            fixture
                .owner
                .delete(&fixture.server, &path)
                .await
                .expect(204);
        }
        at.prove_for(&fixture.project).await;
        let user = at.user_with(&at.origin, &cookie).await;
        assert_eq!(user, json!(null), "{end}");
    }
    // Who is signed in on the project's own origin stays so, and a redirect ends no session.
    let own_host = at.book.origin.strip_prefix("http://").unwrap();
    let own_host = own_host.split(':').next().unwrap();
    let mut browser = at.book.browser();
    at.sign_in(&mut browser).await;
    at.redirect_to(Some(own_host)).await;
    at.redirect_to(None).await;
    assert_ne!(at.user(&mut browser, &at.origin).await, json!(null));
    assert_ne!(at.user(&mut own, &at.book.origin).await, json!(null));
}

#[tokio::test]
async fn a_visitor_buys_on_a_domain_and_is_recognised_there_alone() {
    let at = DomainGuestBook::new().await;
    let fixture = &at.book.fixture;
    let price =
        json!({ "product_name": "Handbook", "label": "PDF", "amount": 900, "currency": "eur" });
    let path = format!("/{}/payments/catalog", fixture.project);
    let price = fixture.owner.post(&fixture.server, &path, &price).await;
    let body = json!({ "price": price.expect(201).json()["id"], "return_to": "/room?a=b#end" });
    let mut browser = at.book.browser();
    let url = at.url("/payments/checkout");
    for origin in [&at.book.origin, &at.book.sites] {
        let headers = origin_header(origin);
        let refused = browser.send_request(Method::POST, &url, headers, Some(body.to_string()));
        refused.await.problem(403, "origin_refused");
    }
    let mut headers = origin_header(&at.origin);
    headers.insert(header::ACCEPT, "application/json".parse().unwrap());
    let begun = browser.send_request(Method::POST, &url, headers, Some(body.to_string()));
    let begun = begun.await.expect(200).json();
    let hosts: Vec<&str> = browser
        .cookies
        .iter()
        .map(|one| one.host.as_str())
        .collect();
    assert_eq!(hosts, [at.origin.strip_prefix("http://").unwrap()]);
    let (page, shown) = browser.open(&text(&begun["url"])).await;
    shown.expect(200);
    let form = "outcome=pay&email=ada%40example.com";
    let back = browser.submit(&page, form).await.expect(303);
    let expected = at.url("?a=b&checkout=success#end");
    assert_eq!(back.header("location"), Some(&*expected));
    let cookie = browser.cookie(&at.url("/payments/status")).unwrap();
    let bought = at.bought_with(&at.origin, &cookie).await;
    assert_eq!(bought.len(), 1, "{bought:?}");
    assert_eq!(bought[0]["matched_by"], "cookie");
    for origin in [&at.book.origin, &at.book.sites] {
        let bought = at.bought_with(origin, &cookie).await;
        assert!(bought.is_empty(), "{origin} {bought:?}");
    }
    // What was paid is there again when the domain is.
    at.remove().await;
    at.prove_for(&fixture.project).await;
    assert_eq!(at.bought_with(&at.origin, &cookie).await.len(), 1);
}

#[tokio::test]
async fn rooms_and_live_queries_are_at_home_on_a_domain() {
    let at = DomainGuestBook::new().await;
    let fixture = &at.book.fixture;
    at.switch_realtime_on().await;
    let host = at.origin.strip_prefix("http://").unwrap();
    for path in ["/room/ws?room=a", "/room/api/live"] {
        let open = async |origin: &str| {
            let headers = [("host", host), ("origin", origin)];
            fixture.server.socket(path, &headers).await.map(drop)
        };
        assert_eq!(open(&at.origin).await, Ok(()), "{path}");
        for origin in [at.book.origin.as_str(), "http://evil.com"] {
            assert_eq!(open(origin).await, Err(403), "{path} {origin}");
        }
    }
    // Answers that are the visitor's own.
    let mut browser = at.book.browser();
    at.sign_in(&mut browser).await;
    let cookie = browser.cookie(&at.url("/api/live")).unwrap();
    let mut live = at.socket("/room/api/live", &at.origin, &cookie).await;
    let first = subscribe_and_read_first(&mut live, "a", "mine", &json!({})).await;
    assert_eq!(first["result"]["rows"], json!([]));
    assert_eq!(at.sign(&mut browser, &at.origin).await, 200);
    let rows = next_rows(&mut live, "a", 2).await;
    assert_eq!(rows[0]["words"], "hello");
    let stream = async |origin: &str| {
        let stream = fixture.server.get("/room/api/live?action=mine");
        let stream = stream
            .header(header::HOST, host)
            .header(header::ORIGIN, origin)
            .header(header::COOKIE, &cookie)
            .header(header::ACCEPT, "text/event-stream");
        stream.send().await.unwrap()
    };
    let mut own = stream(&at.origin).await;
    assert_eq!(own.status(), 200);
    let chunk = own.chunk().await.unwrap().unwrap();
    assert!(chunk.starts_with(b"event: result\n"), "{chunk:?}");
    assert_eq!(stream(&at.book.origin).await.status(), 401);
    // On another host the cookie is nobody's.
    let mut elsewhere = at.socket("/room/api/live", &at.book.origin, &cookie).await;
    let subscribe =
        json!({ "v": 1, "type": "subscribe", "id": "a", "action": "mine", "params": {} });
    elsewhere.send(subscribe.to_string()).await;
    let refused = elsewhere.envelope().await;
    assert_eq!(refused["problem"]["code"], "identity_required", "{refused}");
}

#[tokio::test]
async fn what_is_open_on_a_domain_closes_when_the_domain_is_the_projects_no_more() {
    for end in ["removed", "disabled", "moved", "redirected"] {
        let at = DomainGuestBook::new().await;
        let fixture = &at.book.fixture;
        at.switch_realtime_on().await;
        let mut room = at.socket("/room/ws?room=a", &at.origin, "").await;
        room.wait_for_envelope("svc:welcome").await;
        let mut live = at.socket("/room/api/live", &at.origin, "").await;
        subscribe_and_read_first(&mut live, "a", "all", &json!({})).await;
        let mut own = at.socket("/room/ws?room=a", &at.book.origin, "").await;
        own.wait_for_envelope("svc:welcome").await;
        let stream = fixture.server.get("/room/api/live?action=all");
        let stream = stream
            .header(header::HOST, at.origin.strip_prefix("http://").unwrap())
            .header(header::ACCEPT, "text/event-stream");
        let stream = stream.send().await.unwrap();
        assert_eq!(stream.status(), 200);
        let own_host = at.book.origin.strip_prefix("http://").unwrap();
        match end {
            "removed" => at.remove().await,
            "moved" => {
                let other = fixture.owner.project(&fixture.server, "Other").await;
                at.prove_for(&other).await;
            }
            "redirected" => at.redirect_to(own_host.split(':').next()).await,
            _ => at.switch(false).await,
        }
        assert_eq!(room.wait_for_close().await, Some(1001), "{end}");
        assert_eq!(live.wait_for_close().await, Some(1001), "{end}");
        let events = stream.text().await.unwrap();
        assert!(events.contains("event: error\n"), "{end}: {events}");
        // Who is on the project's own origin sees them leave, and stays.
        own.wait_for_envelope("svc:leave").await;
        own.send("{}").await;
        own.wait_for_envelope("svc:error").await;
    }
}

#[tokio::test]
async fn a_change_of_a_domain_closes_no_socket_that_is_at_home() {
    let at = DomainGuestBook::new().await;
    let fixture = &at.book.fixture;
    at.switch_realtime_on().await;
    let mut room = at.socket("/room/ws?room=a", &at.origin, "").await;
    room.wait_for_envelope("svc:welcome").await;
    // The proof is missed, and found again.
    let path = format!("{}/verify", at.path());
    at.dns.clear(NAME);
    let missed = fixture.owner.post(&fixture.server, &path, &json!({})).await;
    missed.problem(409, "domain_unproven");
    // Another domain comes and goes.
    let list = format!("/{}/domains", fixture.project);
    let body = json!({ "name": "shop.com" });
    let added = fixture.owner.post(&fixture.server, &list, &body).await;
    at.dns.set_record(&added.expect(201).json()["records"][0]);
    let path = format!("{list}/shop.com");
    let verify = format!("{path}/verify");
    let verified = fixture
        .owner
        .post(&fixture.server, &verify, &json!({}))
        .await;
    verified.expect(200);
    let removed = fixture.owner.delete(&fixture.server, &path).await;
    removed.expect(204);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    room.send("{}").await;
    room.wait_for_envelope("svc:error").await;
}
