//! Secrets of a sign-in: neither the log at its most talkative tells one, nor an answer but that of the step that it is for.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use svc_tests::browser::{Browser, location};
use svc_tests::{Answer, Process};
use tempfile::TempDir;

use super::dishonest_issuer::DISHONEST_ANSWERS;
use super::guest_book::DDL;
use super::stub_issuer::{IssuerState, StubIssuer};
use crate::crashes::OwnerProcess;
use crate::owner::text;
use crate::svc;

/// A page of a server that is a process, so that its whole log can be read.
pub(super) struct Page {
    /// The page's own address.
    pub(super) url: String,
    /// The sites host.
    pub(super) sites: String,
}

/// Answers and secrets of one sign-in.
#[derive(Default)]
struct SignInRecord {
    /// Each answer with the step that it belongs to.
    answers: Vec<(&'static str, Answer)>,
    /// Secrets with their kinds.
    secrets: BTreeSet<(&'static str, String)>,
    /// The cookies at the end.
    browser: Option<Browser>,
    /// URL at the end.
    end: String,
}

/// Secrets that an answer may hold for its own step: in the address of the next one, and in the cookie that it sets.
const ALLOWED_SECRETS: [(&str, &str, &str); 6] = [
    ("login", "location", "state"),
    // Which the issuers of these tests give out as the code.
    ("login", "location", "code"),
    ("login", "set-cookie", "browser"),
    ("callback", "location", "ticket"),
    ("complete", "set-cookie", "session"),
    ("again", "set-cookie", "browser"),
];

impl SignInRecord {
    fn record_answer(&mut self, step: &'static str, answer: &Answer) {
        self.answers.push((step, answer.clone()));
        for line in answer.headers.get_all("set-cookie") {
            let line = line.to_str().unwrap();
            let (name, rest) = line.split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            let kind = match name.contains("session") {
                true => "session",
                false => "browser",
            };
            if !value.is_empty() {
                self.secrets.insert((kind, value.to_owned()));
            }
        }
    }

    fn record_secret(&mut self, kind: &'static str, value: &str) {
        self.secrets.insert((kind, value.to_owned()));
    }
}

/// Parameters of an address.
fn query_parameters(url: &str) -> HashMap<String, String> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs.into_owned().collect()
}

impl Page {
    /// Signs in with a provider as far as that goes.
    async fn sign_in_with_issuer(&self, browser: Browser, provider: &str) -> SignInRecord {
        let (mut walk, mut browser) = (SignInRecord::default(), browser);
        let login = format!(
            "{}/auth/login?provider={provider}&return_to=/shop?at=home",
            self.url
        );
        let answer = browser.get(&login).await.expect(302);
        walk.record_answer("login", &answer);
        walk.end = location(&login, &answer);
        if walk.end.contains("/authorize?") {
            let asked = query_parameters(&walk.end);
            walk.record_secret("state", &asked["state"]);
            walk.record_secret("code", &asked["nonce"]);
            let callback = format!(
                "{}/_svc/auth/callback/{provider}?code={}&state={}",
                self.sites, asked["nonce"], asked["state"]
            );
            let answer = browser.get(&callback).await.expect(302);
            walk.record_answer("callback", &answer);
            walk.end = location(&callback, &answer);
            // Once more, as the back button does.
            let again = browser.get(&callback).await.expect(302);
            walk.record_answer("again", &again);
        }
        if let Some(ticket) = query_parameters(&walk.end).get("ticket") {
            walk.record_secret("ticket", ticket);
            let complete = walk.end.clone();
            let answer = browser.get(&complete).await.expect(302);
            walk.record_answer("complete", &answer);
            walk.end = location(&complete, &answer);
            let again = browser.get(&complete).await.expect(302);
            walk.record_answer("again", &again);
        }
        for below in ["/auth/status", "/auth/providers", "/auth/complete?ticket=x"] {
            let answer = browser.get(&format!("{}{below}", self.url)).await;
            walk.record_answer("page", &answer);
        }
        walk.browser = Some(browser);
        walk
    }

    /// Calls an action as the page does, and signs out.
    async fn call_and_sign_out(&self, walk: &mut SignInRecord) {
        let mut browser = walk.browser.take().unwrap();
        let origin = self.url.strip_suffix("/shop").unwrap();
        let headers = HeaderMap::from_iter([("origin".parse().unwrap(), origin.parse().unwrap())]);
        let body = json!({ "action": "mine" }).to_string();
        let op = format!("{}/api/op", self.url);
        let answer = browser.send_request(Method::POST, &op, headers.clone(), Some(body));
        let answer = answer.await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        walk.record_answer("page", &answer);
        let logout = format!("{}/auth/logout", self.url);
        let answer = browser
            .send_request(Method::POST, &logout, headers, None)
            .await;
        walk.record_answer("page", &answer.expect(204));
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

/// An installation with a page, and with these issuers as providers p0, p1, ….
async fn start_installation<'a>(
    root: &TempDir,
    stubs: &[StubIssuer],
    credential: &'a mut String,
) -> (OwnerProcess<'a>, Page) {
    let mut config = String::new();
    for (number, stub) in stubs.iter().enumerate() {
        write!(
            config,
            "[[providers]]\nname = 'p{number}'\nissuer = '{}'\nclient_id = 'me'\nclient_secret = 'client-secret-{number}-'\n",
            stub.address()
        )
        .unwrap();
    }
    start_with_tables(root, &config, credential).await
}

/// An installation with a page, and with these tables in its settings. Its log is as talkative as can be.
pub(super) async fn start_with_tables<'a>(
    root: &TempDir,
    tables: &str,
    credential: &'a mut String,
) -> (OwnerProcess<'a>, Page) {
    let config = format!("access_log = true\n{tables}[limits]\nsign_in_burst = 100000\n");
    let file = root.path().join("svc.toml");
    std::fs::write(&file, config).unwrap();
    let data = root.path().join("data");
    let create = ["namespace", "create", "acme", "--json"];
    *credential = text(&svc().run(&data, &create).await.json()["credential"]);
    let arguments = ["--config", file.to_str().unwrap()];
    let talkative = [("SVC_LOG", "trace")];
    let process = svc()
        .serve_with_environment(&talkative, &[], &data, &arguments)
        .await;
    let site = OwnerProcess {
        process,
        credential,
    };
    let (_, project) = site.post("", json!({ "name": "Shop" })).await;
    let project = text(&project["id"]);
    let backend = format!("/{project}/backend");
    assert_eq!(site.post(&backend, json!({ "ddl": DDL })).await.0, 201);
    let mine = "SELECT words FROM entries WHERE user_id = :svc_user_id";
    let actions = json!({ "actions": [{ "name": "mine", "sql": mine }] });
    let path = format!("{backend}/actions");
    let put = site.send_request(Method::PUT, &path, Some(actions)).await;
    assert_eq!(put.unwrap().0, 200);
    let shop = json!({ "type": "html", "content": "x", "requested_slug": "shop" });
    let (_, page) = site.post(&format!("/{project}/frontends"), shop).await;
    let page = Page {
        url: text(&page["url"]),
        sites: format!("http://localhost:{}", site.process.address().port()),
    };
    (site, page)
}

/// Secrets that an issuer was told, or gave out.
fn secrets_of(inner: &IssuerState) -> Vec<(&'static str, String)> {
    let mut found = vec![("token", "at-sesame".to_owned())];
    for token in &inner.issued_tokens {
        let parts = token.split('.').filter(|part| part.len() > 8);
        // The header of a token says nothing but how it is signed.
        found.extend(parts.skip(1).map(|part| ("token", part.to_owned())));
    }
    for (path, body, _) in &inner.requests {
        if path == "/token" {
            let verifier = body
                .split('&')
                .find_map(|pair| pair.strip_prefix("code_verifier="));
            found.push(("verifier", verifier.unwrap().to_owned()));
        }
    }
    found
}

#[tokio::test]
async fn neither_log_nor_answers_tell_what_a_sign_in_is_made_of() {
    let mut stubs = vec![StubIssuer::start().await];
    for (_, change, _) in DISHONEST_ANSWERS {
        let stub = StubIssuer::start().await;
        stub.change(|inner| inner.now = now());
        stub.change(change);
        stubs.push(stub);
    }
    stubs[0].change(|inner| inner.now = now());
    let (root, mut credential) = (TempDir::new().unwrap(), String::new());
    let (site, page) = start_installation(&root, &stubs, &mut credential).await;
    let address = site.process.address();
    let walks = (0..stubs.len()).map(async |number| {
        page.sign_in_with_issuer(Browser::new(address), &format!("p{number}"))
            .await
    });
    let mut walks = join_all(walks).await;
    assert_eq!(
        walks[0].end,
        format!("{}?at=home", page.url),
        "one succeeds"
    );
    page.call_and_sign_out(&mut walks[0]).await;
    for (walk, (lie, ..)) in walks[1..].iter().zip(DISHONEST_ANSWERS) {
        // By the machine's clock, what was yet to come may have come meanwhile.
        let failed = walk.end.contains("auth_error=") || ["iat", "nbf"].contains(&lie);
        assert!(failed, "{lie}: {}", walk.end);
    }
    let log = whole_log(&site.process).await;
    assert!(log.contains("TRACE"), "it is as talkative as can be");

    let mut secrets: BTreeSet<(&str, String)> = BTreeSet::new();
    for (number, stub) in stubs.iter().enumerate() {
        secrets.extend(stub.change(|inner| secrets_of(inner)));
        secrets.insert(("client secret", format!("client-secret-{number}-")));
    }
    secrets.insert(("credential", credential.clone()));
    for walk in &walks {
        secrets.extend(walk.secrets.iter().cloned());
    }
    let kinds: BTreeSet<_> = secrets.iter().map(|(kind, _)| *kind).collect();
    let all = [
        "browser",
        "client secret",
        "code",
        "credential",
        "session",
        "state",
        "ticket",
        "token",
        "verifier",
    ];
    assert_eq!(kinds, BTreeSet::from(all));
    for (kind, secret) in &secrets {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "the log tells a {kind}: {secret}");
    }
    for walk in &walks {
        for (step, answer) in &walk.answers {
            assert_discloses_nothing_else(step, answer, &secrets);
        }
        for (kind, secret) in &secrets {
            assert!(!walk.end.contains(secret), "the address tells a {kind}");
        }
    }
}

/// The log with the line of everything that was answered so far: it is written behind the answers.
pub(super) async fn whole_log(process: &Process) -> String {
    let last = process.get("/healthz").await;
    let id = last.header("x-request-id").unwrap().to_owned();
    let log = async || Some(process.stderr()).filter(|log| log.contains(&id));
    svc_tests::wait_until("the log to be written", log).await
}

/// Asserts that an answer has only the secrets that its step needs.
fn assert_discloses_nothing_else(step: &str, answer: &Answer, secrets: &BTreeSet<(&str, String)>) {
    let body = String::from_utf8_lossy(&answer.body);
    for (kind, secret) in secrets {
        assert!(!body.contains(secret), "the body of {step} tells a {kind}");
        for (name, value) in &answer.headers {
            let allowed = ALLOWED_SECRETS.contains(&(step, name.as_str(), kind));
            let told = value.to_str().unwrap().contains(secret);
            assert!(allowed || !told, "`{name}` of {step} tells a {kind}");
        }
    }
}

/// A callback that belongs to no sign-in, and a session that is none.
#[tokio::test]
async fn what_is_made_up_is_not_repeated() {
    let (root, mut credential) = (TempDir::new().unwrap(), String::new());
    let stub = StubIssuer::start().await;
    let (site, page) = start_installation(&root, &[stub], &mut credential).await;
    let secret = "made-up-secret-of-somebody";
    let callback = format!(
        "{}/_svc/auth/callback/p0?code={secret}&state={secret}&error={secret}&iss={secret}",
        page.sites
    );
    let mut browser = Browser::new(site.process.address());
    let refused = browser.get(&callback).await;
    assert_eq!(refused.status, 400);
    for below in [
        format!("/auth/complete?ticket={secret}"),
        format!("/auth/login?provider={secret}"),
        format!("/auth/login?return_to=https://{secret}"),
    ] {
        let answer = browser.get(&format!("{}{below}", page.url)).await;
        let said = format!("{:?}{}", answer.headers, answer.text());
        assert!(!said.contains(secret), "{below}: {said}");
    }
    assert!(!refused.text().contains(secret), "{}", refused.text());
    let cookie = format!("svc_session_x={}", "s".repeat(43));
    let host = page.url.split('/').nth(2).unwrap().to_owned();
    let asked = site.process.client();
    let asked = asked.get(site.process.url("/shop/auth/status"));
    let asked = asked.header("host", host).header("cookie", &cookie);
    let status = svc_tests::ReadAnswer::answer(asked)
        .await
        .expect(200)
        .json();
    assert_eq!(status, json!({ "user": Value::Null }));
    let log = whole_log(&site.process).await;
    for secret in [secret, &"s".repeat(43)] {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None);
    }
}
