//! Sign-in by passkeys: what a device says is believed only where all of it is right, and nothing is stored of the rest.

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use svc::config::SignInSettings;
use svc_tests::authenticator::{Authenticator, PasskeyAlgorithm, PasskeyLies, PasskeyPrompt};
use svc_tests::browser::{Browser, location};
use svc_tests::{Answer, wait_until};

use super::guest_book::GuestBook;
use crate::owner::text;

/// A guest book whose visitors have passkeys.
struct Passkeys {
    book: GuestBook,
}

/// A sign-in in a browser, at the page that asks for a passkey.
struct SignIn {
    browser: Browser,
    /// Address of the page.
    at: String,
    page: String,
}

impl Passkeys {
    async fn start() -> Self {
        let on = SignInSettings { passkeys: true };
        let book = GuestBook::with_settings(|settings| settings.sign_in = on).await;
        Self { book }
    }

    fn sites(&self) -> &str {
        &self.book.sites
    }

    async fn begin(&self) -> SignIn {
        self.begin_at(&self.book.url("/auth/login?return_to=/room?a=b"))
            .await
    }

    async fn begin_at(&self, login: &str) -> SignIn {
        let mut browser = self.book.browser();
        let answer = browser.get(login).await.expect(302);
        let at = location(login, &answer);
        let begins = format!("{}/_svc/auth/passkey?state=", self.sites());
        assert!(at.starts_with(&begins), "{at}");
        let page = browser.get(&at).await.expect(200).text().to_owned();
        SignIn { browser, at, page }
    }

    /// Makes an account; returns the browser that it signed in.
    async fn create(&self, device: &mut Authenticator, name: &str) -> Browser {
        let mut sign_in = self.begin().await;
        let (end, _) = sign_in.create(device, self.sites(), name).await;
        assert_eq!(end, self.book.url("?a=b"));
        sign_in.browser
    }

    fn count(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        let control = &self.book.fixture.server.server().app().control;
        control
            .read_blocking(|c| c.query_row(&sql, [], |row| row.get(0)))
            .unwrap()
    }

    /// The numbers of accounts, passkeys and visitors.
    fn counts(&self) -> [i64; 3] {
        ["passkey_accounts", "passkeys", "visitors"].map(|table| self.count(table))
    }
}

impl SignIn {
    async fn send(&mut self, form: &str) -> Answer {
        self.browser.submit(&self.at, form).await
    }

    /// Makes a passkey; returns where that leads, and the form that was sent.
    async fn create(
        &mut self,
        device: &mut Authenticator,
        origin: &str,
        name: &str,
    ) -> (String, String) {
        let prompt = PasskeyPrompt::find(&self.page, "create");
        let form = prompt.form(Some(name), &device.create(&prompt.options, origin));
        (self.finish(&form).await, form)
    }

    /// Uses a passkey; returns where that leads, and the form that was sent.
    async fn get(&mut self, device: &mut Authenticator, origin: &str) -> (String, String) {
        let prompt = PasskeyPrompt::find(&self.page, "get");
        let form = prompt.form(None, &device.get(&prompt.options, origin));
        (self.finish(&form).await, form)
    }

    async fn finish(&mut self, form: &str) -> String {
        let answer = self.send(form).await.expect(303);
        self.browser.follow(&self.at, answer).await.0
    }
}

#[tokio::test]
async fn who_has_a_passkey_is_known_again_by_every_algorithm() {
    let passkeys = Passkeys::start().await;
    let book = &passkeys.book;
    for (number, algorithm) in [
        PasskeyAlgorithm::Es256,
        PasskeyAlgorithm::EdDsa,
        PasskeyAlgorithm::Rs256,
    ]
    .into_iter()
    .enumerate()
    {
        let mut device = Authenticator::with_algorithm(algorithm);
        let mut browser = passkeys.create(&mut device, " Ada Lovelace ").await;
        let user = book.user(&mut browser).await;
        assert_eq!(user["provider"], "passkey", "{algorithm:?}");
        assert_eq!(user["name"], "Ada Lovelace");
        assert_eq!(user.get("email"), None);
        let one = i64::try_from(number).unwrap() + 1;
        assert_eq!(passkeys.counts(), [one, one, one]);
        // Another browser, with the device.
        let mut again = passkeys.begin().await;
        let (end, form) = again.get(&mut device, passkeys.sites()).await;
        assert_eq!(end, book.url("?a=b"));
        assert_eq!(book.user(&mut again.browser).await["id"], user["id"]);
        // What was sent is good once.
        let late = again.finish(&form).await;
        assert!(late.ends_with("auth_error=state_invalid"), "{late}");
        assert_eq!(passkeys.counts(), [one, one, one]);
        let mine = json!({ "action": "mine" });
        book.call(&mut again.browser, &mine).await.expect(200);
    }
}

#[tokio::test]
async fn a_page_asks_for_what_the_contract_says() {
    let passkeys = Passkeys::start().await;
    let mut sign_in = passkeys.begin().await;
    let (create, get) = (
        PasskeyPrompt::find(&sign_in.page, "create").options,
        PasskeyPrompt::find(&sign_in.page, "get").options,
    );
    assert_eq!(create["rp"]["id"], "localhost");
    assert_eq!(get["rpId"], "localhost");
    let algorithms = create["pubKeyCredParams"].as_array().unwrap().iter();
    let algorithms: Vec<_> = algorithms.map(|one| one["alg"].as_i64().unwrap()).collect();
    assert_eq!(algorithms, [-8, -7, -257]);
    assert_eq!(create["attestation"], "none");
    assert_eq!(create["authenticatorSelection"]["residentKey"], "required");
    for verification in [
        &create["authenticatorSelection"]["userVerification"],
        &get["userVerification"],
    ] {
        assert_eq!(verification, "required");
    }
    assert_eq!(get["allowCredentials"], json!([]));
    assert_ne!(create["challenge"], get["challenge"]);
    let page = sign_in.browser.get(&sign_in.at.clone()).await.expect(200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'sha256-"), "{policy}");
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert_eq!(page.header("access-control-allow-origin"), None);
    assert!(page.text().contains("House") && page.text().contains("<noscript>"));
    // A script gets nothing, nor does the form of another page.
    let mut headers = HeaderMap::new();
    headers.insert("sec-fetch-mode", "cors".parse().unwrap());
    headers.insert("sec-fetch-dest", "empty".parse().unwrap());
    let at = sign_in.at.clone();
    let read = sign_in
        .browser
        .send_request(Method::GET, &at, headers, None);
    read.await.problem(403, "origin_refused");
    let mut headers = HeaderMap::new();
    headers.insert("origin", passkeys.book.origin.parse().unwrap());
    let form = Some("challenge=x&credential=y".to_owned());
    let sent = sign_in
        .browser
        .send_request(Method::POST, &at, headers, form);
    sent.await.problem(403, "origin_refused");
    // A name is required, and a script.
    let prompt = PasskeyPrompt::find(&sign_in.page, "create");
    for (name, credential, said) in [
        ("", "{}", "Give a name"),
        (" ", "{}", "Give a name"),
        ("Ada", "", "script"),
    ] {
        let answer = sign_in.send(&prompt.form(Some(name), credential)).await;
        let answer = answer.expect(400);
        assert!(answer.text().contains(said), "{}", answer.text());
    }
    assert_eq!(passkeys.counts(), [0, 0, 0]);
}

#[tokio::test]
async fn pages_of_projects_cannot_ask_for_passkeys() {
    let passkeys = Passkeys::start().await;
    let mut browser = passkeys.book.browser();
    let none = "publickey-credentials-create=(), publickey-credentials-get=()";
    for url in [passkeys.book.url(""), passkeys.book.url("/auth/status")] {
        let page = browser.get(&url).await.expect(200);
        assert_eq!(page.header("permissions-policy"), Some(none), "{url}");
    }
    let mut sign_in = passkeys.begin().await;
    let own = sign_in.browser.get(&sign_in.at).await.expect(200);
    assert_eq!(own.header("permissions-policy"), None);
    // Where there are no passkeys, pages have what browsers give them.
    let book = GuestBook::with_dev_provider().await;
    let page = book.browser().get(&book.url("")).await.expect(200);
    assert_eq!(page.header("permissions-policy"), None);
}

#[tokio::test]
async fn a_passkey_that_is_removed_meanwhile_begins_no_session() {
    let passkeys = Passkeys::start().await;
    let book = &passkeys.book;
    let mut device = Authenticator::default();
    let mut browser = passkeys.create(&mut device, "Ada").await;
    let id = text(&book.user(&mut browser).await["id"]);
    let mut sign_in = passkeys.begin().await;
    let prompt = PasskeyPrompt::find(&sign_in.page, "get");
    let form = prompt.form(None, &device.get(&prompt.options, passkeys.sites()));
    let sent = sign_in.send(&form).await.expect(303);
    let fixture = &book.fixture;
    let visitor = format!("/{}/visitors/{id}", fixture.project);
    let gone = fixture.owner.delete(&fixture.server, &visitor).await;
    gone.expect(204);
    let (end, _) = sign_in.browser.follow(&sign_in.at, sent).await;
    assert_eq!(end, book.url("?a=b&auth_error=token_invalid"));
    assert_eq!(passkeys.counts(), [0, 0, 0]);
}

/// The lies of a device, each with the error that the page gets.
fn lies(passkeys: &Passkeys) -> Vec<(&'static str, PasskeyLies)> {
    let honest = PasskeyLies::default;
    let other = "A".repeat(43);
    vec![
        (
            "token_invalid",
            PasskeyLies {
                origin: Some("https://evil.example".to_owned()),
                ..honest()
            },
        ),
        (
            "token_invalid",
            PasskeyLies {
                origin: Some(passkeys.book.origin.clone()),
                ..honest()
            },
        ),
        (
            "token_invalid",
            PasskeyLies {
                rp_id: Some("evil.example".to_owned()),
                ..honest()
            },
        ),
        (
            "token_invalid",
            PasskeyLies {
                kind: Some("payment.get"),
                ..honest()
            },
        ),
        (
            "state_invalid",
            PasskeyLies {
                challenge: Some(other),
                ..honest()
            },
        ),
        (
            "token_invalid",
            PasskeyLies {
                flags: Some(0x01),
                ..honest()
            },
        ),
        (
            "token_invalid",
            PasskeyLies {
                flags: Some(0x04),
                ..honest()
            },
        ),
        (
            "token_invalid",
            PasskeyLies {
                is_framed: true,
                ..honest()
            },
        ),
    ]
}

#[tokio::test]
async fn a_device_that_lies_signs_nobody_in() {
    let passkeys = Passkeys::start().await;
    let book = &passkeys.book;
    let error = |code: &str| book.url(&format!("?a=b&auth_error={code}"));
    let mut device = Authenticator::with_counter(10);
    // A new passkey.
    let mut wrong = lies(&passkeys);
    for algorithm in [-35, -36, -65_535, 0] {
        let algorithm = Some(algorithm);
        let lie = PasskeyLies {
            algorithm,
            ..PasskeyLies::default()
        };
        wrong.push(("token_invalid", lie));
    }
    for (code, lie) in wrong {
        let said = format!("{lie:?}");
        let mut liar = Authenticator::with_lies(lie);
        let mut sign_in = passkeys.begin().await;
        let (end, _) = sign_in.create(&mut liar, passkeys.sites(), "Eve").await;
        assert_eq!(end, error(code), "{said}");
        assert_eq!(passkeys.counts(), [0, 0, 0], "{said}");
    }
    // A known one.
    passkeys.create(&mut device, "Ada").await;
    let mut sign_in = passkeys.begin().await;
    let (end, _) = sign_in.get(&mut device, passkeys.sites()).await;
    assert_eq!(end, book.url("?a=b"));
    let mut wrong = lies(&passkeys);
    for counter in [0, 1, 10, 11] {
        let counter = Some(counter);
        let lie = PasskeyLies {
            counter,
            ..PasskeyLies::default()
        };
        wrong.push(("token_invalid", lie));
    }
    let forged = PasskeyLies {
        is_forged: true,
        ..PasskeyLies::default()
    };
    let stolen = PasskeyLies {
        user_handle: Some("A".repeat(43)),
        ..PasskeyLies::default()
    };
    wrong.extend([("token_invalid", forged), ("token_invalid", stolen)]);
    for (code, lie) in wrong {
        let said = format!("{lie:?}");
        device.lies = lie;
        let mut sign_in = passkeys.begin().await;
        let (end, _) = sign_in.get(&mut device, passkeys.sites()).await;
        assert_eq!(end, error(code), "{said}");
        assert_eq!(book.user(&mut sign_in.browser).await, Value::Null);
    }
    device.lies = PasskeyLies::default();
    let mut sign_in = passkeys.begin().await;
    let (end, _) = sign_in.get(&mut device, passkeys.sites()).await;
    assert_eq!(end, book.url("?a=b"));
    assert_eq!(passkeys.counts(), [1, 1, 1]);
    // A device that nobody knows.
    let mut stranger = Authenticator::default();
    let prompt = PasskeyPrompt::find(&passkeys.begin().await.page, "create");
    stranger.create(&prompt.options, passkeys.sites());
    let mut sign_in = passkeys.begin().await;
    let (end, _) = sign_in.get(&mut stranger, passkeys.sites()).await;
    assert_eq!(end, error("token_invalid"));
}

#[tokio::test]
async fn a_challenge_is_good_once_for_five_minutes_in_its_sign_in() {
    let passkeys = Passkeys::start().await;
    let book = &passkeys.book;
    let error = book.url("?a=b&auth_error=state_invalid");
    let mut device = Authenticator::default();
    passkeys.create(&mut device, "Ada").await;
    // Old.
    let mut sign_in = passkeys.begin().await;
    let prompt = PasskeyPrompt::find(&sign_in.page, "get");
    let form = prompt.form(None, &device.get(&prompt.options, passkeys.sites()));
    book.fixture.server.advance(300);
    assert_eq!(sign_in.finish(&form).await, error);
    // The page is there for ten minutes, with new challenges.
    sign_in.page = sign_in
        .browser
        .get(&sign_in.at)
        .await
        .expect(200)
        .text()
        .to_owned();
    let (end, _) = sign_in.get(&mut device, passkeys.sites()).await;
    assert_eq!(end, book.url("?a=b"));
    // Of another sign-in, and of another kind.
    let (mut one, mut two) = (passkeys.begin().await, passkeys.begin().await);
    let prompt = PasskeyPrompt::find(&one.page, "get");
    let form = prompt.form(None, &device.get(&prompt.options, passkeys.sites()));
    assert_eq!(two.finish(&form).await, error);
    let creation = PasskeyPrompt::find(&one.page, "create");
    let mut options = prompt.options.clone();
    options["challenge"] = creation.options["challenge"].clone();
    let form = creation.form(None, &device.get(&options, passkeys.sites()));
    assert_eq!(one.finish(&form).await, error);
    // Of another browser: the ticket is no use there.
    let begun = passkeys.begin().await;
    let mut led = SignIn {
        browser: book.browser(),
        at: begun.at.clone(),
        page: begun.page.clone(),
    };
    let (end, _) = led
        .create(&mut Authenticator::default(), passkeys.sites(), "Eve")
        .await;
    assert!(end.ends_with("auth_error=ticket_invalid"), "{end}");
    assert_eq!(passkeys.counts(), [1, 1, 1]);
    // Not sealed here.
    let mut sign_in = passkeys.begin().await;
    let prompt = PasskeyPrompt {
        challenge: "AAAA".to_owned(),
        ..PasskeyPrompt::find(&sign_in.page, "get")
    };
    let form = prompt.form(None, &device.get(&prompt.options, passkeys.sites()));
    assert_eq!(sign_in.finish(&form).await, error);
}

#[tokio::test]
async fn passkeys_are_added_and_removed_where_their_visitor_alone_sees_them() {
    let passkeys = Passkeys::start().await;
    let book = &passkeys.book;
    let (mut first, mut second) = (Authenticator::default(), Authenticator::default());
    let mut browser = passkeys.create(&mut first, "Ada").await;
    let leave = book.url("/auth/passkeys");
    book.browser()
        .get(&leave)
        .await
        .problem(401, "identity_required");
    let mut headers = HeaderMap::new();
    headers.insert("sec-fetch-mode", "cors".parse().unwrap());
    headers.insert("sec-fetch-dest", "empty".parse().unwrap());
    let read = browser.send_request(Method::GET, &leave, headers, None);
    read.await.problem(403, "origin_refused");
    let left = browser.get(&leave).await.expect(302);
    let ticket = location(&leave, &left);
    let (at, page) = browser.open(&ticket).await;
    let page = page.expect(200).text().to_owned();
    assert!(page.contains("Ada") && !page.contains("ticket"), "{page}");
    // The ticket is used, and the page is this browser's.
    let again = browser.get(&ticket).await.expect(303);
    assert_eq!(
        location(&ticket, &again),
        book.failure_url("ticket_invalid")
    );
    let other = book.browser().get(&at).await.expect(303);
    assert_eq!(location(&at, &other), book.failure_url("state_invalid"));
    // The last one stays.
    let remove = |page: &str| {
        let id = page.split("name=\"remove\" value=\"").nth(1).unwrap();
        format!("remove={}", id.split('"').next().unwrap())
    };
    let refused = browser.submit(&at, &remove(&page)).await.expect(409);
    assert!(refused.text().contains("only passkey"));
    // A second device, which signs the same visitor in.
    book.fixture.server.advance(1);
    let prompt = PasskeyPrompt::find(&page, "create");
    let excluded = prompt.options["excludeCredentials"].as_array().unwrap();
    assert_eq!(excluded.len(), 1);
    let form = prompt.form(None, &second.create(&prompt.options, passkeys.sites()));
    browser.submit(&at, &form).await.expect(303);
    assert_eq!(passkeys.counts(), [1, 2, 1]);
    let id = book.user(&mut browser).await["id"].clone();
    let mut sign_in = passkeys.begin().await;
    sign_in.get(&mut second, passkeys.sites()).await;
    assert_eq!(book.user(&mut sign_in.browser).await["id"], id);
    // The form again, and a device that lies.
    let late = browser.submit(&at, &form).await.expect(303);
    assert_eq!(location(&at, &late), book.failure_url("state_invalid"));
    let page = browser.get(&at).await.expect(200).text().to_owned();
    browser.submit(&at, &remove(&page)).await.expect(303);
    assert_eq!(passkeys.counts(), [1, 1, 1]);
    // The first device was the older one, and is forgotten.
    let mut sign_in = passkeys.begin().await;
    let (end, _) = sign_in.get(&mut first, passkeys.sites()).await;
    assert!(end.ends_with("auth_error=token_invalid"), "{end}");
}

#[tokio::test]
async fn an_account_is_somebody_else_in_each_project_and_ends_with_the_last() {
    let passkeys = Passkeys::start().await;
    let book = &passkeys.book;
    let mut device = Authenticator::default();
    let name = "Ada of Nowhere-Else";
    let mut browser = passkeys.create(&mut device, name).await;
    let here = text(&book.user(&mut browser).await["id"]);
    // A second project, whose page has the same visitor.
    let fixture = &book.fixture;
    let project = fixture.owner.project(&fixture.server, "Shop").await;
    fixture
        .owner
        .frontend(&fixture.server, &project, "shop")
        .await;
    let path = format!("/{project}");
    let made = fixture.owner.get(&fixture.server, &path).await;
    let origin = text(&made.expect(200).json()["url"]);
    let mut sign_in = passkeys
        .begin_at(&format!("{origin}/shop/auth/login"))
        .await;
    sign_in.get(&mut device, passkeys.sites()).await;
    let status = format!("{origin}/shop/auth/status");
    let there = sign_in.browser.get(&status).await.expect(200).json();
    let there = text(&there["user"]["id"]);
    assert_ne!(here, there);
    assert_eq!(passkeys.counts(), [1, 1, 2]);
    // Erased here, the account is still linked there.
    let erase = |project: &str, id: &str| format!("/{project}/visitors/{id}");
    let path = erase(&fixture.project, &here);
    fixture
        .owner
        .delete(&fixture.server, &path)
        .await
        .expect(204);
    assert_eq!(passkeys.counts(), [1, 1, 1]);
    let control = &fixture.server.server().app().control;
    let handle = "SELECT handle FROM passkey_accounts";
    let handle: String = control
        .read_blocking(|c| c.query_row(handle, [], |row| row.get(0)))
        .unwrap();
    let path = erase(&project, &there);
    fixture
        .owner
        .delete(&fixture.server, &path)
        .await
        .expect(204);
    assert_eq!(passkeys.counts(), [0, 0, 0]);
    // Neither the database nor its log has any of it.
    let has = |file: &str, text: &str| {
        let bytes = std::fs::read(fixture.server.data().join(file)).unwrap();
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    wait_until("the account to be gone from the files", async || {
        control.empty_log_if_deleted().unwrap();
        let left = ["control.db", "control.db-wal"]
            .iter()
            .any(|file| has(file, &handle) || has(file, name));
        (!left).then_some(())
    })
    .await;
    let mut sign_in = passkeys.begin().await;
    let (end, _) = sign_in.get(&mut device, passkeys.sites()).await;
    assert!(end.ends_with("auth_error=token_invalid"), "{end}");
}
