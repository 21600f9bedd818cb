//! Sign-in by codes that are sent to e-mail addresses.

use std::time::Duration;

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use svc::config::{Settings, SmtpSettings};
use svc_tests::Answer;
use svc_tests::browser::{Browser, location};
use svc_tests::fake_smtp::{FakeSmtp, SmtpBehaviour};

use super::guest_book::{GuestBook, provider_settings};
use super::stub_issuer::StubIssuer;
use crate::owner::text;

/// Guesses at once; thousands of them race in the tests of the codes themselves.
const GUESSES: usize = 200;

/// A guest book whose visitors get codes from a mail server.
struct Codes {
    book: GuestBook,
    smtp: FakeSmtp,
}

/// A sign-in in a browser, at the form for an address.
struct SignIn {
    browser: Browser,
    /// Address of the form.
    at: String,
}

fn smtp_settings(smtp: &FakeSmtp) -> SmtpSettings {
    SmtpSettings {
        url: smtp.url(),
        from: "codes@sender.example".to_owned(),
        name: Some("Pages".to_owned()),
    }
}

impl Codes {
    async fn start() -> Self {
        Self::with_settings(|_| ()).await
    }

    async fn with_settings(change: impl FnOnce(&mut Settings)) -> Self {
        let smtp = FakeSmtp::start().await;
        let settings = smtp_settings(&smtp);
        let book = GuestBook::with_settings(|all| {
            all.smtp = Some(settings);
            change(all);
        });
        Self {
            book: book.await,
            smtp,
        }
    }

    /// Begins a sign-in in a browser.
    async fn begin_in(&self, mut browser: Browser, query: &str) -> SignIn {
        let url = self.book.url(&format!("/auth/login?provider=email{query}"));
        let answer = browser.get(&url).await.expect(302);
        let at = location(&url, &answer);
        let form = format!("{}/_svc/auth/email?state=", self.book.sites);
        assert!(at.starts_with(&form), "{at}");
        SignIn { browser, at }
    }

    async fn begin(&self) -> SignIn {
        self.begin_in(self.book.browser(), "").await
    }

    /// Signs in with an address; returns the browser and where the sign-in has led.
    async fn sign_in(&self, address: &str) -> (Browser, String) {
        let mut sign_in = self.begin().await;
        sign_in.ask(address).await.expect(200);
        let code = self.smtp.newest().code();
        let end = sign_in.finish(&code).await;
        (sign_in.browser, end)
    }
}

impl SignIn {
    /// Sends the form for an address.
    async fn ask(&mut self, address: &str) -> Answer {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        let form = form.append_pair("email", address).finish();
        self.browser.submit(&self.at, &form).await
    }

    /// Sends the form for a code.
    async fn enter(&mut self, code: &str) -> Answer {
        let form = format!("code={code}");
        self.browser.submit(&self.at, &form).await
    }

    /// Sends a code and follows; returns where it leads in the end.
    async fn finish(&mut self, code: &str) -> String {
        let answer = self.enter(code).await.expect(303);
        self.browser.follow(&self.at, answer).await.0
    }
}

/// Returns another code than this one.
fn wrong(code: &str) -> &'static str {
    if code == "000000" { "000001" } else { "000000" }
}

#[tokio::test]
async fn a_code_signs_its_visitor_in() {
    let codes = Codes::start().await;
    let book = &codes.book;
    let mut sign_in = codes.begin_in(book.browser(), "&return_to=/room?a=b").await;
    let form = sign_in.browser.get(&sign_in.at).await.expect(200);
    assert!(form.text().contains("House") && form.text().contains("name=\"email\""));
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
    ] {
        assert_eq!(form.header(name), Some(value));
    }
    let policy = form.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(!form.text().contains("<script"));
    let asked = sign_in.ask(" Ada@BÜCHER.example").await.expect(200);
    assert!(asked.text().contains("name=\"code\"") && !asked.text().contains("<script"));
    let mail = codes.smtp.newest();
    assert_eq!(mail.to, "ada@xn--bcher-kva.example");
    assert_eq!(mail.from, "codes@sender.example");
    for said in [
        "Auto-Submitted: auto-generated\n",
        "To: ada@xn--bcher-kva.example\n",
        "From: Pages <codes@sender.example>\n",
        "Subject: Your code to sign in\n",
        "Date: Fri, 20 Nov 2026 12:00:00",
        "multipart/alternative",
        "text/plain",
        "text/html",
        "House",
    ] {
        assert!(mail.content.contains(said), "{said}: {}", mail.content);
    }
    for never in ["<img", "<a ", "href", "state=", "ticket"] {
        assert!(!mail.content.contains(never), "{never}: {}", mail.content);
    }
    let end = sign_in.finish(&mail.code()).await;
    assert_eq!(end, book.url("?a=b"));
    let user = book.user(&mut sign_in.browser).await;
    assert_eq!(user["provider"], "email");
    assert_eq!(user["email"], "ada@xn--bcher-kva.example");
    assert_eq!(user.get("name"), None);
    let mine = json!({ "action": "sign", "params": { "words": "Hi" } });
    book.call(&mut sign_in.browser, &mine).await.expect(200);
    // The same address is the same visitor, however it is written; another is another.
    let id = |user: &Value| text(&user["id"]);
    for (address, same) in [
        ("ADA@xn--bcher-kva.EXAMPLE", true),
        ("eve@example.com", false),
    ] {
        let (mut browser, end) = codes.sign_in(address).await;
        assert_eq!(end, book.url(""));
        let found = book.user(&mut browser).await;
        assert_eq!(id(&found) == id(&user), same, "{address}");
    }
    // The owner sees the visitor, and erases it.
    let owner = &book.fixture.owner;
    let visitors = format!("/{}/visitors", book.fixture.project);
    let listed = owner.get(&book.fixture.server, &visitors).await.expect(200);
    assert!(listed.text().contains("ada@xn--bcher-kva.example"));
    let gone = format!("{visitors}/{}", id(&user));
    owner.delete(&book.fixture.server, &gone).await.expect(204);
    assert_eq!(book.user(&mut sign_in.browser).await, Value::Null);
    let (mut browser, _) = codes.sign_in("ada@xn--bcher-kva.example").await;
    assert_ne!(id(&book.user(&mut browser).await), id(&user));
}

#[tokio::test]
async fn a_code_is_good_once_for_ten_minutes_in_its_browser() {
    let codes = Codes::start().await;
    let server = &codes.book.fixture.server;
    // A code lives for ten minutes of its own, whenever the sign-in began.
    let mut sign_in = codes.begin().await;
    server.advance(590);
    sign_in.ask("ada@example.com").await.expect(200);
    server.advance(599);
    let code = codes.smtp.newest().code();
    let end = sign_in.finish(&code).await;
    assert_eq!(end, codes.book.url(""));
    assert_ne!(codes.book.user(&mut sign_in.browser).await, Value::Null);
    // Used.
    let end = sign_in.finish(&code).await;
    assert_eq!(end, codes.book.failure_url("state_invalid"));
    let mails = codes.smtp.mails().len();
    let again = sign_in.ask("ada@example.com").await.expect(303);
    let again = location(&sign_in.at, &again);
    assert_eq!(again, codes.book.failure_url("state_invalid"));
    assert_eq!(codes.smtp.mails().len(), mails);
    // Too late, for the code and for the form.
    let mut sign_in = codes.begin().await;
    sign_in.ask("ada@example.com").await.expect(200);
    server.advance(600);
    let late = sign_in.enter(&codes.smtp.newest().code()).await;
    assert!(late.expect(400).text().contains("name=\"email\""));
    let late = sign_in.ask("ada@example.com").await.expect(303);
    let late = location(&sign_in.at, &late);
    assert_eq!(late, codes.book.failure_url("state_invalid"));
    // Another browser has no use for it, and spends none of its attempts.
    let mut sign_in = codes.begin().await;
    sign_in.ask("ada@example.com").await.expect(200);
    let code = codes.smtp.newest().code();
    let mut other = SignIn {
        browser: codes.book.browser(),
        at: sign_in.at.clone(),
    };
    for _ in 0..6 {
        other.enter(&code).await.expect(400);
    }
    assert_eq!(sign_in.finish(&code).await, codes.book.url(""));
    // Who enters the code of a sign-in that was begun elsewhere is not signed in.
    let begun = codes.begin().await;
    let mut led = SignIn {
        browser: codes.book.browser(),
        at: begun.at,
    };
    led.ask("eve@example.com").await.expect(200);
    let code = codes.smtp.newest().code();
    let end = led.finish(&code).await;
    assert_eq!(end, codes.book.failure_url("ticket_invalid"));
    assert_eq!(codes.book.user(&mut led.browser).await, Value::Null);
}

#[tokio::test]
async fn five_wrong_codes_end_the_right_one() {
    let codes = Codes::start().await;
    let mut sign_in = codes.begin().await;
    sign_in.ask("ada@example.com").await.expect(200);
    let code = codes.smtp.newest().code();
    for _ in 0..4 {
        let refused = sign_in.enter(wrong(&code)).await.expect(400);
        assert!(refused.text().contains("name=\"code\""));
        assert!(!refused.text().contains(&code));
    }
    let fifth = sign_in.enter(wrong(&code)).await.expect(400);
    assert!(fifth.text().contains("name=\"email\""));
    sign_in.enter(&code).await.expect(400);
    // A new code is a new start, and an older one counts for nothing.
    sign_in.ask("ada@example.com").await.expect(200);
    let old = codes.smtp.newest().code();
    sign_in.ask("ada@example.com").await.expect(200);
    let new = codes.smtp.newest().code();
    if old != new {
        sign_in.enter(&old).await.expect(400);
    }
    let spaced = format!("{}+{}", &new[..3], &new[3..]);
    assert_eq!(sign_in.finish(&spaced).await, codes.book.url(""));
}

#[tokio::test]
async fn of_racing_guesses_five_are_looked_at() {
    let unlimited = |settings: &mut Settings| settings.limits.sign_in_burst = 100_000;
    let codes = Codes::with_settings(unlimited).await;
    let mut sign_in = codes.begin().await;
    sign_in.ask("ada@example.com").await.expect(200);
    let code = codes.smtp.newest().code();
    let guesses = (0..GUESSES).map(|guess| format!("{guess:06}"));
    let guessing = guesses.filter(|guess| *guess != code).map(|guess| {
        let mut one = SignIn {
            browser: sign_in.browser.clone(),
            at: sign_in.at.clone(),
        };
        async move { one.enter(&guess).await.expect(400).text().to_owned() }
    });
    let answers = futures_util::future::join_all(guessing).await;
    let compared = answers
        .iter()
        .filter(|page| page.contains("That is not the code"));
    assert_eq!(compared.count(), 5);
    // Nobody has guessed it, and it is no use any more.
    sign_in.enter(&code).await.expect(400);
    assert_eq!(codes.book.user(&mut sign_in.browser).await, Value::Null);
}

#[tokio::test]
async fn mails_are_limited_by_address_client_and_project() {
    let codes = Codes::start().await;
    let mut sign_in = codes.begin().await;
    for _ in 0..5 {
        sign_in.ask("ada@example.com").await.expect(200);
    }
    codes.book.fixture.server.advance(600);
    let mut sign_in = codes.begin().await;
    let refused = sign_in.ask("ADA@example.com").await.expect(429);
    assert_eq!(refused.header("retry-after"), Some("3000"));
    assert!(
        refused
            .header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    assert!(refused.text().contains("50 minutes"), "{}", refused.text());
    for number in 0..15 {
        let address = format!("somebody{number}@example.com");
        sign_in.ask(&address).await.expect(200);
    }
    let refused = sign_in.ask("other@example.com").await.expect(429);
    assert!(
        refused.text().contains("your network"),
        "{}",
        refused.text()
    );
    assert_eq!(refused.header("retry-after"), Some("3000"));
    assert_eq!(codes.smtp.mails().len(), 20);
    codes.book.fixture.server.advance(3_000);
    let mut sign_in = codes.begin().await;
    sign_in.ask("ada@example.com").await.expect(200);

    let few = |settings: &mut Settings| settings.limits.mail_per_hour_project = 2;
    let codes = Codes::with_settings(few).await;
    let mut sign_in = codes.begin().await;
    for name in ["a", "b"] {
        let address = format!("{name}@example.com");
        sign_in.ask(&address).await.expect(200);
    }
    let refused = sign_in.ask("c@example.com").await.expect(429);
    assert!(refused.text().contains("this page"), "{}", refused.text());
}

#[tokio::test]
async fn a_race_for_codes_sends_no_more_than_the_limit() {
    let codes = Codes::start().await;
    let sign_in = codes.begin().await;
    let asking = (0..12).map(|_| {
        let mut one = SignIn {
            browser: sign_in.browser.clone(),
            at: sign_in.at.clone(),
        };
        async move { one.ask("ada@example.com").await.status }
    });
    let statuses = futures_util::future::join_all(asking).await;
    let sent = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!((sent, codes.smtp.mails().len()), (5, 5), "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 429].contains(status)));
}

#[tokio::test]
async fn a_mail_that_cannot_be_sent_leads_back_to_the_page() {
    let codes = Codes::start().await;
    for behaviour in [
        SmtpBehaviour::Refuse,
        SmtpBehaviour::Silent,
        SmtpBehaviour::Slow,
    ] {
        codes.smtp.set_behaviour(behaviour);
        let mut sign_in = codes.begin().await;
        // A page is answered within five seconds, whatever the mail server does.
        let asked = sign_in.ask("ada@example.com");
        let answer = tokio::time::timeout(Duration::from_millis(4_950), asked).await;
        let answer = answer.expect("an answer in time").expect(303);
        let back = location(&sign_in.at, &answer);
        assert_eq!(
            back,
            codes.book.failure_url("provider_unavailable"),
            "{behaviour:?}"
        );
    }
    assert_eq!(codes.smtp.mails(), []);
    // Afterwards a code is sent as if nothing had been.
    codes.smtp.set_behaviour(SmtpBehaviour::Accept);
    let (_, end) = codes.sign_in("ada@example.com").await;
    assert_eq!(end, codes.book.url(""));
}

#[tokio::test]
async fn what_is_no_address_gets_no_mail() {
    let codes = Codes::start().await;
    let mut sign_in = codes.begin().await;
    for address in [
        "",
        "ada",
        "ada@localhost",
        "ada@127.0.0.1",
        "ada@example.com\r\nBcc: eve@example.com",
        "ada@example.com, eve@example.com",
        "<script>@example.com",
        "\"<script>\"@example.com",
    ] {
        let refused = sign_in.ask(address).await.expect(400);
        assert!(refused.text().contains("name=\"email\""), "{address}");
        assert!(!refused.text().contains("<script"), "{address}");
    }
    for form in ["", "x=1", "email=a%40b.example&code=123456"] {
        let refused = sign_in.browser.submit(&sign_in.at, form).await;
        refused.problem(400, "invalid_request");
    }
    let long = format!("email={}", "a".repeat(5_000));
    let refused = sign_in.browser.submit(&sign_in.at, &long).await;
    refused.problem(413, "payload_too_large");
    // A code before any was sent.
    sign_in.enter("123456").await.expect(400);
    assert_eq!(codes.smtp.mails(), []);
}

#[tokio::test]
async fn only_the_form_itself_asks_for_a_mail() {
    let stub = StubIssuer::start().await;
    let other = provider_settings("acme", &stub);
    let codes = Codes::with_settings(|settings| settings.providers = vec![other]).await;
    let mut sign_in = codes.begin().await;
    for (origin, status) in [
        ("http://evil.example", 403),
        ("null", 403),
        (codes.book.origin.as_str(), 403),
        (codes.book.sites.as_str(), 200),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert("origin", origin.parse().unwrap());
        let form = Some("email=ada%40example.com".to_owned());
        let at = sign_in.at.clone();
        let sent = sign_in
            .browser
            .send_request(Method::POST, &at, headers, form);
        let sent = sent.await.expect(status);
        assert_eq!(
            sent.status == 200,
            codes.smtp.mails().len() == 1,
            "{origin}"
        );
    }
    // A state of another provider, one that is not ours, and none.
    let url = codes.book.url("/auth/login?provider=acme");
    let begun = sign_in.browser.get(&url).await.expect(302);
    let begun = location(&url, &begun);
    let state = url::Url::parse(&begun).unwrap();
    let state = state.query_pairs().find(|(name, _)| name == "state");
    let state = state.unwrap().1.into_owned();
    let form = format!("{}/_svc/auth/email", codes.book.sites);
    let foreign = sign_in.browser.get(&format!("{form}?state={state}")).await;
    let foreign = location(&form, &foreign.expect(303));
    assert_eq!(foreign, codes.book.failure_url("state_invalid"));
    for query in ["", "?state=", "?state=x", "?state=a&state=b"] {
        let refused = sign_in.browser.get(&format!("{form}{query}")).await;
        refused.problem(400, "invalid_request");
    }
    // A project that does not offer it.
    let fixture = &codes.book.fixture;
    let path = format!("/{}", fixture.project);
    let only = json!({ "allowed_providers": ["acme"] });
    let patch = fixture
        .owner
        .send(&fixture.server, Method::PATCH, &path, &only);
    patch.await.expect(200);
    let refused = sign_in.ask("ada@example.com").await.expect(303);
    let refused = location(&sign_in.at, &refused);
    assert_eq!(refused, codes.book.failure_url("provider_not_allowed"));
    // Answers of other providers end in no code's place.
    let callback = format!(
        "{}/_svc/auth/callback/email?code=1&state=x",
        codes.book.sites
    );
    let refused = sign_in.browser.get(&callback).await;
    refused.problem(400, "invalid_request");
    let mailbox = format!("{}/_svc/dev/mail", codes.book.sites);
    sign_in
        .browser
        .get(&mailbox)
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn while_developing_mails_are_shown() {
    let book = GuestBook::with_dev_provider().await;
    let fixture = &book.fixture;
    let offered = async |browser: &mut Browser| {
        let listed = browser.get(&book.url("/auth/providers")).await.expect(200);
        let listed = listed.json()["providers"].clone();
        let names = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|one| text(&one["name"]));
        names.collect::<Vec<_>>()
    };
    let mut browser = book.browser();
    // Only a project that names it offers it; a page can ask for it all the same.
    assert_eq!(offered(&mut browser).await, ["dev"]);
    let (at, form) = browser.open(&book.url("/auth/login?provider=email")).await;
    assert!(form.expect(200).text().contains("name=\"email\""), "{at}");
    let path = format!("/{}", fixture.project);
    let both = json!({ "allowed_providers": ["email"] });
    let patch = fixture
        .owner
        .send(&fixture.server, Method::PATCH, &path, &both);
    patch.await.expect(200);
    assert_eq!(offered(&mut browser).await, ["email"]);
    let (at, form) = browser.open(&book.url("/auth/login")).await;
    form.expect(200);
    browser
        .submit(&at, "email=ada%40example.com")
        .await
        .expect(200);
    let mailbox = format!("{}/_svc/dev/mail", book.sites);
    let shown = browser.get(&mailbox).await.expect(200);
    assert!(shown.text().contains("ada@example.com"), "{}", shown.text());
    let mut headers = HeaderMap::new();
    headers.insert("accept", "application/json".parse().unwrap());
    let mails = browser
        .send_request(Method::GET, &mailbox, headers, None)
        .await;
    let mails = mails.expect(200).json();
    let mail = text(&mails["mails"][0]["text"]);
    let code = mail
        .lines()
        .find(|line| line.len() == 6)
        .unwrap()
        .to_owned();
    let entered = browser
        .submit(&at, &format!("code={code}"))
        .await
        .expect(303);
    browser.follow(&at, entered).await;
    assert_eq!(book.user(&mut browser).await["email"], "ada@example.com");
}
